// The one body of the linear kernel for every CPU instruction set: panels times rows.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runners/kernels/activation_type.h"
#include "runners/kernels/exponential_cpu.h"
#include "runners/kernels/panel_layout.h"

namespace asdbench::kernels {

// A vector holds neighbouring outputs of a panel, never neighbouring inputs: each output is one
// chain of operations over the inputs, whose order nothing can change. That is what makes the bits
// of a row independent of everything beside it.

/// Some rows of activations as the kernels read them (prepare_rows).
struct PreparedRows {
  const float* values = nullptr;  // [blocks, rows, kBlock]
  const float* sums = nullptr;    // [blocks, rows]: of a block's activations
  int rows = 0;
};

/// One panel times some rows.
struct PanelTask {
  const std::byte* panel;
  const std::byte* next;  // what this thread will probably read after the panel; prefetched only
  std::int64_t blocks;
  PreparedRows x;
  float* sums;  // [rows, kPanel], 64-byte aligned; the result is added to it
};

/// Sum of the kBlock floats at `values`, by halves: the same bits on every instruction set.
template <class Simd>
float sum_block(const float* values) {
  constexpr int kVectors = kBlock / Simd::kLanes;
  typename Simd::Float sums[kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) sums[v] = Simd::load(values + v * Simd::kLanes);
#pragma GCC unroll 5
  for (int half = kVectors / 2; half > 0; half /= 2) {
#pragma GCC unroll 2
    for (int v = 0; v < half; ++v) sums[v] = Simd::add(sums[v], sums[v + half]);
  }
  return Simd::sum_lanes(sums[0]);
}

/// A block of activations rounded to bf16, as floats. An infinity becomes NaN.
template <class Simd>
void round_block_to_bf16(const float* from, float* to) {
  for (int i = 0; i < kBlock; i += Simd::kLanes) {
    const auto value = Simd::load(from + i);
    const auto bits = Simd::bits_of(value);
    // Half a step less a bit, and the bit that makes a tie even.
    const auto odd = Simd::bit_and(Simd::template shift_right<16>(bits), 1);
    const auto rounded = Simd::bit_and(
        Simd::add_int(Simd::add_int(bits, odd), Simd::broadcast_int(0x7fff)), ~0xffff);
    // The difference is 0, or NaN, which the bits above may have lost.
    Simd::store(to + i, Simd::add(Simd::float_of(rounded), Simd::subtract(value, value)));
  }
}

/// The integers of a block of activations, -127 to 127, and what one of them stands for. A block
/// without a magnitude of 1e-30 counts as zeros: the inverse of its step would be infinite.
template <class Simd>
float quantise_block(const float* from, float* integers) {
  auto largest = Simd::broadcast(0.0f);
  bool nan = false;
  for (int i = 0; i < kBlock; i += Simd::kLanes) {
    const auto value = Simd::load(from + i);
    nan |= Simd::any_lane(Simd::is_nan(value));
    largest = Simd::max(largest, Simd::float_of(Simd::bit_and(Simd::bits_of(value), 0x7fffffff)));
  }
  const float top = Simd::largest_lane(largest);
  const bool is_zero = top < 1e-30f;
  const auto inverse = Simd::broadcast(is_zero ? 0.0f : 127.0f / top);
  for (int i = 0; i < kBlock; i += Simd::kLanes) {
    Simd::store(integers + i, Simd::round(Simd::multiply(Simd::load(from + i), inverse)));
  }
  if (nan) return __builtin_nanf("");
  return is_zero ? 0.0f : top / 127.0f;
}

/// CpuKernels::prepare_rows.
template <class Simd>
void prepare_rows_cpu(const float* x, std::int64_t x_stride, int rows, std::int64_t inputs,
                      bool for_nibbles, ActivationType type, float* values, float* sums) {
  alignas(64) float factors[kBlock];
  for (int i = 0; i < kBlock; ++i) {
    factors[i] = for_nibbles ? 1.0f / static_cast<float>(1 << (4 * nibble_place(i))) : 1.0f;
  }
  for (std::int64_t begin = 0; begin < inputs; begin += kBlock) {
    for (int row = 0; row < rows; ++row, values += kBlock) {
      const float* from = x + row * x_stride + begin;
      alignas(64) float block[kBlock];
      if (inputs - begin < kBlock) {
        for (std::int64_t i = 0; i < kBlock; ++i) block[i] = begin + i < inputs ? from[i] : 0.0f;
        from = block;
      }
      if (type == ActivationType::kBf16) {
        round_block_to_bf16<Simd>(from, block);
        from = block;
      } else if (type == ActivationType::kInt8) {
        const auto scale = Simd::broadcast(quantise_block<Simd>(from, block));
        for (int i = 0; i < kBlock; i += Simd::kLanes) {
          Simd::store(block + i, Simd::multiply(Simd::load(block + i), scale));
        }
        from = block;
      }
      *sums++ = sum_block<Simd>(from);
#pragma GCC unroll 4
      for (int i = 0; i < kBlock; i += Simd::kLanes) {
        Simd::store(values + i, Simd::multiply(Simd::load(from + i), Simd::load(factors + i)));
      }
    }
  }
}

/// The inputs of one word of Q8_0 per output, from `byte` on.
template <class Simd, int vectors, int byte, class Sink>
inline __attribute__((always_inline)) void decode_bytes(const std::int32_t* words, int input,
                                                        Sink& sink) {
#pragma GCC unroll 8
  for (int v = 0; v < vectors; ++v) {
    const auto word =
        Simd::template shift_left<24 - 8 * byte>(Simd::load_again(words + v * Simd::kLanes));
    sink(input + byte, v, Simd::to_float(Simd::shift_byte_down(word)));
  }
  if constexpr (byte + 1 < kWordBytes) {
    decode_bytes<Simd, vectors, byte + 1>(words, input, sink);
  }
}

/// The inputs of one word of Q4 or Q5 per output; `high` has their fifth bits in place, and those
/// of the next word afterwards.
template <class Simd, bool has_high_bits, int vectors, class Sink>
inline __attribute__((always_inline)) void decode_nibbles(const std::int32_t* words, int input,
                                                          typename Simd::Int (&high)[vectors],
                                                          Sink& sink) {
  using Int = typename Simd::Int;
#pragma GCC unroll 8
  for (int nibble = 0; nibble < kNibbles; ++nibble) {
    const bool highest = nibble == kNibbles - 1;
    const int place = 4 * nibble_place(nibble);
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) {
      const std::int32_t* from = words + v * Simd::kLanes;
      Int integer =
          highest ? Simd::bit_and(Simd::template shift_right<4>(Simd::load_int(from)), 15 << place)
                  : Simd::load_masked(from, 15 << place);
      if constexpr (has_high_bits) {
        const Int fifth = highest ? Simd::template shift_left<28>(high[v]) : high[v];
        integer = Simd::bit_or(integer, Simd::bit_and(fifth, 16 << place));
      }
      sink(input + nibble, v, Simd::to_float(integer));
    }
  }
  if constexpr (has_high_bits) {
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) high[v] = Simd::template shift_right<1>(high[v]);
  }
}

/// Bytes that are read ahead while a block is multiplied: as many as it has, kPrefetchAhead behind
/// it, or of the next panel at the end of this one.
inline const std::byte* bytes_ahead(const PanelTask& task, int block_bytes, std::int64_t index) {
  const std::int64_t ahead = index * block_bytes + kPrefetchAhead;
  const std::int64_t panel_bytes = task.blocks * block_bytes;
  return ahead < panel_bytes ? task.panel + ahead : task.next + (ahead - panel_bytes);
}

/// Asks for part `part` of `parts` of these bytes. A core waits when it asks for many lines at
/// once, so that a block's are spread over its products.
template <int block_bytes, int parts>
inline __attribute__((always_inline)) void prefetch_part(const std::byte* from, int part) {
  constexpr int kBytes = (block_bytes + parts - 1) / parts;
  constexpr int kLines = (kBytes + kCacheLine - 1) / kCacheLine;
#pragma GCC unroll 8
  for (int line = 0; line < kLines; ++line) {
    __builtin_prefetch(from + part * kBytes + line * kCacheLine);
  }
}

/// Calls sink(input, v, weights) for the inputs of one block in rising order and each of `vectors`
/// vectors of outputs from `first` on: the values of an unquantised matrix, else the stored
/// integers, nibbles times the power of their place. `ahead` is read meanwhile.
template <class Simd, WeightFormat format, int vectors, class Sink>
inline __attribute__((always_inline)) void decode_block(const std::byte* block, int first,
                                                        const std::byte* ahead, Sink sink) {
  constexpr int kLanes = Simd::kLanes;
  constexpr PanelLayout kLayout = panel_layout(format);
  constexpr int kTiles = kPanel / kLanes / vectors;
  constexpr int kWords =
      is_quantised(format) ? kBlock / (has_nibbles(format) ? kNibbles : kWordBytes) : kBlock;
  // Each tile of outputs asks for its share.
  int part = first / (vectors * kLanes) * kWords;
  if constexpr (!is_quantised(format)) {
    for (int input = 0; input < kBlock; ++input) {
      prefetch_part<kLayout.bytes, kTiles * kWords>(ahead, part++);
      const std::int64_t at = input * kPanel + first;
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) {
        if constexpr (format == WeightFormat::kF32) {
          sink(input, v, Simd::load(reinterpret_cast<const float*>(block) + at + v * kLanes));
        } else {
          const auto* values = reinterpret_cast<const std::uint16_t*>(block) + at + v * kLanes;
          sink(input, v,
               format == WeightFormat::kF16 ? Simd::load_f16(values) : Simd::load_bf16(values));
        }
      }
    }
    return;
  }
  const auto* words = reinterpret_cast<const std::int32_t*>(block) + first;
  if constexpr (format == WeightFormat::kQ8_0) {
    for (int input = 0; input < kBlock; input += kWordBytes, words += kPanel) {
      prefetch_part<kLayout.bytes, kTiles * kWords>(ahead, part++);
      decode_bytes<Simd, vectors, 0>(words, input, sink);
    }
  }
  if constexpr (has_nibbles(format)) {
    typename Simd::Int high[vectors];
    if constexpr (kLayout.has_high_bits) {
      const auto* bits = reinterpret_cast<const std::int32_t*>(block + kLayout.high_bits) + first;
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) high[v] = Simd::load_int(bits + v * kLanes);
    }
    for (int input = 0; input < kBlock; input += kNibbles, words += kPanel) {
      prefetch_part<kLayout.bytes, kTiles * kWords>(ahead, part++);
      decode_nibbles<Simd, kLayout.has_high_bits, vectors>(words, input, high, sink);
    }
  }
}

/// Where a tile finds the weights of a block.
enum class Source {
  kPacked,         // in the panel
  kPackedAndKeep,  // in the panel; leaves them decoded for the tiles of further rows
  kKept,           // decoded before
};

/// Part of the result that a tile works on: rows by vectors of neighbouring outputs.
template <class Simd, WeightFormat format, int rows, int vectors>
struct Tile {
  using Float = typename Simd::Float;
  static constexpr PanelLayout kLayout = panel_layout(format);

  const float* x;       // [rows, kBlock]
  const float* x_sums;  // [rows]
  float* sums;          // [rows, kPanel], from the tile's first output on
  Float chains[rows][vectors];
  Float values[rows];  // of one input; multiply_one only

  inline __attribute__((always_inline)) void begin() {
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      // A zero point is a multiple of the sum of the activations: the chain begins there.
      const Float start = Simd::broadcast(kLayout.zero == 0.0f ? 0.0f : -kLayout.zero * x_sums[r]);
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) chains[r][v] = is_quantised(format) ? start : sum(r, v);
    }
  }
  inline __attribute__((always_inline)) void multiply(int input, const Float (&weights)[vectors]) {
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      Simd::template add_products<rows, vectors>(chains[r], weights, x + r * kBlock + input);
    }
  }
  /// The same, vector by vector: the activations stay in registers instead of the weights.
  inline __attribute__((always_inline)) void multiply_one(int input, int v, Float weights) {
    if (v == 0) {
#pragma GCC unroll 8
      for (int r = 0; r < rows; ++r) values[r] = Simd::broadcast_once(x + r * kBlock + input);
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) Simd::add_product(chains[r][v], weights, values[r]);
  }
  /// Adds the chains to the sums; `scales` as float16, followed kPanel further by offsets.
  inline __attribute__((always_inline)) void end(const std::uint16_t* stored) {
    Float scales[vectors];
    Float offsets[vectors];
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) {
      if constexpr (is_quantised(format)) scales[v] = Simd::load_f16(stored + v * Simd::kLanes);
      if constexpr (kLayout.has_offsets) {
        offsets[v] = Simd::load_f16(stored + kPanel + v * Simd::kLanes);
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) {
        Float all = chains[r][v];
        if constexpr (is_quantised(format)) all = Simd::fma(all, scales[v], sum(r, v));
        if constexpr (kLayout.has_offsets) {
          all = Simd::fma(offsets[v], Simd::broadcast(x_sums[r]), all);
        }
        Simd::store(sums + r * kPanel + v * Simd::kLanes, all);
      }
    }
  }
  inline __attribute__((always_inline)) Float sum(int r, int v) const {
    return Simd::load(sums + r * kPanel + v * Simd::kLanes);
  }
};

/// Block `index` of the task for rows [row, row + rows) and `vectors` vectors of outputs from
/// `first` on. `kept` [kBlock, kPanel] holds one decoded block.
template <class Simd, WeightFormat format, int rows, int vectors, Source source, bool one_by_one>
inline __attribute__((always_inline)) void multiply_tile(const PanelTask& task,
                                                         const std::byte* block, std::int64_t index,
                                                         int row, int first, float* kept) {
  using Float = typename Simd::Float;
  Tile<Simd, format, rows, vectors> tile;
  tile.x = task.x.values + (index * task.x.rows + row) * kBlock;
  tile.x_sums = task.x.sums + index * task.x.rows + row;
  tile.sums = task.sums + row * kPanel + first;
  tile.begin();
  if constexpr (source == Source::kKept) {
#pragma GCC unroll 2
    for (int input = 0; input < kBlock; ++input) {
      Float weights[vectors];
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) {
        weights[v] = Simd::load_once(kept + input * kPanel + first + v * Simd::kLanes);
        if constexpr (one_by_one) tile.multiply_one(input, v, weights[v]);
      }
      if constexpr (!one_by_one) tile.multiply(input, weights);
    }
  } else {
    Float weights[vectors];
    const auto multiply = [&](int input, int v, Float decoded) __attribute__((always_inline)) {
      if constexpr (source == Source::kPackedAndKeep) {
        Simd::store(kept + input * kPanel + first + v * Simd::kLanes, decoded);
      }
      if constexpr (one_by_one) {
        tile.multiply_one(input, v, decoded);
      } else {
        weights[v] = decoded;
        if (v == vectors - 1) tile.multiply(input, weights);
      }
    };
    decode_block<Simd, format, vectors>(
        block, first, bytes_ahead(task, panel_layout(format).bytes, index), multiply);
  }
  constexpr int kScales = panel_layout(format).scales;
  tile.end(reinterpret_cast<const std::uint16_t*>(block + kScales) + first);
}

/// All outputs of one block for rows [row, row + rows). Never inlined: in a larger function the
/// compiler keeps the chains in memory.
template <class Simd, WeightFormat format, int rows, Source source>
__attribute__((noinline)) void multiply_block(const PanelTask& task, const std::byte* block,
                                              std::int64_t index, int row, float* kept) {
  constexpr int kAll = kPanel / Simd::kLanes;
  // As many chains as registers hold beside the weights; or beside the activations, where half of
  // the chains would be too few to hide the latency of the multiply-add.
  constexpr bool kFits = (rows + 1) * kAll <= Simd::kChains;
  constexpr bool kOneByOne =
      !kFits && rows == Simd::kOneByOneRows && !panel_layout(format).has_high_bits;
  constexpr int kVectors = kFits || kOneByOne ? kAll : kAll / 2;
  for (int first = 0; first < kPanel; first += kVectors * Simd::kLanes) {
    multiply_tile<Simd, format, rows, kVectors, source, kOneByOne>(task, block, index, row, first,
                                                                   kept);
  }
}

template <class Simd, WeightFormat format, int rows>
void multiply_rows(const PanelTask& task) {
  constexpr int kBlockBytes = panel_layout(format).bytes;
  for (std::int64_t index = 0; index < task.blocks; ++index) {
    multiply_block<Simd, format, rows, Source::kPacked>(task, task.panel + index * kBlockBytes,
                                                        index, 0, nullptr);
  }
}

/// Rows from `row` on, at most `most`, of a block that was decoded before.
template <class Simd, WeightFormat format, int most>
void multiply_kept(const PanelTask& task, const std::byte* block, std::int64_t index, int row,
                   float* kept) {
  if constexpr (most > 1) {
    if (task.x.rows - row < most) {
      return multiply_kept<Simd, format, most - 1>(task, block, index, row, kept);
    }
  }
  multiply_block<Simd, format, most, Source::kKept>(task, block, index, row, kept);
}

/// More rows than a tile has: the first tile decodes, the others find its floats in the nearest
/// cache.
template <class Simd, WeightFormat format>
void multiply_many_rows(const PanelTask& task) {
  constexpr int kBlockBytes = panel_layout(format).bytes;
  constexpr int kRows = Simd::kTileRows;
  alignas(64) float kept[kBlock * kPanel];
  for (std::int64_t index = 0; index < task.blocks; ++index) {
    const std::byte* block = task.panel + index * kBlockBytes;
    multiply_block<Simd, format, kRows, Source::kPackedAndKeep>(task, block, index, 0, kept);
    for (int row = kRows; row < task.x.rows; row += kRows) {
      multiply_kept<Simd, format, kRows>(task, block, index, row, kept);
    }
  }
}

template <class Simd, WeightFormat format, int most>
void multiply_panel(const PanelTask& task) {
  if constexpr (most > 1) {
    if (task.x.rows < most) return multiply_panel<Simd, format, most - 1>(task);
  }
  if (task.x.rows == most) return multiply_rows<Simd, format, most>(task);
  multiply_many_rows<Simd, format>(task);
}

/// CpuKernels::linear_panel.
template <class Simd>
void linear_panel_cpu(WeightFormat format, const PanelTask& task) {
  constexpr int kMost = Simd::kTileRows;
  switch (format) {
    case WeightFormat::kF32:
      return multiply_panel<Simd, WeightFormat::kF32, kMost>(task);
    case WeightFormat::kF16:
      return multiply_panel<Simd, WeightFormat::kF16, kMost>(task);
    case WeightFormat::kBf16:
      return multiply_panel<Simd, WeightFormat::kBf16, kMost>(task);
    case WeightFormat::kQ8_0:
      return multiply_panel<Simd, WeightFormat::kQ8_0, kMost>(task);
    case WeightFormat::kQ4_0:
      return multiply_panel<Simd, WeightFormat::kQ4_0, kMost>(task);
    case WeightFormat::kQ4_1:
      return multiply_panel<Simd, WeightFormat::kQ4_1, kMost>(task);
    case WeightFormat::kQ5_0:
      return multiply_panel<Simd, WeightFormat::kQ5_0, kMost>(task);
    case WeightFormat::kQ5_1:
      return multiply_panel<Simd, WeightFormat::kQ5_1, kMost>(task);
  }
}

/// CpuKernels::swiglu: gate [count] becomes silu(gate) * up; count is a multiple of kPanel.
template <class Simd>
void swiglu_cpu(float* gate, const float* up, std::int64_t count) {
  using Float = typename Simd::Float;
  const Float one = Simd::broadcast(1.0f);
  for (std::int64_t i = 0; i < count; i += Simd::kLanes) {
    const Float value = Simd::load(gate + i);
    const Float power = exponential<Simd>(Simd::multiply(value, Simd::broadcast(-1.0f)));
    const Float silu = Simd::divide(value, Simd::add(one, power));
    Simd::store(gate + i, Simd::multiply(silu, Simd::load(up + i)));
  }
}

}  // namespace asdbench::kernels
