// Normalisation byte by byte: no Unicode folding, so that a no-break space stays an ordinary
// character.
#include "eval/core/prompt_identity.h"

#include "eval/core/digest.h"

namespace asdbench {

std::string normalise_prompt(std::string_view text) {
  std::string normalised;
  normalised.reserve(text.size());
  bool space = false;
  for (const char c : text) {
    // CR is a line end here, and a line end is a space.
    if (c == ' ' || (c >= '\t' && c <= '\r')) {
      space = true;
      continue;
    }
    if (space && !normalised.empty()) normalised += ' ';
    space = false;
    normalised += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return normalised;
}

std::string prompt_hash(std::string_view text) { return sha256_hex(normalise_prompt(text)); }

std::string prompt_identity(std::span<const std::string> user_messages) {
  std::string joined;
  for (std::size_t i = 0; i < user_messages.size(); ++i) {
    if (i > 0) joined += '\n';
    joined += user_messages[i];
  }
  return prompt_hash(joined);
}

}  // namespace asdbench
