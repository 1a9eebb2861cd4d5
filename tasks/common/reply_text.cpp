// Linear scans over a reply; nothing here backtracks.
#include "tasks/common/reply_text.h"

#include <algorithm>
#include <array>

#include "tasks/common/characters.h"

namespace asdbench {
namespace {

constexpr std::array<std::string_view, 4> kSpecialTokens = {"<|im_end|>", "<|eot_id|>", "</s>",
                                                            "<|endoftext|>"};
constexpr char kEscape = '\x1b';

// Length of the terminal escape that starts at `text[0]`. An operating-system command without an
// end is no command: only its escape character goes. `no_terminator` remembers that none follows,
// so that many such openings cost one search.
std::size_t escape_length(std::string_view text, bool& no_terminator) {
  if (text.size() < 2) return 1;
  if (text[1] == '[') {
    std::size_t i = 2;
    while (i < text.size() && text[i] >= 0x20 && text[i] <= 0x3f) ++i;
    return i < text.size() && text[i] >= 0x40 && text[i] <= 0x7e ? i + 1 : i;
  }
  if (text[1] == ']') {
    if (!no_terminator) {
      for (std::size_t i = 2; i < text.size(); ++i) {
        if (text[i] == '\a') return i + 1;
        if (text[i] == kEscape && i + 1 < text.size() && text[i + 1] == '\\') return i + 2;
      }
      no_terminator = true;
    }
    return 1;
  }
  return text[1] >= 0x40 && text[1] <= 0x5f ? 2 : 1;
}

}  // namespace

std::string_view before_special_tokens(std::string_view reply) {
  std::size_t end = reply.size();
  for (const std::string_view token : kSpecialTokens) {
    end = std::min(end, reply.substr(0, end).find(token));
  }
  return reply.substr(0, end);
}

std::optional<std::string_view> after_reasoning(std::string_view reply, std::string_view tag) {
  const std::string close = "</" + std::string(tag) + ">";
  const std::size_t end = reply.rfind(close);
  if (end != std::string_view::npos) return reply.substr(end + close.size());
  const std::string open = "<" + std::string(tag) + ">";
  if (reply.find(open) != std::string_view::npos) return std::nullopt;
  return reply;
}

std::string clean_text(std::string_view text) {
  std::string clean;
  clean.reserve(text.size());
  bool no_terminator = false;
  for (std::size_t i = 0; i < text.size();) {
    const std::string_view rest = text.substr(i);
    // Almost every byte is none of the cases below.
    if (rest[0] >= ' ' && rest[0] <= '~') {
      clean += rest[0];
      ++i;
    } else if (rest[0] == '\r') {
      clean += '\n';
      i += rest.starts_with("\r\n") ? 2 : 1;
    } else if (rest[0] == kEscape) {
      i += escape_length(rest, no_terminator);
    } else if (rest.starts_with("\u00a0")) {
      clean += ' ';
      i += 2;
    } else if (rest.starts_with("\u2009")) {
      clean += ' ';
      i += 3;
    } else if (rest.starts_with("\u2212")) {
      clean += '-';
      i += 3;
    } else if (rest.starts_with("\ufeff")) {
      i += 3;
    } else {
      clean += rest[0];
      ++i;
    }
  }
  return clean;
}

std::string without_emphasis(std::string_view text) {
  const auto is_mark = [](char c) { return c == '*' || c == '_' || c == '`'; };
  std::string plain;
  plain.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    if (!is_mark(text[i])) {
      plain += text[i++];
      continue;
    }
    std::size_t end = i;
    while (end < text.size() && is_mark(text[end])) ++end;
    if (i > 0 && is_alphanumeric(text[i - 1]) && end < text.size() && is_alphanumeric(text[end])) {
      plain += text.substr(i, end - i);
    }
    i = end;
  }
  return plain;
}

std::optional<std::size_t> run_on_start(std::string_view text) {
  constexpr std::array<std::string_view, 3> kOpenings = {"Question:", "Q:", "Problem:"};
  bool text_before = false;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    std::string_view line = text.substr(start, end - start);
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    if (text_before) {
      for (const std::string_view opening : kOpenings) {
        if (line.starts_with(opening)) return start;
      }
    }
    text_before = text_before || !line.empty();
    start = end + 1;
  }
  return std::nullopt;
}

}  // namespace asdbench
