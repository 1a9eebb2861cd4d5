// Scores of a block whose logits are all that is known: replayed vectors, tests.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runners/logits.h"
#include "runners/verifiers/common/block_check.h"

namespace asdbench {

/// Owns the scalars that a target computes in live decoding.
class BlockScores {
 public:
  /// `target` is [K + 1, vocab] on the host, `draft` [K]; the same kernel as in live decoding.
  BlockScores(LogitsView target, std::span<const TokenId> draft, Masked masked);

  RowScoresView view() const { return {choice_, choice_logit_, runner_up_, draft_logit_, bad_}; }
  /// Replaces a row's logits by others of the same difference.
  void set_row(std::size_t row, TokenId choice, float choice_logit, float draft_logit);

 private:
  std::vector<TokenId> choice_;
  std::vector<float> choice_logit_;
  std::vector<float> runner_up_;
  std::vector<float> draft_logit_;
  std::vector<std::uint8_t> bad_;
};

}  // namespace asdbench
