// Accepts a draft that is among the k best ids of its row.
#include "runners/verifiers/common/law.h"
#include "runners/verifiers/common/mask_rule.h"

namespace asdbench {
namespace {

class TopK final : public Verifier {
 public:
  explicit TopK(std::int64_t k) : k_(k) {}
  VerifierInfo info() const override {
    return {.name = "top_k",
            .keeps = k_ == 1 ? Keeps::kGreedyOutput : Keeps::kNothing,
            .needs_target_logits = true};
  }
  Decision decide(const Block& block, const Ledger&, const Rng&) const override {
    return accept_while(block, [&](std::size_t i) {
      return rank(block.target.row(static_cast<std::int64_t>(i)), block.draft[i]) <= k_;
    });
  }

 private:
  std::int64_t k_;
};

}  // namespace

std::unique_ptr<Verifier> make_top_k(const Params& params) {
  return std::make_unique<TopK>(params.at_least("k", std::int64_t{1}));
}

}  // namespace asdbench
