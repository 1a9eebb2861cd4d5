// Published test cases of measurements, computed by this build: what `conformance stats` and the
// tests compare. Source: specs/measurement.md, section 12.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "eval/core/json.h"

namespace asdbench {

/// Input of a case to its outcome, an object with the field names of the published expectations.
/// Throws Json::exception for an input without the fields or of other types, DataError for one over
/// which the figure is undefined.
using CaseFunction = std::function<Json(const Json& input)>;

/// The kinds computed here, by name. Kinds of the audit (overlap, hash_chain, verdict, protocol)
/// are not.
const std::map<std::string, CaseFunction, std::less<>>& case_functions();

/// One line for each expected field that `found` lacks or that differs: numbers by more than
/// `tolerance` (absolute or relative, whichever is larger; 0: not equal), everything else at all.
std::vector<std::string> case_differences(const Json& expected, const Json& found,
                                          double tolerance);

}  // namespace asdbench
