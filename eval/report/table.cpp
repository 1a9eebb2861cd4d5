// Text forms of tables and numbers.
#include "eval/report/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "eval/core/params.h"
#include "eval/core/utf8.h"

namespace asdbench {
namespace {

/// Code points, which is what a terminal shows for the scripts that we print.
std::size_t width(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

std::string escape_csv(std::string text) {
  const bool formula =
      !text.empty() && std::string_view("=+-@\t\r").find(text.front()) != std::string_view::npos;
  if (formula && !parse_number(text)) {
    text.insert(text.begin(), '\'');
  }
  if (text.find_first_of("\",\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

std::string join_csv(const std::vector<std::string>& cells) {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) line += (i ? "," : "") + escape_csv(cells[i]);
  return line + "\r\n";
}

}  // namespace

std::string printable(std::string_view text, Lines lines) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const Utf8Part part = utf8_part(text, i);
    const bool line = part.code_point == '\n' || part.code_point == '\t';
    const bool shown = part.form == Utf8Form::kWellFormed &&
                       (!steers_display(part.code_point) || (line && lines == Lines::kKept));
    if (shown) {
      out += text.substr(i, part.length);
    } else {
      out += "\uFFFD";
    }
    i += part.length;
  }
  return out;
}

std::string escape_markdown(std::string_view text) {
  std::string out;
  for (const char c : printable(text)) {
    if (std::string_view("|\\`*_<>[]&~$#").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

std::string escape_latex(std::string_view text) {
  static const std::map<std::string, std::string, std::less<>> kSpecial = {
      {"\\", "\\textbackslash{}"},
      {"{", "\\{"},
      {"}", "\\}"},
      {"$", "\\$"},
      {"&", "\\&"},
      {"#", "\\#"},
      {"_", "\\_"},
      {"%", "\\%"},
      {"~", "\\textasciitilde{}"},
      {"^", "\\textasciicircum{}"},
      {"–", "--"},
      {"·", "\\textperiodcentered{}"},
      {"<", "\\textless{}"},
      {">", "\\textgreater{}"},
      {"\"", "\\textquotedbl{}"},
      {"×", "\\texttimes{}"},
      {"[", "{[}"},
      {"]", "{]}"},
      {"\uFFFD", "?"}};
  const std::string clean = printable(text);
  std::string out;
  for (std::size_t i = 0; i < clean.size();) {
    const std::string_view part = std::string_view(clean).substr(i, utf8_part(clean, i).length);
    const auto special = kSpecial.find(part);
    out += special == kSpecial.end() ? part : std::string_view(special->second);
    i += part.size();
  }
  return out;
}

std::string to_latex(const Table& table) {
  std::string out = "\\begin{longtable}{";
  for (const Column& column : table.columns) out += column.align == Align::kRight ? 'r' : 'l';
  out += "}\n";
  if (!table.title.empty()) out += "\\caption{" + escape_latex(table.title) + "}\\\\\n";
  const auto line = [&](const auto& cell_at) {
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
      out += (i > 0 ? " & " : "") + escape_latex(cell_at(i));
    }
    out += " \\\\\n";
  };
  out += "\\hline\n";
  line([&](std::size_t i) { return table.columns[i].header; });
  out += "\\hline\n\\endhead\n";
  for (const auto& row : table.rows) line([&](std::size_t i) { return row[i]; });
  return out + "\\hline\n\\end{longtable}\n";
}

std::string to_terminal(const Table& table) {
  std::vector<std::size_t> widths;
  for (const Column& column : table.columns) widths.push_back(width(column.header));
  for (const auto& row : table.rows) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], width(printable(row[i])));
    }
  }
  std::string out = table.title.empty() ? "" : printable(table.title) + "\n";
  const auto line = [&](const auto& cell_at) {
    std::string text;
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
      const std::string cell = cell_at(i);
      const std::string pad(widths[i] - width(cell), ' ');
      if (i > 0) text += "  ";
      text += table.columns[i].align == Align::kRight ? pad + cell : cell + pad;
    }
    text.erase(text.find_last_not_of(' ') + 1);
    out += text + "\n";
  };
  line([&](std::size_t i) { return table.columns[i].header; });
  for (const auto& row : table.rows) line([&](std::size_t i) { return printable(row[i]); });
  return out;
}

std::string to_markdown(const Table& table) {
  std::string out = table.title.empty() ? "" : escape_markdown(table.title) + "\n\n";
  std::string rule = "|";
  out += "|";
  for (const Column& column : table.columns) {
    out += " " + escape_markdown(column.header) + " |";
    rule += column.align == Align::kRight ? " ---: |" : " --- |";
  }
  out += "\n" + rule + "\n";
  for (const auto& row : table.rows) {
    out += "|";
    for (const std::string& cell : row) out += " " + escape_markdown(cell) + " |";
    out += "\n";
  }
  return out;
}

std::string to_csv(const Table& table) {
  std::vector<std::string> headers;
  for (const Column& column : table.columns) headers.push_back(column.header);
  std::string out = join_csv(headers);
  for (const auto& row : table.rows) out += join_csv(row);
  return out;
}

std::string percent(std::optional<double> fraction, int decimals) {
  if (!fraction) return std::string(kUndefined);
  return fmt::format("{:.{}f} %", 100 * *fraction, decimals);
}

std::string percent_interval(std::optional<double> estimate, std::optional<double> low,
                             std::optional<double> high, int decimals) {
  std::string text = percent(estimate, decimals);
  if (estimate && low && high) {
    text += fmt::format(" [{:.{}f}, {:.{}f}]", 100 * *low, decimals, 100 * *high, decimals);
  }
  return text;
}

std::string decimal(std::optional<double> value, int decimals) {
  return value ? fmt::format("{:.{}f}", *value, decimals) : std::string(kUndefined);
}

std::string decimal_interval(std::optional<double> estimate, std::optional<double> low,
                             std::optional<double> high, int decimals) {
  std::string text = decimal(estimate, decimals);
  if (estimate && low && high) {
    text += fmt::format(" [{:.{}f}, {:.{}f}]", *low, decimals, *high, decimals);
  }
  return text;
}

}  // namespace asdbench
