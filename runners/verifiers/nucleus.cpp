// Accepts a draft of the smallest set by rank that holds a mass of top_p; the id that crosses it
// belongs.
#include "runners/verifiers/common/law.h"
#include "runners/verifiers/common/mask_rule.h"

namespace asdbench {
namespace {

class Nucleus final : public Verifier {
 public:
  explicit Nucleus(double top_p) : top_p_(top_p) {}
  VerifierInfo info() const override {
    return {.name = "nucleus", .keeps = Keeps::kNothing, .needs_target_logits = true};
  }
  Decision decide(const Block& block, const Ledger&, const Rng&) const override {
    return accept_while(block, [&](std::size_t i) {
      const Law target_probs(block.target.row(static_cast<std::int64_t>(i)));
      return target_probs.mass_before(block.draft[i]) < top_p_;
    });
  }

 private:
  double top_p_;
};

}  // namespace

std::unique_ptr<Verifier> make_nucleus(const Params& params) {
  return std::make_unique<Nucleus>(required(params, "top_p", 0, 1));
}

}  // namespace asdbench
