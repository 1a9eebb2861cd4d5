// The one body of the linear kernel for every CPU instruction set: panels times rows.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runners/kernels/exponential_cpu.h"
#include "runners/kernels/panel_layout.h"

namespace asdbench::kernels {

// A vector holds neighbouring outputs of a panel, never neighbouring inputs: each output is one
// chain of fused multiply-adds over the inputs, whose order nothing can change. That is what makes
// the bits of a row independent of everything beside it.

/// Calls sink(input, weights) for the inputs of one block of a panel in rising order; `weights` are
/// Simd::kPanelVectors vectors. `count` is below kBlock only in the last block of an unquantised
/// matrix.
template <class Simd, WeightFormat format, class Sink>
inline __attribute__((always_inline)) void decode_block(const std::byte* block, int count,
                                                        Sink sink) {
  using Float = typename Simd::Float;
  using Int = typename Simd::Int;
  constexpr int kVectors = Simd::kPanelVectors;
  constexpr std::int64_t kLanes = Simd::kLanes;
  constexpr std::int64_t kPanel = kVectors * kLanes;
  constexpr PanelLayout kLayout = panel_layout(format, kPanel);
  Float weights[kVectors];
  if constexpr (format == WeightFormat::kF32) {
    for (int input = 0; input < count; ++input) {
      const auto* values = reinterpret_cast<const float*>(block) + input * kPanel;
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) weights[v] = Simd::load(values + v * kLanes);
      sink(input, weights);
    }
  } else if constexpr (format == WeightFormat::kF16 || format == WeightFormat::kBf16) {
    for (int input = 0; input < count; ++input) {
      const auto* values = reinterpret_cast<const std::uint16_t*>(block) + input * kPanel;
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) {
        weights[v] = format == WeightFormat::kF16 ? Simd::load_f16(values + v * kLanes)
                                                  : Simd::load_bf16(values + v * kLanes);
      }
      sink(input, weights);
    }
  } else {
    Float scales[kVectors];
    Float offsets[kVectors];
    const auto* stored = reinterpret_cast<const std::uint16_t*>(block + kLayout.scales);
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      scales[v] = Simd::load_f16(stored + v * kLanes);
      if constexpr (kLayout.has_offsets) {
        offsets[v] = Simd::load_f16(stored + kPanel + v * kLanes);
      } else {
        // (q - zero) * d as one fused operation: d is a float16, so the product is exact.
        offsets[v] = Simd::multiply(scales[v], Simd::broadcast(-kLayout.zero));
      }
    }
    if constexpr (format == WeightFormat::kQ8_0) {
#pragma GCC unroll 2
      for (int input = 0; input < kBlock; ++input) {
        const auto* values = reinterpret_cast<const std::int8_t*>(block) + input * kPanel;
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) {
          weights[v] = Simd::multiply(Simd::load_int8(values + v * kLanes), scales[v]);
        }
        sink(input, weights);
      }
    } else {
      Int high[kVectors];
      if constexpr (kLayout.has_high_bits) {
        const auto* bits = reinterpret_cast<const std::int32_t*>(block + kLayout.high_bits);
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) high[v] = Simd::load_int(bits + v * kLanes);
      }
      for (int group = 0; group < kBlock / kNibbles; ++group) {
        const auto* words = reinterpret_cast<const std::int32_t*>(block) + group * kPanel;
        Int low[kVectors];
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) low[v] = Simd::load_int(words + v * kLanes);
#pragma GCC unroll 8
        for (int i = 0; i < kNibbles; ++i) {
#pragma GCC unroll 8
          for (int v = 0; v < kVectors; ++v) {
            if constexpr (kLayout.has_high_bits) {
              weights[v] = Simd::five_bits(low[v], high[v]);
              high[v] = Simd::template shift_right<1>(high[v]);
            } else {
              weights[v] = Simd::four_bits(low[v]);
            }
            low[v] = Simd::template shift_right<4>(low[v]);
            weights[v] = Simd::fma(weights[v], scales[v], offsets[v]);
          }
          sink(group * kNibbles + i, weights);
        }
      }
    }
  }
}

/// sums [row_count, kPanel] += one panel times x, weights dequantised in registers.
template <class Simd, WeightFormat format, int row_count>
void panel_direct(const std::byte* panel, std::int64_t inputs, const float* x,
                  std::int64_t x_stride, float* sums) {
  using Float = typename Simd::Float;
  constexpr int kVectors = Simd::kPanelVectors;
  constexpr std::int64_t kLanes = Simd::kLanes;
  constexpr std::int64_t kPanel = kVectors * kLanes;
  constexpr PanelLayout kLayout = panel_layout(format, kPanel);
  Float chains[row_count][kVectors];
#pragma GCC unroll 8
  for (int row = 0; row < row_count; ++row) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      chains[row][v] = Simd::load(sums + row * kPanel + v * kLanes);
    }
  }
  for (std::int64_t begin = 0; begin < inputs; begin += kBlock) {
    const int count = inputs - begin < kBlock ? static_cast<int>(inputs - begin) : kBlock;
    for (int line = 0; line < kLayout.bytes; line += kCacheLine) {
      __builtin_prefetch(panel + line + kPrefetchAhead);
    }
    const float* block_x = x + begin;
    decode_block<Simd, format>(
        panel,
        count, [&](int input, const Float(&weights)[kVectors]) __attribute__((always_inline)) {
#pragma GCC unroll 8
          for (int row = 0; row < row_count; ++row) {
            const Float value = Simd::broadcast(block_x[row * x_stride + input]);
#pragma GCC unroll 8
            for (int v = 0; v < kVectors; ++v) {
              chains[row][v] = Simd::fma(weights[v], value, chains[row][v]);
            }
          }
        });
    panel += kLayout.bytes;
  }
#pragma GCC unroll 8
  for (int row = 0; row < row_count; ++row) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      Simd::store(sums + row * kPanel + v * kLanes, chains[row][v]);
    }
  }
}

/// sums [row_count, kPanel] += dequantised weights [count, kPanel] times x.
template <class Simd, int row_count>
void tile(const float* weights, int count, const float* x, std::int64_t x_stride, float* sums) {
  using Float = typename Simd::Float;
  constexpr int kVectors = Simd::kPanelVectors;
  constexpr std::int64_t kLanes = Simd::kLanes;
  constexpr std::int64_t kPanel = kVectors * kLanes;
  Float chains[row_count][kVectors];
#pragma GCC unroll 8
  for (int row = 0; row < row_count; ++row) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      chains[row][v] = Simd::load(sums + row * kPanel + v * kLanes);
    }
  }
#pragma GCC unroll 2
  for (int input = 0; input < count; ++input) {
    Float values[kVectors];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      values[v] = Simd::load(weights + input * kPanel + v * kLanes);
    }
#pragma GCC unroll 8
    for (int row = 0; row < row_count; ++row) {
      const Float value = Simd::broadcast(x[row * x_stride + input]);
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) {
        chains[row][v] = Simd::fma(values[v], value, chains[row][v]);
      }
    }
  }
#pragma GCC unroll 8
  for (int row = 0; row < row_count; ++row) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      Simd::store(sums + row * kPanel + v * kLanes, chains[row][v]);
    }
  }
}

template <class Simd, int row_count>
void tile_rows(const float* weights, int count, const float* x, std::int64_t x_stride, int rows,
               float* sums) {
  if constexpr (row_count > 1) {
    if (rows < row_count) {
      tile_rows<Simd, row_count - 1>(weights, count, x, x_stride, rows, sums);
      return;
    }
  }
  tile<Simd, row_count>(weights, count, x, x_stride, sums);
}

/// Many rows: each stretch of the panel is dequantised once into the first-level cache.
template <class Simd, WeightFormat format>
void panel_tiled(const std::byte* panel, std::int64_t inputs, const float* x, std::int64_t x_stride,
                 int rows, float* sums) {
  using Float = typename Simd::Float;
  constexpr int kVectors = Simd::kPanelVectors;
  constexpr std::int64_t kLanes = Simd::kLanes;
  constexpr std::int64_t kPanel = kVectors * kLanes;
  constexpr PanelLayout kLayout = panel_layout(format, kPanel);
  // 24 KiB of dequantised weights: beside a few rows of x they fit a first-level cache of 32 KiB.
  constexpr std::int64_t kStretch = 6'144 / kPanel / kBlock * kBlock;
  alignas(64) float weights[kStretch * kPanel];
  for (std::int64_t begin = 0; begin < inputs; begin += kStretch) {
    const int count = inputs - begin < kStretch ? static_cast<int>(inputs - begin) : kStretch;
    for (int done = 0; done < count; done += kBlock) {
      for (int line = 0; line < kLayout.bytes; line += kCacheLine) {
        __builtin_prefetch(panel + line + kPrefetchAhead);
      }
      float* stretch = weights + done * kPanel;
      decode_block<Simd, format>(
          panel, count - done < kBlock ? count - done : kBlock,
          [&](int input, const Float(&values)[kVectors]) __attribute__((always_inline)) {
#pragma GCC unroll 8
            for (int v = 0; v < kVectors; ++v) {
              Simd::store(stretch + input * kPanel + v * kLanes, values[v]);
            }
          });
      panel += kLayout.bytes;
    }
    for (int row = 0; row < rows; row += Simd::kTileRows) {
      const int tiled = rows - row < Simd::kTileRows ? rows - row : Simd::kTileRows;
      tile_rows<Simd, Simd::kTileRows>(weights, count, x + begin + row * x_stride, x_stride, tiled,
                                       sums + row * kPanel);
    }
  }
}

template <class Simd, WeightFormat format, int row_count>
void panel_rows(const std::byte* panel, std::int64_t inputs, const float* x, std::int64_t x_stride,
                int rows, float* sums) {
  if constexpr (row_count > 1) {
    if (rows < row_count) {
      panel_rows<Simd, format, row_count - 1>(panel, inputs, x, x_stride, rows, sums);
      return;
    }
  }
  if (rows == row_count) {
    panel_direct<Simd, format, row_count>(panel, inputs, x, x_stride, sums);
  } else {
    panel_tiled<Simd, format>(panel, inputs, x, x_stride, rows, sums);
  }
}

/// CpuKernels::linear_panel.
template <class Simd>
void linear_panel_cpu(WeightFormat format, const std::byte* panel, std::int64_t inputs,
                      const float* x, std::int64_t x_stride, int rows, float* sums) {
  constexpr int kDirect = Simd::kDirectRows;
  switch (format) {
    case WeightFormat::kF32:
      return panel_rows<Simd, WeightFormat::kF32, kDirect>(panel, inputs, x, x_stride, rows, sums);
    case WeightFormat::kF16:
      return panel_rows<Simd, WeightFormat::kF16, kDirect>(panel, inputs, x, x_stride, rows, sums);
    case WeightFormat::kBf16:
      return panel_rows<Simd, WeightFormat::kBf16, kDirect>(panel, inputs, x, x_stride, rows, sums);
    case WeightFormat::kQ8_0:
      return panel_rows<Simd, WeightFormat::kQ8_0, kDirect>(panel, inputs, x, x_stride, rows, sums);
    case WeightFormat::kQ4_0:
      return panel_rows<Simd, WeightFormat::kQ4_0, kDirect>(panel, inputs, x, x_stride, rows, sums);
    case WeightFormat::kQ4_1:
      return panel_rows<Simd, WeightFormat::kQ4_1, kDirect>(panel, inputs, x, x_stride, rows, sums);
    case WeightFormat::kQ5_0:
      return panel_rows<Simd, WeightFormat::kQ5_0, kDirect>(panel, inputs, x, x_stride, rows, sums);
    case WeightFormat::kQ5_1:
      return panel_rows<Simd, WeightFormat::kQ5_1, kDirect>(panel, inputs, x, x_stride, rows, sums);
  }
}

/// CpuKernels::swiglu: gate [count] becomes silu(gate) * up; count is a multiple of kLanes.
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
