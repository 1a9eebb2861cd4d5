// What happens to a reply before an answer is looked for: reasoning, special tokens, clean-up,
// run-on text. Each step is linear in the text and throws for no input. Source: specs/scoring.md,
// section 1.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace asdbench {

/// The text before the first special token that was emitted as ordinary text ("<|im_end|>",
/// "<|eot_id|>", "</s>", "<|endoftext|>"); all of it when there is none (section 1.2).
std::string_view before_special_tokens(std::string_view reply);

/// What follows the last "</think>"; all of `reply` when there is no tag at all; nothing when a
/// block was opened and never closed (section 1.3). `tag` is the word between the angle brackets.
std::optional<std::string_view> after_reasoning(std::string_view reply,
                                                std::string_view tag = "think");

/// Line ends as "\n", no byte-order marks and no terminal escapes, U+00A0 and U+2009 as spaces,
/// U+2212 as "-" (section 1.4). Bytes that are no UTF-8 stay as they are.
std::string clean_text(std::string_view text);

/// `text` without Markdown emphasis ("*", "_", "`"). A run of marks between two letters or digits
/// stays: there it is an operator or part of a name, and dropping it would join what it parts.
std::string without_emphasis(std::string_view text);

/// Where run-on text starts: the first line that starts with "Question:", "Q:" or "Problem:" after
/// some other text (section 1.5); nullopt when there is none.
std::optional<std::size_t> run_on_start(std::string_view text);

}  // namespace asdbench
