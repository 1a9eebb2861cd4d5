// Accepts a draft likelier than min(epsilon, delta exp(-H)) (Medusa's typical acceptance, with the
// plain entropy H of the target's row).
#include <algorithm>
#include <cmath>

#include "runners/verifiers/common/law.h"
#include "runners/verifiers/common/mask_rule.h"

namespace asdbench {
namespace {

class Typical final : public Verifier {
 public:
  Typical(double epsilon, double delta) : epsilon_(epsilon), delta_(delta) {}
  VerifierInfo info() const override {
    return {.name = "typical", .keeps = Keeps::kNothing, .needs_target_logits = true};
  }
  Decision decide(const Block& block, const Ledger&, const Rng&) const override {
    return accept_while(block, [&](std::size_t i) {
      const Law target_probs(block.target.row(static_cast<std::int64_t>(i)));
      return target_probs.prob(block.draft[i]) >
             std::min(epsilon_, delta_ * std::exp(-target_probs.entropy()));
    });
  }

 private:
  double epsilon_;
  double delta_;
};

}  // namespace

std::unique_ptr<Verifier> make_typical(const Params& params) {
  const double epsilon = params.number("epsilon", 0.09, 0, 1);
  return std::make_unique<Typical>(epsilon, params.number("delta", 0.3, 0, 1));
}

}  // namespace asdbench
