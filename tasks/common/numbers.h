// Numbers as models write them: finding them in text, and comparing them exactly.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace asdbench {

/// Bytes [begin, end) of a text: one number, its sign, currency sign and fraction included.
struct NumberSpan {
  std::size_t begin;
  std::size_t end;
};

/// All numbers of `text`, left to right, in linear time: optional sign and currency sign in either
/// order, digits with well-formed thousand separators (",", "{,}", ",\!") or plain ones, an
/// optional decimal part or a decimal part alone, an optional "/digits". Digits inside a word are
/// none, a minus after a letter, a digit or a closing bracket is an operator. Source:
/// specs/scoring.md, section 2.2.
std::vector<NumberSpan> find_numbers(std::string_view text);

/// `text`, all of it one number of the form above (spaces around it and one final period allowed),
/// in canonical form: "-3", "12.5", and "7/3" in lowest terms where no finite decimal exists.
/// nullopt when it is none, or when numerator or denominator has more than 1,000 digits that count
/// (hostile replies hold numbers of megabytes; no gold is near that).
std::optional<std::string> canonical_number(std::string_view text);

/// Whether both are numbers and equal as exact rationals; no tolerance.
bool same_number(std::string_view a, std::string_view b);

}  // namespace asdbench
