// Medusa: heads that read the target's last hidden state, each a token further ahead. Cai et al.
// 2024, arXiv:2401.10774. Used as a chain of best tokens (specs: drafters, section 6).
#include <fmt/format.h>

#include <algorithm>

#include "eval/core/error.h"
#include "runners/drafter.h"
#include "runners/drafters/common/draft_law.h"
#include "runners/drafters/common/medusa_engine.h"

namespace asdbench {
namespace {

class Medusa final : public Drafter {
 public:
  Medusa(const FittedDrafter& fitted, std::int32_t drafts)
      : info_(fitted.info()),
        hidden_(fitted.target->config().hidden),
        vocab_(fitted.target->config().vocab),
        target_ids_(fitted.checkpoint->target_ids()),
        engine_(make_medusa_engine(fitted)) {
    info_.drafts = drafts;
    info_.positions = 0;  // heads see no positions
  }

  DrafterInfo info() const override { return info_; }
  HiddenSelection reads() const override { return {.taps = {}, .final_norm = true}; }

  void reserve(const BatchLimits& limits) override {
    engine_->reserve(limits);
    law_.reserve(limits, vocab_);
    const auto requests = static_cast<std::size_t>(limits.requests);
    steps_.assign(requests, nullptr);
    slots_.reserve(requests);
    picks_.resize(requests * static_cast<std::size_t>(info_.drafts));
  }

  void on_final_norm(const Request& request, std::int64_t /*position*/, std::int64_t /*rows*/,
                     const float* data) override {
    if (request.output().empty()) {
      engine_->keep(request.slot, data);
    } else {
      steps_[static_cast<std::size_t>(request.slot)] = data;
    }
  }

  /// The heads read the row of the last committed draft, whose choice is the next pending token.
  void observe(const Request& request, const Kept& kept) override {
    const float* step = steps_[static_cast<std::size_t>(request.slot)];
    ASDBENCH_CHECK(step != nullptr, "a pass was observed whose hidden states were not");
    engine_->keep(request.slot, step + kept.drafts * hidden_);
  }

  using Drafter::propose;
  void propose(std::span<Request* const> live, std::span<const DraftLimits> limits) override {
    slots_.clear();
    std::int32_t most = 0;
    for (std::size_t i = 0; i < live.size(); ++i) {
      live[i]->draft.clear();
      live[i]->draft_logits.reset();
      slots_.push_back(live[i]->slot);
      most = std::max(most, std::min(limits[i].tokens, info_.drafts));
    }
    if (most == 0) return;
    engine_->draft(slots_, most, picks_);
    const auto width = target_ids_.empty() ? vocab_ : std::ssize(target_ids_);
    for (std::int32_t head = 0; head < most; ++head) {
      for (std::size_t i = 0; i < live.size(); ++i) {
        Request& request = *live[i];
        if (head >= limits[i].tokens || request.finished()) continue;
        const std::size_t at = static_cast<std::size_t>(head) * live.size() + i;
        if (picks_[at] == kNoToken) {
          request.fail("nonfinite_logit: drafter medusa");
          continue;
        }
        if (law_.wanted()) {
          law_.add(request, engine_->logits() + static_cast<std::int64_t>(at) * width, target_ids_);
        }
        request.draft.push_back(picks_[at]);
      }
    }
  }

 private:
  DrafterInfo info_;
  std::int64_t hidden_;
  std::int64_t vocab_;
  std::vector<TokenId> target_ids_;
  std::unique_ptr<MedusaEngine> engine_;
  DraftLaw law_;
  std::vector<const float*> steps_;  // [slots]; rows of the target's last step
  std::vector<std::int32_t> slots_;
  std::vector<TokenId> picks_;  // [drafts, slots]
};

}  // namespace

std::unique_ptr<Drafter> make_medusa(const Params& params, const DrafterContext& context) {
  const FittedDrafter fitted = open_fitted(params, context, DraftMethod::kMedusa);
  const std::int64_t heads = std::min<std::int64_t>(fitted.checkpoint->drafter().heads, kMaxDraft);
  const auto drafts = static_cast<std::int32_t>(params.integer("K", heads, 1, heads));
  return std::make_unique<Medusa>(fitted, drafts);
}

}  // namespace asdbench
