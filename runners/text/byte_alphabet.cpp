// Printable Latin-1 bytes stand for themselves, the other 68 for U+0100 and up.
#include "runners/text/byte_alphabet.h"

#include <array>

#include "eval/core/utf8.h"

namespace asdbench {
namespace {

constexpr std::uint32_t kAlphabetLimit = 0x144;  // one above the last character

bool stands_for_itself(std::uint32_t byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

struct Alphabet {
  std::array<std::uint32_t, 256> code_points{};
  std::array<std::int32_t, kAlphabetLimit> bytes{};  // -1 outside the alphabet

  Alphabet() {
    bytes.fill(-1);
    std::uint32_t next = 0x100;
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
      code_points[byte] = stands_for_itself(byte) ? byte : next++;
      bytes[code_points[byte]] = static_cast<std::int32_t>(byte);
    }
  }
};

const Alphabet& alphabet() {
  static const Alphabet kInstance;
  return kInstance;
}

}  // namespace

std::string mapped_byte(std::uint8_t byte) {
  std::string out;
  append_utf8(out, alphabet().code_points[byte]);
  return out;
}

std::optional<std::string> unmapped_bytes(std::string_view mapped) {
  std::string out;
  for (std::size_t at = 0; at < mapped.size();) {
    const Utf8Part part = utf8_part(mapped, at);
    if (part.form != Utf8Form::kWellFormed || part.code_point >= kAlphabetLimit) return {};
    const std::int32_t byte = alphabet().bytes[part.code_point];
    if (byte < 0) return {};
    out += static_cast<char>(byte);
    at += part.length;
  }
  return out;
}

}  // namespace asdbench
