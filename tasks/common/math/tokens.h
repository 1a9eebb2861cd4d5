// A LaTeX or plain-text answer as normalised tokens. Source: specs/scoring.md, section 3.3.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace asdbench::math {

enum class TokenKind : std::uint8_t {
  kNumber,   // "12", "0.5", ".5": as written, separators removed
  kLetter,   // one letter, or a styled one: "x", "\mathbb{R}"
  kWord,     // two or more bare letters that name nothing known: "cm", "Evelyn"
  kCommand,  // without the backslash: "frac", "pi", "sin"
  kSymbol,   // "+", "(", "<=", "\{", "and", "\\" (a new row), ...
  kText,     // what stood in \text{...}
  kBegin,    // an environment's name
  kEnd,
};

struct Token {
  TokenKind kind;
  std::string text;
  bool space_before = false;

  bool is(std::string_view symbol) const { return kind == TokenKind::kSymbol && text == symbol; }
  bool is_command(std::string_view name) const {
    return kind == TokenKind::kCommand && text == name;
  }
};

using Tokens = std::vector<Token>;

/// Longer answers are not parsed; they are compared as strings.
constexpr std::size_t kMaxTokens = 4000;

struct Tokenized {
  Tokens tokens;
  bool too_long = false;  // more than kMaxTokens: `tokens` is cut
};

/// Wrappers dropped, synonyms made one, arguments of \frac, \sqrt, ^ and _ in braces, thousand
/// separators joined. Linear in the answer; never throws.
Tokenized tokenize(std::string_view answer);

/// The tokens as one string without spaces: equal strings are equal answers (rule S). Units,
/// percent signs and degrees at the right end are left out if something else is left.
std::string canonical_text(const Tokens& tokens);

/// The letters and digits of an answer made of words, in lower case without spaces, brackets round
/// a single letter left out; "" when it holds anything else (rule T).
std::string words_of(const Tokens& tokens);

/// Whether `word` can stand behind a number as its unit; never a word that can be an answer.
bool is_unit(std::string_view word);

/// Digits without leading zeros and zeros behind the decimal point: "007.50" -> "7.5".
std::string canonical_digits(std::string_view digits);

}  // namespace asdbench::math
