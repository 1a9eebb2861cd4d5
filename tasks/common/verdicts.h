// From an answer that was compared to a score.
#pragma once

#include <optional>

#include "eval/core/sample.h"

namespace asdbench {

/// 1 for a correct answer, 0 for another and for none.
inline Score verdict_of(const std::optional<Answer>& answer, bool correct) {
  Score score;
  score.verdict = !answer ? Verdict::kNoAnswer : correct ? Verdict::kCorrect : Verdict::kIncorrect;
  score.value = correct ? 1 : 0;
  if (answer) {
    score.answer = answer->text;
    score.rule = answer->rule;
  }
  return score;
}

}  // namespace asdbench
