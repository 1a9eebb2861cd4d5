// Accepts a draft at least kappa times as likely as the choice (AdaptiveSpec).
#include <cmath>

#include "runners/verifiers/common/mask_rule.h"

namespace asdbench {
namespace {

class MarginRatio final : public Verifier {
 public:
  explicit MarginRatio(double kappa) : kappa_(kappa) {}
  VerifierInfo info() const override { return {.name = "margin_ratio", .keeps = Keeps::kNothing}; }
  Decision decide(const Block& block, const Ledger&, const Rng&) const override {
    return accept_while(block,
                        [&](std::size_t i) { return std::exp(-regret_at(block, i)) >= kappa_; });
  }

 private:
  double kappa_;
};

}  // namespace

std::unique_ptr<Verifier> make_margin_ratio(const Params& params) {
  return std::make_unique<MarginRatio>(required(params, "kappa", 0, 1));
}

}  // namespace asdbench
