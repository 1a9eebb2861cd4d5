// Replay: every block of a strict run is shown to other rules too, masks only. It says what a rule
// would keep of the same blocks, not where its own path leads (specs: measurement, section 1, R).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runners/ledger.h"
#include "runners/verifier.h"

namespace asdbench {

/// What one rule made of the blocks of one request.
struct ReplayTally {
  std::int64_t passes = 0, drafted = 0;
  std::int64_t strict_committed = 0, committed = 0;  // tokens
  std::int64_t exceptions = 0;                       // kept ones
  double regret = 0;                                 // nats, of its own ledger
};

/// Decides as strict does, and lets each rule judge the same block with a ledger of its own. The
/// decoder tells requests apart by their ledgers, which live as long as they do. One thread.
class ReplayVerifier final : public Verifier {
 public:
  /// The rules must outlive this one. `strict` is the rule that decides.
  ReplayVerifier(const Verifier& strict, std::vector<const Verifier*> rules);

  /// What strict promises, and the logit rows that any of the rules reads.
  VerifierInfo info() const override;
  Decision decide(const Block& block, const Ledger& ledger, const Rng& rng) const override;

  /// Tallies of the requests in the order in which they were started, one a rule; those of the
  /// first block, which has no drafts, are not counted.
  const std::vector<std::vector<ReplayTally>>& requests() const { return requests_; }

 private:
  struct Live {
    std::size_t request = 0;      // in `requests_`
    std::vector<Ledger> ledgers;  // one a rule
  };

  const Verifier& strict_;
  std::vector<const Verifier*> rules_;
  // Deciding is const, noting is not.
  mutable std::map<const Ledger*, Live> live_;
  mutable std::vector<std::vector<ReplayTally>> requests_;
};

}  // namespace asdbench
