// minerva: the clean-up of the Minerva paper's appendix, then algebra; strings are not compared.
#include <algorithm>
#include <initializer_list>
#include <utility>

#include "tasks/common/characters.h"
#include "tasks/common/math/equality.h"
#include "tasks/common/math_strings_internal.h"

namespace asdbench::math {
namespace {

// Replaces "command{content}" by the content, up to the first closing brace or the last one.
std::string unwrapped(const std::string& text, const std::string& command, bool to_last) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = text.find(command + "{", at);
    const std::size_t content = begin + command.size() + 1;
    const std::size_t end = begin == std::string::npos ? begin
                            : to_last                  ? text.rfind('}')
                                                       : text.find('}', content);
    if (end == std::string::npos || end < content) return out + text.substr(at);
    out += text.substr(at, begin - at) + text.substr(content, end - content);
    at = end + 1;
  }
  return out;
}

// "frac12" and "sqrt3" get their braces.
std::string with_braces(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    if (text.compare(i, 4, "frac") == 0 && i + 5 < text.size() && text[i + 4] != '{') {
      out += "frac{" + text.substr(i + 4, 1) + "}{" + text.substr(i + 5, 1) + "}";
      i += 6;
    } else if (text.compare(i, 4, "sqrt") == 0 && i + 4 < text.size() && text[i + 4] != '{') {
      out += "sqrt{" + text.substr(i + 4, 1) + "}";
      i += 5;
    } else {
      out += text[i++];
    }
  }
  return out;
}

std::string normalized(std::string_view answer) {
  std::string text = split(answer, "=").back();
  for (const auto& [from, to] :
       std::initializer_list<std::pair<const char*, const char*>>{{"an ", ""},
                                                                  {"a ", ""},
                                                                  {".$", "$"},
                                                                  {"\\$", ""},
                                                                  {"\\ ", ""},
                                                                  {" ", ""},
                                                                  {"mbox", "text"},
                                                                  {",\\text{and}", ","},
                                                                  {"\\text{and}", ","},
                                                                  {"\\text{m}", "\\text{}"}}) {
    text = replaced(std::move(text), from, to);
  }
  for (const char* dropped : {"square",       "ways",
                              "integers",     "dollars",
                              "mph",          "inches",
                              "ft",           "hours",
                              "km",           "units",
                              "\\ldots",      "sue",
                              "points",       "feet",
                              "minutes",      "digits",
                              "cents",        "degrees",
                              "cm",           "gm",
                              "pounds",       "meters",
                              "meals",        "edges",
                              "students",     "childrentickets",
                              "multiples",    "\\text{s}",
                              "\\text{.}",    "\\text{\ns}",
                              "\\text{}^2",   "\\text{}^3",
                              "\\text{\n}",   "\\text{}",
                              "\\mathrm{th}", "^\\circ",
                              "^{\\circ}",    "\\;",
                              ",\\!",         "{,}",
                              "\"",           "\\dots"}) {
    text = replaced(std::move(text), dropped, "");
  }
  const std::size_t first = text.find('$');
  const std::size_t second = first == std::string::npos ? first : text.find('$', first + 1);
  if (second != std::string::npos) text = text.substr(first, second - first + 1);
  for (const char* command : {"\\text", "\\textbf", "\\overline"}) {
    text = unwrapped(text, command, /*to_last=*/false);
  }
  text = with_braces(unwrapped(text, "\\boxed", /*to_last=*/true));
  text = replaced(std::move(text), "$", "");
  const std::string digits = replaced(text, ",", "");
  if (!digits.empty() && std::all_of(digits.begin(), digits.end(), is_digit)) return digits;
  return text;
}

}  // namespace

std::optional<Answer> minerva_answer(std::string_view reply) {
  constexpr std::string_view kOpening = "Final Answer: The final answer is";
  constexpr std::string_view kClosing = " I hope it is correct";
  for (std::size_t at = reply.find(kOpening); at != std::string_view::npos;
       at = reply.find(kOpening, at + 1)) {
    const std::size_t begin = at + kOpening.size();
    const std::string_view line = reply.substr(begin, reply.find('\n', begin) - begin);
    const std::size_t end = line.find(kClosing, 1);
    if (end == std::string_view::npos || end + kClosing.size() >= line.size()) continue;
    std::string_view content = line.substr(0, end - 1);
    while (!content.empty() && is_space(content.front())) content.remove_prefix(1);
    while (!content.empty() && is_space(content.back())) content.remove_suffix(1);
    return Answer{.text = std::string(content), .rule = "phrase"};
  }
  return std::nullopt;
}

bool minerva_equal(std::string_view answer, std::string_view gold) {
  return same_expression(normalized(answer), normalized(gold), ExpressionReading::kFirst);
}

}  // namespace asdbench::math
