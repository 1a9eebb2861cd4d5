// Answers in LaTeX boxes. Source: specs/scoring.md, section 3.2, rule 1.
#pragma once

#include <optional>
#include <string_view>

namespace asdbench {

/// The content of the last complete, non-empty `\boxed{...}` or `\fbox{...}`; where no such box
/// exists, the run of characters after the last box without a brace (`\boxed 5`). A box that a
/// cut-off left open is none. The view points into `text`; linear time.
std::optional<std::string_view> last_box(std::string_view text);

}  // namespace asdbench
