// String steps that the named graders of mathematics share, and their entry points. Every profile
// is written from what its published grader does: specs/scoring_profiles.md, section 2.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "eval/core/sample.h"

namespace asdbench::math {

/// `text` with every `from` replaced, left to right.
std::string replaced(std::string text, std::string_view from, std::string_view to);
/// The parts of `text` between the marks; one more than there are marks.
std::vector<std::string> split(std::string_view text, std::string_view mark);
/// `\frac12` as `\frac{1}{2}`; a numerator alone leaves the text as it was. False where a fraction
/// has nothing behind it.
bool brace_fractions(std::string& text);
/// A text of the form "-12".
bool is_plain_integer(std::string_view text);

/// The string clean-up published with the MATH data; nullopt where a step cannot be done, and then
/// the raw strings are compared.
std::optional<std::string> hendrycks_form(std::string text);
bool hendrycks_equal(std::string_view answer, std::string_view gold);
std::optional<Answer> between_dollars(std::string_view reply);

/// Content of the last "\boxed" as lm-eval takes it: "\boxed " with a space goes first, up to a
/// dollar sign; an "\fbox" is none.
std::optional<Answer> last_boxed(std::string_view reply);
bool prm800k_equal(std::string_view answer, std::string_view gold);

std::optional<Answer> minerva_answer(std::string_view reply);
bool minerva_equal(std::string_view answer, std::string_view gold);

std::optional<Answer> qwen_answer(std::string_view reply);
bool qwen_equal(std::string_view answer, std::string_view gold);

/// What stands behind the first "Answer:" on its line.
std::optional<Answer> answer_line(std::string_view reply);

}  // namespace asdbench::math
