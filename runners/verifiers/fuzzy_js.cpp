// Accepts any draft where drafter and target nearly agree: Jensen-Shannon divergence of at most tau
// nats (fuzzy speculative decoding).
#include "runners/verifiers/common/law.h"
#include "runners/verifiers/common/mask_rule.h"

namespace asdbench {
namespace {

class FuzzyJs final : public Verifier {
 public:
  explicit FuzzyJs(double tau) : tau_(tau) {}
  VerifierInfo info() const override {
    return {.name = "fuzzy_js",
            .keeps = Keeps::kNothing,
            .needs_draft_logits = true,
            .needs_target_logits = true};
  }
  Decision decide(const Block& block, const Ledger&, const Rng&) const override {
    return accept_while(block, [&](std::size_t i) {
      const Law target_probs(block.target.row(static_cast<std::int64_t>(i)));
      const Law draft_probs(block.draft_logits->row(static_cast<std::int64_t>(i)));
      return jensen_shannon(target_probs, draft_probs) <= tau_;
    });
  }

 private:
  double tau_;
};

}  // namespace

std::unique_ptr<Verifier> make_fuzzy_js(const Params& params) {
  return std::make_unique<FuzzyJs>(params.at_least("tau", 0.0));
}

}  // namespace asdbench
