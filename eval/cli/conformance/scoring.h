// The kinds of scoring cases that have a file of their own.
#pragma once

#include "eval/cli/conformance/conformance.h"
#include "tasks/common/jsonl.h"

namespace asdbench {

/// Judges' replies and aggregates; false when the kind of the case is none of them.
/// Json::exception when a part of the case is missing.
bool run_judged_case(const JsonlRow& row, ConformanceReport& report);

}  // namespace asdbench
