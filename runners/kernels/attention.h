// RMS norm, rotary positions, the key-value cache and block attention of the native CPU engine.
#pragma once

#include <cstdint>
#include <span>

#include "runners/kernels/isa.h"
#include "runners/kernels/linear.h"
#include "runners/kernels/pool.h"

namespace asdbench::kernels {

/// out = x / sqrt(mean(x^2) + epsilon) * weight, in float32.
///
/// Shapes: `x`, `out` [rows, width], `weight` [width]; out may be x. For norms per head, a row is a
///         head: rows = heads, width = stride = head size.
/// Source: specs/targets.md 4.2 (its two roundings are one in float32). On the calling thread.
void rms_norm(Rows x, std::int64_t rows, std::int64_t width, const float* weight, float epsilon,
              MutableRows out, Isa isa = active_isa());

/// Cosine and sine of position * inverse_frequency[j], both [inverse_frequency.size()]; angles in
/// float32. Source: specs/targets.md 4.3.
void rope_angles(std::int64_t position, std::span<const float> inverse_frequency, float* cosine,
                 float* sine);

/// Rotates `heads` neighbouring heads [heads, 2 * half] in place by the angles of one position:
/// dimension j is paired with j + half. Source: specs/targets.md 4.3.
void rope(float* values, std::int64_t heads, std::int64_t half, const float* cosine,
          const float* sine);

/// Sizes of one layer's cache of one request.
struct CacheShape {
  std::int64_t heads = 0;  // of keys and values
  std::int64_t head_size = 0;
  std::int64_t capacity = 0;  // positions

  /// Floats of the keys, and of the values; what the caller allocates.
  std::int64_t key_floats() const;
  std::int64_t value_floats() const;
};

/// One layer's cache of one request. Keys lie in panels of 16 positions, values position by
/// position; nothing but store_keys_values and attention needs to know. Memory is the caller's and
/// need not be initialised: positions past those attended to never enter a result. Any alignment
/// works, but memory from allocate_pages (slab.h), a multiple of 64 bytes each, is much faster.
struct LayerCache {
  CacheShape shape;
  float* keys = nullptr;    // [key_floats()]
  float* values = nullptr;  // [value_floats()]
};

/// Writes the keys (after norm and rotation) and values of one position, both [heads, head_size].
/// Positions may be written again after a rollback. Errors: std::invalid_argument past capacity.
void store_keys_values(const LayerCache& cache, std::int64_t position, const float* keys,
                       const float* values);

/// One request's block in a step.
struct AttentionBlock {
  LayerCache cache;
  std::int64_t past = 0;  // positions before the block
  std::int64_t rows = 0;
  Rows queries;          // [rows, query heads * head_size], rotated
  MutableRows out;       // [rows, query heads * head_size]; must not overlap the queries
  bool two_way = false;  // row r attends to 0 .. past + rows - 1 instead of 0 .. past + r
};

/// Floats of workspace that attention() needs for blocks of `rows` rows in all that attend to at
/// most `positions` positions.
std::int64_t attention_workspace(std::int64_t rows, std::int64_t query_heads,
                                 std::int64_t head_size, std::int64_t positions);

/// out = softmax(q k^T / sqrt(head_size)) v for the rows of every block; query head h reads
/// head h / (query_heads / heads) of the cache.
///
/// The keys and values of all rows must have been stored. Blocks share heads and head size.
/// Numbers: positions are taken in chunks of 128 from 0, each with its own maximum; chunks are
/// joined
///          in rising order. Bits depend on the row's own query and positions alone, not on rows,
///          blocks or threads beside it.
/// Errors:  std::invalid_argument when shapes do not fit or `workspace` is too small. Allocates
///          nothing.
void attention(Pool& pool, std::span<const AttentionBlock> blocks, std::int64_t query_heads,
               std::span<float> workspace, Isa isa = active_isa());

}  // namespace asdbench::kernels
