// The decoder block on our own CPU kernels: what the native target and the native drafters share.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runners/checkpoint/checkpoint.h"
#include "runners/kernels/attention.h"
#include "runners/kernels/linear.h"
#include "runners/kernels/pool.h"
#include "runners/models/slot_table.h"

namespace asdbench::native {

/// The kernel's format for weights stored as `type`; nullopt for K-quants, which have none.
std::optional<kernels::WeightFormat> packed_format(WeightType type);
/// A matrix in the type it is stored in; K-quants, which have no kernel, become float16. With `as`,
/// Q8_0 or Q4_0, it is rounded to that type instead; std::invalid_argument of
/// PackedMatrix::from_rows for shapes and values that have no place there.
kernels::PackedMatrix pack(const Tensor& tensor,
                           std::optional<kernels::WeightFormat> as = std::nullopt);
/// The same with its rows in the order that `row_at` gives (the stored row of each output).
kernels::PackedMatrix pack_rows(const Tensor& tensor,
                                const std::function<std::int64_t(std::int64_t)>& row_at);
/// All values of a tensor, widened.
std::vector<float> read_vector(const Checkpoint& checkpoint, const std::string& name);

/// Weights of one decoder block. H: hidden size; I: width of what q, k and v read, H but in
/// EAGLE-3.
struct BlockWeights {
  std::vector<float> input_norm, post_norm;         // [H]
  kernels::PackedMatrix query, key, value, output;  // [Nq D, I], [Nk D, I], [Nk D, I], [H, Nq D]
  std::vector<float> query_bias, key_bias, value_bias, output_bias;  // empty: none
  std::vector<float> query_norm, key_norm;                           // [D]; empty: none
  kernels::PackedMatrix gate, up, down;                              // [F, H], [F, H], [H, F]
};

/// Packs the block whose tensors begin with `prefix` ("model.layers.0."), by checkpoint.config();
/// matrices as pack() does.
BlockWeights pack_block(const Checkpoint& checkpoint, const std::string& prefix,
                        std::optional<kernels::WeightFormat> as = std::nullopt);

/// f' of specs/targets.md, 4.3: [D / 2] float32.
std::vector<float> rotary_frequencies(const ModelConfig& config);

/// Caches and working memory for blocks of one shape, and the parts of a block over the rows of a
/// step. Rows lie as Segment says; positions past those stored never enter a result.
class BlockRunner {
 public:
  /// For `layers` blocks of the sizes, rotation and biases of `config`; `activations` is what a
  /// linear layer rounds its input to.
  BlockRunner(kernels::Pool& pool, const ModelConfig& config, std::int64_t layers,
              kernels::ActivationType activations = kernels::ActivationType::kFloat32);

  struct Limits {
    std::int64_t slots = 0;
    std::int64_t rows = 0;           // of one step
    std::int64_t attended_rows = 0;  // those of them that attend() is called for
    std::int64_t positions = 0;      // of one slot
  };
  /// Makes room; the calls below allocate nothing. Caches are forgotten where positions grow.
  /// Errors: std::bad_alloc.
  void reserve(const Limits& limits);

  /// Computes the rotation of every row; the calls that follow are about these rows.
  void place(std::span<const Segment> segments);
  /// Caches keys and values of `input` [rows, I], and computes nothing else.
  void store(std::size_t layer, const BlockWeights& weights, kernels::Rows input);
  /// out = residual + attention(input), [rows, H]. With kQueries keys and values of the rows are
  /// cached already.
  void attend(std::size_t layer, const BlockWeights& weights, kernels::Rows input,
              kernels::Rows residual, kernels::MutableRows out, StepMask mask = StepMask::kCausal,
              Projections projections = Projections::kAll);
  /// x += mlp(norm(x)), for x [rows, H].
  void feed_forward(const BlockWeights& weights, kernels::MutableRows x);

  /// out = norm(x) for `rows` rows [rows, H].
  void norm(kernels::Rows x, std::int64_t rows, const std::vector<float>& weight,
            kernels::MutableRows out) const;
  kernels::Pool& pool() const { return pool_; }

 private:
  /// The caches of all layers of one slot.
  struct SlotCache {
    std::shared_ptr<std::byte> memory;
    std::vector<kernels::LayerCache> layers;
  };
  SlotCache make_cache() const;
  void project(const BlockWeights& weights, kernels::Rows input, bool queries, bool keys_values);
  void store_projected(std::size_t layer, const BlockWeights& weights);
  void mix(std::size_t layer, const BlockWeights& weights, StepMask mask);
  void head_norm(float* heads, std::int64_t count, const std::vector<float>& weight) const;
  std::int64_t query_width() const { return config_.heads * config_.head_dim; }
  std::int64_t key_width() const { return config_.kv_heads * config_.head_dim; }

  kernels::Pool& pool_;
  ModelConfig config_;
  std::int64_t layers_;
  kernels::ActivationType activations_;
  std::vector<float> frequencies_;  // [D / 2]

  Limits limits_;                  // the largest so far
  std::vector<SlotCache> caches_;  // [slots]
  std::span<const Segment> segments_;
  std::int64_t rows_ = 0;  // of the segments
  std::vector<kernels::AttentionBlock> blocks_;
  std::vector<float> queries_;        // [rows, Nq D]
  std::vector<float> keys_values_;    // [rows, 2 Nk D], keys then values
  std::vector<float> mixed_;          // [rows, Nq D]
  std::vector<float> normed_;         // [rows, H]
  std::vector<float> gated_;          // [rows, F]
  std::vector<float> cosine_, sine_;  // [rows, D / 2]
  std::vector<float> workspace_;
};

}  // namespace asdbench::native
