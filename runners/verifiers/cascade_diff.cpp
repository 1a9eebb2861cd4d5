// Accepts any draft when the drafter is as sure as the target, up to alpha (cascades, deferral by
// difference).
#include "runners/verifiers/common/law.h"
#include "runners/verifiers/common/mask_rule.h"

namespace asdbench {
namespace {

class CascadeDiff final : public Verifier {
 public:
  explicit CascadeDiff(double alpha) : alpha_(alpha) {}
  VerifierInfo info() const override {
    return {.name = "cascade_diff",
            .keeps = Keeps::kNothing,
            .needs_draft_logits = true,
            .needs_target_logits = true};
  }
  Decision decide(const Block& block, const Ledger&, const Rng&) const override {
    return accept_while(block, [&](std::size_t i) {
      const Law target_probs(block.target.row(static_cast<std::int64_t>(i)));
      const Law draft_probs(block.draft_logits->row(static_cast<std::int64_t>(i)));
      return draft_probs.max_prob() >= target_probs.max_prob() - alpha_;
    });
  }

 private:
  double alpha_;
};

}  // namespace

std::unique_ptr<Verifier> make_cascade_diff(const Params& params) {
  return std::make_unique<CascadeDiff>(required(params, "alpha", 0, 1));
}

}  // namespace asdbench
