// Graders for replies to multiple-choice questions: our default and the field's, by name.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "eval/core/sample.h"

namespace asdbench {

/// One profile: the letter "A" to "D" that a reply to a question with these choices gives, in the
/// form in which the profile reports it. Neither function throws for any text. Sources:
/// specs/scoring.md, sections 4.3 and 4.4; specs/scoring_profiles.md, section 4.
struct LetterGrader {
  using Choices = std::vector<std::string>;
  std::string name;
  std::optional<Answer> (*extract)(std::string_view reply, const Choices& choices);
  bool (*equal)(std::string_view answer, std::string_view gold);  // gold: "A" to "D"
};

/// All profiles, "default" first. Named profiles read the raw reply, as the graders that they stand
/// for do: prompt and grader are one thing.
const std::vector<LetterGrader>& letter_graders();

/// InternalError for an unknown name; names come from `letter_graders`.
const LetterGrader& letter_grader(std::string_view name);

}  // namespace asdbench
