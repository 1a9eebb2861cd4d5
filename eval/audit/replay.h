// Replay: the blocks of a strict run shown to other rules, masks only. It says how many drafts a
// rule would keep of the same blocks, not where its own path leads, and prunes before live runs.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "runners/verifier.h"

namespace asdbench {

/// One scored block without its logit rows.
struct RecordedBlock {
  std::vector<TokenId> draft;   // [K]
  std::vector<TokenId> choice;  // [K + 1], and the same for the rest
  std::vector<float> choice_logit, runner_up, draft_logit;
  std::vector<std::uint8_t> bad;
  std::vector<TokenId> end_ids;
  std::optional<std::int32_t> remaining;
  std::int64_t vocab = 0;
  std::int32_t output_position = 0;  // 1 at the first block of a request
};

/// The blocks of each request, in order.
using RecordedRequests = std::vector<std::vector<RecordedBlock>>;

/// Decides as `rule` does and keeps the blocks of the first `most` requests, which may be decoded
/// together.
class RecordingVerifier final : public Verifier {
 public:
  RecordingVerifier(std::unique_ptr<Verifier> rule, std::int64_t most, RecordedRequests& requests)
      : rule_(std::move(rule)), most_(most), requests_(requests) {}

  VerifierInfo info() const override { return rule_->info(); }
  Decision decide(const Block& block, const Ledger& ledger, const Rng& rng) const override;

 private:
  std::unique_ptr<Verifier> rule_;
  std::int64_t most_;
  RecordedRequests& requests_;
  // Deciding is const, noting is not. A request is known by its ledger, which lives as long.
  mutable std::map<const Ledger*, std::size_t> live_;
};

struct ReplayTotals {
  std::int64_t passes = 0;
  std::int64_t committed = 0;
  std::int64_t exceptions = 0;
  double regret = 0;              // nats
  std::vector<std::int8_t> kept;  // drafts of each block: two rules with equal ones act alike here

  std::optional<double> tokens_per_pass() const;
};

/// Shows every block to `rule`, each request with a ledger of its own. Only for rules that read
/// neither logit rows nor the drafter's law.
ReplayTotals replay_blocks(const RecordedRequests& requests, const Verifier& rule);

/// Of every block, regret over remaining proposal length at its first mismatch, where positive
/// (specs/measurement.md, section 8: a scale for the gate).
std::vector<double> first_mismatch_ratios(const RecordedRequests& requests);

}  // namespace asdbench
