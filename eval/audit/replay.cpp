// Blocks out of a strict run, and back through other rules.
#include "eval/audit/replay.h"

#include "runners/cut.h"

namespace asdbench {
namespace {

RecordedBlock record_of(const Block& block) {
  const RowScoresView& scores = block.scores;
  return {.draft = {block.draft.begin(), block.draft.end()},
          .choice = {scores.choice.begin(), scores.choice.end()},
          .choice_logit = {scores.choice_logit.begin(), scores.choice_logit.end()},
          .runner_up = {scores.runner_up.begin(), scores.runner_up.end()},
          .draft_logit = {scores.draft_logit.begin(), scores.draft_logit.end()},
          .bad = {scores.bad.begin(), scores.bad.end()},
          .end_ids = {block.stop.end_ids.begin(), block.stop.end_ids.end()},
          .remaining = block.stop.remaining,
          .vocab = block.target.vocab,
          .output_position = block.output_position};
}

/// Adds one request, with a ledger of its own.
void replay_request(const std::vector<RecordedBlock>& blocks, const Verifier& rule,
                    ReplayTotals& totals) {
  Ledger ledger;
  for (const RecordedBlock& record : blocks) {
    const StopRule stop{.end_ids = record.end_ids, .remaining = record.remaining};
    const auto rows = static_cast<std::int64_t>(record.choice.size());
    const Block block{.draft = record.draft,
                      .scores = {record.choice, record.choice_logit, record.runner_up,
                                 record.draft_logit, record.bad},
                      .target = {.data = nullptr, .rows = rows, .vocab = record.vocab},
                      .draft_logits = std::nullopt,
                      .stop = stop,
                      .output_position = record.output_position};
    const Kept kept = cut(block, rule.decide(block, ledger, Rng()));
    ledger.charge(kept.block_regret);
    totals.passes += 1;
    totals.committed += kept.committed();
    totals.exceptions += kept.exceptions;
    totals.regret += kept.block_regret;
    totals.kept.push_back(static_cast<std::int8_t>(kept.drafts));
  }
}

}  // namespace

Decision RecordingVerifier::decide(const Block& block, const Ledger& ledger, const Rng& rng) const {
  if (block.output_position == 1) {  // the first block with drafts; prefill yields position 0
    live_.erase(&ledger);
    if (std::ssize(requests_) < most_) {
      live_.emplace(&ledger, requests_.size());
      requests_.emplace_back();
    }
  }
  if (const auto request = live_.find(&ledger);
      request != live_.end() && block.output_position > 0) {
    requests_[request->second].push_back(record_of(block));
  }
  return rule_->decide(block, ledger, rng);
}

std::optional<double> ReplayTotals::tokens_per_pass() const {
  if (passes == 0) return std::nullopt;
  return static_cast<double>(committed) / static_cast<double>(passes);
}

ReplayTotals replay_blocks(const RecordedRequests& requests, const Verifier& rule) {
  ReplayTotals totals;
  for (const auto& blocks : requests) replay_request(blocks, rule, totals);
  return totals;
}

std::vector<double> first_mismatch_ratios(const RecordedRequests& requests) {
  std::vector<double> ratios;
  for (const auto& blocks : requests) {
    for (const RecordedBlock& block : blocks) {
      for (std::size_t i = 0; i < block.draft.size(); ++i) {
        if (block.draft[i] == block.choice[i]) continue;
        const double regret =
            static_cast<double>(block.choice_logit[i]) - static_cast<double>(block.draft_logit[i]);
        const double ratio = regret / static_cast<double>(block.draft.size() - i);
        if (ratio > 0) ratios.push_back(ratio);
        break;
      }
    }
  }
  return ratios;
}

}  // namespace asdbench
