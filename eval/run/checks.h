// Invariants that stored rows must keep, each with its evidence.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "results/store.h"

namespace asdbench {

enum class CheckStatus : std::uint8_t { kPass, kFail, kNotApplicable };

/// "pass", "fail", "n/a".
std::string_view name_of(CheckStatus status);

struct Check {
  std::string name;
  CheckStatus status = CheckStatus::kNotApplicable;
  std::string evidence;  // counts, and the first offending row
};

/// Runs every check over the database.
std::vector<Check> check_rows(const ResultStore& store);

}  // namespace asdbench
