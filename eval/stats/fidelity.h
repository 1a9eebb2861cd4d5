// How close an output is to the strict greedy one, on tokens and on words; no judge. Source:
// specs/scoring.md, section 8.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "eval/core/token_id.h"

namespace asdbench {

struct TokenFidelity {
  bool identical = false;
  std::optional<std::int64_t> first_divergence;  // from 0; none when identical
  double prefix_match = 0;        // common prefix over the longer length; 1 when both are empty
  double position_agreement = 0;  // equal positions over the longer length; 1 when both are empty
};

/// Compares committed ids, the end id included where it was reached.
TokenFidelity token_fidelity(std::span<const TokenId> prediction,
                             std::span<const TokenId> reference);

/// F1 of the longest common subsequence of words (runs of a-z and 0-9 after lower-casing, no
/// stemming); 0 when either text has no word. Time is words times words / 64, memory linear.
double rouge_l(std::string_view prediction, std::string_view reference);

}  // namespace asdbench
