// The string rules of the MATH release, and extraction by fixed marks.
#include <algorithm>
#include <initializer_list>
#include <utility>

#include "tasks/common/characters.h"
#include "tasks/common/math_strings_internal.h"

namespace asdbench::math {
namespace {

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

}  // namespace

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  std::string result;
  std::size_t at = 0;
  for (std::size_t next; (next = text.find(from, at)) != std::string::npos;) {
    result.append(text, at, next - at).append(to);
    at = next + from.size();
  }
  return result.append(text, at, std::string::npos);
}

std::vector<std::string> split(std::string_view text, std::string_view mark) {
  std::vector<std::string> parts;
  std::size_t at = 0;
  for (std::size_t next; (next = text.find(mark, at)) != std::string_view::npos;) {
    parts.emplace_back(text.substr(at, next - at));
    at = next + mark.size();
  }
  parts.emplace_back(text.substr(at));
  return parts;
}

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
  return !text.empty() && std::all_of(text.begin(), text.end(), is_digit) &&
         (text.size() == 1 || text[0] != '0');
}

// Order matters.
std::optional<std::string> hendrycks_form(std::string text) {
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

bool hendrycks_equal(std::string_view answer, std::string_view gold) {
  const std::optional<std::string> left = hendrycks_form(std::string(answer));
  const std::optional<std::string> right = hendrycks_form(std::string(gold));
  return left && right ? *left == *right : answer == gold;
}

std::optional<Answer> between_dollars(std::string_view reply) {
  const std::size_t first = reply.find('$');
  const std::size_t last = reply.rfind('$');
  if (first == last) return Answer{.text = std::string(reply), .rule = "whole_reply"};
  return Answer{.text = std::string(reply.substr(first + 1, last - first - 1)), .rule = "dollars"};
}

std::optional<Answer> last_boxed(std::string_view reply) {
  constexpr std::string_view kSpaced = "\\boxed ";
  constexpr std::string_view kBraced = "\\boxed{";
  if (const std::size_t spaced = reply.rfind(kSpaced); spaced != std::string_view::npos) {
    const std::string_view rest = reply.substr(spaced + kSpaced.size());
    return Answer{.text = std::string(rest.substr(0, rest.find('$'))), .rule = "box"};
  }
  const std::size_t begin = reply.rfind("\\boxed");
  if (begin == std::string_view::npos || !reply.substr(begin).starts_with(kBraced)) {
    return std::nullopt;
  }
  int open = 0;
  for (std::size_t at = begin + kBraced.size() - 1; at < reply.size(); ++at) {
    if (reply[at] == '{') ++open;
    if (reply[at] == '}' && --open == 0) {
      const std::size_t content = begin + kBraced.size();
      return Answer{.text = std::string(reply.substr(content, at - content)), .rule = "box"};
    }
  }
  return std::nullopt;
}

std::optional<Answer> answer_line(std::string_view reply) {
  constexpr std::string_view kWord = "answer";
  for (std::size_t at = 0; at + kWord.size() < reply.size(); ++at) {
    std::size_t next = 0;
    while (next < kWord.size() && to_lower(reply[at + next]) == kWord[next]) ++next;
    if (next < kWord.size()) continue;
    next += at;
    while (next < reply.size() && is_space(reply[next])) ++next;
    if (next == reply.size() || reply[next] != ':') continue;
    ++next;
    while (next < reply.size() && is_space(reply[next])) ++next;
    if (next == reply.size()) return std::nullopt;
    const std::size_t end = std::min(reply.find('\n', next), reply.size());
    return Answer{.text = std::string(reply.substr(next, end - next)), .rule = "answer_line"};
  }
  return std::nullopt;
}

}  // namespace asdbench::math
