// Accepts a draft among the k best ids whose probability is within delta of the choice's
// (TensorRT-LLM's relaxed acceptance, without its thinking-phase switch).
#include <limits>

#include "runners/verifiers/common/law.h"
#include "runners/verifiers/common/mask_rule.h"

namespace asdbench {
namespace {

class TopKDelta final : public Verifier {
 public:
  TopKDelta(std::int64_t k, double delta) : k_(k), delta_(delta) {}
  VerifierInfo info() const override {
    return {.name = "top_k_delta", .keeps = Keeps::kNothing, .needs_target_logits = true};
  }
  Decision decide(const Block& block, const Ledger&, const Rng&) const override {
    return accept_while(block, [&](std::size_t i) {
      const auto row = block.target.row(static_cast<std::int64_t>(i));
      const Law target_probs(row);
      return rank(row, block.draft[i]) <= k_ &&
             target_probs.prob(block.draft[i]) >= target_probs.max_prob() - delta_;
    });
  }

 private:
  std::int64_t k_;
  double delta_;
};

}  // namespace

std::unique_ptr<Verifier> make_top_k_delta(const Params& params) {
  const std::int64_t k = params.integer("k", 10, 1, std::numeric_limits<std::int32_t>::max());
  return std::make_unique<TopKDelta>(k, params.number("delta", 0.6, 0, 1));
}

}  // namespace asdbench
