// Accepts a draft where the target is unsure and the drafts after it agree with the target again
// (FLy): entropy over the top three of at least h nats, and window - 1 matches to follow.
#include <algorithm>
#include <limits>

#include "runners/verifiers/common/law.h"
#include "runners/verifiers/common/mask_rule.h"

namespace asdbench {
namespace {

class Fly final : public Verifier {
 public:
  Fly(std::int64_t window, double h) : window_(window), h_(h) {}
  VerifierInfo info() const override {
    return {.name = "fly", .keeps = Keeps::kNothing, .needs_target_logits = true};
  }
  Decision decide(const Block& block, const Ledger&, const Rng&) const override {
    const auto drafts = static_cast<std::int64_t>(block.draft.size());
    return accept_while(block, [&](std::size_t i) {
      const auto at = static_cast<std::ptrdiff_t>(i);
      if (at + 1 > drafts - window_) return false;  // the last of a block are strict
      const auto next = block.draft.begin() + at + 1;
      return std::equal(next, next + window_ - 1, block.scores.choice.begin() + at + 1) &&
             Law(block.target.row(at)).top_entropy(3) >= h_;
    });
  }

 private:
  std::int64_t window_;
  double h_;
};

}  // namespace

std::unique_ptr<Verifier> make_fly(const Params& params) {
  const std::int64_t window = params.integer("window", 6, 1, kMaxDraft);
  const double h = params.number("h", 0.3, 0, std::numeric_limits<double>::infinity());
  return std::make_unique<Fly>(window, h);
}

}  // namespace asdbench
