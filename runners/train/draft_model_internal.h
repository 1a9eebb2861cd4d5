// What the training loop needs of a kind of drafter; tensors are libtorch's.
#pragma once

#include <ATen/ATen.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "eval/core/json.h"
#include "eval/core/params.h"
#include "eval/core/rng.h"
#include "runners/checkpoint/checkpoint.h"
#include "runners/train/corpus.h"

namespace asdbench::training {

/// A tensor under the name it bears in the released file.
struct NamedTensor {
  std::string name;
  at::Tensor tensor;
};

/// A drafter in training. Weights, sums and norms are float32; so are matrix products, unless the
/// configuration says bfloat16.
class DraftModel {
 public:
  virtual ~DraftModel() = default;
  /// Leaves of the gradient.
  std::vector<NamedTensor>& parameters() { return parameters_; }
  /// Mean loss over the rows of the replies, differentiable. `draw` is for what is chosen at
  /// random.
  virtual at::Tensor loss(std::span<const Reply* const> replies, SplitMix64& draw) = 0;
  /// Bool [n - 1, drafts]: whether draft j of the chain behind reply id r is reply id r + 1 + j,
  /// when all drafts before it were. False beyond the reply's end.
  virtual at::Tensor matches(const Reply& reply, std::int64_t drafts) = 0;
  /// config.json of the released layout.
  virtual Json config() const = 0;
  /// Tensors that are stored beside the parameters and do not learn.
  virtual std::vector<NamedTensor> constants() const { return {}; }
  /// Name of the file of weights.
  virtual std::string weights_file() const { return "model.safetensors"; }

 protected:
  /// Adds a leaf with these values.
  at::Tensor& add_parameter(const std::string& name, at::Tensor values);
  std::vector<NamedTensor> parameters_;
};

/// What a kind is made from.
struct ModelSource {
  const Checkpoint& target;
  const TapPlan& taps;
  std::span<const Reply> replies;  // those that are trained on
  std::uint64_t seed;
  at::ScalarType compute;  // of matrix products: float32 or bfloat16
};

/// Each kind reads its sizes from `params`; the check is for before the replies are made.
/// ConfigError, ModelError.
void check_eagle3_options(const Params& params, const ModelConfig& target);
void check_medusa_options(const Params& params, const ModelConfig& target);
std::unique_ptr<DraftModel> make_medusa_model(const Params& params, const ModelSource& source);
void check_dspark_options(const Params& params, const ModelConfig& target);
std::unique_ptr<DraftModel> make_dspark_model(const Params& params, const ModelSource& source);
std::unique_ptr<DraftModel> make_eagle3_model(const Params& params, const ModelSource& source);

// ---- shared pieces

/// A tensor of the target, float32, of the given shape.
at::Tensor read_weights(const Checkpoint& target, const std::string& name,
                        const std::vector<std::int64_t>& shape);
/// Uniform values of standard deviation `deviation`.
at::Tensor random_values(const std::vector<std::int64_t>& shape, double deviation,
                         SplitMix64& draw);
/// `rows` bf16 rows of a reply from row `first` on, as float32 [rows, hidden].
at::Tensor hidden_rows(const std::uint16_t* values, std::int64_t first, std::int64_t rows,
                       std::int64_t hidden);
/// The matrix as `compute` multiplies it; gradients reach `weight`.
at::Tensor for_compute(const at::Tensor& weight, at::ScalarType compute);
/// x [rows, in] times weight [out, in], which for_compute gave; float32.
at::Tensor project(const at::Tensor& x, const at::Tensor& weight);
/// x / rms(x) * weight over the last axis.
at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps);
/// Rotates heads [rows, heads, D] by half-split pairs; `angles` is [rows, D / 2].
at::Tensor rotate(const at::Tensor& heads, const at::Tensor& angles);
/// [rows, D / 2] for these positions.
at::Tensor rotary_angles(const at::Tensor& positions, double theta, std::int64_t head_dim);

/// The ids that the replies use most, in ascending order; a reduced head has a row for each of them
/// only. Ties, and what is left when the replies use fewer, go to the lowest ids.
class DraftVocabulary {
 public:
  DraftVocabulary(std::span<const Reply> replies, std::int64_t vocab, std::int64_t size);

  std::int64_t size() const { return static_cast<std::int64_t>(ids_.size()); }
  /// Row of the head for a target's id; -1 when there is none.
  std::int64_t row(TokenId id) const { return rows_.at(static_cast<std::size_t>(id)); }
  /// The rows of a [V, ...] tensor that are in the vocabulary.
  at::Tensor select(const at::Tensor& of_target) const;
  /// d2t and t2d; none when every id is in (specs: drafters, section 4.2).
  std::vector<NamedTensor> tensors() const;

 private:
  std::vector<TokenId> ids_;        // [Vd]
  std::vector<std::int64_t> rows_;  // [V]
};

/// What a row of draft logits should say, [M, Vd]: the target's own distribution within the draft
/// vocabulary with weight `soft`, and its choice with the rest. `final_hidden` [M, H] after the
/// target's last norm, `head` [Vd, H] as for_compute gives it, `label` [M] or -1.
at::Tensor label_probs(const at::Tensor& final_hidden, const at::Tensor& head,
                       const at::Tensor& label, double soft);

}  // namespace asdbench::training
