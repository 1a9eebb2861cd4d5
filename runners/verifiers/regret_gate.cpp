// Accepts a draft whose regret is at most tau, wherever it stands.
#include "runners/verifiers/common/mask_rule.h"

namespace asdbench {
namespace {

class RegretGate final : public Verifier {
 public:
  explicit RegretGate(double tau) : tau_(tau) {}
  VerifierInfo info() const override { return {.name = "regret_gate", .keeps = Keeps::kNothing}; }
  Decision decide(const Block& block, const Ledger&, const Rng&) const override {
    return accept_while(block, [&](std::size_t i) { return regret_at(block, i) <= tau_; });
  }

 private:
  double tau_;
};

}  // namespace

std::unique_ptr<Verifier> make_regret_gate(const Params& params) {
  return std::make_unique<RegretGate>(params.at_least("tau", 0.0));
}

}  // namespace asdbench
