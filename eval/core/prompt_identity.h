// The identity of a prompt across templates and systems: a hash of its normalised text.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace asdbench {

/// CRLF and CR as LF, ASCII letters in lower case, each run of space, tab, LF, VT and FF as one
/// space, none at the ends; every other byte stays. Source: specs/measurement.md, section 9.
std::string normalise_prompt(std::string_view text);

/// 64 hex digits: SHA-256 of `normalise_prompt(text)`.
std::string prompt_hash(std::string_view text);

/// `prompt_hash` of a sample's user messages, joined by LF; system text, examples and the template
/// do not count.
std::string prompt_identity(std::span<const std::string> user_messages);

}  // namespace asdbench
