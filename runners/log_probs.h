// Log-probabilities that the target gives to continuations of a prompt; nothing is generated.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "eval/core/token_id.h"
#include "runners/target.h"

namespace asdbench {

class LogProbs {
 public:
  /// Makes the target ready for prompts of up to `positions` ids less `most_tokens`, and
  /// continuations of up to `most_tokens` ids. DeviceError when memory is short.
  LogProbs(Target& target, std::int32_t most_tokens, std::int64_t positions);

  /// For each continuation the sum over its ids of ln p(id | what precedes it), nats; at
  /// temperature 1, from the target's logits, in binary64. Every continuation has at least one id.
  /// DataError when prompt and continuation do not fit the reserved positions; BlockError when a
  /// row holds NaN or nothing finite.
  std::vector<double> of(std::span<const TokenId> prompt,
                         const std::vector<std::vector<TokenId>>& continuations);

 private:
  double rest_of(std::span<const TokenId> prompt, std::span<const TokenId> continuation);

  Target& target_;
  std::int64_t positions_;
};

}  // namespace asdbench
