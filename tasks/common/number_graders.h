// Graders for replies whose answer is a number: our default and the field's, by name.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "eval/core/sample.h"

namespace asdbench {

/// One profile: what is taken from a reply, and when that equals a gold. Neither function throws
/// for any text. Sources: specs/scoring.md, sections 2.2 to 2.4; specs/scoring_profiles.md,
/// section 3.
struct NumberGrader {
  std::string name;
  std::optional<Answer> (*extract)(std::string_view reply);
  bool (*equal)(std::string_view answer, std::string_view gold);
};

/// All profiles, "default" first. Named profiles read the raw reply, as the graders that they stand
/// for do: prompt and grader are one thing.
const std::vector<NumberGrader>& number_graders();

/// InternalError for an unknown name; names come from `number_graders`.
const NumberGrader& number_grader(std::string_view name);

/// Correct when `answer` equals one of `targets` under `grader`.
Score score_number(const NumberGrader& grader, const std::vector<std::string>& targets,
                   const std::optional<Answer>& answer);

}  // namespace asdbench
