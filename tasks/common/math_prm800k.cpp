// prm800k: the strings of the MATH release, then a clean-up of its own, then algebra under bans.
#include <algorithm>
#include <boost/multiprecision/cpp_int.hpp>
#include <cmath>
#include <cstdlib>
#include <initializer_list>
#include <optional>
#include <set>
#include <utility>

#include "tasks/common/characters.h"
#include "tasks/common/math/equality.h"
#include "tasks/common/math_strings_internal.h"

namespace asdbench::math {
namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

// The content of "\text{...}" where that is all.
std::string without_text(std::string_view text) {
  constexpr std::string_view kText = "\\text{";
  if (text.starts_with(kText) && text.ends_with('}') && text.size() > kText.size() + 1) {
    return std::string(text.substr(kText.size(), text.size() - kText.size() - 1));
  }
  return std::string(text);
}

// A decimal number as the grader's language reads it, through a double.
std::optional<double> to_double(std::string_view text) {
  text = trimmed(text);
  std::size_t at = 0;
  if (at < text.size() && (text[at] == '-' || text[at] == '+')) ++at;
  std::size_t digits = 0;
  bool point = false;
  for (; at < text.size(); ++at) {
    if (is_digit(text[at])) {
      ++digits;
    } else if (text[at] == '.' && !point) {
      point = true;
    } else {
      break;
    }
  }
  if (digits == 0 || at != text.size()) return std::nullopt;
  const double value = std::strtod(std::string(text).c_str(), nullptr);
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

std::optional<std::string> as_integer(std::string_view text) {
  const auto value = to_double(text);
  if (!value || std::abs(*value - std::round(*value)) > 1e-7) return std::nullopt;
  return boost::multiprecision::cpp_int(std::round(*value)).str();
}

// "1,234" without its comma, again and again.
std::string without_separators(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool separator = text[i] == ',' && i > 0 && is_digit(text[i - 1]) &&
                           i + 3 < text.size() && is_digit(text[i + 1]) && is_digit(text[i + 2]) &&
                           is_digit(text[i + 3]) &&
                           (i + 4 == text.size() || !is_digit(text[i + 4]));
    if (!separator) out += text[i];
  }
  return out;
}

// LaTeX as plain text: fractions as "a/b", roots as "sqrt(a)", symbols by their names, commands
// that are not known and braces dropped.
class PlainText {
 public:
  explicit PlainText(std::string_view text) : text_(text) {}

  std::string run() { return until('\0', 0); }

 private:
  static constexpr int kMaxDepth = 100;

  std::string until(char close, int depth) {
    std::string out;
    while (at_ < text_.size()) {
      if (text_[at_] == close) {
        ++at_;
        break;
      }
      out += one(depth);
    }
    return out;
  }

  std::string one(int depth) {
    const char c = text_[at_++];
    if (c == '{') return depth < kMaxDepth ? until('}', depth + 1) : "";
    if (c == '}') return "";
    if (c == '~' || c == '&') return " ";
    if (c != '\\') return std::string(1, c);
    if (at_ == text_.size()) return "";
    if (!is_letter(text_[at_])) {
      const char symbol = text_[at_++];
      if (symbol == '{' || symbol == '}' || symbol == '%' || symbol == '$') {
        return std::string(1, symbol);
      }
      if (symbol == '\\') return "; ";
      return symbol == '!' ? "" : " ";
    }
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_letter(text_[at_])) ++at_;
    return command(text_.substr(begin, at_ - begin), depth);
  }

  std::string argument(int depth) {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
    return at_ < text_.size() && depth < kMaxDepth ? one(depth + 1) : "";
  }

  std::string command(std::string_view name, int depth) {
    if (name == "frac") {
      const std::string top = argument(depth);
      return top + "/" + argument(depth);
    }
    if (name == "sqrt") {
      if (at_ < text_.size() && text_[at_] == '[') {
        at_ = std::min(text_.find(']', at_), text_.size() - 1) + 1;
      }
      return "sqrt(" + argument(depth) + ")";
    }
    if (name == "begin" || name == "end") {
      argument(depth);  // its name
      return name == "begin" ? "[ " : " ]";
    }
    if (name == "pi") return "pi";
    if (name == "infty") return "inf";
    if (name == "cup") return "U";
    if (name == "cdot" || name == "times") return "*";
    if (name == "pm") return "\u00b1";
    if (name == "emptyset" || name == "varnothing") return "\u2205";
    if (name == "le" || name == "leq") return "\u2264";
    if (name == "ge" || name == "geq") return "\u2265";
    if (name == "in") return "\u2208";
    if (name == "ne" || name == "neq") return "\u2260";
    if (name == "quad" || name == "qquad") return " ";
    static const std::set<std::string_view> kNames = {
        "sin",   "cos",    "tan", "cot",   "sec",   "csc",   "log",   "ln",
        "exp",   "max",    "min", "gcd",   "theta", "alpha", "beta",  "gamma",
        "delta", "lambda", "mu",  "omega", "sigma", "phi",   "angle", "triangle"};
    return kNames.contains(name) ? std::string(name) : "";
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

// Drops `unit`, its plural and an exponent behind it, wherever it stands.
std::string without_unit(const std::string& text, std::string_view unit) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    if (text.compare(i, unit.size(), unit) != 0) {
      out += text[i++];
      continue;
    }
    i += unit.size();
    if (text.compare(i, 2, "es") == 0) i += 2;
    if (i < text.size() && text[i] == 's') ++i;
    while (i < text.size() && text[i] == ' ') ++i;
    if (i + 1 < text.size() && text[i] == '^' && is_digit(text[i + 1])) {
      for (++i; i < text.size() && is_digit(text[i]);) ++i;
    }
  }
  return out;
}

// Spaces between digits make a mixed number, spaces behind a minus nothing.
std::string with_sums(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] != ' ') {
      out += text[i++];
      continue;
    }
    std::size_t end = i;
    while (end < text.size() && text[end] == ' ') ++end;
    const bool mixed = i > 0 && is_digit(text[i - 1]) && end < text.size() && is_digit(text[end]);
    if (mixed) out += '+';
    i = end;
  }
  return out;
}

std::string normalized(std::string_view answer) {
  std::string text = without_text(answer);
  for (const auto& [from, to] :
       std::initializer_list<std::pair<const char*, const char*>>{{"\\%", ""},
                                                                  {"\\$", ""},
                                                                  {"$", ""},
                                                                  {"%", ""},
                                                                  {" or ", " , "},
                                                                  {" and ", " , "},
                                                                  {"million", "*10^6"},
                                                                  {"billion", "*10^9"},
                                                                  {"trillion", "*10^12"}}) {
    text = replaced(std::move(text), from, to);
  }
  for (const char* unit :
       {"degree", "cm", "centimeter", "meter", "mile", "second", "minute", "hour", "day", "week",
        "month", "year", "foot", "feet", "inch", "yard"}) {
    text = without_unit(text, unit);
  }
  text = replaced(std::move(text), "^\\circ", "");
  text = replaced(std::move(text), "^ \\circ", "");
  if (text.starts_with('{') && text.ends_with('}')) text = text.substr(1, text.size() - 2);
  const std::vector<std::string> groups = split(text, ",\\!");
  text = groups[0];
  for (std::size_t i = 1; i < groups.size(); ++i) {
    text += groups[i].substr(std::min(groups[i].find_first_not_of(' '), groups[i].size()));
  }
  if (const auto integer = as_integer(text)) text = *integer;
  if (text.find('\\') != std::string::npos) {
    text = replaced(std::move(text), "\\tfrac", "\\frac");
    text = replaced(std::move(text), "\\dfrac", "\\frac");
    text = replaced(std::move(text), "\\frac", " \\frac");  // 1\frac12 is a mixed number
    text = std::string(trimmed(PlainText(text).run()));
  }
  text = with_sums(text);
  std::string folded;
  for (const char c : text) {
    if (c != '{' && c != '}' && !is_space(c)) folded += to_lower(c);
  }
  if (const auto integer = as_integer(without_separators(folded))) return *integer;
  return folded;
}

// "3/4", with at most one character more on each side, and no zero below.
bool is_fraction(std::string_view text) {
  std::size_t at = text.starts_with('-') ? 1 : 0;
  const std::size_t top = at;
  while (at < text.size() && is_digit(text[at])) ++at;
  if (at == top) return false;
  if (at < text.size() && text[at] != '/') ++at;
  if (at == text.size() || text[at] != '/') return false;
  std::string_view bottom = text.substr(at + 1);
  if (!bottom.empty() && !is_digit(bottom.back())) bottom.remove_suffix(1);
  return !bottom.empty() && std::all_of(bottom.begin(), bottom.end(), is_digit) &&
         bottom.find_first_not_of('0') != std::string_view::npos;
}

// Neither exponents in brackets or of two digits, nor towers, nor more than two letters.
bool may_be_evaluated(const std::string& text) {
  if (text.find("^{") != std::string::npos || text.find("^(") != std::string::npos) return false;
  for (std::size_t i = text.find('^'); i != std::string::npos; i = text.find('^', i + 1)) {
    std::size_t end = i + 1;
    while (end < text.size() && is_digit(text[end])) ++end;
    if (end > i + 2 || (end > i + 1 && end < text.size() && text[end] == '^')) return false;
  }
  std::set<std::string> letters;
  const std::string rest = replaced(replaced(text, "sqrt", ""), "frac", "");
  for (std::size_t i = 0; i < rest.size();) {
    std::size_t length = 1;
    while (i + length < rest.size() &&
           (static_cast<unsigned char>(rest[i + length]) & 0xc0) == 0x80) {
      ++length;
    }
    if (length > 1 || is_letter(rest[i])) letters.insert(rest.substr(i, length));
    i += length;
  }
  return letters.size() <= 2;
}

bool is_bracket(char c) { return c == '(' || c == ')' || c == '[' || c == ']'; }

std::vector<std::string> elements(std::string_view text) {
  const std::string plain = without_separators(text);
  if (plain.empty()) return {};
  const std::string inner = plain.size() > 2 ? plain.substr(1, plain.size() - 2) : "";
  if (inner.empty() || !is_bracket(plain.front()) || !is_bracket(plain.back()) ||
      std::any_of(inner.begin(), inner.end(), is_bracket)) {
    return {plain};
  }
  return split(inner, ",");
}

bool same_element(const std::string& gold, const std::string& answer) {
  if (is_fraction(gold) && is_fraction(answer)) return gold == answer;
  const bool whole = as_integer(without_separators(gold)).has_value();
  if (whole != as_integer(without_separators(answer)).has_value()) return false;
  // A period behind an expression is a syntax error to its parser.
  if (gold.ends_with('.') || answer.ends_with('.')) return false;
  return may_be_evaluated("(" + gold + ")-(" + answer + ")") &&
         same_expression(gold, answer, ExpressionReading::kWhole);
}

}  // namespace

bool prm800k_equal(std::string_view answer, std::string_view gold) {
  if (hendrycks_equal(without_text(trimmed(answer)), without_text(trimmed(gold)))) return true;
  const std::string wanted = normalized(gold);
  const std::string given = normalized(answer);
  if (wanted == given) return true;
  if (given.empty()) return false;
  const std::vector<std::string> gold_elements = elements(wanted);
  const std::vector<std::string> answer_elements = elements(given);
  if (gold_elements.size() != answer_elements.size()) return false;
  if (gold_elements.size() > 1 &&
      (wanted.front() != given.front() || wanted.back() != given.back())) {
    return false;
  }
  for (std::size_t i = 0; i < gold_elements.size(); ++i) {
    if (!same_element(gold_elements[i], answer_elements[i])) return false;
  }
  return true;
}

}  // namespace asdbench::math
