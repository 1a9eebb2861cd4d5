// A table of text cells, and its terminal, Markdown and CSV forms.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace asdbench {

enum class Align : std::uint8_t { kLeft, kRight };

struct Column {
  std::string header;
  Align align = Align::kLeft;
};

struct Table {
  std::string title;  // one line; may be ""
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;
};

enum class Lines : std::uint8_t { kReplaced, kKept };
/// Foreign text for people: ill-formed bytes, control characters (C0, C1, DEL) and those that turn
/// the direction of writing become U+FFFD; kKept leaves line breaks and tabs.
std::string printable(std::string_view text, Lines lines = Lines::kReplaced);

/// Columns padded with spaces, two between them; control characters are shown as U+FFFD.
std::string to_terminal(const Table& table);
/// GitHub-flavoured Markdown; pipes and line breaks in cells are escaped.
std::string to_markdown(const Table& table);
/// RFC 4180, header first; a cell that a spreadsheet would take for a formula gets a leading
/// apostrophe.
std::string to_csv(const Table& table);

/// A longtable; everything that LaTeX would read is escaped.
std::string to_latex(const Table& table);
/// The escaped text alone.
std::string escape_markdown(std::string_view text);
std::string escape_latex(std::string_view text);

/// Printed when a statistic is undefined: never 0, never NaN.
inline constexpr std::string_view kUndefined = "–";

/// 0.123 -> "12.3 %"
std::string percent(std::optional<double> fraction, int decimals = 1);
/// "12.3 % [4.5, 20.1]"; without an interval only the estimate.
std::string percent_interval(std::optional<double> estimate, std::optional<double> low,
                             std::optional<double> high, int decimals = 1);
/// "1.234"
std::string decimal(std::optional<double> value, int decimals);
/// "1.234 [1.100, 1.350]"
std::string decimal_interval(std::optional<double> estimate, std::optional<double> low,
                             std::optional<double> high, int decimals);

}  // namespace asdbench
