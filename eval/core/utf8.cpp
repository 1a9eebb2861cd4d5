// Table 3-7 of the Unicode Standard as code.
#include "eval/core/utf8.h"

namespace asdbench {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

// Bytes of the sequence that `lead` starts, and the range of its second byte.
struct Lead {
  std::uint32_t length;
  std::uint8_t second_low;
  std::uint8_t second_high;
};

Lead lead_of(std::uint8_t lead) {
  if (lead < 0x80) return {1, 0, 0};
  if (lead < 0xC2) return {0, 0, 0};
  if (lead < 0xE0) return {2, 0x80, 0xBF};
  if (lead == 0xE0) return {3, 0xA0, 0xBF};
  if (lead == 0xED) return {3, 0x80, 0x9F};
  if (lead < 0xF0) return {3, 0x80, 0xBF};
  if (lead == 0xF0) return {4, 0x90, 0xBF};
  if (lead < 0xF4) return {4, 0x80, 0xBF};
  if (lead == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

// The first two bytes of an encoded surrogate. They are ill-formed already, but the reference's
// incremental decoder (CPython's) waits for the third byte before it says so, and the published
// streams show that.
bool begins_surrogate(std::string_view bytes) {
  return bytes.size() == 2 && bytes[0] == '\xED' && static_cast<std::uint8_t>(bytes[1]) >= 0xA0 &&
         static_cast<std::uint8_t>(bytes[1]) <= 0xBF;
}

enum class More : std::uint8_t { kMayFollow, kNever };

// Appends the complete parts of `bytes` and says how many bytes they were.
std::size_t append_complete(std::string_view bytes, More more, std::string& out) {
  std::size_t at = 0;
  while (at < bytes.size()) {
    const Utf8Part part = utf8_part(bytes, at);
    if (part.form == Utf8Form::kIncomplete) break;
    if (more == More::kMayFollow && begins_surrogate(bytes.substr(at))) break;
    if (part.form == Utf8Form::kWellFormed) {
      out += bytes.substr(at, part.length);
    } else {
      out += kReplacement;
    }
    at += part.length;
  }
  return at;
}

}  // namespace

Utf8Part utf8_part(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[at + i]); };
  const std::uint8_t first = byte(0);
  if (first < 0x80) return {first, 1, Utf8Form::kWellFormed};
  const Lead lead = lead_of(first);
  if (lead.length == 0) return {0, 1, Utf8Form::kIllFormed};
  std::uint32_t code_point = first & (0x7Fu >> lead.length);
  for (std::uint32_t i = 1; i < lead.length; ++i) {
    if (at + i == text.size()) return {0, i, Utf8Form::kIncomplete};
    const std::uint8_t low = i == 1 ? lead.second_low : 0x80;
    const std::uint8_t high = i == 1 ? lead.second_high : 0xBF;
    if (byte(i) < low || byte(i) > high) return {0, i, Utf8Form::kIllFormed};
    code_point = (code_point << 6) | (byte(i) & 0x3Fu);
  }
  return {code_point, lead.length, Utf8Form::kWellFormed};
}

bool steers_display(std::uint32_t code_point) {
  return code_point < 0x20 || (code_point >= 0x7F && code_point < 0xA0) || code_point == 0x061C ||
         code_point == 0x200E || code_point == 0x200F ||
         (code_point >= 0x2028 && code_point <= 0x202E) ||
         (code_point >= 0x2066 && code_point <= 0x2069) || code_point == 0xFEFF;
}

void append_utf8(std::string& out, std::uint32_t code_point) {
  const auto put = [&](std::uint32_t byte) { out += static_cast<char>(byte); };
  if (code_point < 0x80) {
    put(code_point);
  } else if (code_point < 0x800) {
    put(0xC0 | (code_point >> 6));
    put(0x80 | (code_point & 0x3F));
  } else if (code_point < 0x10000) {
    put(0xE0 | (code_point >> 12));
    put(0x80 | ((code_point >> 6) & 0x3F));
    put(0x80 | (code_point & 0x3F));
  } else {
    put(0xF0 | (code_point >> 18));
    put(0x80 | ((code_point >> 12) & 0x3F));
    put(0x80 | ((code_point >> 6) & 0x3F));
    put(0x80 | (code_point & 0x3F));
  }
}

void take_complete_utf8(std::string& bytes, std::string& out) {
  bytes.erase(0, append_complete(bytes, More::kMayFollow, out));
}

std::string well_formed(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  if (append_complete(bytes, More::kNever, out) < bytes.size()) out += kReplacement;
  return out;
}

}  // namespace asdbench
