// Canonical composition (NFC), as the Qwen tokenizers apply it.
#pragma once

#include <string>
#include <string_view>

namespace asdbench {

/// NFC of the well-formed runs of `text`; ill-formed bytes are kept as they are and end a run.
/// Linear but for the sort of a run of combining marks. Unicode version: utf8proc's.
std::string to_nfc(std::string_view text);

/// False only when `text` is certain to be in NFC: no code point of U+0300 or above.
bool may_change_in_nfc(std::string_view text);

}  // namespace asdbench
