// Accepts a draft at least l times as likely as the choice (Leviathan et al., greedy form).
#include <cmath>

#include "runners/verifiers/common/mask_rule.h"

namespace asdbench {
namespace {

class Lenience final : public Verifier {
 public:
  explicit Lenience(double l) : l_(l) {}
  VerifierInfo info() const override { return {.name = "lenience", .keeps = Keeps::kNothing}; }
  Decision decide(const Block& block, const Ledger&, const Rng&) const override {
    return accept_while(block, [&](std::size_t i) { return std::exp(-regret_at(block, i)) >= l_; });
  }

 private:
  double l_;
};

}  // namespace

std::unique_ptr<Verifier> make_lenience(const Params& params) {
  return std::make_unique<Lenience>(required(params, "l", 0, 1));
}

}  // namespace asdbench
