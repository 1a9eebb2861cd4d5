// Renders chats made of arbitrary bytes: contents never break the frame of the template.
#include <cstdint>
#include <string_view>
#include <vector>

#include "runners/text/chat.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  asdbench::family_of_template(rest);
  // Contents are cut at NUL bytes; roles take turns and end with the user.
  std::vector<asdbench::Message> messages;
  for (bool more = true; more;) {
    const std::size_t end = rest.find('\0');
    const bool user = messages.size() % 2 == 0;
    messages.push_back({user ? asdbench::Role::kUser : asdbench::Role::kAssistant,
                        std::string(rest.substr(0, end))});
    more = end != std::string_view::npos;
    if (more) rest.remove_prefix(end + 1);
  }
  if (messages.size() % 2 == 0) messages.push_back({asdbench::Role::kUser, ""});
  using asdbench::ChatFamily;
  for (const ChatFamily family :
       {ChatFamily::kSmolLm2, ChatFamily::kLlama31, ChatFamily::kQwen25, ChatFamily::kQwen3}) {
    const std::string text = asdbench::render_chat(family, messages);
    const std::string_view last = messages.back().content;
    const bool trimmed = family == ChatFamily::kLlama31;
    if (!trimmed && text.find(last) == std::string::npos) __builtin_trap();
    if (text.find("assistant") == std::string::npos) __builtin_trap();
  }
  return 0;
}
