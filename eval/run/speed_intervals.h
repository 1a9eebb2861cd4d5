// How much a ratio of times depends on which prompts were timed: the bootstrap over the prompts of
// a set.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "eval/config/run_config.h"
#include "results/store.h"

namespace asdbench {

/// One interval for every cell of the set and each of its references (strict of the same drafter,
/// plain) that stands in the set too. A prompt's time is the mean over its slots; with natural
/// endings its prefill counts. Prompts of one of `clusters` (by sample, "" for none) are drawn
/// together. Source: specs/measurement.md, section 3.
std::vector<SpeedIntervalRow> speed_intervals(const ResultStore& store, const std::string& set_key,
                                              SpeedWork work,
                                              const std::map<std::string, std::string>& clusters,
                                              std::uint64_t seed);

}  // namespace asdbench
