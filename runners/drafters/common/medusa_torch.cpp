// Medusa's heads on libtorch, on the device of their target.
#include <algorithm>
#include <optional>

#include "eval/core/error.h"
#include "runners/drafters/common/medusa_engine.h"
#include "runners/drafters/common/torch_weights_internal.h"
#include "runners/models/torch_block_internal.h"

namespace asdbench {
namespace {

using torch_blocks::guarded;

struct HeadBlock {
  at::Tensor weight;  // [H, H], as [in, out]
  at::Tensor bias;    // [H] or undefined
};

class TorchMedusa final : public MedusaEngine {
 public:
  explicit TorchMedusa(const FittedDrafter& fitted)
      : device_(torch_blocks::torch_target(fitted).device()),
        hidden_(fitted.target->config().hidden) {
    const DrafterCheckpoint& checkpoint = *fitted.checkpoint;
    const DrafterConfig& config = checkpoint.drafter();
    const std::vector<TokenId>& ids = checkpoint.target_ids();
    for (std::int64_t head = 0; head < config.heads; ++head) {
      std::vector<HeadBlock> blocks;
      for (std::int64_t block = 0; block < config.head_blocks; ++block) {
        const std::string linear = fmt::format("{}.{}.linear.", head, block);
        blocks.push_back(
            {torch_blocks::read_transposed(checkpoint, device_, linear + "weight"), {}});
        if (config.head_bias) {
          blocks.back().bias = torch_blocks::read(checkpoint, device_, linear + "bias");
        }
      }
      blocks_.push_back(std::move(blocks));
      const std::string output = fmt::format("{}.head.weight", head);
      if (!checkpoint.has(output)) continue;
      outputs_.push_back(chosen(torch_blocks::read_transposed(checkpoint, device_, output), ids));
    }
    if (outputs_.empty())
      outputs_.push_back(chosen(torch_blocks::torch_target(fitted).head(), ids));
    picks_.emplace(ids, outputs_.front().size(1), device_);
  }

  void reserve(const BatchLimits& limits) override {
    guarded("allocating for the drafter", [&] {
      kept_ = at::empty({limits.requests, hidden_}, at::TensorOptions(at::kFloat).device(device_));
    });
  }

  void keep(std::int32_t slot, const float* hidden) override {
    guarded("keeping hidden states",
            [&] { kept_[slot].copy_(torch_blocks::rows_at(hidden, 1, hidden_, device_)[0]); });
  }

  void draft(std::span<const std::int32_t> slots, std::int64_t drafts,
             std::span<TokenId> picks) override {
    guarded("drafting", [&] {
      const at::Tensor hidden = kept_.index_select(0, torch_blocks::ids_on(slots, device_));
      std::vector<at::Tensor> logits;
      for (std::int64_t head = 0; head < drafts; ++head) {
        const auto at = static_cast<std::size_t>(head);
        at::Tensor x = hidden;
        for (const HeadBlock& block : blocks_[at]) {
          at::Tensor gate = x.mm(block.weight);
          if (block.bias.defined()) gate.add_(block.bias);
          x = x + at::silu(gate);
        }
        logits.push_back(x.mm(outputs_[std::min(at, outputs_.size() - 1)]));
      }
      logits_ = at::cat(logits);
      torch_blocks::copy_ids(picks_->best(logits_), picks);
    });
  }

  const float* logits() override {
    host_logits_ = logits_.cpu();
    return host_logits_.const_data_ptr<float>();
  }

 private:
  /// All columns of a head, or those that a token map names when it has more.
  at::Tensor chosen(const at::Tensor& output, const std::vector<TokenId>& ids) const {
    if (ids.empty() || output.size(1) == std::ssize(ids)) return output;
    return output.index_select(1, torch_blocks::ids_on(ids, device_));
  }

  at::Device device_;
  std::int64_t hidden_;
  std::vector<std::vector<HeadBlock>> blocks_;  // [heads][blocks]
  std::vector<at::Tensor> outputs_;             // [H, draft vocabulary] each; one: of all heads
  std::optional<torch_blocks::PickMap> picks_;
  at::Tensor kept_;    // [slots, H]
  at::Tensor logits_;  // [drafts * slots, draft vocabulary]
  at::Tensor host_logits_;
};

}  // namespace

std::unique_ptr<MedusaEngine> make_torch_medusa(const FittedDrafter& fitted) {
  return guarded("loading the drafter", [&] { return std::make_unique<TorchMedusa>(fitted); });
}

}  // namespace asdbench
