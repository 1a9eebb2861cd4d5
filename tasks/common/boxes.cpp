// One pass with a stack of open braces, so that nested and unbalanced boxes cost no more than
// others.
#include "tasks/common/boxes.h"

#include <algorithm>
#include <vector>

#include "tasks/common/characters.h"

namespace asdbench {
namespace {

// Length of a box command at the start of `text`; 0 when there is none.
std::size_t box_command(std::string_view text) {
  for (const std::string_view name : {std::string_view("\\boxed"), std::string_view("\\fbox")}) {
    if (text.starts_with(name) && (text.size() == name.size() || !is_letter(text[name.size()]))) {
      return name.size();
    }
  }
  return 0;
}

bool is_blank(std::string_view text) { return std::all_of(text.begin(), text.end(), is_space); }

struct OpenBrace {
  bool is_box;
  std::size_t begin;  // of the box command, if it is one
  std::size_t content;
};

}  // namespace

Boxes find_boxes(std::string_view text) {
  Boxes boxes;
  std::vector<OpenBrace> open;
  for (std::size_t i = 0; i < text.size();) {
    const std::string_view rest = text.substr(i);
    if (const std::size_t command = box_command(rest); command > 0) {
      std::size_t at = i + command;
      while (at < text.size() && is_space(text[at])) ++at;
      if (at < text.size() && text[at] == '{') {
        open.push_back({true, i, at + 1});
        i = at + 1;
        continue;
      }
      std::size_t end = at;
      while (end < text.size() && !is_space(text[end]) && text[end] != '$') ++end;
      if (end > at) boxes.braceless = text.substr(at, end - at);
      i += command;
    } else if (rest[0] == '\\') {
      // An escaped brace opens nothing. A doubled backslash is a row break, unless it is a box
      // command that was escaped once too often.
      const bool pair = rest.size() > 1 && (rest[1] == '{' || rest[1] == '}' ||
                                            (rest[1] == '\\' && box_command(rest.substr(1)) == 0));
      i += pair ? 2 : 1;
    } else {
      if (rest[0] == '{') {
        open.push_back({false, i, i + 1});
      } else if (rest[0] == '}' && !open.empty()) {
        const OpenBrace brace = open.back();
        open.pop_back();
        const std::string_view content = text.substr(brace.content, i - brace.content);
        if (brace.is_box && !is_blank(content)) {
          boxes.braced.push_back({content, brace.begin, i + 1});
        }
      }
      ++i;
    }
  }
  std::sort(boxes.braced.begin(), boxes.braced.end(),
            [](const Box& a, const Box& b) { return a.begin < b.begin; });
  return boxes;
}

std::optional<std::string_view> last_box(std::string_view text) {
  const Boxes boxes = find_boxes(text);
  // Of nested boxes the one that starts last wins: it is the last statement.
  if (!boxes.braced.empty()) return boxes.braced.back().content;
  return boxes.braceless;
}

}  // namespace asdbench
