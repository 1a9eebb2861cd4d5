// The rule a second time, slowly and straight from its definition: prefixes are tried one by one,
// sums are taken afresh.
#pragma once

#include <cmath>
#include <optional>
#include <vector>

#include "eval/core/error.h"
#include "runners/verifiers/asd.h"

namespace asdbench::reference {

/// A block as the specification has it: raw rows, nothing scored.
struct RawBlock {
  std::int64_t vocab = 0;
  std::vector<TokenId> draft;  // [K]
  std::vector<float> logits;   // [K + 1, vocab]
  std::vector<TokenId> end_ids;
  std::int32_t output_position = 0;

  std::int32_t drafts() const { return static_cast<std::int32_t>(draft.size()); }
  double logit(std::int32_t row, TokenId id) const {
    return logits[static_cast<std::size_t>(row * vocab + id)];
  }
  /// Lowest id among equal maxima.
  TokenId choice(std::int32_t row) const {
    TokenId best = 0;
    for (TokenId id = 1; id < vocab; ++id) {
      if (logit(row, id) > logit(row, best)) best = id;
    }
    return best;
  }
  bool mismatch(std::int32_t i) const { return draft[static_cast<std::size_t>(i)] != choice(i); }
  double regret(std::int32_t i) const {
    return logit(i, choice(i)) - logit(i, draft[static_cast<std::size_t>(i)]);
  }
  bool is_end(TokenId id) const {
    for (const TokenId end : end_ids) {
      if (end == id) return true;
    }
    return false;
  }
};

inline std::optional<BlockFault> fault_of(const AsdControls& controls, const RawBlock& block,
                                          double spent) {
  const auto negative = [](double x) { return std::isnan(x) || x < 0; };
  const double most = controls.max_exceptions;
  if (negative(controls.regret_budget) || negative(controls.gate) || negative(most) ||
      negative(spent) || (!std::isinf(most) && std::trunc(most) != most)) {
    return BlockFault::kBadControl;
  }
  if (spent > controls.regret_budget) return BlockFault::kLedgerExceedsBudget;
  for (const TokenId id : block.draft) {
    if (id < 0 || id >= block.vocab) return BlockFault::kTokenOutOfRange;
  }
  for (std::int32_t row = 0; row <= block.drafts(); ++row) {
    bool any_finite = false;
    for (TokenId id = 0; id < block.vocab; ++id) {
      const double z = block.logit(row, id);
      if (std::isnan(z) || z == HUGE_VAL) return BlockFault::kNonfiniteLogit;
      if (z == -HUGE_VAL && !controls.masked_vocab) return BlockFault::kNonfiniteLogit;
      any_finite = any_finite || std::isfinite(z);
    }
    if (!any_finite) return BlockFault::kNonfiniteLogit;
  }
  return std::nullopt;
}

/// The conditions of section 3 that the prefix of `length` drafts breaks, as BlockedBy flags.
inline unsigned broken_by(const AsdControls& controls, const RawBlock& block, double spent,
                          std::int32_t length) {
  const bool literal = controls.tie_policy == TiePolicy::kLiteral;
  const bool normalised = controls.value_scheme == ValueScheme::kNormalisedSuffix;
  const double drafts = block.drafts();
  unsigned broken = 0;
  double sum = 0;
  std::int32_t count = 0;
  for (std::int32_t i = 0; i < length; ++i) {
    if (!block.mismatch(i)) continue;
    const TokenId draft = block.draft[static_cast<std::size_t>(i)], choice = block.choice(i);
    const double regret = block.regret(i);
    const double scaled = normalised ? regret * drafts : regret;
    if (!(controls.gate > 0) || !(scaled <= controls.gate * (drafts - i)) || std::isinf(regret))
      broken |= kBlockedByGate;
    if (!literal && !(spent + sum < controls.regret_budget)) broken |= kBlockedByHeadroom;
    if (block.is_end(draft) && !controls.allow_early_eos) broken |= kBlockedByEosGuard;
    if (block.is_end(choice) && !controls.allow_skip_eos) broken |= kBlockedByEosGuard;
    if (literal &&
        (controls.regret_budget == 0 || controls.gate == 0 || controls.max_exceptions == 0)) {
      broken |= kBlockedByStrict;
    }
    if (block.output_position + i < controls.strict_head) broken |= kBlockedByStrictHead;
    sum += regret;
    ++count;
  }
  if (count > controls.max_exceptions) broken |= kBlockedByCap;
  if (!(spent + sum <= controls.regret_budget) || std::isinf(sum)) broken |= kBlockedByBudget;
  return broken;
}

/// The longest feasible prefix, every length tried.
inline std::int32_t accepted_by_enumeration(const AsdControls& controls, const RawBlock& block,
                                            double spent) {
  std::int32_t accepted = 0;
  for (std::int32_t length = 0; length <= block.drafts(); ++length) {
    if (broken_by(controls, block, spent, length) == 0) accepted = length;
  }
  return accepted;
}

/// Section 4: running sums, a running product of flags, and its sum. Headroom policy, no options.
inline std::int32_t accepted_by_product(const AsdControls& controls, const RawBlock& block,
                                        double spent) {
  std::int32_t accepted = 0;
  int product = 1;
  double sum = 0;
  std::int32_t count = 0;
  for (std::int32_t i = 0; i < block.drafts(); ++i) {
    const bool mismatch = block.mismatch(i);
    const double before = sum;
    sum += mismatch ? block.regret(i) : 0;
    count += mismatch ? 1 : 0;
    const bool guard =
        !block.is_end(block.draft[static_cast<std::size_t>(i)]) && !block.is_end(block.choice(i));
    const bool flag =
        !mismatch ||
        (controls.gate > 0 && block.regret(i) <= controls.gate * (block.drafts() - i) &&
         count <= controls.max_exceptions && spent + sum <= controls.regret_budget &&
         spent + before < controls.regret_budget && guard);
    product *= flag ? 1 : 0;
    accepted += product;
  }
  return accepted;
}

}  // namespace asdbench::reference
