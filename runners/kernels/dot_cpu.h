// The one body of the linear kernels for rounded activations, on the dot products of small types.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runners/kernels/linear_cpu.h"
#include "runners/kernels/panel_layout.h"

namespace asdbench::kernels {

// PreparedRows::values holds words here, kDotWords for a row of a block:
//   int8  eight words of four activations, their sum as an integer, and what one of them stands for
//   bf16  sixteen words of two activations
// Their order is that in which a word of weights comes apart: nibbles as 0, 2, 4, 6, then 1, 3, 5,
// 7 for int8, and as pairs (i, i + 4) for bf16; bytes as they lie.
inline constexpr int kDotWords = 16;
inline constexpr int kIntegerSum = 8;
inline constexpr int kIntegerScale = 9;

/// Whether weights of `format` have such a kernel; others take rounded floats.
constexpr bool has_dots(WeightFormat format) {
  return format == WeightFormat::kQ4_0 || format == WeightFormat::kQ4_1 ||
         format == WeightFormat::kQ8_0;
}

/// DotKernels::prepare_rows for int8.
template <class Simd>
void prepare_int8_cpu(const float* x, std::int64_t x_stride, int rows, std::int64_t inputs,
                      bool for_nibbles, float* values, float* sums) {
  auto* words = reinterpret_cast<std::int32_t*>(values);
  for (std::int64_t begin = 0; begin < inputs; begin += kBlock) {
    for (int row = 0; row < rows; ++row, words += kDotWords) {
      alignas(64) float integers[kBlock];
      const float scale = quantise_block<Simd>(x + row * x_stride + begin, integers);
      const float sum = sum_block<Simd>(integers);  // at most 32 * 127: exact
      Simd::store_bytes(integers, for_nibbles, words);
      // With a NaN the scale is NaN too, and the integers no longer matter.
      words[kIntegerSum] = sum == sum ? static_cast<std::int32_t>(sum) : 0;
      __builtin_memcpy(words + kIntegerScale, &scale, sizeof(scale));
      *sums++ = sum * scale;
    }
  }
}

/// DotKernels::prepare_rows for bf16.
template <class Simd>
void prepare_bf16_cpu(const float* x, std::int64_t x_stride, int rows, std::int64_t inputs,
                      bool for_nibbles, float* values, float* sums) {
  auto* words = reinterpret_cast<std::int32_t*>(values);
  for (std::int64_t begin = 0; begin < inputs; begin += kBlock) {
    for (int row = 0; row < rows; ++row, words += kDotWords) {
      alignas(64) float rounded[kBlock];
      round_block_to_bf16<Simd>(x + row * x_stride + begin, rounded);
      *sums++ = sum_block<Simd>(rounded);
      Simd::store_pairs(rounded, for_nibbles, words);
    }
  }
}

/// Integer sums of one block: rows by vectors of outputs.
template <class Simd, WeightFormat format, int rows, int vectors>
struct Int8Sums {
  using Int = typename Simd::Int;
  // Signed weights are dotted as what they are, or with this much added to them.
  static constexpr int kZero =
      format == WeightFormat::kQ8_0 ? Simd::kByteZero : static_cast<int>(panel_layout(format).zero);
  // Nibbles times bytes are small enough to sum a whole block in halves of a word.
  static constexpr bool kInHalves = Simd::kDotsInHalves && has_nibbles(format);
  Int chains[rows][vectors];

  inline __attribute__((always_inline)) void multiply(const std::byte* block, int first,
                                                      const std::int32_t* x, const float*) {
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) {
        chains[r][v] = Simd::broadcast_int(kInHalves ? 0 : -kZero * x[r * kDotWords + kIntegerSum]);
      }
    }
    const auto* words = reinterpret_cast<const std::int32_t*>(block) + first;
    if constexpr (format == WeightFormat::kQ8_0) {
#pragma GCC unroll 2
      for (int quad = 0; quad < kBlock / kWordBytes; ++quad, words += kPanel) {
        Int weights[vectors];
#pragma GCC unroll 8
        for (int v = 0; v < vectors; ++v) {
          weights[v] = Simd::signed_bytes(Simd::load_again(words + v * Simd::kLanes));
        }
#pragma GCC unroll 8
        for (int r = 0; r < rows; ++r) {
          Simd::template add_signed_dots<vectors>(chains[r], weights, x + r * kDotWords + quad);
        }
      }
      return;
    }
    for (int word = 0; word < kBlock / kNibbles; ++word, words += kPanel) {
      Int even[vectors];
      Int odd[vectors];
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) {
        const Int nibbles = Simd::load_again(words + v * Simd::kLanes);
        even[v] = Simd::bit_and(nibbles, 0x0f0f0f0f);
        odd[v] = Simd::bit_and(Simd::template shift_right<4>(nibbles), 0x0f0f0f0f);
      }
#pragma GCC unroll 8
      for (int r = 0; r < rows; ++r) {
        Simd::template add_dots<vectors>(chains[r], even, x + r * kDotWords + 2 * word);
        Simd::template add_dots<vectors>(chains[r], odd, x + r * kDotWords + 2 * word + 1);
      }
    }
    if constexpr (kInHalves) {
#pragma GCC unroll 8
      for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 8
        for (int v = 0; v < vectors; ++v) {
          chains[r][v] = Simd::whole_sums(chains[r][v], -kZero * x[r * kDotWords + kIntegerSum]);
        }
      }
    }
  }
  typename Simd::Float sum(int r, int v, const std::int32_t* x) const {
    float scale;
    __builtin_memcpy(&scale, x + r * kDotWords + kIntegerScale, sizeof(scale));
    return Simd::multiply(Simd::to_float(chains[r][v]), Simd::broadcast(scale));
  }
};

/// Float sums of one block from pairs of bf16.
template <class Simd, WeightFormat format, int rows, int vectors>
struct Bf16Sums {
  using Float = typename Simd::Float;
  using Int = typename Simd::Int;
  static constexpr float kZero = panel_layout(format).zero;
  Float chains[rows][vectors];

  inline __attribute__((always_inline)) void multiply(const std::byte* block, int first,
                                                      const std::int32_t* x, const float* x_sums) {
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) {
        chains[r][v] = Simd::broadcast(kZero == 0.0f ? 0.0f : -kZero * x_sums[r]);
      }
    }
    const auto* words = reinterpret_cast<const std::int32_t*>(block) + first;
    if constexpr (format == WeightFormat::kQ8_0) {
      for (int quad = 0; quad < kBlock / kWordBytes; ++quad, words += kPanel) {
        add<0>(words, x + 2 * quad);
        add<1>(words, x + 2 * quad + 1);
      }
      return;
    }
    for (int word = 0; word < kBlock / kNibbles; ++word, words += kPanel) {
      add<0>(words, x + 4 * word);
      add<1>(words, x + 4 * word + 1);
      add<2>(words, x + 4 * word + 2);
      add<3>(words, x + 4 * word + 3);
    }
  }
  /// The pairs at `place` of the words.
  template <int place>
  inline __attribute__((always_inline)) void add(const std::int32_t* words, const std::int32_t* x) {
    Int weights[vectors];
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) {
      const Int word = Simd::load_again(words + v * Simd::kLanes);
      if constexpr (format == WeightFormat::kQ8_0) {
        weights[v] = Simd::template byte_pairs<place>(word);
      } else {
        weights[v] = Simd::template nibble_pairs<place>(word);
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      Simd::template add_pairs<rows, vectors>(chains[r], weights, x + r * kDotWords);
    }
  }
  Float sum(int r, int v, const std::int32_t*) const { return chains[r][v]; }
};

/// One block for rows [row, row + rows). Never inlined, as multiply_block.
template <class Simd, WeightFormat format, template <class, WeightFormat, int, int> class Sums,
          int rows>
__attribute__((noinline)) void dot_block(const PanelTask& task, std::int64_t index, int row) {
  using Float = typename Simd::Float;
  constexpr PanelLayout kLayout = panel_layout(format);
  constexpr int kVectors = Simd::kDotVectors;
  const std::byte* block = task.panel + index * kLayout.bytes;
  const std::int64_t at = index * task.x.rows + row;
  const auto* x = reinterpret_cast<const std::int32_t*>(task.x.values) + at * kDotWords;
  const float* x_sums = task.x.sums + at;
  for (int first = 0; first < kPanel; first += kVectors * Simd::kLanes) {
    Sums<Simd, format, rows, kVectors> tile;
    tile.multiply(block, first, x, x_sums);
    const auto* scales = reinterpret_cast<const std::uint16_t*>(block + kLayout.scales) + first;
    float* sums = task.sums + row * kPanel + first;
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      const Float scale = Simd::load_f16(scales + v * Simd::kLanes);
      Float offset = scale;
      if constexpr (kLayout.has_offsets) {
        offset = Simd::load_f16(scales + kPanel + v * Simd::kLanes);
      }
#pragma GCC unroll 8
      for (int r = 0; r < rows; ++r) {
        float* to = sums + r * kPanel + v * Simd::kLanes;
        Float all = Simd::fma(tile.sum(r, v, x), scale, Simd::load(to));
        if constexpr (kLayout.has_offsets) {
          all = Simd::fma(offset, Simd::broadcast(x_sums[r]), all);
        }
        Simd::store(to, all);
      }
    }
  }
}

/// Rows from `row` on, at most `most`.
template <class Simd, WeightFormat format, template <class, WeightFormat, int, int> class Sums,
          int most>
inline __attribute__((always_inline)) void dot_rows(const PanelTask& task, std::int64_t index,
                                                    int row) {
  if constexpr (most > 1) {
    if (task.x.rows - row < most) {
      return dot_rows<Simd, format, Sums, most - 1>(task, index, row);
    }
  }
  dot_block<Simd, format, Sums, most>(task, index, row);
}

template <class Simd, WeightFormat format, template <class, WeightFormat, int, int> class Sums>
void dot_panel(const PanelTask& task) {
  constexpr int kBlockBytes = panel_layout(format).bytes;
  for (std::int64_t index = 0; index < task.blocks; ++index) {
    prefetch_part<kBlockBytes, 1>(bytes_ahead(task, kBlockBytes, index), 0);
    for (int row = 0; row < task.x.rows; row += Simd::kDotRows) {
      dot_rows<Simd, format, Sums, Simd::kDotRows>(task, index, row);
    }
  }
}

/// DotKernels::linear_panel; `format` must be one of has_dots().
template <class Simd, template <class, WeightFormat, int, int> class Sums>
void dot_panel_cpu(WeightFormat format, const PanelTask& task) {
  if (format == WeightFormat::kQ4_0) return dot_panel<Simd, WeightFormat::kQ4_0, Sums>(task);
  if (format == WeightFormat::kQ4_1) return dot_panel<Simd, WeightFormat::kQ4_1, Sums>(task);
  dot_panel<Simd, WeightFormat::kQ8_0, Sums>(task);
}

}  // namespace asdbench::kernels
