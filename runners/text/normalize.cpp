// NFC from utf8proc's tables.
#include "runners/text/normalize.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "eval/core/error.h"
#include "eval/core/utf8.h"

namespace asdbench {
namespace {

constexpr auto kCompose = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);

int combining_class(std::int32_t code_point) {
  return utf8proc_get_property(code_point)->combining_class;
}

void append_decomposed(std::uint32_t code_point, std::vector<std::int32_t>& out) {
  // The longest canonical decomposition has 4 code points; utf8proc fails when there are more.
  std::array<std::int32_t, 18> parts{};
  int last_boundary_class = 0;
  const utf8proc_ssize_t count = utf8proc_decompose_char(
      static_cast<std::int32_t>(code_point), parts.data(),
      static_cast<utf8proc_ssize_t>(parts.size()), kCompose, &last_boundary_class);
  ASDBENCH_CHECK(count >= 0 && count <= static_cast<utf8proc_ssize_t>(parts.size()),
                 fmt::format("utf8proc cannot decompose U+{:04X}", code_point));
  out.insert(out.end(), parts.begin(), parts.begin() + count);
}

// Sorts every run of combining marks by class. utf8proc's own ordering is quadratic in the run.
void order_marks(std::vector<std::int32_t>& code_points) {
  const auto is_mark = [](std::int32_t c) { return combining_class(c) != 0; };
  auto at = code_points.begin();
  while (at != code_points.end()) {
    const auto first = std::find_if(at, code_points.end(), is_mark);
    at = std::find_if_not(first, code_points.end(), is_mark);
    std::stable_sort(first, at, [](std::int32_t a, std::int32_t b) {
      return combining_class(a) < combining_class(b);
    });
  }
}

// Composes what `code_points` holds, appends it as UTF-8 and empties the buffer.
void flush(std::vector<std::int32_t>& code_points, std::string& out) {
  order_marks(code_points);
  const utf8proc_ssize_t count = utf8proc_normalize_utf32(
      code_points.data(), static_cast<utf8proc_ssize_t>(code_points.size()), kCompose);
  ASDBENCH_CHECK(count >= 0, "utf8proc cannot compose");
  for (utf8proc_ssize_t i = 0; i < count; ++i) {
    append_utf8(out, static_cast<std::uint32_t>(code_points[static_cast<std::size_t>(i)]));
  }
  code_points.clear();
}

// Offset of the first byte at or after `from` that leads U+0300 or above.
std::size_t find_high(std::string_view text, std::size_t from) {
  // 0xCC leads U+0300..U+033F; every higher code point has a higher lead.
  return static_cast<std::size_t>(
      std::find_if(text.begin() + static_cast<std::ptrdiff_t>(from), text.end(),
                   [](char c) { return static_cast<std::uint8_t>(c) >= 0xCC; }) -
      text.begin());
}

// Start of the code point below U+0300 that ends at `end`; not before `from`.
std::size_t start_of_low(std::string_view text, std::size_t from, std::size_t end) {
  const bool two_bytes = end - from >= 2 && utf8_part(text, end - 2).length == 2;
  return end - std::min<std::size_t>(end - from, two_bytes ? 2 : 1);
}

}  // namespace

bool may_change_in_nfc(std::string_view text) { return find_high(text, 0) < text.size(); }

std::string to_nfc(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  std::vector<std::int32_t> code_points;
  for (std::size_t at = 0; at < text.size();) {
    // Code points below U+0300 never combine with what stands before them, so that a run to
    // compose is one of them and all higher ones that follow; the rest is copied.
    const std::size_t high = find_high(text, at);
    const std::size_t run = high == text.size() ? high : start_of_low(text, at, high);
    out += text.substr(at, run - at);
    at = run;
    while (at < text.size() && (at < high || find_high(text.substr(at, 1), 0) == 0)) {
      const Utf8Part part = utf8_part(text, at);
      if (part.form == Utf8Form::kWellFormed) {
        append_decomposed(part.code_point, code_points);
      } else {
        flush(code_points, out);
        out += text.substr(at, part.length);
      }
      at += part.length;
    }
    flush(code_points, out);
  }
  return out;
}

}  // namespace asdbench
