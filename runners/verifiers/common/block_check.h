// What every greedy rule does first: refuse blocks that nothing can be said about, count leading
// matches.
#pragma once

#include <cstdint>

#include "runners/verifier.h"

namespace asdbench {

/// Whether -inf in a row is a forbidden id or damage.
enum class Masked : std::uint8_t { kNo, kYes };

/// BlockError when a draft is outside the vocabulary, or when one of the K + 1 rows is unusable; in
/// this order (specs: asd, section 10).
void check_block(const Block& block, Masked masked);

/// Leading drafts that equal their row's choice.
std::int32_t leading_matches(const Block& block);

}  // namespace asdbench
