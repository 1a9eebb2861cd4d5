// Accepts the runner-up when its raw logit is more than theta times the best (MARS). Not invariant
// to a shift of the row, by design of the source; the condition on the sign is ours.
#include "runners/verifiers/common/law.h"
#include "runners/verifiers/common/mask_rule.h"

namespace asdbench {
namespace {

class Mars final : public Verifier {
 public:
  explicit Mars(double theta) : theta_(theta) {}
  VerifierInfo info() const override {
    return {.name = "mars", .keeps = Keeps::kNothing, .needs_target_logits = true};
  }
  Decision decide(const Block& block, const Ledger&, const Rng&) const override {
    return accept_while(block, [&](std::size_t i) {
      const double best = block.scores.choice_logit[i];
      return best > 0 && static_cast<double>(block.scores.draft_logit[i]) / best > theta_ &&
             rank(block.target.row(static_cast<std::int64_t>(i)), block.draft[i]) == 2;
    });
  }

 private:
  double theta_;
};

}  // namespace

std::unique_ptr<Verifier> make_mars(const Params& params) {
  return std::make_unique<Mars>(params.number("theta", 0.9, 0, 1));
}

}  // namespace asdbench
