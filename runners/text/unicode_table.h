// Character classes of the pre-tokenizers: Unicode's letters, numbers and white space.
#pragma once

#include <cstdint>
#include <span>

namespace asdbench {

/// \p{L}, \p{N}, White_Space, and everything else (specs: targets, section 7.2).
enum class CharClass : std::uint8_t { kOther, kLetter, kNumber, kSpace };

/// Code points first..last, both included, of one class.
struct UnicodeRange {
  std::uint32_t first;
  std::uint32_t last;
  CharClass char_class;
};

/// All ranges that are not kOther, ascending and disjoint; generated.
std::span<const UnicodeRange> unicode_ranges();

/// [0x110000] the class of every code point; expanded from the ranges at the first call.
const CharClass* char_classes();

inline constexpr std::uint32_t kCodePointLimit = 0x110000;

}  // namespace asdbench
