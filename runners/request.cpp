// What a request commits, and when that ends it.
#include "runners/request.h"

#include <algorithm>

#include "eval/core/error.h"

namespace asdbench {

Request::Request(std::string sample_id, std::vector<TokenId> prompt, RequestLimits limits,
                 std::span<const TokenId> end_ids, Rng rng)
    : sample_id_(std::move(sample_id)),
      history_(std::move(prompt)),
      prompt_tokens_(history_.size()),
      limits_(limits),
      rng_(rng) {
  if (history_.empty()) {
    throw DataError(sample_id_ + ": the prompt has no tokens; at least one is needed");
  }
  ASDBENCH_CHECK(limits.max_tokens >= 1, "a request commits at least the token from prefill");
  ASDBENCH_CHECK(std::is_sorted(end_ids.begin(), end_ids.end()), "end ids must be sorted");
  stop_.end_ids = end_ids;
  stop_.ignore_end_ids = limits.ignore_end_ids;
  draft.reserve(kMaxDraft);
}

void Request::commit_first(TokenId token, std::int64_t positions) {
  positions_ = positions;
  // Every pass commits at least one token, so the output bounds passes and exceptions too.
  const auto prompt_tokens = static_cast<std::int64_t>(prompt_tokens_);
  const auto most = static_cast<std::size_t>(
      std::min<std::int64_t>(limits_.max_tokens, positions_ - prompt_tokens));
  history_.reserve(prompt_tokens_ + most);
  passes_.reserve(most);
  exceptions_.reserve(most);
  near_ties_.reserve(most);

  history_.push_back(token);
  update_stop();
  if (!stop_.ignore_end_ids && stop_.is_end(token)) {
    finish_ = FinishReason::kEos;
  } else if (*stop_.remaining == 0) {
    finish_ = stop_.context_limited ? FinishReason::kContextLimit : FinishReason::kLength;
  }
}

void Request::note_near_ties(std::span<const TokenId> tokens, const RowScoresView& scores) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] != scores.choice[i]) continue;  // an exception has its own record
    const double gap =
        static_cast<double>(scores.choice_logit[i]) - static_cast<double>(scores.runner_up[i]);
    if (gap >= kNearTieGap) continue;
    near_ties_.push_back(
        {.output_position = static_cast<std::int32_t>(output().size() + i), .gap = gap});
  }
}

void Request::commit(const Kept& kept, const Decision& decision) {
  const auto drafted = static_cast<std::int32_t>(draft.size());
  const auto pass = static_cast<std::int32_t>(passes_.size());
  const auto first = static_cast<std::int32_t>(output().size());
  for (std::int32_t i = 0; i < kept.exceptions; ++i) {
    const Exception& exception = decision.exceptions[i];
    exceptions_.push_back({.pass = pass,
                           .output_position = first + exception.position,
                           .block_position = exception.position,
                           .drafted = drafted,
                           .draft = exception.draft,
                           .choice = exception.choice,
                           .regret = exception.regret,
                           .weight = exception.weight,
                           .spent_after = ledger_.spent() + exception.block_regret});
  }
  passes_.push_back({.drafted = drafted,
                     .accepted = decision.accepted,
                     .kept = kept.drafts,
                     .committed = kept.committed(),
                     .strict_length = decision.strict_length,
                     .blocked_by = decision.blocked_by});
  const auto tokens = kept.committed_tokens();
  history_.insert(history_.end(), tokens.begin(), tokens.end());
  ledger_.charge(kept.block_regret);
  finish_ = kept.finish;
  update_stop();
}

void Request::fail(std::string error) {
  ASDBENCH_CHECK(!error.empty(), "a failed request says why");
  error_ = std::move(error);
}

Completion Request::completion() const {
  Completion completion;
  completion.tokens.assign(output().begin(), output().end());
  completion.finish = error_.empty() ? finish_ : std::nullopt;
  completion.error = error_;
  completion.prompt_tokens = static_cast<std::int32_t>(prompt_tokens_);
  completion.spent = ledger_.spent();
  completion.passes = passes_;
  completion.exceptions = exceptions_;
  completion.near_ties = near_ties_;
  completion.prefill_ns = prefill_ns;
  completion.decode_ns = decode_ns;
  return completion;
}

void Request::update_stop() {
  const auto cap = limits_.max_tokens - static_cast<std::int64_t>(output().size());
  const auto positions = positions_ - static_cast<std::int64_t>(history_.size());
  stop_.context_limited = positions < cap;
  stop_.remaining = static_cast<std::int32_t>(std::min(cap, positions));
}

}  // namespace asdbench
