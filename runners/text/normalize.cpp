// NFC from utf8proc's tables.
#include "runners/text/normalize.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "eval/core/error.h"
#include "runners/text/utf8.h"

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

}  // namespace

bool may_change_in_nfc(std::string_view text) {
  // 0xCC leads U+0300..U+033F; every higher code point has a higher lead.
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return static_cast<std::uint8_t>(c) >= 0xCC; });
}

std::string to_nfc(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  std::vector<std::int32_t> code_points;
  for (std::size_t at = 0; at < text.size();) {
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
  return out;
}

}  // namespace asdbench
