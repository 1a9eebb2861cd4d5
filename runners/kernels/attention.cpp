// Cache layout, and the division of attention into tasks of one chunk of one head.
#include "runners/kernels/attention.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "runners/kernels/cpu_kernels.h"

namespace asdbench::kernels {
namespace {

std::int64_t round_up(std::int64_t value, std::int64_t step) {
  return (value + step - 1) / step * step;
}

std::int64_t value_stride(std::int64_t head_size) { return round_up(head_size, kKeyPanel); }

/// Floats of one chunk's result: largest score, sum of weights, weighted values.
std::int64_t result_floats(std::int64_t head_size) { return 2 + value_stride(head_size); }

/// Positions that a row of a block attends to.
std::int64_t positions_of(const AttentionBlock& block, std::int64_t row) {
  return block.past + (block.two_way ? block.rows : row + 1);
}

std::int64_t chunks_of(std::int64_t positions) { return (positions + kChunk - 1) / kChunk; }

}  // namespace

std::int64_t CacheShape::key_floats() const {
  return heads * head_size * round_up(capacity, kKeyPanel);
}

std::int64_t CacheShape::value_floats() const { return heads * value_stride(head_size) * capacity; }

void rms_norm(Rows x, std::int64_t rows, std::int64_t width, const float* weight, float epsilon,
              MutableRows out, Isa isa) {
  const CpuKernels& kernels = cpu_kernels(isa);
  for (std::int64_t row = 0; row < rows; ++row) {
    kernels.rms_norm(x.data + row * x.stride, width, weight, epsilon, out.data + row * out.stride);
  }
}

void rope_angles(std::int64_t position, std::span<const float> inverse_frequency, float* cosine,
                 float* sine) {
  for (std::size_t j = 0; j < inverse_frequency.size(); ++j) {
    const float angle = static_cast<float>(position) * inverse_frequency[j];
    cosine[j] = std::cos(angle);
    sine[j] = std::sin(angle);
  }
}

void rope(float* values, std::int64_t heads, std::int64_t half, const float* cosine,
          const float* sine) {
  for (std::int64_t head = 0; head < heads; ++head, values += 2 * half) {
    for (std::int64_t j = 0; j < half; ++j) {
      const float first = values[j];
      const float second = values[j + half];
      values[j] = first * cosine[j] - second * sine[j];
      values[j + half] = second * cosine[j] + first * sine[j];
    }
  }
}

void store_keys_values(const LayerCache& cache, std::int64_t position, const float* keys,
                       const float* values) {
  const CacheShape& shape = cache.shape;
  if (position < 0 || position >= shape.capacity) {
    throw std::invalid_argument("position " + std::to_string(position) + " of a cache of " +
                                std::to_string(shape.capacity));
  }
  const std::int64_t stride = value_stride(shape.head_size);
  for (std::int64_t head = 0; head < shape.heads; ++head) {
    float* panel = cache.keys + head * shape.head_size * round_up(shape.capacity, kKeyPanel) +
                   position / kKeyPanel * kKeyPanel * shape.head_size + position % kKeyPanel;
    float* row = cache.values + (head * shape.capacity + position) * stride;
    for (std::int64_t d = 0; d < shape.head_size; ++d) {
      panel[d * kKeyPanel] = keys[head * shape.head_size + d];
      row[d] = values[head * shape.head_size + d];
    }
  }
}

std::int64_t attention_workspace(std::int64_t rows, std::int64_t query_heads,
                                 std::int64_t head_size, std::int64_t positions) {
  return rows * query_heads * chunks_of(positions) * result_floats(head_size);
}

void attention(Pool& pool, std::span<const AttentionBlock> blocks, std::int64_t query_heads,
               std::span<float> workspace, Isa isa) {
  if (blocks.empty()) return;
  const std::int64_t heads = blocks.front().cache.shape.heads;
  const std::int64_t head_size = blocks.front().cache.shape.head_size;
  std::int64_t rows = 0;
  std::int64_t chunks = 0;  // of the longest block; others leave their last tasks empty
  for (const AttentionBlock& block : blocks) {
    const CacheShape& shape = block.cache.shape;
    if (shape.heads != heads || shape.head_size != head_size || heads < 1 || head_size < 1 ||
        query_heads % heads != 0 || block.past < 0 || block.rows < 0 ||
        block.past + block.rows > shape.capacity) {
      throw std::invalid_argument(
          "attention: blocks of one call need the same heads and head size, query heads a multiple "
          "of them, and positions within the cache's capacity of " +
          std::to_string(shape.capacity));
    }
    rows += block.rows;
    chunks = std::max(chunks, chunks_of(block.past + block.rows));
  }
  const std::int64_t floats = result_floats(head_size);
  if (static_cast<std::int64_t>(workspace.size()) < rows * query_heads * chunks * floats) {
    throw std::invalid_argument("attention: the workspace of " + std::to_string(workspace.size()) +
                                " floats is too small; see attention_workspace()");
  }
  const CpuKernels& kernels = cpu_kernels(isa);
  const std::int64_t group = query_heads / heads;
  const auto scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(head_size)));
  // Results lie as [rows of all blocks, query heads, chunks, floats].
  const auto results_of = [&](std::int64_t row, std::int64_t query_head) {
    return workspace.data() + (row * query_heads + query_head) * chunks * floats;
  };

  const auto blocks_count = static_cast<std::int64_t>(blocks.size());
  pool.run(blocks_count * heads * chunks, [&](std::int64_t task) {
    const std::int64_t chunk = task % chunks;
    const std::int64_t head = task / chunks % heads;
    std::int64_t first_row = 0;
    const AttentionBlock* block = blocks.data();
    for (std::int64_t skip = task / chunks / heads; skip > 0; --skip) first_row += (block++)->rows;
    const CacheShape& shape = block->cache.shape;
    const std::int64_t start = chunk * kChunk;
    ChunkTask work{};
    work.head_size = head_size;
    work.value_stride = value_stride(head_size);
    work.scale = scale;
    work.result_stride = chunks * floats;
    for (std::int64_t row = 0; row < block->rows; ++row) {
      const std::int64_t positions =
          std::min<std::int64_t>(kChunk, positions_of(*block, row) - start);
      if (positions < 1) continue;
      work.keys =
          block->cache.keys + (head * round_up(shape.capacity, kKeyPanel) + start) * head_size;
      work.values = block->cache.values + (head * shape.capacity + start) * work.value_stride;
      work.positions = positions;
      for (std::int64_t query = 0; query < group; query += kMaxQueries) {
        const std::int64_t query_head = head * group + query;
        work.count = static_cast<int>(std::min<std::int64_t>(kMaxQueries, group - query));
        work.queries = block->queries.data + row * block->queries.stride + query_head * head_size;
        work.results = results_of(first_row + row, query_head) + chunk * floats;
        kernels.attend_chunk(work);
      }
    }
  });
  pool.run(rows, [&](std::int64_t task) {
    std::int64_t row = task;
    const AttentionBlock* block = blocks.data();
    while (row >= block->rows) row -= (block++)->rows;
    const auto used = static_cast<int>(chunks_of(positions_of(*block, row)));
    for (std::int64_t query_head = 0; query_head < query_heads; ++query_head) {
      kernels.join_chunks(results_of(task, query_head), used, floats, static_cast<int>(head_size),
                          block->out.data + row * block->out.stride + query_head * head_size);
    }
  });
}

}  // namespace asdbench::kernels
