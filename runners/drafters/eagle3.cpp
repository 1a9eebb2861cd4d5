// EAGLE-3: one decoder layer over fused hidden states of the target, drafting token by token. Li et
// al. 2025, arXiv:2503.01840. Both released layouts (specs: drafters, sections 4 and 5).
#include <algorithm>

#include "eval/core/error.h"
#include "runners/drafters/common/cached_drafter.h"
#include "runners/drafters/common/draft_law.h"
#include "runners/drafters/common/eagle_engine.h"
#include "runners/drafters/common/fitted_drafter.h"

namespace asdbench {
namespace {

constexpr std::int64_t kDefaultDrafts = 5;

class Eagle3 final : public CachedDrafter {
 public:
  Eagle3(const FittedDrafter& fitted, std::unique_ptr<EagleEngine> engine, std::int32_t drafts,
         double least_confidence)
      : CachedDrafter(fitted.taps, static_cast<std::int64_t>(fitted.taps.size()) *
                                       fitted.target->config().hidden),
        info_(fitted.info()),
        vocab_(fitted.sizes.vocab),
        stops_at_end_(fitted.checkpoint->drafter().layout == "DeepSpec"),
        target_ids_(fitted.checkpoint->target_ids()),
        least_confidence_(least_confidence),
        engine_(std::move(engine)) {
    info_.drafts = drafts;
  }

  DrafterInfo info() const override { return info_; }

  using Drafter::propose;
  void propose(std::span<Request* const> live, std::span<const DraftLimits> limits) override {
    rows_.clear();
    std::int32_t most = 0;
    for (std::size_t i = 0; i < live.size(); ++i) {
      const Request& request = *live[i];
      const Waiting waiting = take_waiting(request);
      rows_.push_back({request.slot, waiting.position,
                       request.history().subspan(static_cast<std::size_t>(waiting.position) + 1,
                                                 static_cast<std::size_t>(waiting.rows))});
      most = std::max(most, std::min(limits[i].tokens, info_.drafts));
    }
    // Without room for a draft the rows still have to reach the cache.
    const auto made = static_cast<std::int32_t>(
        engine_->draft(rows_, std::max(most, 1), least_confidence_, picks_, confidences_));
    for (std::size_t i = 0; i < live.size(); ++i) {
      take_picks(*live[i], i, std::min({limits[i].tokens, info_.drafts, made}));
    }
  }

 protected:
  void allocate(const BatchLimits& limits) override {
    engine_->reserve(limits);
    law_.reserve(limits, vocab_);
    const auto requests = static_cast<std::size_t>(limits.requests);
    picks_.resize(requests * static_cast<std::size_t>(info_.drafts));
    confidences_.resize(picks_.size());
    rows_.reserve(requests);
  }

  std::int64_t cache_prompt(const Request& request, std::int64_t position, std::int64_t rows,
                            const float* taps) override {
    // The last row of the prompt waits for the token that follows it.
    const auto known = static_cast<std::int64_t>(request.prompt().size()) - 1 - position;
    rows = std::min(rows, known);
    const std::span<const TokenId> tokens = request.prompt().subspan(
        static_cast<std::size_t>(position) + 1, static_cast<std::size_t>(rows));
    if (rows > 0) engine_->cache({request.slot, position, tokens}, taps);
    return rows;
  }

  void keep_waiting(std::int32_t slot, std::int64_t at, const float* taps,
                    std::int64_t rows) override {
    engine_->keep(slot, at, taps, rows);
  }

 private:
  /// The first `limit` drafts of the i-th request, cut before one of too little confidence.
  void take_picks(Request& request, std::size_t i, std::int32_t limit) {
    request.draft.clear();
    request.draft_logits.reset();
    const auto width = target_ids_.empty() ? vocab_ : std::ssize(target_ids_);
    for (std::size_t at = i; std::ssize(request.draft) < limit; at += rows_.size()) {
      const TokenId token = picks_[at];
      if (token == kNoToken) {
        request.fail("nonfinite_logit: drafter eagle3");
        return;
      }
      if (least_confidence_ > 0 && static_cast<double>(confidences_[at]) < least_confidence_)
        return;
      if (law_.wanted()) {
        law_.add(request, engine_->logits() + static_cast<std::int64_t>(at) * width, target_ids_);
      }
      request.draft.push_back(token);
      // DeepSpec's reference ends a draft there; SafeAILab's does not.
      const StopRule& stop = request.stop();
      if (stops_at_end_ && !stop.ignore_end_ids && stop.is_end(token)) return;
    }
  }

  DrafterInfo info_;
  std::int64_t vocab_;
  bool stops_at_end_;
  std::vector<TokenId> target_ids_;
  double least_confidence_;  // 0: drafts are never cut
  std::unique_ptr<EagleEngine> engine_;
  DraftLaw law_;
  std::vector<EagleRows> rows_;
  std::vector<TokenId> picks_;      // [K, requests]
  std::vector<float> confidences_;  // [K, requests]
};

}  // namespace

std::unique_ptr<Drafter> make_eagle3(const Params& params, const DrafterContext& context) {
  const auto drafts = static_cast<std::int32_t>(params.integer("K", kDefaultDrafts, 1, kMaxDraft));
  const double confidence = params.number("confidence", 0, 0, 1);
  const FittedDrafter fitted = open_fitted(params, context, DraftMethod::kEagle3);
  return std::make_unique<Eagle3>(fitted, make_eagle_engine(fitted, context), drafts, confidence);
}

}  // namespace asdbench
