// Views of the target's logit rows and of the scalars that rules read from them.
#pragma once

#include <cstdint>
#include <span>

#include "eval/core/token_id.h"

namespace asdbench {

/// `rows` x `vocab` float32 logits in host memory, row-major.
struct LogitsView {
  const float* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t vocab = 0;

  std::span<const float> row(std::int64_t index) const {
    return {data + index * vocab, static_cast<std::size_t>(vocab)};
  }
  LogitsView slice(std::int64_t first, std::int64_t count) const {
    return {data + first * vocab, count, vocab};
  }
};

/// Per row: the target's choice (lowest id among equal maxima), its logit, the draft's logit, and
/// whether the row is unusable (kernels/score_rows.h). All from one float32 tensor.
struct RowScoresView {
  std::span<const TokenId> choice;      // [rows]
  std::span<const float> choice_logit;  // [rows]
  std::span<const float> runner_up;     // [rows]; largest logit of the other ids
  std::span<const float> draft_logit;   // [rows]; unspecified where the row has no draft
  std::span<const std::uint8_t>
      bad;  // [rows]; not 0: NaN, +inf, a -inf where no mask is allowed, nothing finite

  RowScoresView slice(std::size_t first, std::size_t count) const {
    return {choice.subspan(first, count), choice_logit.subspan(first, count),
            runner_up.subspan(first, count), draft_logit.subspan(first, count),
            bad.subspan(first, count)};
  }
};

}  // namespace asdbench
