// The alphabet of byte-level BPE: one printable character for each byte.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace asdbench {

/// UTF-8 of the character that stands for `byte` (specs: targets, section 7.1, step 4).
std::string mapped_byte(std::uint8_t byte);

/// The bytes that `mapped` stands for; nullopt when a character of it is outside the alphabet.
std::optional<std::string> unmapped_bytes(std::string_view mapped);

}  // namespace asdbench
