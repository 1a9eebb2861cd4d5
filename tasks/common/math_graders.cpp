// The default grader compares values; "hendrycks" compares strings after a fixed clean-up.
#include "tasks/common/math_graders.h"

#include <algorithm>

#include "eval/core/error.h"
#include "tasks/common/math/equality.h"
#include "tasks/common/math/extraction.h"

namespace asdbench {
namespace {

// ---- default: specs/scoring.md, sections 3.2 to 3.5

MathVerdict compare_values(std::string_view answer, std::string_view gold) {
  const math::Comparison comparison = math::compare_answers(answer, gold);
  return {comparison.equality == math::Equality::kEqual, comparison.detail};
}

// ---- hendrycks: the string clean-up published with the MATH data. Order matters, and where a step
// cannot be done the two raw strings are compared.

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  std::string result;
  std::size_t at = 0;
  for (std::size_t next; (next = text.find(from, at)) != std::string::npos;) {
    result.append(text, at, next - at).append(to);
    at = next + from.size();
  }
  return result.append(text, at, std::string::npos);
}

std::vector<std::string> split(const std::string& text, std::string_view mark) {
  std::vector<std::string> parts;
  std::size_t at = 0;
  for (std::size_t next; (next = text.find(mark, at)) != std::string::npos;) {
    parts.push_back(text.substr(at, next - at));
    at = next + mark.size();
  }
  parts.push_back(text.substr(at));
  return parts;
}

/// `\sqrt3` becomes `\sqrt{3}`; false where a root has nothing behind it.
bool brace_roots(std::string& text) {
  const std::vector<std::string> parts = split(text, "\\sqrt");
  text = parts[0];
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const std::string& part = parts[i];
    if (part.empty()) return false;
    text += "\\sqrt";
    text += part[0] == '{' ? part : "{" + part.substr(0, 1) + "}" + part.substr(1);
  }
  return true;
}

/// `\frac12` becomes `\frac{1}{2}`; a numerator alone leaves the text as it was; false where a
/// fraction has nothing behind it.
bool brace_fractions(std::string& text) {
  const std::vector<std::string> parts = split(text, "\\frac");
  std::string result = parts[0];
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const std::string& part = parts[i];
    if (part.empty()) return false;
    result += "\\frac";
    if (part[0] == '{') {
      result += part;
      continue;
    }
    if (part.size() < 2) return true;
    result += "{" + part.substr(0, 1) + "}";
    result += part[1] == '{' ? part.substr(1) : "{" + part.substr(1, 1) + "}" + part.substr(2);
  }
  text = result;
  return true;
}

bool is_plain_integer(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  const bool digits = !text.empty() && std::all_of(text.begin(), text.end(),
                                                   [](char c) { return c >= '0' && c <= '9'; });
  return digits && (text.size() == 1 || text[0] != '0');
}

std::optional<std::string> cleaned_string(std::string text) {
  for (const auto& [from, to] :
       std::initializer_list<std::pair<const char*, const char*>>{{"\n", ""},
                                                                  {"\\!", ""},
                                                                  {"\\\\", "\\"},
                                                                  {"tfrac", "frac"},
                                                                  {"dfrac", "frac"},
                                                                  {"\\left", ""},
                                                                  {"\\right", ""},
                                                                  {"^{\\circ}", ""},
                                                                  {"^\\circ", ""},
                                                                  {"\\$", ""}}) {
    text = replaced(std::move(text), from, to);
  }
  const std::vector<std::string> units = split(text, "\\text{ ");
  if (units.size() > 2) return std::nullopt;
  text = units[0];
  text = replaced(std::move(text), "\\%", "");
  text = replaced(std::move(text), " .", " 0.");
  text = replaced(std::move(text), "{.", "{0.");
  if (text.empty()) return text;
  if (text[0] == '.') text.insert(0, "0");
  // "k = 5" and its like; a longer left side is a statement, not a name.
  const std::vector<std::string> sides = split(text, "=");
  if (sides.size() == 2 && sides[0].size() <= 2) text = sides[1];
  if (!brace_roots(text)) return std::nullopt;
  text = replaced(std::move(text), " ", "");
  if (!brace_fractions(text)) return std::nullopt;
  if (text == "0.5") text = "\\frac{1}{2}";
  const std::vector<std::string> quotient = split(text, "/");
  if (quotient.size() == 2 && is_plain_integer(quotient[0]) && is_plain_integer(quotient[1])) {
    text = "\\frac{" + quotient[0] + "}{" + quotient[1] + "}";
  }
  return text;
}

MathVerdict compare_strings(std::string_view answer, std::string_view gold) {
  const std::optional<std::string> left = cleaned_string(std::string(answer));
  const std::optional<std::string> right = cleaned_string(std::string(gold));
  return {left && right ? *left == *right : answer == gold, ""};
}

std::optional<Answer> between_dollars(std::string_view reply) {
  const std::size_t first = reply.find('$');
  const std::size_t last = reply.rfind('$');
  if (first == last) return Answer{.text = std::string(reply), .rule = "whole_reply"};
  return Answer{.text = std::string(reply.substr(first + 1, last - first - 1)), .rule = "dollars"};
}

}  // namespace

const std::vector<MathGrader>& math_graders() {
  static const std::vector<MathGrader> kGraders = {
      {"default", math::extract_answer, compare_values},
      {"hendrycks", between_dollars, compare_strings},
  };
  return kGraders;
}

const MathGrader& math_grader(std::string_view name) {
  const auto& graders = math_graders();
  const auto at = std::find_if(graders.begin(), graders.end(),
                               [&](const MathGrader& grader) { return grader.name == name; });
  ASDBENCH_CHECK(at != graders.end(), std::string(name));
  return *at;
}

}  // namespace asdbench
