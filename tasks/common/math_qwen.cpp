// qwen: many replacements, numbers with a relative tolerance and a factor of 100, brackets dropped.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <initializer_list>
#include <map>
#include <utility>

#include "tasks/common/characters.h"
#include "tasks/common/math/equality.h"
#include "tasks/common/math_strings_internal.h"

namespace asdbench::math {
namespace {

constexpr double kRelative = 1e-4;
constexpr int kMaxDepth = 50;

// Words dropped wherever they stand alone, their plurals too; a dot stands for any character.
constexpr auto kUnits = std::to_array<std::string_view>(
    {"east",         "degree", "mph",     "kmph",     "ft",        "m sqaure", " m east",
     "sq m",         "deg",    "mile",    "q .",      "monkey",    "prime",    "ratio",
     "profit of rs", "rd",     "o",       "gm",       "p . m",     "lb",       "tile",
     "per",          "dm",     "lt",      "gain",     "ab",        "way",      "west",
     "a .",          "b .",    "c .",     "d .",      "e .",       "f .",      "g .",
     "h .",          "t",      "a",       "h",        "no change", "men",      "soldier",
     "pie",          "bc",     "excess",  "st",       "inches",    "noon",     "percent",
     "by",           "gal",    "kmh",     "c",        "acre",      "rise",     "a . m",
     "th",           "sq",     "mark",    "l",        "toy",       "coin",     "sq . m",
     "gallon",       "profit", "minw",    "yr",       "women",     "feet",     "am",
     "pm",           "hr",     "cu cm",   "square",   "are",       "rupee",    "rounds",
     "cubic",        "cc",     "mtr",     "s",        "ohm",       "number",   "day",
     "hour",         "minute", "min",     "second",   "man",       "woman",    "sec",
     "cube",         "mt",     "sq inch", "mp",       "hectare",   "more",     "unit",
     "cu . m",       "cm 2",   "rs .",    "rs",       "kg",        "g",        "month",
     "km",           "m",      "cm",      "mm",       "apple",     "liter",    "loss",
     "yard",         "pure",   "year",    "increase", "decrease",  "d",        "less",
     "Surface",      "litre",  "pi sq m", "s .",      "metre",     "meter",    "inch"});

bool is_word(char c) {
  return is_alphanumeric(c) || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

bool matches(std::string_view text, std::string_view pattern) {
  if (text.size() < pattern.size()) return false;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != '.' && pattern[i] != text[i]) return false;
  }
  return true;
}

// Drops `unit` (and an "s") between characters that belong to no word; what would be left empty
// stays.
std::string without_unit(const std::string& text, std::string_view unit, bool plural) {
  if (text.find(unit[0]) == std::string::npos) return text;
  std::string out;
  std::size_t at = 0;      // not yet copied
  std::size_t border = 0;  // the character before a match may not belong to the match before it
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = i + unit.size() + (plural ? 1 : 0);
    const bool starts = i == 0 || (i > border && !is_word(text[i - 1]));
    const bool found = starts && matches(std::string_view(text).substr(i), unit) &&
                       (!plural || (end <= text.size() && text[end - 1] == 's')) &&
                       (end == text.size() || (end < text.size() && !is_word(text[end])));
    if (!found) {
      ++i;
      continue;
    }
    out.append(text, at, i - at);
    at = end;
    border = end + 1;
    i = std::max(end, i + 1);
  }
  out.append(text, at, std::string::npos);
  return out.empty() ? text : out;
}

std::string without_units(std::string text) {
  for (int round = 0; round < 2; ++round) {
    for (const std::string_view unit : kUnits) text = without_unit(text, unit, false);
    for (const std::string_view unit : kUnits) text = without_unit(text, unit, true);
  }
  return text;
}

// "command{...}" up to the first closing brace: dropped, or replaced by its content.
std::string each_group(std::string_view text, std::string_view command, bool keep) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = text.find(command, at);
    const std::size_t end = begin == std::string_view::npos ? begin : text.find('}', begin);
    if (end == std::string_view::npos) return out.append(text.substr(at));
    out.append(text.substr(at, begin - at));
    const std::size_t content = begin + command.size();
    if (keep) out.append(text.substr(content, end - content));
    at = end + 1;
  }
  return out;
}

// "5.00" as "5" where no other digit follows.
std::string without_zero_decimals(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] == '.' && i > 0 && is_digit(text[i - 1])) {
      std::size_t end = i + 1;
      while (end < text.size() && text[end] == '0') ++end;
      if (end == text.size() || !is_digit(text[end])) {
        i = end;
        continue;
      }
    }
    out += text[i++];
  }
  return out;
}

std::string array_as_matrix(const std::string& text) {
  std::string out;
  constexpr std::string_view kArray = "\\begin{array}{";
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = text.find(kArray, at);
    const std::size_t end =
        begin == std::string::npos ? begin : text.find('}', begin + kArray.size());
    if (end == std::string::npos) {
      out += text.substr(at);
      break;
    }
    out += text.substr(at, begin - at) + "\\begin{pmatrix}";
    at = end + 1;
  }
  return replaced(replaced(std::move(out), "\\end{array}", "\\end{pmatrix}"), "bmatrix", "pmatrix");
}

std::string with_root_braces(std::string_view text) {
  std::string out;
  constexpr std::string_view kRoot = "\\sqrt";
  for (std::size_t i = 0; i < text.size();) {
    if (!text.substr(i).starts_with(kRoot)) {
      out += text[i++];
      continue;
    }
    i += kRoot.size();
    std::size_t end = i;
    while (end < text.size() && is_word(text[end])) ++end;
    out += kRoot;
    if (end > i) out += "{" + std::string(text.substr(i, end - i)) + "}";
    i = end;
  }
  return out;
}

std::string slash_as_fraction(const std::string& text) {
  const std::vector<std::string> parts = split(text, "/");
  if (parts.size() != 2) return text;
  for (const std::string& part : parts) {
    if (part.find("sqrt") == std::string::npos && !is_plain_integer(part)) return text;
  }
  return "\\frac{" + parts[0] + "}{" + parts[1] + "}";
}

std::string with_digits(const std::string& text) {
  static const std::map<std::string_view, std::string_view> kWords = {
      {"zero", "0"},   {"one", "1"},     {"two", "2"},     {"three", "3"},    {"four", "4"},
      {"five", "5"},   {"six", "6"},     {"seven", "7"},   {"eight", "8"},    {"nine", "9"},
      {"ten", "10"},   {"eleven", "11"}, {"twelve", "12"}, {"twenty", "20"},  {"thirty", "30"},
      {"forty", "40"}, {"fifty", "50"},  {"sixty", "60"},  {"hundred", "100"}};
  const auto word = kWords.find(trimmed(text));
  return word == kWords.end() ? text : std::string(word->second);
}

using Replacements = std::initializer_list<std::pair<const char*, const char*>>;

std::string replaced_all(std::string text, const Replacements& replacements) {
  for (const auto& [from, to] : replacements) text = replaced(std::move(text), from, to);
  return text;
}

std::string normalized(std::string_view answer) {
  std::string text = replaced(std::string(trimmed(answer)), "\n", "");
  while (text.ends_with('.')) text.pop_back();
  text = array_as_matrix(replaced(std::move(text), "\\!", ""));
  text = replaced_all(std::move(text), {{"tfrac", "frac"},
                                        {"dfrac", "frac"},
                                        {"\\neq", "\\ne"},
                                        {"\\leq", "\\le"},
                                        {"\\geq", "\\ge"},
                                        {"\\left", ""},
                                        {"\\right", ""},
                                        {"\\{", "{"},
                                        {"\\}", "}"}});
  // A text command that is followed by others or by nothing: all of it is taken for a unit.
  const std::size_t words = text.find("\\text{");
  if (words != std::string::npos && text.ends_with('}')) {
    const std::string_view before = trimmed(std::string_view(text).substr(0, words));
    if (!before.empty()) text = std::string(before);
  }
  text = without_units(std::move(text));
  text = with_digits(replaced_all(
      std::move(text),
      {{"^{\\circ}", ""}, {"^\\circ", ""}, {"\\$", ""}, {"$", ""}, {"\\(", ""}, {"\\)", ""}}));
  text = each_group(text, "\\text{", /*keep=*/true);
  text = replaced_all(std::move(text), {{"x=", ""},
                                        {"y=", ""},
                                        {"z=", ""},
                                        {"x\\in", ""},
                                        {"y\\in", ""},
                                        {"z\\in", ""},
                                        {"x\\to", ""},
                                        {"y\\to", ""},
                                        {"z\\to", ""},
                                        {"\\emptyset", "{}"},
                                        {"(-\\infty,\\infty)", "\\mathbb{R}"},
                                        {"\\%", ""},
                                        {"%", ""},
                                        {" .", " 0."},
                                        {"{.", "{0."},
                                        {"infinity", "\\infty"}});
  if (text.find("\\infty") == std::string::npos) text = replaced(std::move(text), "inf", "\\infty");
  text = replaced_all(std::move(text), {{"and", ""}, {"\\mathbf", ""}});
  text = each_group(text, "\\mbox{", /*keep=*/false);
  if (text.find('i') == std::string::npos) text = replaced(std::move(text), "j", "i");
  text = without_zero_decimals(text);
  if (text.empty()) return text;
  if (text[0] == '.') text.insert(0, "0");
  const std::vector<std::string> sides = split(text, "=");
  if (sides.size() == 2 && sides[0].size() <= 2) text = sides[1];
  text = replaced(with_root_braces(text), " ", "");
  std::string braced = text;
  if (brace_fractions(braced)) text = braced;
  return slash_as_fraction(text);
}

// ---------------------------------------------------------------------------- comparison

// A number of the grader's language, separators dropped; digits may be parted by "_".
std::optional<double> to_number(std::string_view text) {
  text = trimmed(text);
  std::string digits;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool joint = text[i] == '_' && i > 0 && is_digit(text[i - 1]) && i + 1 < text.size() &&
                       is_digit(text[i + 1]);
    if (text[i] != ',' && !joint) digits += text[i];
  }
  if (digits.empty() || (!is_digit(digits.back()) && digits.back() != '.')) return std::nullopt;
  if (digits.find_first_not_of("+-.0123456789eE") != std::string::npos) return std::nullopt;
  char* end = nullptr;
  const double value = std::strtod(digits.c_str(), &end);
  if (end != digits.c_str() + digits.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

bool close(double a, double b) {
  return std::abs(a - b) <= kRelative * std::max(std::abs(a), std::abs(b));
}

bool numerically_equal(std::string_view answer, std::string_view gold) {
  const auto given = to_number(answer);
  const auto wanted = given ? to_number(gold) : std::nullopt;
  return wanted &&
         (close(*given, *wanted / 100) || close(*given, *wanted) || close(*given, *wanted * 100));
}

std::string folded(std::string_view text, std::string_view dropped = "") {
  std::string out;
  for (const char c : text) {
    if (dropped.find(c) == std::string_view::npos) out += to_lower(c);
  }
  return out;
}

bool expressions_equal(const std::string& a, const std::string& b) {
  // A digit string with "_" is a number to this grader.
  if (to_number(a) && to_number(b)) return false;
  return same_expression(a, b, ExpressionReading::kFirst) ||
         close_values(a, b, kRelative, ExpressionReading::kFirst);
}

bool listed(std::string_view text) {
  return text.size() > 2 && (text[0] == '(' || text[0] == '[') &&
         text.find_last_of(")]") != std::string_view::npos && text.find_last_of(")]") >= 2;
}
constexpr std::string_view kMatrixBegin = "\\begin{pmatrix}";
constexpr std::string_view kMatrixEnd = "\\end{pmatrix}";
bool is_matrix(std::string_view text) {
  return text.size() >= kMatrixBegin.size() + kMatrixEnd.size() && text.starts_with(kMatrixBegin) &&
         text.ends_with(kMatrixEnd);
}
bool enclosed(std::string_view text, char open, char close_mark) {
  return text.starts_with(open) && text.ends_with(close_mark);
}

bool answers_equal(std::string_view answer, std::string_view gold, int depth);

bool parts_equal(const std::vector<std::string>& answer, const std::vector<std::string>& gold,
                 int depth) {
  if (answer.size() != gold.size()) return false;
  for (std::size_t i = 0; i < answer.size(); ++i) {
    if (!answers_equal(answer[i], gold[i], depth + 1)) return false;
  }
  return true;
}

std::vector<std::string> rows(std::string_view matrix) {
  std::vector<std::string> out;
  matrix.remove_prefix(kMatrixBegin.size());
  matrix.remove_suffix(kMatrixEnd.size());
  for (const std::string& row : split(matrix, "\\\\")) {
    if (!trimmed(row).empty()) out.emplace_back(trimmed(row));
  }
  return out;
}

bool matrices_equal(std::string_view answer, std::string_view gold, int depth) {
  const std::vector<std::string> given = rows(answer);
  const std::vector<std::string> wanted = rows(gold);
  if (given.size() != wanted.size()) return false;
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (!parts_equal(split(given[i], "&"), split(wanted[i], "&"), depth)) return false;
  }
  return true;
}

std::string as_difference(std::string_view equation) {
  const std::vector<std::string> sides = split(equation, "=");
  return std::string(trimmed(sides[0])) + " - (" + std::string(trimmed(sides[1])) + ")";
}

// The sides of an inequality as a difference; its direction does not count for this grader.
std::optional<std::string> inequality(std::string text) {
  for (const char* sign : {"\\ge", "\\le", "\\gt", "\\lt", ">=", "<=", ">"}) {
    text = replaced(std::move(text), sign, "<");
  }
  const std::vector<std::string> sides = split(text, "<");
  if (sides.size() != 2 || text.find('=') != std::string::npos) return std::nullopt;
  return sides[0] + " - (" + sides[1] + ")";
}

bool simple_equation(std::string_view text) {
  const std::vector<std::string> sides = split(text, "=");
  return sides.size() == 2 && trimmed(sides[0]).size() <= 2;
}

bool choice_equal(std::string_view answer, std::string_view gold) {
  if (gold.size() != 1 || gold[0] < 'A' || gold[0] > 'E') return false;
  char last = '\0';
  for (std::size_t i = 0; i < answer.size(); ++i) {
    const char letter = to_lower(answer[i]);
    if (letter >= 'a' && letter <= 'e' && (i == 0 || !is_word(answer[i - 1])) &&
        (i + 1 == answer.size() || !is_word(answer[i + 1]))) {
      last = letter;
    }
  }
  return last == to_lower(gold[0]);
}

bool answers_equal(std::string_view answer, std::string_view gold, int depth) {
  if (depth > kMaxDepth) return false;
  if (folded(trimmed(answer)) == folded(trimmed(gold))) return true;
  if (choice_equal(answer, gold) || numerically_equal(answer, gold)) return true;
  const std::string given(trimmed(answer));
  const std::string wanted(trimmed(gold));
  if (given.empty()) return false;
  // Brackets of one side only go first, then braces and round ones of both.
  std::string left = given, right = wanted;
  if ((enclosed(left, '[', ']') && !enclosed(right, '(', ')')) ||
      (enclosed(left, '(', ')') && !enclosed(right, '[', ']'))) {
    constexpr std::string_view kBrackets = "[]()";
    const auto strip = [&](const std::string& text) {
      const std::size_t begin = text.find_first_not_of(kBrackets);
      if (begin == std::string::npos) return std::string();
      return text.substr(begin, text.find_last_not_of(kBrackets) - begin + 1);
    };
    left = strip(left);
    right = strip(right);
  }
  if (folded(left, "{}()") == folded(right, "{}()")) return true;
  if (listed(given) && listed(wanted)) {
    return parts_equal(split(given.substr(1, given.size() - 2), ","),
                       split(wanted.substr(1, wanted.size() - 2), ","), depth);
  }
  if (is_matrix(given) && is_matrix(wanted)) return matrices_equal(given, wanted, depth);
  const std::size_t given_sides = split(given, "=").size();
  const std::size_t wanted_sides = split(wanted, "=").size();
  if (given_sides == 2 && wanted_sides == 2) {
    const std::string a = as_difference(given);
    const std::string b = as_difference(wanted);
    return expressions_equal(a, b) || expressions_equal("-(" + a + ")", b);
  }
  if (simple_equation(given) && wanted_sides == 1) {
    return answers_equal(split(given, "=")[1], wanted, depth + 1);
  }
  if (simple_equation(wanted) && given_sides == 1) {
    return answers_equal(given, split(wanted, "=")[1], depth + 1);
  }
  const auto given_inequality = inequality(given);
  const auto wanted_inequality = given_inequality ? inequality(wanted) : std::nullopt;
  if (wanted_inequality) {
    return expressions_equal(*given_inequality, *wanted_inequality) ||
           expressions_equal("-(" + *given_inequality + ")", *wanted_inequality);
  }
  return expressions_equal(given, wanted);
}

// The last run of digits with an optional sign and decimal part, commas dropped first.
std::optional<Answer> last_number(std::string_view reply) {
  const std::string text = replaced(std::string(reply), ",", "");
  std::string last;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t at = i + (text[i] == '-' ? 1 : 0);
    const std::size_t whole = at;
    while (at < text.size() && is_digit(text[at])) ++at;
    const bool digits = at > whole;
    if (at + 1 < text.size() && text[at] == '.' && is_digit(text[at + 1])) {
      ++at;
      while (at < text.size() && is_digit(text[at])) ++at;
    } else if (!digits) {
      ++i;
      continue;
    }
    last = text.substr(i, at - i);
    i = at;
  }
  if (last.empty()) return std::nullopt;
  return Answer{.text = last, .rule = "last_number"};
}

}  // namespace

std::optional<Answer> qwen_answer(std::string_view reply) {
  constexpr std::string_view kOpening = "final answer is $";
  constexpr std::string_view kClosing = "$. I hope";
  const auto behind = [&](std::string_view mark) {
    const std::size_t at = reply.rfind(mark);
    return at == std::string_view::npos ? std::nullopt
                                        : std::optional(reply.substr(at + mark.size()));
  };
  std::string_view found;
  std::string rule = "phrase";
  if (const std::size_t open = reply.find(kOpening);
      open != std::string_view::npos && reply.find(kClosing) != std::string_view::npos) {
    found = reply.substr(open + kOpening.size());
    found = found.substr(0, found.find(kClosing));
  } else if (const auto box = behind("boxed")) {
    rule = "box";
    found = *box;
    if (found.starts_with('{')) {
      int depth = 0;
      std::size_t end = 0;
      for (; end < found.size(); ++end) {
        if (found[end] == '{') ++depth;
        if (found[end] == '}' && --depth == 0) break;
      }
      found = found.substr(1, end - 1);
    } else {
      found = found.substr(0, found.find('$'));
    }
  } else if (const auto phrase = behind("he answer is")) {
    found = *phrase;
  } else if (const auto last = behind("final answer is")) {
    found = *last;
  } else {
    return last_number(reply);
  }
  found = trimmed(found);
  if (found.starts_with(':')) found.remove_prefix(1);
  if (found.ends_with('.')) found.remove_suffix(1);
  if (found.ends_with('/')) found.remove_suffix(1);
  if (found.empty()) return std::nullopt;
  // Cleaned here and once more before it is compared, as the grader does.
  std::string answer = normalized(found);
  if (answer.empty()) return std::nullopt;
  return Answer{.text = std::move(answer), .rule = rule};
}

bool qwen_equal(std::string_view answer, std::string_view gold) {
  return answers_equal(normalized(answer), normalized(gold), 0);
}

}  // namespace asdbench::math
