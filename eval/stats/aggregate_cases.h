// Published cases of aggregates over scores, ratings and outputs, against this build.
#pragma once

#include <optional>
#include <string>

#include "eval/core/json.h"

namespace asdbench {

/// What `input` comes to in the form in which cases of this kind expect it; nullopt for a kind that
/// is not known. Json::exception when a part is missing. Source: the scoring cases' own
/// description; specs/scoring.md, sections 6 to 9.
std::optional<Json> aggregate_value(const std::string& kind, const Json& input);

}  // namespace asdbench
