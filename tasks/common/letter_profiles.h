// The field's own graders of multiple-choice replies. Sources: specs/scoring.md, section 4.4;
// specs/scoring_profiles.md, section 4; the recorded verdicts of the scoring cases.
#pragma once

#include <vector>

#include "tasks/common/letter_graders.h"

namespace asdbench {

/// All of them; each reads the raw reply.
const std::vector<LetterGrader>& letter_profiles();

}  // namespace asdbench
