// Splits on bytes first and decodes afterwards: a splitter of decoded text would break GSM8K's row
// 2381.
#include "tasks/common/jsonl.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>

#include "eval/core/error.h"
#include "tasks/common/data_file.h"

namespace asdbench {
namespace {

std::string field_names(const Json& object) {
  std::string names;
  for (const auto& [key, value] : object.items()) names += (names.empty() ? "" : ", ") + key;
  return names;
}

// The bytes of a file, unpacked when they are gzip's.
std::string content_of(const std::filesystem::path& file, std::size_t most_bytes) {
  std::string content = read_data_file(file, most_bytes);
  return content.starts_with("\x1f\x8b") ? gunzip(content, most_bytes, file.string()) : content;
}

}  // namespace

void JsonlRow::fail(const std::string& message) const {
  throw DataError(fmt::format("{}: {}", where_, message));
}

const Json& JsonlRow::field(const std::string& name) const {
  const auto at = object_.find(name);
  if (at == object_.end()) {
    fail(fmt::format("field \"{}\" is missing\n  found: {}", name, field_names(object_)));
  }
  return *at;
}

const std::string& JsonlRow::text(const std::string& name) const {
  const Json& value = field(name);
  if (!value.is_string()) {
    fail(fmt::format("field \"{}\" is {} {}, expected a string", name,
                     value.is_array() || value.is_object() ? "an" : "a", value.type_name()));
  }
  return value.get_ref<const std::string&>();
}

std::vector<std::string> JsonlRow::texts(const std::string& name) const {
  const Json& value = field(name);
  const bool good =
      value.is_array() &&
      std::all_of(value.begin(), value.end(), [](const Json& each) { return each.is_string(); });
  if (!good) fail(fmt::format("field \"{}\" is no list of strings", name));
  return value.get<std::vector<std::string>>();
}

std::int64_t JsonlRow::integer(const std::string& name) const {
  const Json& value = field(name);
  // A larger one would turn negative.
  if (!value.is_number_integer() || value > std::numeric_limits<std::int64_t>::max()) {
    fail(fmt::format("field \"{}\" is a {}, expected a whole number", name, value.type_name()));
  }
  return value.get<std::int64_t>();
}

void parse_jsonl(std::string_view content, const std::string& name,
                 const std::function<void(const JsonlRow&)>& row, const JsonlLimits& limits) {
  if (content.size() > limits.file_bytes) {
    throw DataError(
        fmt::format("{}: {} bytes, expected at most {}", name, content.size(), limits.file_bytes));
  }
  if (content.starts_with("\xef\xbb\xbf")) content.remove_prefix(3);
  std::size_t index = 0;
  while (!content.empty()) {
    const std::size_t end = std::min(content.find('\n'), content.size());
    const std::string_view line = content.substr(0, end);
    content.remove_prefix(std::min(end + 1, content.size()));
    const std::string where = fmt::format("{}:{}", name, index + 1);
    if (line.size() > limits.line_bytes) {
      throw DataError(fmt::format("{}: line of {} bytes, expected at most {}", where, line.size(),
                                  limits.line_bytes));
    }
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) {
      throw DataError(where + ": empty line, expected one JSON object a line");
    }
    Json object;
    try {
      object = parse_json(line);
    } catch (const DataError& error) {
      throw DataError(where + ": " + error.what());
    }
    if (!object.is_object()) {
      throw DataError(
          fmt::format("{}: found {}, expected a JSON object", where, object.type_name()));
    }
    row(JsonlRow(index, where, std::move(object)));
    ++index;
  }
  if (index == 0) throw DataError(name + ": no rows, expected one JSON object a line");
}

void read_jsonl(const std::filesystem::path& file, const std::function<void(const JsonlRow&)>& row,
                const JsonlLimits& limits) {
  parse_jsonl(content_of(file, limits.file_bytes), file.string(), row, limits);
}

void parse_json_array(std::string_view content, const std::string& name,
                      const std::function<void(const JsonlRow&)>& row, const JsonlLimits& limits) {
  if (content.size() > limits.file_bytes) {
    throw DataError(
        fmt::format("{}: {} bytes, expected at most {}", name, content.size(), limits.file_bytes));
  }
  Json rows;
  try {
    rows = parse_json(content);
  } catch (const DataError& error) {
    throw DataError(name + ": " + error.what());
  }
  if (!rows.is_array() || rows.empty()) {
    throw DataError(fmt::format("{}: found {}, expected an array of objects", name,
                                rows.is_array() ? "an empty array" : rows.type_name()));
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::string where = fmt::format("{}[{}]", name, i);
    if (!rows[i].is_object()) {
      throw DataError(
          fmt::format("{}: found {}, expected a JSON object", where, rows[i].type_name()));
    }
    row(JsonlRow(i, where, std::move(rows[i])));
  }
}

void read_json_array(const std::filesystem::path& file,
                     const std::function<void(const JsonlRow&)>& row, const JsonlLimits& limits) {
  parse_json_array(content_of(file, limits.file_bytes), file.string(), row, limits);
}

std::string gunzip(std::string_view packed, std::size_t most_bytes, const std::string& name) {
  constexpr int kGzipOnly = 15 + 16;  // zlib's way to ask for it: the largest window, plus 16
  ASDBENCH_CHECK(packed.size() <= std::numeric_limits<uInt>::max(), "zlib counts with 32 bits");
  z_stream stream{};
  if (inflateInit2(&stream, kGzipOnly) != Z_OK) throw InternalError("zlib cannot start");
  // zlib reads through a pointer that is not const; it does not write there.
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  std::string content;
  std::array<char, 65536> buffer{};
  int state = Z_OK;
  while (state == Z_OK || (state == Z_STREAM_END && stream.avail_in > 0)) {
    if (state == Z_STREAM_END) inflateReset(&stream);
    stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
    stream.avail_out = static_cast<uInt>(buffer.size());
    state = inflate(&stream, Z_NO_FLUSH);
    content.append(buffer.data(), buffer.size() - stream.avail_out);
    if (content.size() > most_bytes) break;
  }
  inflateEnd(&stream);
  if (content.size() > most_bytes) {
    throw DataError(fmt::format("{}: unpacks to more than the {} bytes allowed", name, most_bytes));
  }
  if (state != Z_STREAM_END) {
    throw DataError(fmt::format("{}: damaged gzip data: {}", name,
                                state == Z_BUF_ERROR ? "it ends early" : "it does not unpack"));
  }
  return content;
}

void refuse_duplicate_ids(const Samples& samples, const std::string& name) {
  std::map<std::string_view, std::size_t> rows;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const auto [first, inserted] = rows.emplace(samples[i].id, i);
    if (!inserted) {
      throw DataError(fmt::format("{}: id \"{}\" occurs in rows {} and {}, expected unique ids",
                                  name, samples[i].id, first->second + 1, i + 1));
    }
  }
}

}  // namespace asdbench
