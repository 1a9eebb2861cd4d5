// Accepts the best id of a mixture, w times the target's law plus 1 - w times the drafter's. It can
// refuse the target's own choice.
#include "runners/verifiers/common/law.h"
#include "runners/verifiers/common/mask_rule.h"

namespace asdbench {
namespace {

TokenId best_of_mixture(const Law& target_probs, const Law& draft_probs, double weight) {
  TokenId best = 0;
  double most = -1;
  for (TokenId id = 0; id < target_probs.vocab(); ++id) {
    const double mixed = weight * target_probs.prob(id) + (1 - weight) * draft_probs.prob(id);
    if (mixed > most) {
      most = mixed;
      best = id;
    }
  }
  return best;
}

class Ensemble final : public Verifier {
 public:
  explicit Ensemble(double w) : w_(w) {}
  VerifierInfo info() const override {
    return {.name = "ensemble",
            .keeps = Keeps::kNothing,
            .needs_draft_logits = true,
            .needs_target_logits = true};
  }
  Decision decide(const Block& block, const Ledger&, const Rng&) const override {
    return accept_exactly_while(block, [&](std::size_t i) {
      const auto row = static_cast<std::int64_t>(i);
      return block.draft[i] ==
             best_of_mixture(Law(block.target.row(row)), Law(block.draft_logits->row(row)), w_);
    });
  }

 private:
  double w_;
};

}  // namespace

std::unique_ptr<Verifier> make_ensemble(const Params& params) {
  return std::make_unique<Ensemble>(required(params, "w", 0, 1));
}

}  // namespace asdbench
