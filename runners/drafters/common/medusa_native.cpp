// Medusa's heads on our own CPU kernels.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "runners/drafters/common/medusa_engine.h"
#include "runners/drafters/common/native_weights.h"
#include "runners/models/native_block.h"

namespace asdbench {
namespace {

using kernels::LinearOutput;
using kernels::PackedMatrix;

struct HeadBlock {
  PackedMatrix weight;      // [H, H]
  std::vector<float> bias;  // [H]; empty: none
};

class NativeMedusa final : public MedusaEngine {
 public:
  explicit NativeMedusa(const FittedDrafter& fitted)
      : hidden_(fitted.target->config().hidden),
        pool_(native::native_target(fitted).pool()),
        target_ids_(fitted.checkpoint->target_ids()) {
    const DrafterCheckpoint& checkpoint = *fitted.checkpoint;
    const DrafterConfig& config = checkpoint.drafter();
    for (std::int64_t head = 0; head < config.heads; ++head) {
      std::vector<HeadBlock> blocks;
      for (std::int64_t block = 0; block < config.head_blocks; ++block) {
        const std::string linear = fmt::format("{}.{}.linear.", head, block);
        blocks.push_back({native::draft_matrix(fitted, linear + "weight"), {}});
        if (config.head_bias) {
          blocks.back().bias = native::read_vector(checkpoint, linear + "bias");
        }
      }
      blocks_.push_back(std::move(blocks));
      const std::string output = fmt::format("{}.head.weight", head);
      if (checkpoint.has(output)) outputs_.push_back(pack_output(fitted, output));
    }
    if (outputs_.empty()) {
      const PackedMatrix& targets = native::native_target(fitted).head();
      outputs_.push_back(target_ids_.empty() ? targets : targets.rows(target_ids_));
    }
  }

  void reserve(const BatchLimits& limits) override {
    const auto slots = static_cast<std::size_t>(limits.requests);
    const auto rows = slots * blocks_.size();
    const auto hidden = static_cast<std::size_t>(hidden_);
    kept_.resize(slots * hidden);
    x_.resize(rows * hidden);
    gate_.resize(slots * hidden);
    const auto vocab = static_cast<std::size_t>(outputs_.front().outputs());
    logits_.resize(limits.draft_logits ? rows * vocab : 0);
    no_drafts_.assign(rows, kNoToken);
    for (std::vector<float>* scores : {&best_, &runner_up_, &draft_logit_}) scores->resize(rows);
    bad_.resize(rows);
  }

  void keep(std::int32_t slot, const float* hidden) override {
    std::copy_n(hidden, hidden_, kept_.data() + slot * hidden_);
  }

  void draft(std::span<const std::int32_t> slots, std::int64_t drafts,
             std::span<TokenId> picks) override {
    const auto rows = static_cast<std::int64_t>(slots.size());
    for (std::int64_t head = 0; head < drafts; ++head) {
      float* x = x_.data() + head * rows * hidden_;
      for (std::int64_t i = 0; i < rows; ++i) {
        std::copy_n(kept_.data() + slots[static_cast<std::size_t>(i)] * hidden_, hidden_,
                    x + i * hidden_);
      }
      for (const HeadBlock& block : blocks_[static_cast<std::size_t>(head)]) {
        add_block(block, x, rows);
      }
      if (outputs_.size() == 1) continue;  // one matrix serves all heads: all rows at once, below
      score(outputs_[static_cast<std::size_t>(head)], head * rows, rows, picks);
    }
    if (outputs_.size() == 1) score(outputs_.front(), 0, drafts * rows, picks);
    if (target_ids_.empty()) return;
    for (TokenId& each : picks.first(static_cast<std::size_t>(drafts * rows))) {
      if (each != kNoToken) each = target_ids_[static_cast<std::size_t>(each)];
    }
  }

  const float* logits() override { return logits_.data(); }

 private:
  /// All rows of a head, or those that a token map names when it has more.
  PackedMatrix pack_output(const FittedDrafter& fitted, const std::string& name) const {
    PackedMatrix all = native::draft_matrix(fitted, name);
    const bool whole = target_ids_.empty() || all.outputs() == std::ssize(target_ids_);
    return whole ? all : all.rows(target_ids_);
  }

  /// x += silu(W x + b).
  void add_block(const HeadBlock& block, float* x, std::int64_t rows) {
    const LinearOutput linear{
        &block.weight, {gate_.data(), hidden_}, block.bias.empty() ? nullptr : block.bias.data()};
    kernels::linear(pool_, {x, hidden_}, rows, {&linear, 1});
    for (std::int64_t i = 0; i < rows * hidden_; ++i) {
      const float gate = gate_[static_cast<std::size_t>(i)];
      x[i] += gate / (1.0F + std::exp(-gate));
    }
  }

  /// The best rows of `output` for rows [first, first + count) of x.
  void score(const PackedMatrix& output, std::int64_t first, std::int64_t count,
             std::span<TokenId> picks) {
    float* logits = logits_.empty() ? nullptr : logits_.data() + first * output.outputs();
    kernels::linear_scores(
        pool_, {x_.data() + first * hidden_, hidden_}, count, output, no_drafts_.data(),
        {picks.data() + first, best_.data(), runner_up_.data(), draft_logit_.data(), bad_.data()},
        {logits, output.outputs()});
  }

  std::int64_t hidden_;
  kernels::Pool& pool_;
  std::vector<TokenId> target_ids_;             // [draft vocabulary]; empty: the same
  std::vector<std::vector<HeadBlock>> blocks_;  // [heads][blocks]
  std::vector<PackedMatrix> outputs_;           // [draft vocabulary, H] each; one: of all heads
  std::vector<float> kept_;                     // [slots, H]
  std::vector<float> x_;                        // [heads, slots, H]
  std::vector<float> gate_;                     // [slots, H]
  std::vector<float> logits_;  // [heads, slots, draft vocabulary]; empty: not wanted
  std::vector<TokenId> no_drafts_;
  std::vector<float> best_, runner_up_, draft_logit_;
  std::vector<std::uint8_t> bad_;
};

}  // namespace

std::unique_ptr<MedusaEngine> make_medusa_engine(const FittedDrafter& fitted) {
#ifdef ASDBENCH_TORCH_ENGINE
  if (!native::is_native(fitted)) return make_torch_medusa(fitted);
#endif
  return std::make_unique<NativeMedusa>(fitted);
}

}  // namespace asdbench
