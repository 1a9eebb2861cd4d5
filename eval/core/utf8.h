// UTF-8 from foreign bytes: well-formed sequences and maximal ill-formed parts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace asdbench {

enum class Utf8Form : std::uint8_t {
  kWellFormed,
  kIllFormed,
  kIncomplete,  // the text ends inside a sequence that more bytes could complete
};

/// One sequence, or one maximal ill-formed part (Unicode 16, section 3.9, table 3-7 and D93b).
struct Utf8Part {
  std::uint32_t code_point = 0;  // of a well-formed sequence
  std::uint32_t length = 0;      // bytes, 1..4; at most 3 unless well-formed
  Utf8Form form = Utf8Form::kIllFormed;
};

/// The part that starts at byte `at` < text.size().
Utf8Part utf8_part(std::string_view text, std::size_t at);

/// Whether the character would steer a terminal or the direction of what follows.
bool steers_display(std::uint32_t code_point);

void append_utf8(std::string& out, std::uint32_t code_point);

/// Moves the parts of `bytes` that are complete to the end of `out`, ill-formed ones as U+FFFD;
/// what is incomplete at the end (at most 3 bytes) stays in `bytes`, the first two bytes of an
/// encoded surrogate too.
void take_complete_utf8(std::string& bytes, std::string& out);

/// `bytes` with every maximal ill-formed part replaced by one U+FFFD.
std::string well_formed(std::string_view bytes);

}  // namespace asdbench
