// Renderers of the four chat templates; the templates themselves are never run.
#include "runners/text/chat.h"

#include <algorithm>
#include <span>

#include "eval/core/digest.h"
#include "eval/core/error.h"
#include "eval/core/utf8.h"
#include "runners/text/unicode_table.h"

namespace asdbench {
namespace {

using Messages = std::span<const Message>;

constexpr std::string_view kSmolLm2System =
    "You are a helpful AI assistant named SmolLM, trained by Hugging Face";
constexpr std::string_view kQwen25System =
    "You are Qwen, created by Alibaba Cloud. You are a helpful assistant.";
// Llama-3.1's template has this date fixed (specs: targets, section 8.1).
constexpr std::string_view kLlama31Dates =
    "Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n";
constexpr std::string_view kThinkEnd = "</think>";

std::string join(std::initializer_list<std::string_view> parts) {
  std::string out;
  for (const std::string_view part : parts) out += part;
  return out;
}

bool starts_with_system(Messages messages) {
  return !messages.empty() && messages.front().role == Role::kSystem;
}

// --- ChatML: SmolLM2 and both Qwens ---

std::string chatml(std::string_view role, std::string_view content) {
  return join({"<|im_start|>", role, "\n", content, "<|im_end|>\n"});
}

constexpr std::string_view kChatmlReply = "<|im_start|>assistant\n";

std::string render_chatml(Messages messages, std::string_view default_system) {
  std::string out;
  if (!starts_with_system(messages)) out += chatml("system", default_system);
  for (const Message& message : messages) out += chatml(name_of(message.role), message.content);
  out += kChatmlReply;
  return out;
}

std::string_view without_leading_newlines(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of('\n'), text.size()));
  return text;
}

// An earlier reply as Qwen3 sees it: what follows the last closing tag, if there is one.
std::string_view without_thinking(std::string_view reply) {
  const std::size_t end = reply.rfind(kThinkEnd);
  if (end == std::string_view::npos) return reply;
  return without_leading_newlines(reply.substr(end + kThinkEnd.size()));
}

std::string render_qwen3(Messages messages, ChatOptions options) {
  std::string out;
  for (const Message& message : messages) {
    const bool reply = message.role == Role::kAssistant;
    out += chatml(name_of(message.role),
                  reply ? without_thinking(message.content) : std::string_view(message.content));
  }
  out += kChatmlReply;
  if (!options.thinking) out += "<think>\n\n</think>\n\n";
  return out;
}

// --- Llama 3.1 ---

// What Python's str.strip removes: White_Space, and the four separators U+001C to U+001F.
bool is_stripped(std::uint32_t code_point) {
  return (code_point >= 0x1C && code_point <= 0x1F) ||
         char_classes()[code_point] == CharClass::kSpace;
}

std::string_view trim(std::string_view text) {
  std::size_t begin = text.size();
  std::size_t end = text.size();
  bool inside = false;
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Part part = utf8_part(text, at);
    if (part.form != Utf8Form::kWellFormed || !is_stripped(part.code_point)) {
      if (!inside) begin = at;
      inside = true;
      end = at + part.length;
    }
    at += part.length;
  }
  return text.substr(begin, end - begin);
}

std::string llama_header(std::string_view role) {
  return join({"<|start_header_id|>", role, "<|end_header_id|>\n\n"});
}

std::string render_llama31(Messages messages) {
  std::string_view system;
  if (starts_with_system(messages)) {
    system = trim(messages.front().content);
    messages = messages.subspan(1);
  }
  std::string out =
      join({"<|begin_of_text|>", llama_header("system"), kLlama31Dates, system, "<|eot_id|>"});
  for (const Message& message : messages) {
    out += join({llama_header(name_of(message.role)), trim(message.content), "<|eot_id|>"});
  }
  out += llama_header("assistant");
  return out;
}

}  // namespace

std::string render_chat(ChatFamily family, const std::vector<Message>& messages,
                        ChatOptions options) {
  switch (family) {
    case ChatFamily::kSmolLm2:
      return render_chatml(messages, kSmolLm2System);
    case ChatFamily::kQwen25:
      return render_chatml(messages, kQwen25System);
    case ChatFamily::kQwen3:
      ASDBENCH_CHECK(messages.empty() || messages.back().role != Role::kAssistant,
                     "a Qwen3 prompt must end with a user message: replies after it are rendered "
                     "in another way");
      return render_qwen3(messages, options);
    case ChatFamily::kLlama31:
      break;
  }
  return render_llama31(messages);
}

std::optional<ChatFamily> family_of_template(std::string_view chat_template) {
  // The template in the metadata of SmolLM2-135M-Instruct's GGUF.
  constexpr std::string_view kSmolLm2Template =
      "872be49dbb638044ad01b60388f48d469ff2980e5f0dccdc22ec907db54d0788";
  if (sha256_hex(chat_template) == kSmolLm2Template) return ChatFamily::kSmolLm2;
  return std::nullopt;
}

}  // namespace asdbench
