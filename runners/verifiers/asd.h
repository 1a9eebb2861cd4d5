// The ASD acceptance rule: a budget of regret, a gate per position, a cap per block.
#pragma once

#include <cstdint>

#include "runners/verifier.h"

namespace asdbench {

/// Who gets a tie when the ledger is exhausted (specs: asd, section 3).
enum class TiePolicy : std::uint8_t { kHeadroom, kLiteral };

/// What the gate multiplies with (specs: asd, section 9).
enum class ValueScheme : std::uint8_t { kSuffixLength, kNormalisedSuffix };

/// Controls and options under their published names: B, g, M.
struct AsdControls {
  double regret_budget = 0;   // B, nats a request; may be infinite
  double gate = 0;            // g, nats per remaining position; may be infinite
  double max_exceptions = 0;  // M per block, a whole number; may be infinite
  TiePolicy tie_policy = TiePolicy::kHeadroom;
  ValueScheme value_scheme = ValueScheme::kSuffixLength;
  bool allow_early_eos = false;
  bool allow_skip_eos = false;
  bool masked_vocab = false;     // -inf marks a forbidden id
  std::int32_t strict_head = 0;  // output positions, from the first, without exceptions
};

/// Decides one block in O(K). Pure; reads `block.scores`, never logits.
///
/// Units:   `spent` in nats, 0 to B.
/// Errors:  BlockError: bad_control, ledger_exceeds_budget, token_out_of_range, nonfinite_logit;
/// the
///          first that applies, in this order.
/// Source:  specs/asd.md, sections 3, 4, 6, 9, 10.
Decision decide_asd(const AsdControls& controls, const Block& block, double spent);

/// The conditions of section 3, as BlockedBy flags, that the prefix ending in `exception` breaks,
/// given that the prefix before it is feasible. `before` is the block's regret and `count` the
/// number of exceptions accepted before this one.
std::uint8_t broken_conditions(const AsdControls& controls, const Block& block, double spent,
                               const Exception& exception, double before, std::int32_t count);
/// BlockError for a control or a ledger that is none (section 10).
void check_controls(const AsdControls& controls, double spent);

/// Options B, g, M (required), tie_policy, value_scheme, allow_early_eos, allow_skip_eos,
/// masked_vocab, strict_head.
AsdControls read_asd_controls(const Params& params);
/// The same without the gate, which then lets everything pass.
AsdControls read_budget_controls(const Params& params);

}  // namespace asdbench
