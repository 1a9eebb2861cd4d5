// Chat prompts as the four families render them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "eval/core/sample.h"

namespace asdbench {

enum class ChatFamily : std::uint8_t { kSmolLm2, kLlama31, kQwen25, kQwen3 };

struct ChatOptions {
  bool thinking = false;  // Qwen3 only
};

/// The rendered string with the generation prompt, to be tokenised with special tokens recognised
/// and nothing prepended (specs: targets, section 8).
std::string render_chat(ChatFamily family, const std::vector<Message>& messages,
                        ChatOptions options = {});

/// The family whose known template has this text, by SHA-256; nullopt when the template is not
/// known (section 8.5).
std::optional<ChatFamily> family_of_template(std::string_view chat_template);

}  // namespace asdbench
