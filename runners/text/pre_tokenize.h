// Cuts text into pre-tokens with a scanner per tokenizer family.
#pragma once

#include <cstddef>
#include <string_view>

#include "runners/text/tokenizer.h"

namespace asdbench {

/// End (byte offset, > begin) of the pre-token that starts at `begin` < text.size().
///
/// Bytes outside well-formed UTF-8 count as one character each, neither letter, number nor space:
/// nothing is replaced and nothing is lost. Source: specs, targets, section 7.2.
std::size_t pre_token_end(PreTokenizer kind, std::string_view text, std::size_t begin);

}  // namespace asdbench
