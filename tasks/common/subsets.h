// The items that published tables of speculative decoding were measured on.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "eval/core/sample.h"

namespace asdbench {

/// "all", then the published subsets of the task's official split: deepspec, dflash (as first
/// released), eagle, spec_bench, as far as the task has them.
std::vector<std::string> subset_names(std::string_view task);

/// Keeps the samples of a subset, in the order of the published run. Samples are known by the
/// number at the end of their ids ("test/17", "HumanEval/52"), or by their place where ids end in
/// none. DataError when a row is not there. "all" changes nothing.
void take_subset(Samples& samples, std::string_view task, std::string_view subset);

}  // namespace asdbench
