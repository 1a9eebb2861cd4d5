// A round of a block drafter: context, block, head by head.
#include "runners/drafters/common/block_drafter.h"

#include <fmt/format.h>

#include <algorithm>

#include "eval/core/error.h"

namespace asdbench {

BlockDrafter::BlockDrafter(const FittedDrafter& fitted, const DrafterContext& context,
                           const BlockOptions& options)
    : CachedDrafter(fitted.taps,
                    static_cast<std::int64_t>(fitted.taps.size()) * fitted.target->config().hidden),
      options_(options),
      info_(fitted.info()),
      vocab_(fitted.sizes.vocab),
      has_confidence_(fitted.checkpoint->drafter().confidence),
      target_ids_(fitted.checkpoint->target_ids()),
      engine_(make_block_engine(fitted, context)) {
  info_.drafts = options.drafts;
}

void BlockDrafter::allocate(const BatchLimits& limits) {
  engine_->reserve(limits, options_.block);
  law_.reserve(limits, vocab_);
  const auto requests = static_cast<std::size_t>(limits.requests);
  context_.reserve(requests);
  starts_.reserve(requests);
  const auto picks = requests * static_cast<std::size_t>(options_.drafts);
  picks_.resize(picks);
  picked_confidences_.resize(picks);
  confidences_.resize(picks);
  confidence_counts_.assign(requests, 0);
}

std::int64_t BlockDrafter::cache_prompt(const Request& request, std::int64_t position,
                                        std::int64_t rows, const float* taps) {
  engine_->cache({request.slot, position, rows}, taps);
  return rows;
}

void BlockDrafter::keep_waiting(std::int32_t slot, std::int64_t at, const float* taps,
                                std::int64_t rows) {
  engine_->keep(slot, at, taps, rows);
}

std::span<const float> BlockDrafter::confidences(std::int32_t slot) const {
  const auto at = static_cast<std::size_t>(slot);
  return std::span(confidences_)
      .subspan(at * static_cast<std::size_t>(options_.drafts),
               static_cast<std::size_t>(confidence_counts_[at]));
}

void BlockDrafter::propose(std::span<Request* const> live, std::span<const DraftLimits> limits) {
  context_.clear();
  starts_.clear();
  std::int32_t most = 0;
  for (std::size_t i = 0; i < live.size(); ++i) {
    Request& request = *live[i];
    request.draft.clear();
    request.draft_logits.reset();
    confidence_counts_[static_cast<std::size_t>(request.slot)] = 0;
    const Waiting waiting = take_waiting(request);
    context_.push_back({request.slot, waiting.position, waiting.rows});
    starts_.push_back({request.slot, waiting.position + waiting.rows, request.pending()});
    most = std::max(most, std::min(limits[i].tokens, options_.drafts));
  }
  engine_->cache_waiting(context_);
  if (most == 0) return;
  const std::int64_t made =
      engine_->draft(starts_, most, options_.least_confidence, picks_, picked_confidences_);
  for (std::size_t i = 0; i < live.size(); ++i) {
    const std::int64_t limit = std::min(limits[i].tokens, options_.drafts);
    take_picks(*live[i], i, std::min(limit, made));
  }
}

/// The first `limit` drafts of the i-th request, cut before one of too little confidence.
void BlockDrafter::take_picks(Request& request, std::size_t i, std::int64_t limit) {
  const auto slot = static_cast<std::size_t>(request.slot);
  float* confidences = confidences_.data() + slot * static_cast<std::size_t>(options_.drafts);
  const auto width = target_ids_.empty() ? vocab_ : std::ssize(target_ids_);
  for (std::size_t at = i; std::ssize(request.draft) < limit; at += starts_.size()) {
    if (picks_[at] == kNoToken) {
      request.fail("nonfinite_logit: drafter " + info_.name);
      return;
    }
    if (has_confidence_) {
      confidences[confidence_counts_[slot]++] = picked_confidences_[at];
      if (static_cast<double>(picked_confidences_[at]) < options_.least_confidence) return;
    }
    if (law_.wanted()) {
      law_.add(request, engine_->logits() + static_cast<std::int64_t>(at) * width, target_ids_);
    }
    request.draft.push_back(picks_[at]);
  }
}

std::unique_ptr<Drafter> make_block_drafter(const Params& params, const DrafterContext& context,
                                            DraftMethod method) {
  const FittedDrafter fitted = open_fitted(params, context, method);
  const DrafterConfig& config = fitted.checkpoint->drafter();
  const std::int64_t unused = config.from_anchor ? 0 : 1;  // the anchor's row may predict nothing
  BlockOptions options;
  options.block = params.integer("block", config.block_size, 1 + unused, config.block_size);
  const std::int64_t drafts = std::min<std::int64_t>(options.block - unused, kMaxDraft);
  options.drafts = static_cast<std::int32_t>(params.integer("K", drafts, 1, drafts));
  if (method == DraftMethod::kDSpark) {
    options.least_confidence = params.number("confidence", 0, 0, 1);
    if (options.least_confidence > 0 && !config.confidence) {
      params.fail("confidence",
                  fmt::format("{} has no confidence head", fitted.checkpoint->path().string()));
    }
  }
  return std::make_unique<BlockDrafter>(fitted, context, options);
}

}  // namespace asdbench
