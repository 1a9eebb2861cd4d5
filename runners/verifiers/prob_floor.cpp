// Accepts a draft with a probability of at least tau (the deterministic part of SGLang's
// thresholds).
#include "runners/verifiers/common/law.h"
#include "runners/verifiers/common/mask_rule.h"

namespace asdbench {
namespace {

class ProbFloor final : public Verifier {
 public:
  explicit ProbFloor(double tau) : tau_(tau) {}
  VerifierInfo info() const override {
    return {.name = "prob_floor", .keeps = Keeps::kNothing, .needs_target_logits = true};
  }
  Decision decide(const Block& block, const Ledger&, const Rng&) const override {
    return accept_while(block, [&](std::size_t i) {
      const Law target_probs(block.target.row(static_cast<std::int64_t>(i)));
      return target_probs.prob(block.draft[i]) >= tau_;
    });
  }

 private:
  double tau_;
};

}  // namespace

std::unique_ptr<Verifier> make_prob_floor(const Params& params) {
  return std::make_unique<ProbFloor>(required(params, "tau", 0, 1));
}

}  // namespace asdbench
