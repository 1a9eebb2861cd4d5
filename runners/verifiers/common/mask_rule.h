// How a rule that judges one position at a time becomes a decision.
#pragma once

#include <cstddef>

#include "runners/verifier.h"
#include "runners/verifiers/common/block_check.h"

namespace asdbench {

/// Accepts leading drafts while `accepts(i)` holds; `i` counts from 0. Nothing is charged or capped
/// here: the regret of accepted mismatches is recorded. BlockError as of check_block.
template <typename Accepts>
Decision accept_exactly_while(const Block& block, const Accepts& accepts) {
  check_block(block, Masked::kNo);
  const RowScoresView& scores = block.scores;
  Decision decision;
  decision.strict_length = leading_matches(block);
  double block_regret = 0;
  std::size_t i = 0;
  for (; i < block.draft.size() && accepts(i); ++i) {
    if (block.draft[i] == scores.choice[i]) continue;
    const double regret =
        static_cast<double>(scores.choice_logit[i]) - static_cast<double>(scores.draft_logit[i]);
    block_regret += regret;
    decision.exceptions.push_back({.position = static_cast<std::int32_t>(i),
                                   .draft = block.draft[i],
                                   .choice = scores.choice[i],
                                   .regret = regret,
                                   .weight = 1,
                                   .block_regret = block_regret});
  }
  decision.accepted = static_cast<std::int32_t>(i);
  decision.target_token = scores.choice[i];
  decision.blocked_by = i < block.draft.size() ? kBlockedByGate : kBlockedByNothing;
  return decision;
}

/// The same for rules that accept every match.
template <typename Accepts>
Decision accept_while(const Block& block, const Accepts& accepts) {
  return accept_exactly_while(
      block, [&](std::size_t i) { return block.draft[i] == block.scores.choice[i] || accepts(i); });
}

/// z(choice) - z(draft) at a position, nats.
inline double regret_at(const Block& block, std::size_t i) {
  return static_cast<double>(block.scores.choice_logit[i]) -
         static_cast<double>(block.scores.draft_logit[i]);
}

/// A required option within a range.
double required(const Params& params, const char* key, double minimum, double maximum);

}  // namespace asdbench
