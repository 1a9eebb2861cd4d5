// The bodies of attention and RMS norm for every CPU instruction set.
#pragma once

#include <cstdint>

#include "runners/kernels/exponential_cpu.h"

namespace asdbench::kernels {

inline constexpr std::int64_t kKeyPanel = 16;  // positions whose keys lie together
inline constexpr std::int64_t kChunk = 128;    // positions that share a maximum
inline constexpr int kMaxQueries = 4;          // served by one pass over keys and values

/// Some query heads of one row against one chunk of one head of the cache.
struct ChunkTask {
  const float* queries;  // [count, head_size]
  int count;             // 1 to kMaxQueries
  std::int64_t head_size;
  const float* keys;          // panels [head_size, kKeyPanel] of the chunk's positions
  const float* values;        // [positions, value_stride]
  std::int64_t value_stride;  // head_size rounded up to a multiple of kKeyPanel
  std::int64_t positions;     // 1 to kChunk
  float scale;
  /// Results of query i at i * result_stride: the chunk's largest score, the sum of exp(score -
  /// largest), and the values weighted with those, [value_stride].
  float* results;
  std::int64_t result_stride;
};

/// Scores of `count` queries for `panels` panels from position `begin`: [count, kChunk].
template <class Simd, int count, int panels>
inline __attribute__((always_inline)) void panel_scores(const ChunkTask& task, std::int64_t begin,
                                                        float* scores) {
  using Float = typename Simd::Float;
  constexpr int kPanelVectors = kKeyPanel / Simd::kLanes;
  constexpr int kVectors = panels * kPanelVectors;
  const float* first = task.keys + begin * task.head_size;
  Float sums[count][kVectors];
#pragma GCC unroll 4
  for (int query = 0; query < count; ++query) {
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) sums[query][v] = Simd::broadcast(0.0f);
  }
  for (std::int64_t d = 0; d < task.head_size; ++d) {
    Float keys[kVectors];
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) {
      keys[v] = Simd::load_once(first + (v / kPanelVectors * task.head_size + d) * kKeyPanel +
                                v % kPanelVectors * Simd::kLanes);
    }
#pragma GCC unroll 4
    for (int query = 0; query < count; ++query) {
      const Float value = Simd::broadcast(task.queries[query * task.head_size + d]);
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v) sums[query][v] = Simd::fma(keys[v], value, sums[query][v]);
    }
  }
  const Float scale = Simd::broadcast(task.scale);
#pragma GCC unroll 4
  for (int query = 0; query < count; ++query) {
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) {
      Simd::store(scores + query * kChunk + begin + v * Simd::kLanes,
                  Simd::multiply(sums[query][v], scale));
    }
  }
}

/// Scores of `count` queries: [count, kChunk], only whole panels written.
template <class Simd, int count>
void chunk_scores(const ChunkTask& task, float* scores) {
  // Enough independent sums to hide the latency of the multiply-add.
  constexpr int kPanels = Simd::kLanes == kKeyPanel ? 2 : 1;
  std::int64_t begin = 0;
  for (; begin + (kPanels - 1) * kKeyPanel < task.positions; begin += kPanels * kKeyPanel) {
    panel_scores<Simd, count, kPanels>(task, begin, scores);
  }
  if (begin < task.positions) panel_scores<Simd, count, 1>(task, begin, scores);
}

/// Turns the scores of one query into weights; result[0] and [1] as in ChunkTask.
template <class Simd>
void chunk_softmax(float* scores, std::int64_t positions, float* result) {
  using Float = typename Simd::Float;
  const std::int64_t padded = (positions + kKeyPanel - 1) / kKeyPanel * kKeyPanel;
  // Scores past the end come from memory that nothing was stored in.
  for (std::int64_t i = positions; i < padded; ++i) scores[i] = scores[0];
  Float largest = Simd::load(scores);
  bool nan = false;
  for (std::int64_t i = 0; i < padded; i += Simd::kLanes) {
    const Float score = Simd::load(scores + i);
    nan |= Simd::any_lane(Simd::is_nan(score));
    largest = Simd::max(largest, score);
  }
  // max drops a NaN; the row must not hide it.
  const float top = nan ? __builtin_nanf("") : Simd::largest_lane(largest);
  const Float tops = Simd::broadcast(top);
  for (std::int64_t i = 0; i < padded; i += Simd::kLanes) {
    Simd::store(scores + i, exponential<Simd>(Simd::subtract(Simd::load(scores + i), tops)));
  }
  for (std::int64_t i = positions; i < padded; ++i) scores[i] = 0.0f;
  Float total = Simd::broadcast(0.0f);
  for (std::int64_t i = 0; i < padded; i += Simd::kLanes) {
    total = Simd::add(total, Simd::load(scores + i));
  }
  result[0] = top;
  result[1] = Simd::sum_lanes(total);
}

/// Weighted sums of `vectors` vectors of the values from dimension `slice` on.
template <class Simd, int count, int vectors>
inline __attribute__((always_inline)) void slice_values(const ChunkTask& task, std::int64_t slice,
                                                        const float* weights) {
  using Float = typename Simd::Float;
  Float sums[count][vectors];
#pragma GCC unroll 4
  for (int query = 0; query < count; ++query) {
#pragma GCC unroll 16
    for (int v = 0; v < vectors; ++v) sums[query][v] = Simd::broadcast(0.0f);
  }
  const float* values = task.values + slice;
  for (std::int64_t i = 0; i < task.positions; ++i, values += task.value_stride) {
    Float row[vectors];
#pragma GCC unroll 16
    for (int v = 0; v < vectors; ++v) row[v] = Simd::load_once(values + v * Simd::kLanes);
#pragma GCC unroll 4
    for (int query = 0; query < count; ++query) {
      const Float weight = Simd::broadcast(weights[query * kChunk + i]);
#pragma GCC unroll 16
      for (int v = 0; v < vectors; ++v) {
        sums[query][v] = Simd::fma(weight, row[v], sums[query][v]);
      }
    }
  }
#pragma GCC unroll 4
  for (int query = 0; query < count; ++query) {
#pragma GCC unroll 16
    for (int v = 0; v < vectors; ++v) {
      Simd::store(task.results + query * task.result_stride + 2 + slice + v * Simd::kLanes,
                  sums[query][v]);
    }
  }
}

/// Weighted sums of the values for `count` queries.
template <class Simd, int count>
void chunk_values(const ChunkTask& task, const float* weights) {
  constexpr int kNarrow = kKeyPanel / Simd::kLanes;
  constexpr int kWide = Simd::kLanes == kKeyPanel ? 4 : kNarrow;
  std::int64_t slice = 0;
  for (; slice + kWide * Simd::kLanes <= task.value_stride; slice += kWide * Simd::kLanes) {
    slice_values<Simd, count, kWide>(task, slice, weights);
  }
  for (; slice < task.value_stride; slice += kKeyPanel) {
    slice_values<Simd, count, kNarrow>(task, slice, weights);
  }
}

template <class Simd, int count>
void attend_chunk_queries(const ChunkTask& task) {
  if constexpr (count > 1) {
    if (task.count < count) {
      attend_chunk_queries<Simd, count - 1>(task);
      return;
    }
  }
  alignas(64) float scores[count * kChunk];
  chunk_scores<Simd, count>(task, scores);
  for (int query = 0; query < count; ++query) {
    chunk_softmax<Simd>(scores + query * kChunk, task.positions,
                        task.results + query * task.result_stride);
  }
  chunk_values<Simd, count>(task, scores);
}

/// CpuKernels::attend_chunk.
template <class Simd>
void attend_chunk_cpu(const ChunkTask& task) {
  attend_chunk_queries<Simd, kMaxQueries>(task);
}

/// CpuKernels::join_chunks: out [head_size] = the joined results [chunks, result_stride], whose
/// largest scores are overwritten.
template <class Simd>
void join_chunks_cpu(float* results, int chunks, std::int64_t result_stride, int head_size,
                     float* out) {
  using Float = typename Simd::Float;
  float largest = results[0];
  bool nan = false;
  for (int chunk = 0; chunk < chunks; ++chunk) {
    const float other = results[chunk * result_stride];
    if (other > largest) largest = other;
    nan |= other != other;
  }
  if (nan) largest = __builtin_nanf("");
  const auto factor = [&](int chunk) { return Simd::broadcast(results[chunk * result_stride]); };
  Float total = Simd::broadcast(0.0f);
  alignas(64) float lanes[Simd::kLanes];
  for (int chunk = 0; chunk < chunks; ++chunk) {
    // exp(0) is exactly 1: a single chunk keeps its sums as they are.
    Simd::store(lanes, exponential<Simd>(Simd::subtract(factor(chunk), Simd::broadcast(largest))));
    results[chunk * result_stride] = lanes[0];
    total = Simd::fma(factor(chunk), Simd::broadcast(results[chunk * result_stride + 1]), total);
  }
  for (std::int64_t d = 0; d < head_size; d += Simd::kLanes) {
    Float sum = Simd::broadcast(0.0f);
    for (int chunk = 0; chunk < chunks; ++chunk) {
      sum = Simd::fma(factor(chunk), Simd::load(results + chunk * result_stride + 2 + d), sum);
    }
    Simd::store(lanes, Simd::divide(sum, total));
    for (int lane = 0; lane < Simd::kLanes && d + lane < head_size; ++lane) {
      out[d + lane] = lanes[lane];
    }
  }
}

/// CpuKernels::rms_norm: one row.
template <class Simd>
void rms_norm_cpu(const float* x, std::int64_t width, const float* weight, float epsilon,
                  float* out) {
  using Float = typename Simd::Float;
  Float squares = Simd::broadcast(0.0f);
  std::int64_t i = 0;
  for (; i + Simd::kLanes <= width; i += Simd::kLanes) {
    const Float value = Simd::load(x + i);
    squares = Simd::fma(value, value, squares);
  }
  float sum = Simd::sum_lanes(squares);
  for (; i < width; ++i) sum += x[i] * x[i];
  const float inverse = 1.0f / __builtin_sqrtf(sum / static_cast<float>(width) + epsilon);
  for (i = 0; i < width; ++i) out[i] = x[i] * inverse * weight[i];
}

}  // namespace asdbench::kernels
