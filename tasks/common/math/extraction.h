// The bare answer of a reply. Source: specs/scoring.md, section 3.2.
#pragma once

#include <optional>
#include <string_view>

#include "eval/core/sample.h"

namespace asdbench::math {

/// What the reply states as its answer, by the first rule that finds one: "box" (joined boxes as a
/// list), "phrase" ("the answer is ..."), "mathematics" (the last formula), "last_number". nullopt
/// when there is none. Nearly linear in the reply; throws for no bytes.
std::optional<Answer> extract_answer(std::string_view reply);

/// The same without clean-up, reasoning blocks and run-on text: one text, every rule.
std::optional<Answer> extract_stated(std::string_view text);

}  // namespace asdbench::math
