// Any mask under ASD's ledger: the mask decides what may be accepted, and cap, budget, headroom,
// end guard and strict head of ASD decide how much of it is. Source: specs/verifiers.md, section 3.
#include <fmt/format.h>

#include <algorithm>

#include "eval/core/error.h"
#include "runners/verifiers/asd.h"
#include "runners/verifiers/common/block_check.h"

namespace asdbench {
namespace {

class Budgeted final : public Verifier {
 public:
  Budgeted(std::unique_ptr<Verifier> mask, const AsdControls& controls)
      : mask_(std::move(mask)), controls_(controls) {}
  VerifierInfo info() const override {
    const VerifierInfo mask = mask_->info();
    return {.name = "budgeted",
            .keeps = Keeps::kNothing,
            .needs_draft_logits = mask.needs_draft_logits,
            .needs_target_logits = mask.needs_target_logits,
            .regret_budget = controls_.regret_budget,
            .max_exceptions = controls_.max_exceptions};
  }
  Decision decide(const Block& block, const Ledger& ledger, const Rng& rng) const override {
    check_controls(controls_, ledger.spent());
    Decision decision = mask_->decide(block, ledger, rng);
    double before = 0;  // C of the exceptions that stay, nats
    for (std::int32_t i = 0; i < decision.exceptions.size(); ++i) {
      const Exception& exception = decision.exceptions[i];
      const std::uint8_t broken =
          broken_conditions(controls_, block, ledger.spent(), exception, before, i);
      if (broken != kBlockedByNothing) {
        decision.accepted = exception.position;
        decision.target_token = exception.choice;
        decision.blocked_by = broken;
        decision.exceptions.shrink(i);
        break;
      }
      before = exception.block_regret;
    }
    return decision;
  }

 private:
  std::unique_ptr<Verifier> mask_;
  AsdControls controls_;
};

}  // namespace

std::unique_ptr<Verifier> make_budgeted(const Params& params) {
  // Rules with a ledger of their own, and the one without exceptions, are no masks.
  std::vector<std::string> masks;
  for (const VerifierFactory& factory : verifier_factories()) {
    if (factory.name != "asd" && factory.name != "budgeted" && factory.name != "strict") {
      masks.push_back(factory.name);
    }
  }
  if (!params.has("mask")) {
    params.fail("mask", "missing; expected the name of a rule" + known_names("", masks));
  }
  const std::string name = params.choice("mask", "", masks);
  const AsdControls controls = read_budget_controls(params);
  const auto mask =
      std::find_if(verifier_factories().begin(), verifier_factories().end(),
                   [&](const VerifierFactory& factory) { return factory.name == name; });
  return std::make_unique<Budgeted>(mask->make(params), controls);
}

}  // namespace asdbench
