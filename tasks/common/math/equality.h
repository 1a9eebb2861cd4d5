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
  bool arithmetic = true;          // a calculation equals its result: 3245/5 is 649
};

/// Compares bare answers. Bounded: at most 50 ms of processor time, a few megabytes, a counted
/// depth, for any bytes; never throws for them. Equal strings are equal; apart from `one_way` the
/// relation is symmetric.
Comparison compare_answers(std::string_view answer, std::string_view gold,
                           const EqualityRules& rules = {});

/// How the strings of a named grader are read as expressions.
enum class ExpressionReading : std::uint8_t {
  kWhole,  // all of it
  kFirst,  // what stands at the start, as parse_first_expression says
};
/// Rule E alone: identical expressions. False where one cannot be read or a limit is hit.
bool same_expression(std::string_view a, std::string_view b, ExpressionReading reading);
/// Whether both are constants whose real values differ by at most `relative` of the larger.
bool close_values(std::string_view a, std::string_view b, double relative,
                  ExpressionReading reading);

}  // namespace asdbench::math
