// Data files of comma-separated records: hostile bytes to checked rows.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace asdbench {

/// One record of a CSV file.
class CsvRow {
 public:
  CsvRow(std::size_t index, std::string where, const std::vector<std::string>& fields)
      : index_(index), where_(std::move(where)), fields_(fields) {}

  std::size_t index() const { return index_; }         // from 0
  const std::string& where() const { return where_; }  // "data/mmlu/test/a_test.csv:18"
  const std::vector<std::string>& fields() const { return fields_; }
  /// DataError with the place.
  [[noreturn]] void fail(const std::string& message) const;

 private:
  std::size_t index_;
  std::string where_;  // the line on which the record starts
  const std::vector<std::string>& fields_;
};

struct CsvLimits {
  std::size_t file_bytes = std::size_t{64} << 20;
  std::size_t record_bytes = std::size_t{1} << 20;
};

/// Calls `row` for each record of `content` (RFC 4180, no header), which `name` names in messages.
/// Records end at "\n" or "\r\n", and the last one need not; a quoted field may hold commas, line
/// ends and doubled quotes, which become one; a quote inside an unquoted field is an ordinary
/// character. A byte-order mark at the start is dropped; nothing else of a field is. DataError with
/// "name:line" for a quoted field that does not end or is followed by something else, a record
/// without exactly `columns` fields (an empty line has one), a record that is too long, bytes that
/// are no UTF-8, a NUL byte, and content without any record.
void parse_csv(std::string_view content, const std::string& name, std::size_t columns,
               const std::function<void(const CsvRow&)>& row, const CsvLimits& limits = {});

/// The same for a file; DataError when it cannot be read or is larger than the limit.
void read_csv(const std::filesystem::path& file, std::size_t columns,
              const std::function<void(const CsvRow&)>& row, const CsvLimits& limits = {});

}  // namespace asdbench
