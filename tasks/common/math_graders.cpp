// The default grader compares values; the named ones do what the field's do, strings first.
#include "tasks/common/math_graders.h"

#include <algorithm>

#include "eval/core/error.h"
#include "tasks/common/characters.h"
#include "tasks/common/math/equality.h"
#include "tasks/common/math/extraction.h"
#include "tasks/common/math_strings_internal.h"

namespace asdbench {
namespace {

// The string graders go over an answer hundreds of times; longer ones are not decided.
constexpr std::size_t kMaxBytes = 10'000;

MathVerdict by_rules(std::string_view answer, std::string_view gold,
                     const math::EqualityRules& rules) {
  const math::Comparison comparison = math::compare_answers(answer, gold, rules);
  return {comparison.equality == math::Equality::kEqual, comparison.detail,
          comparison.equality == math::Equality::kUndecided};
}

MathVerdict compare_values(std::string_view answer, std::string_view gold) {
  return by_rules(answer, gold, {});
}
// Its parser stumbles over a period behind a formula, and knows no bare "pi".
bool unread_by_math_verify(std::string_view answer) {
  const bool formula =
      std::any_of(answer.begin(), answer.end(), [](char c) { return c == '\\' || is_letter(c); });
  const std::size_t pi = answer.find("pi");
  const bool bare_pi = pi != std::string_view::npos && (pi == 0 || answer[pi - 1] != '\\') &&
                       answer.find('\\') == std::string_view::npos;
  return (answer.ends_with('.') && formula) || bare_pi;
}
MathVerdict compare_as_math_verify(std::string_view answer, std::string_view gold) {
  if (unread_by_math_verify(answer)) return {answer == gold, "the answer could not be read", false};
  return by_rules(answer, gold,
                  {.base_counts = false, .percent_is_value = true, .absolute_decimals = true});
}
MathVerdict compare_as_simple_evals(std::string_view answer, std::string_view gold) {
  return by_rules(answer, gold, {.arithmetic = false});
}

// A percent sign behind the formula or box belongs to the answer: "$28$ %".
std::optional<Answer> extract_as_math_verify(std::string_view reply) {
  auto answer = math::extract_stated(reply);
  const std::size_t at = answer ? reply.rfind(answer->text) : std::string_view::npos;
  if (at == std::string_view::npos) return answer;
  std::string_view rest = reply.substr(at + answer->text.size());
  rest.remove_prefix(std::min(rest.find_first_not_of(" $}\\"), rest.size()));
  for (const std::string_view sign : {"%", "percent", "pct"}) {
    if (rest.starts_with(sign)) answer->text += "\\%";
  }
  return answer;
}

template <bool (*kEqual)(std::string_view, std::string_view)>
MathVerdict compare_strings(std::string_view answer, std::string_view gold) {
  if (answer.size() > kMaxBytes || gold.size() > kMaxBytes) {
    return {answer == gold, answer == gold ? "" : "undecided: an answer of more than 10000 bytes",
            answer != gold};
  }
  return {kEqual(answer, gold), "", false};
}

}  // namespace

const std::vector<MathGrader>& math_graders() {
  static const std::vector<MathGrader> kGraders = {
      {"default", math::extract_answer, compare_values},
      {"math-verify", extract_as_math_verify, compare_as_math_verify},
      {"hendrycks", math::between_dollars, compare_strings<math::hendrycks_equal>},
      {"prm800k", math::last_boxed, compare_strings<math::prm800k_equal>},
      {"minerva", math::minerva_answer, compare_strings<math::minerva_equal>},
      {"qwen", math::qwen_answer, compare_strings<math::qwen_equal>},
      {"simple-evals", math::answer_line, compare_as_simple_evals},
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
