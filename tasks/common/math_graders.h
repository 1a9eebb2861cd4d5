// Graders for replies to mathematics problems: our default and the field's, by name.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "eval/core/sample.h"

namespace asdbench {

/// What a comparison found; `detail` says why it is undecided or could not be read, else "".
struct MathVerdict {
  bool equal = false;
  std::string detail;
  bool undecided = false;  // a limit on time or size was hit: counts as different, reported apart
};

/// One profile: the bare answer of a reply, and whether it is the gold. Neither function throws for
/// any text; a comparison takes at most 50 ms of processor time, and what is not decided by then
/// counts as different. Sources: specs/scoring.md, sections 3.2 to 3.5; specs/scoring_profiles.md.
struct MathGrader {
  std::string name;
  std::optional<Answer> (*extract)(std::string_view reply);
  MathVerdict (*compare)(std::string_view answer, std::string_view gold);
};

/// All profiles, "default" first. Named profiles read the raw reply, as the graders that they stand
/// for do: prompt and grader are one thing.
const std::vector<MathGrader>& math_graders();

/// InternalError for an unknown name; names come from `math_graders`.
const MathGrader& math_grader(std::string_view name);

}  // namespace asdbench
