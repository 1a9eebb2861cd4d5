// Where the parts of a packed block of a panel lie; shared by packing and by the kernels.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runners/kernels/weight_format.h"

namespace asdbench::kernels {

inline constexpr int kBlock = 32;   // inputs of a block; as in the file for the Q formats
inline constexpr int kPanel = 48;   // outputs of a panel: three vectors of AVX-512, six of AVX2
inline constexpr int kNibbles = 8;  // four-bit values of a 32-bit word
inline constexpr int kWordBytes = 4;
inline constexpr int kCacheLine = 64;
inline constexpr int kPrefetchAhead = 4'096;  // past the page at which hardware prefetch stops

/// Byte offsets in a packed block of kPanel outputs by kBlock inputs. With p the output in the
/// panel and i the input in the block:
///   F32, F16, BF16  value[i][p]
///   Q8_0            word[i / 4][p], byte i % 4 from the low end; then d[p] as float16
///   Q4_*            word[i / 8][p], nibble i % 8 from the low end; then d[p], and for _1 m[p]
///   Q5_*            as Q4_*, with word[p] before d: fifth_bit(i) is the fifth bit of input i
struct PanelLayout {
  int bytes;
  int high_bits;
  int scales;
  bool has_high_bits;
  bool has_offsets;
  float zero;  // subtracted from the stored integer, where there is no stored offset
};

constexpr PanelLayout panel_layout(WeightFormat format) {
  switch (format) {
    case WeightFormat::kF32:
      return {4 * kBlock * kPanel, 0, 0, false, false, 0.0f};
    case WeightFormat::kF16:
    case WeightFormat::kBf16:
      return {2 * kBlock * kPanel, 0, 0, false, false, 0.0f};
    case WeightFormat::kQ8_0:
      return {(kBlock + 2) * kPanel, 0, kBlock * kPanel, false, false, 0.0f};
    case WeightFormat::kQ4_0:
      return {18 * kPanel, 0, 16 * kPanel, false, false, 8.0f};
    case WeightFormat::kQ4_1:
      return {20 * kPanel, 0, 16 * kPanel, false, true, 0.0f};
    case WeightFormat::kQ5_0:
      return {22 * kPanel, 16 * kPanel, 20 * kPanel, true, false, 16.0f};
    case WeightFormat::kQ5_1:
      return {24 * kPanel, 16 * kPanel, 20 * kPanel, true, true, 0.0f};
  }
  return {};
}

constexpr bool is_quantised(WeightFormat format) { return panel_layout(format).scales != 0; }

/// Whether weights are decoded in place (below), which the activations have to make up for.
constexpr bool has_nibbles(WeightFormat format) {
  return is_quantised(format) && format != WeightFormat::kQ8_0;
}

// A nibble is turned into a float where it stands, without a shift: it comes out multiplied by 16
// to the power of its place in the word. The highest would become a sign and is shifted down by one
// place. Activations are divided by the same power beforehand, which is exact, so that the products
// are those of the plain integers.
constexpr int nibble_place(int input) {
  return input % kNibbles < kNibbles - 1 ? input % kNibbles : kNibbles - 2;
}

/// Bit of the Q5 word of high bits that belongs to `input`: a shift to the right by the number of
/// the input's word puts it above its nibble, or at the bottom for the highest nibble.
constexpr int fifth_bit(int input) {
  const int nibble = input % kNibbles;
  return input / kNibbles + (nibble < kNibbles - 1 ? 4 * nibble + 4 : 0);
}

}  // namespace asdbench::kernels
