// Data files of JSON objects, one a line or in one array: hostile bytes to checked rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "eval/core/json.h"
#include "eval/core/sample.h"

namespace asdbench {

/// One object of a JSONL file.
class JsonlRow {
 public:
  JsonlRow(std::size_t index, std::string where, Json object)
      : index_(index), where_(std::move(where)), object_(std::move(object)) {}

  std::size_t index() const { return index_; }         // from 0
  const std::string& where() const { return where_; }  // "data/gsm8k/test.jsonl:18"
  const Json& object() const { return object_; }
  /// DataError with place and field names when the field is absent or no string.
  const std::string& text(const std::string& name) const;
  /// The same for a list of strings, which may be empty.
  std::vector<std::string> texts(const std::string& name) const;
  /// The same for a whole number.
  std::int64_t integer(const std::string& name) const;
  [[noreturn]] void fail(const std::string& message) const;

 private:
  const Json& field(const std::string& name) const;

  std::size_t index_;
  std::string where_;
  Json object_;
};

struct JsonlLimits {
  std::size_t file_bytes = std::size_t{256} << 20;
  std::size_t line_bytes = std::size_t{4} << 20;
};

/// Calls `row` for each line of `content`, which `name` names in messages. Lines end at "\n" bytes
/// only (U+2028 inside a string is no line end); a byte-order mark at the start and a final line
/// end are allowed, an empty line is not. DataError with "name:line" for a line that is too long,
/// no UTF-8, no JSON or no object, and for content without any row.
void parse_jsonl(std::string_view content, const std::string& name,
                 const std::function<void(const JsonlRow&)>& row, const JsonlLimits& limits = {});

/// The same for a file, packed with gzip or not; DataError when it cannot be read, is no sound gzip
/// or is larger than the limit, packed or unpacked.
void read_jsonl(const std::filesystem::path& file, const std::function<void(const JsonlRow&)>& row,
                const JsonlLimits& limits = {});

/// Calls `row` for each object of one JSON array, as `name[17]`. DataError for anything else, for
/// an empty array and for more bytes than the limit of a file.
void parse_json_array(std::string_view content, const std::string& name,
                      const std::function<void(const JsonlRow&)>& row,
                      const JsonlLimits& limits = {});
void read_json_array(const std::filesystem::path& file,
                     const std::function<void(const JsonlRow&)>& row,
                     const JsonlLimits& limits = {});

/// Unpacks gzip data of one or several members into at most `most_bytes`; `name` names them in the
/// DataError.
std::string gunzip(std::string_view packed, std::size_t most_bytes, const std::string& name);

/// DataError that names the first id that occurs twice and both of its rows.
void refuse_duplicate_ids(const Samples& samples, const std::string& name);

}  // namespace asdbench
