// Shadow ledgers beside the one of the strict run.
#include "runners/throughput/replay.h"

#include "runners/cut.h"

namespace asdbench {

ReplayVerifier::ReplayVerifier(const Verifier& strict, std::vector<const Verifier*> rules)
    : strict_(strict), rules_(std::move(rules)) {}

VerifierInfo ReplayVerifier::info() const {
  VerifierInfo info = strict_.info();
  for (const Verifier* rule : rules_) {
    const VerifierInfo other = rule->info();
    info.needs_draft_logits = info.needs_draft_logits || other.needs_draft_logits;
    info.needs_target_logits = info.needs_target_logits || other.needs_target_logits;
  }
  return info;
}

Decision ReplayVerifier::decide(const Block& block, const Ledger& ledger, const Rng& rng) const {
  Decision strict = strict_.decide(block, ledger, rng);
  if (block.output_position == 0) {  // prefill: a new request, maybe in the place of an old one
    live_[&ledger] = {.request = requests_.size(), .ledgers = std::vector<Ledger>(rules_.size())};
    requests_.emplace_back(rules_.size());
    return strict;
  }
  Live& live = live_.at(&ledger);
  const std::int32_t strict_committed = cut(block, strict).committed();
  for (std::size_t i = 0; i < rules_.size(); ++i) {
    const Kept kept = cut(block, rules_[i]->decide(block, live.ledgers[i], rng));
    live.ledgers[i].charge(kept.block_regret);
    ReplayTally& tally = requests_[live.request][i];
    tally.passes += 1;
    tally.drafted += std::ssize(block.draft);
    tally.strict_committed += strict_committed;
    tally.committed += kept.committed();
    tally.exceptions += kept.exceptions;
    tally.regret = live.ledgers[i].spent();
  }
  return strict;
}

}  // namespace asdbench
