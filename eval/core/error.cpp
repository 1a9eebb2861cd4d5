// Names of error kinds, and suggestions for misspelt names.
#include "eval/core/error.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "eval/core/utf8.h"

namespace asdbench {

std::string_view name_of(ModelFault fault) {
  static constexpr std::array<std::string_view, 14> kNames = {
      "missing_file", "truncated",   "bad_header",     "bad_version",       "bad_offsets",
      "bad_dtype",    "bad_shape",   "missing_tensor", "unexpected_tensor", "duplicate_tensor",
      "unknown_arch", "unsupported", "bad_config",     "bad_weights"};
  return kNames.at(static_cast<std::size_t>(fault));
}

std::string_view name_of(BlockFault fault) {
  static constexpr std::array<std::string_view, 4> kNames = {
      "bad_control", "ledger_exceeds_budget", "token_out_of_range", "nonfinite_logit"};
  return kNames.at(static_cast<std::size_t>(fault));
}

void check_failed(const char* file, int line, const char* condition, const std::string& detail) {
  throw InternalError(
      fmt::format("{}:{}: broken invariant `{}`: {}\n  this is a bug in asdbench, please report it",
                  file, line, condition, detail));
}

namespace {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substitute = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitute});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string shown(std::string_view foreign) {
  constexpr std::size_t kLongest = 80;
  std::string out = "\"";
  for (std::size_t i = 0; i < foreign.size();) {
    const Utf8Part part = utf8_part(foreign, i);
    if (i + part.length > kLongest) {
      out += "...";
      break;
    }
    const std::string_view bytes = foreign.substr(i, part.length);
    if (part.form == Utf8Form::kWellFormed && !steers_display(part.code_point)) {
      out += bytes;
    } else {
      for (const char c : bytes) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
    i += part.length;
  }
  return out + '"';
}

std::string nearest_name(std::string_view name, const std::vector<std::string>& known) {
  constexpr std::size_t kLongestName =
      64;  // a longer one is no typing slip, and distance is quadratic
  if (name.size() > kLongestName) return "";
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(1, name.size() / 3) + 1;
  for (const std::string& candidate : known) {
    const std::size_t distance = edit_distance(name, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string known_names(std::string_view found, std::vector<std::string> known) {
  if (known.empty()) return "";
  std::sort(known.begin(), known.end());
  std::string text = fmt::format("\n  known: {}", fmt::join(known, ", "));
  const std::string nearest = nearest_name(found, known);
  if (!nearest.empty()) text += fmt::format("; did you mean \"{}\"?", nearest);
  return text;
}

}  // namespace asdbench
