// Accepts the leading drafts that the target would have chosen itself.
#include "runners/verifiers/common/block_check.h"

namespace asdbench {
namespace {

class Strict final : public Verifier {
 public:
  VerifierInfo info() const override { return {.name = "strict", .keeps = Keeps::kGreedyOutput}; }
  Decision decide(const Block& block, const Ledger&, const Rng&) const override {
    check_block(block, Masked::kNo);
    Decision decision;
    decision.strict_length = leading_matches(block);
    decision.accepted = decision.strict_length;
    decision.target_token = block.scores.choice[static_cast<std::size_t>(decision.accepted)];
    const bool all = decision.accepted == static_cast<std::int32_t>(block.draft.size());
    decision.blocked_by = all ? kBlockedByNothing : kBlockedByStrict;
    return decision;
  }
};

}  // namespace

std::unique_ptr<Verifier> make_strict(const Params&) { return std::make_unique<Strict>(); }

}  // namespace asdbench
