// How weights are stored in files and packed.
#pragma once

#include <cstdint>
#include <string_view>

namespace asdbench::kernels {

/// How a weight is stored, in the file and packed alike; names and layouts of GGUF
/// (specs/targets.md 10.5). Types that are absent here (K-quants) are converted by the caller:
/// PackedMatrix::from_rows.
enum class WeightFormat : std::uint8_t { kF32, kF16, kBf16, kQ8_0, kQ4_0, kQ4_1, kQ5_0, kQ5_1 };

/// "F32", "F16", "BF16", "Q8_0", ...
std::string_view name_of(WeightFormat format);

/// Weights that share a scale: 32 along the inputs for the Q formats, else 1.
int block_inputs(WeightFormat format);

/// Bytes of such a block in the file: 4, 2, 2, 34, 18, 20, 22, 24.
int block_bytes(WeightFormat format);

}  // namespace asdbench::kernels
