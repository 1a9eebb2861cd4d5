// Published cases of the audit: overlap, hash_chain, verdict, protocol. Source:
// specs/measurement.md, section 12.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "eval/core/json.h"

namespace asdbench {

/// Kind to a function from a case's input to its outcome, as `case_functions` of eval/stats has
/// them for the other kinds.
const std::map<std::string, std::function<Json(const Json& input)>, std::less<>>&
audit_case_functions();

}  // namespace asdbench
