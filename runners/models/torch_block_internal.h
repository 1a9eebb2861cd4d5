// The decoder block on libtorch: what the torch target and the torch drafters share.
#pragma once

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "eval/core/error.h"
#include "runners/checkpoint/checkpoint.h"
#include "runners/models/slot_table.h"

namespace asdbench::torch_blocks {

/// Runs `body` without gradient bookkeeping; failures of libtorch become ours.
template <typename Body>
auto guarded(const char* what, const Body& body) {
  try {
    const c10::InferenceMode inference;
    return body();
  } catch (const c10::Error& error) {
    throw DeviceError(fmt::format("{}: {}", what, error.what_without_backtrace()));
  }
}

/// Matrices (or vectors) of a checkpoint below each other as one float32 tensor of `shape`, q and k
/// in half-split order.
at::Tensor read(const Checkpoint& checkpoint, at::Device device,
                const std::vector<std::string>& names, const std::vector<std::int64_t>& shape);
/// One tensor in the shape it is stored in.
at::Tensor read(const Checkpoint& checkpoint, at::Device device, const std::string& name);
/// One matrix [out, in] as [in, out]: on the CPU a block of 8 rows then costs 2.1 times one row,
/// and 2.9 times with the [out, in] of the checkpoint.
at::Tensor read_transposed(const Checkpoint& checkpoint, at::Device device,
                           const std::string& name);

/// Weights of one block, matrices as [in, out]. H: hidden size; I: width of what q, k and v read.
struct BlockWeights {
  at::Tensor input_norm;  // [H]
  at::Tensor qkv;         // [I, (Nq + 2 Nk) D], columns of q, k, v
  at::Tensor qkv_bias;    // [(Nq + 2 Nk) D] or undefined
  at::Tensor qk_norm;  // [Nq + Nk, D] or undefined: q_norm for each q head, k_norm for each k head
  at::Tensor output;   // [Nq D, H]
  at::Tensor output_bias;  // [H] or undefined
  at::Tensor post_norm;    // [H]
  at::Tensor gate_up;      // [H, 2 F], columns of gate, up
  at::Tensor down;         // [F, H]
};

/// The block whose tensors begin with `prefix`, by checkpoint.config().
BlockWeights read_block(const Checkpoint& checkpoint, at::Device device, const std::string& prefix,
                        std::int64_t input_width);

/// The lowest index among the maxima of each row of `logits` [rows, width], width when a row holds
/// NaN or an infinity; `ids` are 0 to width - 1 on the device. argmax documents no order of ties.
at::Tensor lowest_best(const at::Tensor& logits, const at::Tensor& ids);

/// Caches and working memory for blocks of one shape, and the parts of a block over the rows of a
/// step; like native::BlockRunner.
class BlockRunner {
 public:
  BlockRunner(const ModelConfig& config, std::int64_t layers, at::Device device);

  /// Room for `slots` slots of `positions` positions and steps of `rows` rows.
  void reserve(std::int64_t slots, std::int64_t rows, std::int64_t positions);
  /// Fills cache rows [start, start + count) of a slot, so that any read of them shows.
  void poison(std::int32_t slot, std::int64_t start, std::int64_t count);
  void poison_all();

  /// Selects the rotation of every row; the calls that follow are about these rows.
  void place(std::span<const Segment> segments);
  /// Caches keys and values of `input` [rows, I].
  void store(std::int64_t layer, const BlockWeights& weights, const at::Tensor& input);
  /// x += attention(input), for x [rows, H].
  void attend(std::int64_t layer, const BlockWeights& weights, const at::Tensor& input,
              at::Tensor& x, StepMask mask = StepMask::kCausal,
              Projections projections = Projections::kAll);
  /// x += mlp(norm(x)).
  void feed_forward(const BlockWeights& weights, at::Tensor& x);

  /// Normalises in float32, rounds to the width of `x`, then multiplies: two roundings (4.2).
  at::Tensor rms(const at::Tensor& x, const at::Tensor& weight) const;

 private:
  /// Columns of `count` heads from `first` on, of the rows of the step.
  at::Tensor heads(std::int64_t first, std::int64_t count) const;
  void project(const BlockWeights& weights, const at::Tensor& input, std::int64_t first,
               std::int64_t count);
  void rotate(const BlockWeights& weights, std::int64_t first, std::int64_t count);
  void append(std::int64_t layer);
  void mix(std::int64_t layer, const Segment& segment, StepMask mask);

  ModelConfig config_;
  std::int64_t layers_;
  at::Device device_;
  std::int64_t positions_ = 0;   // P
  std::int64_t step_rows_ = 0;   // R
  at::Tensor cache_;             // [S, L, 2, Nk, P, D], keys then values
  at::Tensor qkv_;               // [R, (Nq + 2 Nk) D]
  at::Tensor attention_;         // [R, Nq D]
  at::Tensor gate_up_;           // [R, 2 F]
  at::Tensor later_hidden_;      // [R, R], -inf above the diagonal
  at::Tensor places_;            // [R] int64 on the host
  at::Tensor cos_, signed_sin_;  // [P, D]; the sine's first half negated

  // Of the step in progress.
  std::span<const Segment> segments_;
  std::int64_t rows_ = 0;
  at::Tensor step_cos_, step_sin_;  // [rows, 1, D]
};

}  // namespace asdbench::torch_blocks
