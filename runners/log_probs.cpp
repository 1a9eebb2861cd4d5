// The first id of every continuation is read from one row; the others need a step of their own.
#include "runners/log_probs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "eval/core/error.h"
#include "runners/request.h"

namespace asdbench {
namespace {

double log_prob(std::span<const float> logits, TokenId id) {
  double most = -HUGE_VAL;
  for (const float logit : logits) most = std::max(most, static_cast<double>(logit));
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - most);
  return static_cast<double>(logits[static_cast<std::size_t>(id)]) - most - std::log(sum);
}

void check_rows(const StepView& step) {
  const auto bad = std::find_if(step.scores.bad.begin(), step.scores.bad.end(),
                                [](std::uint8_t flag) { return flag != 0; });
  if (bad == step.scores.bad.end()) return;
  throw BlockError(
      BlockFault::kNonfiniteLogit,
      fmt::format("{}: row {} holds NaN, an infinity or nothing finite; expected "
                  "finite logits (model or kernel is broken)",
                  name_of(BlockFault::kNonfiniteLogit), bad - step.scores.bad.begin()));
}

/// A slot of the target for as long as one request uses it.
class Slot {
 public:
  Slot(Target& target, std::span<const TokenId> prompt)
      : target_(target),
        request_("log_probs", {prompt.begin(), prompt.end()}, {.max_tokens = kMaxDraft + 1}, {},
                 Rng(0, "log_probs", "none")) {}
  ~Slot() { target_.release(request_); }
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;
  Request& request() { return request_; }

 private:
  Target& target_;
  Request request_;
};

}  // namespace

LogProbs::LogProbs(Target& target, std::int32_t most_tokens, std::int64_t positions)
    : target_(target), positions_(std::min(positions, target.info().positions)) {
  ASDBENCH_CHECK(most_tokens >= 1 && most_tokens <= kMaxDraft, "a continuation has tokens, few");
  target_.reserve({.requests = 1, .drafts = most_tokens, .positions = positions_}, true);
}

std::vector<double> LogProbs::of(std::span<const TokenId> prompt,
                                 const std::vector<std::vector<TokenId>>& continuations) {
  std::size_t longest = 0;
  for (const auto& continuation : continuations) {
    ASDBENCH_CHECK(!continuation.empty(), "a continuation has at least one token");
    longest = std::max(longest, continuation.size());
  }
  const auto needed = static_cast<std::int64_t>(prompt.size() + longest) + 1;
  if (needed > positions_) {
    throw DataError(fmt::format(
        "the prompt has {} tokens and its continuation {}; expected at most {} together",
        prompt.size(), longest, positions_ - 1));
  }
  std::vector<double> sums;
  {
    Slot slot(target_, prompt);
    const StepView step = target_.prefill(slot.request());
    check_rows(step);
    for (const auto& continuation : continuations) {
      sums.push_back(log_prob(step.logits.row(0), continuation.front()));
    }
  }
  for (std::size_t i = 0; i < continuations.size(); ++i) {
    if (continuations[i].size() > 1) sums[i] += rest_of(prompt, continuations[i]);
  }
  return sums;
}

double LogProbs::rest_of(std::span<const TokenId> prompt, std::span<const TokenId> continuation) {
  Slot slot(target_, prompt);
  Request& request = slot.request();
  target_.prefill(request);
  request.commit_first(continuation.front(), positions_);
  const auto rest = continuation.subspan(1);
  request.draft.assign(rest.begin(), rest.end());
  Request* const live[] = {&request};
  const StepView step = target_.forward(live);
  check_rows(step);
  double sum = 0;
  for (std::size_t i = 0; i < rest.size(); ++i) {
    sum += log_prob(step.logits.row(static_cast<std::int64_t>(i)), rest[i]);
  }
  target_.keep(request, 0);
  return sum;
}

}  // namespace asdbench
