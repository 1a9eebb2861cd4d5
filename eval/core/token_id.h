// The id of a vocabulary entry; the only header of core that kernels may include.
#pragma once

#include <cstdint>

namespace asdbench {

using TokenId = std::int32_t;

/// No draft in this row, or padding. Never a valid index.
inline constexpr TokenId kNoToken = -1;

}  // namespace asdbench
