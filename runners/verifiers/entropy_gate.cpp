// Accepts any draft when the target is unsure: entropy of at least h nats. A bad baseline on
// purpose.
#include "runners/verifiers/common/law.h"
#include "runners/verifiers/common/mask_rule.h"

namespace asdbench {
namespace {

class EntropyGate final : public Verifier {
 public:
  explicit EntropyGate(double h) : h_(h) {}
  VerifierInfo info() const override {
    return {.name = "entropy_gate", .keeps = Keeps::kNothing, .needs_target_logits = true};
  }
  Decision decide(const Block& block, const Ledger&, const Rng&) const override {
    return accept_while(block, [&](std::size_t i) {
      const Law target_probs(block.target.row(static_cast<std::int64_t>(i)));
      return target_probs.entropy() >= h_;
    });
  }

 private:
  double h_;
};

}  // namespace

std::unique_ptr<Verifier> make_entropy_gate(const Params& params) {
  return std::make_unique<EntropyGate>(params.at_least("h", 0.0));
}

}  // namespace asdbench
