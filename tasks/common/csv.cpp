// One pass over the bytes; a record is decoded into buffers that are used again.
#include "tasks/common/csv.h"

#include <fmt/format.h>

#include <algorithm>

#include "eval/core/error.h"
#include "eval/core/utf8.h"
#include "tasks/common/data_file.h"

namespace asdbench {
namespace {

/// Reads records from `text`, one after the other.
class CsvReader {
 public:
  CsvReader(std::string_view text, const std::string& name, const CsvLimits& limits)
      : text_(text), name_(name), limits_(limits) {}

  bool at_end() const { return at_ == text_.size(); }
  std::string where() const { return fmt::format("{}:{}", name_, line_); }

  /// Fills the first `count()` of `fields`.
  void next(std::vector<std::string>& fields) {
    start_line_ = line_;
    start_ = at_;
    fields.clear();
    do {
      fields.emplace_back();
      field(fields.back());
    } while (take(','));
    if (!take('\n') && text_.substr(at_).starts_with("\r\n")) {
      at_ += 2;
      ++line_;
    }
  }
  std::size_t start_line() const { return start_line_; }

 private:
  [[noreturn]] void fail(const std::string& message) const {
    throw DataError(fmt::format("{}:{}: {}", name_, start_line_, message));
  }

  bool take(char c) {
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    if (c == '\n') ++line_;
    return true;
  }

  void field(std::string& out) {
    if (take('"')) {
      quoted(out);
      return;
    }
    std::size_t end = at_;
    while (end < text_.size() && text_[end] != ',' && text_[end] != '\n' &&
           !text_.substr(end).starts_with("\r\n")) {
      ++end;
    }
    append(out, end);
  }

  void quoted(std::string& out) {
    while (true) {
      const std::size_t quote = text_.find('"', at_);
      if (quote == std::string_view::npos) {
        fail("a quoted field is not closed before the end of the file");
      }
      append(out, quote);
      ++at_;
      if (!take('"')) break;
      out += '"';
    }
    const std::string_view rest = text_.substr(at_);
    if (!rest.empty() && rest[0] != ',' && rest[0] != '\n' && !rest.starts_with("\r\n")) {
      fail(
          fmt::format("found {} after the closing quote of a field, expected a comma or the end "
                      "of the record",
                      shown(rest.substr(0, 8))));
    }
  }

  void append(std::string& out, std::size_t end) {
    if (end - start_ > limits_.record_bytes) {
      fail(fmt::format("a record of more than {} bytes", limits_.record_bytes));
    }
    const std::string_view part = text_.substr(at_, end - at_);
    line_ += static_cast<std::size_t>(std::count(part.begin(), part.end(), '\n'));
    out += part;
    at_ = end;
  }

  std::string_view text_;
  const std::string& name_;
  const CsvLimits& limits_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
  std::size_t start_ = 0;
  std::size_t start_line_ = 1;
};

/// The first byte of what is no text: ill-formed UTF-8 or NUL; npos when there is none.
std::size_t find_no_text(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    if (static_cast<unsigned char>(text[at]) < 0x80) {
      if (text[at] == '\0') return at;
      ++at;
      continue;
    }
    const Utf8Part part = utf8_part(text, at);
    if (part.form != Utf8Form::kWellFormed) return at;
    at += part.length;
  }
  return std::string_view::npos;
}

}  // namespace

void CsvRow::fail(const std::string& message) const {
  throw DataError(fmt::format("{}: {}", where_, message));
}

void parse_csv(std::string_view content, const std::string& name, std::size_t columns,
               const std::function<void(const CsvRow&)>& row, const CsvLimits& limits) {
  if (content.size() > limits.file_bytes) {
    throw DataError(
        fmt::format("{}: {} bytes, expected at most {}", name, content.size(), limits.file_bytes));
  }
  if (const std::size_t bad = find_no_text(content); bad != std::string_view::npos) {
    const auto line =
        1 + std::count(content.begin(), content.begin() + static_cast<std::ptrdiff_t>(bad), '\n');
    throw DataError(fmt::format("{}:{}: byte {} is no UTF-8 text", name, line, bad));
  }
  if (content.starts_with("\xef\xbb\xbf")) content.remove_prefix(3);
  CsvReader reader(content, name, limits);
  std::vector<std::string> fields;
  std::size_t index = 0;
  while (!reader.at_end()) {
    reader.next(fields);
    const CsvRow record(index, fmt::format("{}:{}", name, reader.start_line()), fields);
    if (fields.size() != columns) {
      record.fail(fmt::format("a record of {} fields, expected {}", fields.size(), columns));
    }
    row(record);
    ++index;
  }
  if (index == 0) throw DataError(name + ": no records");
}

void read_csv(const std::filesystem::path& file, std::size_t columns,
              const std::function<void(const CsvRow&)>& row, const CsvLimits& limits) {
  parse_csv(read_data_file(file, limits.file_bytes), file.string(), columns, row, limits);
}

}  // namespace asdbench
