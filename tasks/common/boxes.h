// Answers in LaTeX boxes. Source: specs/scoring.md, section 3.2, rule 1.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

namespace asdbench {

/// A complete, non-empty `\boxed{...}` or `\fbox{...}`; views point into the text.
struct Box {
  std::string_view content;
  std::size_t begin;  // of the command
  std::size_t end;    // behind the closing brace
};
struct Boxes {
  std::vector<Box> braced;                    // by where they begin
  std::optional<std::string_view> braceless;  // the run of characters after the last `\boxed 5`
};
/// All boxes of a text; one that a cut-off left open is none. Linear time.
Boxes find_boxes(std::string_view text);

/// The content of the last complete, non-empty `\boxed{...}` or `\fbox{...}`; where no such box
/// exists, the run of characters after the last box without a brace (`\boxed 5`). A box that a
/// cut-off left open is none. The view points into `text`; linear time.
std::optional<std::string_view> last_box(std::string_view text);

}  // namespace asdbench
