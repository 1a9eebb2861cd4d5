// Where the parts of a packed block of a panel lie; shared by packing and by the kernels.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runners/kernels/weight_format.h"

namespace asdbench::kernels {

inline constexpr int kBlock = 32;   // inputs of a block; as in the file for the Q formats
inline constexpr int kNibbles = 8;  // four-bit values of a 32-bit word
inline constexpr int kCacheLine = 64;
inline constexpr int kPrefetchAhead = 4'096;  // past the page at which hardware prefetch stops

/// Byte offsets in a packed block of `panel` outputs by kBlock inputs. With p the output in the
/// panel and i the input in the block:
///   F32, F16, BF16  value[i][p]
///   Q8_0            int8[i][p], then d[p] as float16
///   Q4_*            word[i / 8][p], nibble i % 8 from the low end; then d[p], and for _1 m[p]
///   Q5_*            as Q4_*, with word[p] before d: bit i is the fifth bit of input i
struct PanelLayout {
  int bytes;
  int high_bits;
  int scales;
  bool has_high_bits;
  bool has_offsets;
  float zero;  // subtracted from the stored integer, where there is no stored offset
};

constexpr PanelLayout panel_layout(WeightFormat format, int panel) {
  switch (format) {
    case WeightFormat::kF32:
      return {4 * kBlock * panel, 0, 0, false, false, 0.0f};
    case WeightFormat::kF16:
    case WeightFormat::kBf16:
      return {2 * kBlock * panel, 0, 0, false, false, 0.0f};
    case WeightFormat::kQ8_0:
      return {(kBlock + 2) * panel, 0, kBlock * panel, false, false, 0.0f};
    case WeightFormat::kQ4_0:
      return {18 * panel, 0, 16 * panel, false, false, 8.0f};
    case WeightFormat::kQ4_1:
      return {20 * panel, 0, 16 * panel, false, true, 0.0f};
    case WeightFormat::kQ5_0:
      return {22 * panel, 16 * panel, 20 * panel, true, false, 16.0f};
    case WeightFormat::kQ5_1:
      return {24 * panel, 16 * panel, 20 * panel, true, true, 0.0f};
  }
  return {};
}

}  // namespace asdbench::kernels
