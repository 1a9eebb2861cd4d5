// Accepts a draft whose probability is within alpha of the choice's (cascades, token rule V2).
#include "runners/verifiers/common/law.h"
#include "runners/verifiers/common/mask_rule.h"

namespace asdbench {
namespace {

class CascadeTok2 final : public Verifier {
 public:
  explicit CascadeTok2(double alpha) : alpha_(alpha) {}
  VerifierInfo info() const override {
    return {.name = "cascade_tok2", .keeps = Keeps::kNothing, .needs_target_logits = true};
  }
  Decision decide(const Block& block, const Ledger&, const Rng&) const override {
    return accept_while(block, [&](std::size_t i) {
      const Law target_probs(block.target.row(static_cast<std::int64_t>(i)));
      return target_probs.prob(block.draft[i]) >= target_probs.max_prob() - alpha_;
    });
  }

 private:
  double alpha_;
};

}  // namespace

std::unique_ptr<Verifier> make_cascade_tok2(const Params& params) {
  return std::make_unique<CascadeTok2>(required(params, "alpha", 0, 1));
}

}  // namespace asdbench
