// Validation of a scored block.
#include "runners/verifiers/common/block_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "eval/core/error.h"

namespace asdbench {

void check_block(const Block& block, Masked masked) {
  const RowScoresView& scores = block.scores;
  const std::size_t drafts = block.draft.size();
  ASDBENCH_CHECK(drafts <= kMaxDraft && scores.choice.size() == drafts + 1 &&
                     scores.choice_logit.size() == drafts + 1 &&
                     scores.draft_logit.size() == drafts + 1 && scores.bad.size() == drafts + 1,
                 "a block of K drafts has K + 1 scored rows");
  for (std::size_t i = 0; i < drafts; ++i) {
    if (block.draft[i] >= 0 && block.draft[i] < block.target.vocab) continue;
    throw BlockError(
        BlockFault::kTokenOutOfRange,
        fmt::format("{}: draft[{}] is {}; expected 0 to {}", name_of(BlockFault::kTokenOutOfRange),
                    i, block.draft[i], block.target.vocab - 1));
  }
  for (std::size_t i = 0; i <= drafts; ++i) {
    const float draft_logit = i < drafts ? scores.draft_logit[i] : scores.choice_logit[i];
    const bool draft_ok = std::isfinite(draft_logit) || (masked == Masked::kYes && draft_logit < 0);
    if (scores.bad[i] == 0 && std::isfinite(scores.choice_logit[i]) && draft_ok) continue;
    throw BlockError(
        BlockFault::kNonfiniteLogit,
        fmt::format("{}: row {} of {} holds NaN, an infinity or nothing finite; expected finite "
                    "logits (model or kernel is broken)",
                    name_of(BlockFault::kNonfiniteLogit), i, drafts + 1));
  }
}

std::int32_t leading_matches(const Block& block) {
  const auto first =
      std::mismatch(block.draft.begin(), block.draft.end(), block.scores.choice.begin());
  return static_cast<std::int32_t>(first.first - block.draft.begin());
}

}  // namespace asdbench
