// Linear scans over a reply; nothing here backtracks or compiles.
#include "tasks/common/code_reply.h"

#include <algorithm>
#include <array>
#include <optional>

#include "tasks/common/characters.h"
#include "tasks/common/reply_text.h"

namespace asdbench {
namespace {

// A line that opens or closes a fence.
struct Fence {
  char mark;
  std::size_t length;
  std::size_t indent;     // bytes before it
  std::string_view info;  // what follows, trimmed
};

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

std::optional<Fence> fence_of(std::string_view line) {
  const std::size_t indent = std::min(line.find_first_not_of(" \t"), line.size());
  if (indent == line.size() || (line[indent] != '`' && line[indent] != '~')) return std::nullopt;
  const char mark = line[indent];
  const std::size_t end = std::min(line.find_first_not_of(mark, indent), line.size());
  const std::string_view info = trimmed(line.substr(end));
  // Three backticks with more of them on the line are inline code.
  if (end - indent < 3 || (mark == '`' && info.find('`') != std::string_view::npos))
    return std::nullopt;
  return Fence{.mark = mark, .length = end - indent, .indent = indent, .info = info};
}

bool closes(const Fence& open, std::string_view line) {
  const std::optional<Fence> fence = fence_of(line);
  return fence && fence->mark == open.mark && fence->length >= open.length && fence->info.empty();
}

// The code before a closing fence that ends a line of code; nullopt when the line does not end in
// one.
std::optional<std::string_view> before_glued_fence(const Fence& open, std::string_view line) {
  line = line.substr(0, line.find_last_not_of(" \t") + 1);
  std::size_t marks = 0;
  while (marks < line.size() && line[line.size() - 1 - marks] == open.mark) ++marks;
  if (marks < open.length) return std::nullopt;
  return line.substr(0, line.size() - marks);
}

enum class Language { kNone, kPython, kOther };

// The first word after the fence, as in "python3", "{.python}" or "py title=a.py".
Language language_of(std::string_view info) {
  std::string word;
  for (const char c : info) {
    if (c == '{' || c == '.' || c == '}') continue;
    if (is_space(c) || c == ',' || c == ':' || c == '=') break;
    word += to_lower(c);
  }
  if (word.empty()) return Language::kNone;
  if (word.starts_with("python") || word.starts_with("ipython")) return Language::kPython;
  return word == "py" || word == "py3" || word == "py2" ? Language::kPython : Language::kOther;
}

// Removes the first `indent` blanks of every line, if every line that is not blank has them.
std::string without_indent(const std::vector<std::string_view>& lines, std::size_t indent) {
  const bool all = std::all_of(lines.begin(), lines.end(), [&](std::string_view line) {
    const std::size_t first = line.find_first_not_of(" \t");
    return first == std::string_view::npos || first >= indent;
  });
  std::string text;
  for (const std::string_view line : lines) {
    text += all ? line.substr(std::min(indent, line.size())) : line;
    text += '\n';
  }
  return text;
}

// Calls `line` with each line of `text`, without its end.
template <typename Line>
void for_lines(std::string_view text, Line line) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    line(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

// A block that is indented as a whole still defines at its margin.
std::string at_margin(const std::string& text) {
  std::vector<std::string_view> lines;
  std::size_t indent = std::string::npos;
  for_lines(text, [&](std::string_view line) {
    lines.push_back(line);
    indent = std::min(indent, line.find_first_not_of(" \t"));
  });
  return indent == std::string::npos ? text : without_indent(lines, indent);
}

std::string_view between_markers(std::string_view text) {
  constexpr std::string_view kBegin = "[BEGIN]";
  const std::size_t begin = text.find(kBegin);
  if (begin != std::string_view::npos) text.remove_prefix(begin + kBegin.size());
  return text.substr(0, text.find("[DONE]"));
}

// Bodies in the order in which they are tried. An unnamed fence that nothing closes more often ends
// code than it begins any: what stands before it comes first then.
std::vector<std::string> bodies_of(const FencedText& fenced) {
  std::vector<std::string> bodies;
  const std::string before(body_part(fenced.before));
  if (fenced.blocks.empty()) return {before};
  const CodeBlock& first = fenced.blocks.front();
  bodies = {first.text, before};
  if (!first.named && !first.closed) std::swap(bodies[0], bodies[1]);
  return bodies;
}

}  // namespace

FencedText split_fences(std::string_view text) {
  FencedText result;
  std::optional<Fence> open;
  std::vector<std::string_view> lines;
  const char* const start = text.data();
  bool fence_seen = false;
  const auto finish = [&](bool closed) {
    const Language language = language_of(open->info);
    if (language != Language::kOther) {
      result.blocks.push_back({.text = without_indent(lines, open->indent),
                               .named = language == Language::kPython,
                               .closed = closed});
    }
    open.reset();
    lines.clear();
  };
  for_lines(text, [&](std::string_view line) {
    if (!open) {
      open = fence_of(line);
      if (open && !fence_seen) {
        fence_seen = true;
        result.before = std::string(start, line.data());
      }
      result.outside += open ? "```" : line;
      result.outside += '\n';
    } else if (closes(*open, line)) {
      finish(true);
    } else if (const auto code = before_glued_fence(*open, line)) {
      lines.push_back(*code);
      finish(true);
    } else {
      lines.push_back(line);
    }
  });
  if (open) finish(false);
  if (!fence_seen) result.before = text;
  return result;
}

bool defines(std::string_view text, std::string_view name) {
  bool found = false;
  for_lines(text, [&](std::string_view line) {
    const auto skip_blanks = [&] {
      line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    };
    const bool by_def = line.starts_with("def ");
    if (by_def) {
      line.remove_prefix(4);
      skip_blanks();
    }
    if (!line.starts_with(name)) return;
    line.remove_prefix(name.size());
    skip_blanks();
    found = found ||
            (by_def ? line.starts_with('(') : line.starts_with('=') && !line.starts_with("=="));
  });
  return found;
}

std::string_view body_part(std::string_view text) {
  constexpr std::array<std::string_view, 7> kEnds = {"\nclass", "\ndef", "\n#",     "\n@",
                                                     "\nprint", "\nif",  "\nassert"};
  text = before_special_tokens(text);
  for (const std::string_view end : kEnds) text = text.substr(0, text.find(end));
  return text;
}

std::string_view preamble_of(std::string_view prompt, std::string_view name) {
  const std::string head = "def " + std::string(name);
  for (std::size_t at = prompt.find(head); at != std::string_view::npos;
       at = prompt.find(head, at + 1)) {
    if ((at == 0 || prompt[at - 1] == '\n') &&
        defines(prompt.substr(at, prompt.find('\n', at) - at), name)) {
      return prompt.substr(0, at);
    }
  }
  return {};
}

CodeCandidates code_candidates(std::string_view reply, std::string_view entry_point,
                               Bodies bodies) {
  const auto after = after_reasoning(before_special_tokens(reply));
  if (!after) return {};
  const std::string clean = clean_text(*after);
  const FencedText fenced = split_fences(between_markers(clean));
  CodeCandidates candidates;
  for (const CodeBlock& block : fenced.blocks) {
    std::string text = defines(block.text, entry_point) ? block.text : at_margin(block.text);
    if (defines(text, entry_point)) candidates.blocks.push_back(std::move(text));
  }
  if (defines(fenced.outside, entry_point)) candidates.outside = fenced.outside;
  if (bodies == Bodies::kAllowed) {
    for (std::string& body : bodies_of(fenced)) {
      if (!trimmed(body).empty()) candidates.bodies.push_back(std::move(body));
    }
  }
  return candidates;
}

}  // namespace asdbench
