// ASD: commits the longest prefix whose exceptions fit gate, cap and what is left of the budget.
#include "runners/verifiers/asd.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "eval/core/error.h"
#include "runners/verifiers/common/block_check.h"

namespace asdbench {
namespace {

bool within_gate(const AsdControls& controls, double regret, double remaining, double drafts) {
  if (controls.gate == 0) return false;
  if (std::isinf(regret)) return false;  // a masked id, even under an infinite gate
  // Products only: a quotient would round.
  if (controls.value_scheme == ValueScheme::kNormalisedSuffix) regret *= drafts;
  return regret <= controls.gate * remaining;
}

bool within_budget(const AsdControls& controls, double spent, double block_regret) {
  return !std::isinf(block_regret) && spent + block_regret <= controls.regret_budget;
}

// The end-of-sequence guard: an exception may neither start nor skip an end unless allowed.
bool guarded(const AsdControls& controls, const StopRule& stop, const Exception& exception) {
  return (stop.is_end(exception.draft) && !controls.allow_early_eos) ||
         (stop.is_end(exception.choice) && !controls.allow_skip_eos);
}

class Asd final : public Verifier {
 public:
  explicit Asd(const AsdControls& controls) : controls_(controls) {}
  VerifierInfo info() const override {
    return {.name = "asd",
            .keeps = Keeps::kNothing,
            .regret_budget = controls_.regret_budget,
            .gate = controls_.gate,
            .max_exceptions = controls_.max_exceptions};
  }
  Decision decide(const Block& block, const Ledger& ledger, const Rng&) const override {
    return decide_asd(controls_, block, ledger.spent());
  }

 private:
  AsdControls controls_;
};

}  // namespace

void check_controls(const AsdControls& controls, double spent) {
  const auto refuse = [](const char* name, double value) {
    throw BlockError(BlockFault::kBadControl,
                     fmt::format("{}: {} is {}; expected a number of at least 0{}",
                                 name_of(BlockFault::kBadControl), name, value,
                                 name == std::string_view("M") ? ", without a fraction" : ""));
  };
  const double most = controls.max_exceptions;
  if (!(controls.regret_budget >= 0)) refuse("B", controls.regret_budget);
  if (!(controls.gate >= 0)) refuse("g", controls.gate);
  if (!(most >= 0) || (std::isfinite(most) && most != std::floor(most))) refuse("M", most);
  if (!(spent >= 0)) refuse("spent regret", spent);
  if (spent > controls.regret_budget) {
    throw BlockError(
        BlockFault::kLedgerExceedsBudget,
        fmt::format("{}: spent {}, budget {}", name_of(BlockFault::kLedgerExceedsBudget), spent,
                    controls.regret_budget));
  }
}

std::uint8_t broken_conditions(const AsdControls& controls, const Block& block, double spent,
                               const Exception& exception, double before, std::int32_t count) {
  const auto drafts = static_cast<std::int32_t>(block.draft.size());
  const bool literal = controls.tie_policy == TiePolicy::kLiteral;
  const bool zero =
      controls.regret_budget == 0 || controls.gate == 0 || controls.max_exceptions == 0;
  unsigned broken = kBlockedByNothing;
  if (!within_gate(controls, exception.regret, drafts - exception.position, drafts))
    broken |= kBlockedByGate;
  if (count + 1 > controls.max_exceptions) broken |= kBlockedByCap;
  if (!within_budget(controls, spent, exception.block_regret)) broken |= kBlockedByBudget;
  if (!literal && !(spent + before < controls.regret_budget)) broken |= kBlockedByHeadroom;
  if (guarded(controls, block.stop, exception)) broken |= kBlockedByEosGuard;
  if (literal && zero) broken |= kBlockedByStrict;
  if (block.output_position + exception.position < controls.strict_head)
    broken |= kBlockedByStrictHead;
  return static_cast<std::uint8_t>(broken);
}

Decision decide_asd(const AsdControls& controls, const Block& block, double spent) {
  check_controls(controls, spent);
  check_block(block, controls.masked_vocab ? Masked::kYes : Masked::kNo);

  const RowScoresView& scores = block.scores;
  const std::size_t drafts = block.draft.size();
  const bool normalised = controls.value_scheme == ValueScheme::kNormalisedSuffix;
  Decision decision;
  decision.strict_length = leading_matches(block);
  double block_regret = 0;  // C, nats, over the accepted exceptions from the left
  std::size_t i = static_cast<std::size_t>(decision.strict_length);
  for (; i < drafts; ++i) {
    if (block.draft[i] == scores.choice[i]) continue;  // ids, never logits: a tie is a mismatch
    const double regret =
        static_cast<double>(scores.choice_logit[i]) - static_cast<double>(scores.draft_logit[i]);
    const auto remaining = static_cast<double>(drafts - i);
    const Exception exception{
        .position = static_cast<std::int32_t>(i),
        .draft = block.draft[i],
        .choice = scores.choice[i],
        .regret = regret,
        .weight = normalised ? remaining / static_cast<double>(drafts) : remaining,
        .block_regret = block_regret + regret};
    decision.blocked_by = broken_conditions(controls, block, spent, exception, block_regret,
                                            decision.exceptions.size());
    if (decision.blocked_by != kBlockedByNothing) break;
    decision.exceptions.push_back(exception);
    block_regret = exception.block_regret;
  }
  decision.accepted = static_cast<std::int32_t>(i);
  decision.target_token = scores.choice[i];
  return decision;
}

AsdControls read_asd_controls(const Params& params) {
  const double gate = params.at_least("g", 0.0);
  const std::string scheme =
      params.choice("value_scheme", "suffix_length", {"suffix_length", "normalised_suffix"});
  AsdControls controls = read_budget_controls(params);
  controls.gate = gate;
  controls.masked_vocab = params.flag("masked_vocab", false);
  controls.value_scheme =
      scheme == "suffix_length" ? ValueScheme::kSuffixLength : ValueScheme::kNormalisedSuffix;
  return controls;
}

AsdControls read_budget_controls(const Params& params) {
  AsdControls controls;
  controls.regret_budget = params.at_least("B", 0.0);
  controls.gate = std::numeric_limits<double>::infinity();
  controls.max_exceptions = params.at_least("M", 0.0);
  if (std::isfinite(controls.max_exceptions) &&
      controls.max_exceptions != std::floor(controls.max_exceptions)) {
    params.fail("M", fmt::format("{} is not a whole number; expected 0, 1, 2, ... or inf",
                                 controls.max_exceptions));
  }
  controls.tie_policy =
      params.choice("tie_policy", "headroom", {"headroom", "literal"}) == "literal"
          ? TiePolicy::kLiteral
          : TiePolicy::kHeadroom;
  controls.allow_early_eos = params.flag("allow_early_eos", false);
  controls.allow_skip_eos = params.flag("allow_skip_eos", false);
  controls.strict_head = static_cast<std::int32_t>(
      params.integer("strict_head", 0, 0, std::numeric_limits<std::int32_t>::max()));
  return controls;
}

std::unique_ptr<Verifier> make_asd(const Params& params) {
  return std::make_unique<Asd>(read_asd_controls(params));
}

}  // namespace asdbench
