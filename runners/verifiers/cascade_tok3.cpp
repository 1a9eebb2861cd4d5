// Accepts a draft at least 1 - alpha times as likely as the choice (cascades, token rule V3).
#include <cmath>

#include "runners/verifiers/common/mask_rule.h"

namespace asdbench {
namespace {

class CascadeTok3 final : public Verifier {
 public:
  explicit CascadeTok3(double alpha) : alpha_(alpha) {}
  VerifierInfo info() const override { return {.name = "cascade_tok3", .keeps = Keeps::kNothing}; }
  Decision decide(const Block& block, const Ledger&, const Rng&) const override {
    return accept_while(
        block, [&](std::size_t i) { return std::exp(-regret_at(block, i)) >= 1 - alpha_; });
  }

 private:
  double alpha_;
};

}  // namespace

std::unique_ptr<Verifier> make_cascade_tok3(const Params& params) {
  return std::make_unique<CascadeTok3>(required(params, "alpha", 0, 1));
}

}  // namespace asdbench
