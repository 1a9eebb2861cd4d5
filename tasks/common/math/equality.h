// Whether an answer is the gold answer. Source: specs/scoring.md, sections 3.3 to 3.5.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace asdbench::math {

enum class Equality : std::uint8_t {
  kEqual,
  kDifferent,
  kUndecided,  // a limit on time or memory was hit
};

struct Comparison {
  Equality equality = Equality::kDifferent;
  /// Why it is undecided, or that one side could not be read; else "".
  std::string detail;
  /// The answer's interval solves the gold's inequality: the one rule that holds one way only.
  bool one_way = false;
};

/// What named graders do differently.
struct EqualityRules {
  bool base_counts = true;         // 52_8 is neither 52_9 nor 52
  bool percent_is_value = false;   // 28% is 0.28 and not 28
  bool absolute_decimals = false;  // decimals are compared after rounding to six places
};

/// Compares bare answers. Bounded: at most 50 ms of processor time, a few megabytes, a counted
/// depth, for any bytes; never throws for them. Equal strings are equal; apart from `one_way` the
/// relation is symmetric.
Comparison compare_answers(std::string_view answer, std::string_view gold,
                           const EqualityRules& rules = {});

}  // namespace asdbench::math
