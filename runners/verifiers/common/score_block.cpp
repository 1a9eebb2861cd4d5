// The scoring kernel over one block.
#include "runners/verifiers/common/score_block.h"

#include "eval/core/error.h"
#include "runners/kernels/score_rows.h"

namespace asdbench {

BlockScores::BlockScores(LogitsView target, std::span<const TokenId> draft, Masked masked)
    : choice_(draft.size() + 1),
      choice_logit_(draft.size() + 1),
      runner_up_(draft.size() + 1),
      draft_logit_(draft.size() + 1),
      bad_(draft.size() + 1) {
  ASDBENCH_CHECK(target.rows == static_cast<std::int64_t>(draft.size()) + 1,
                 "a block of K drafts has K + 1 rows");
  std::vector<TokenId> row_draft(draft.begin(), draft.end());
  row_draft.push_back(kNoToken);
  kernels::score_rows(
      target.data, row_draft.data(), target.rows, target.vocab,
      masked == Masked::kYes ? kernels::MaskedVocab::kYes : kernels::MaskedVocab::kNo,
      {choice_.data(), choice_logit_.data(), runner_up_.data(), draft_logit_.data(), bad_.data()});
}

void BlockScores::set_row(std::size_t row, TokenId choice, float choice_logit, float draft_logit) {
  choice_[row] = choice;
  choice_logit_[row] = choice_logit;
  draft_logit_[row] = draft_logit;
  bad_[row] = 0;
}

}  // namespace asdbench
