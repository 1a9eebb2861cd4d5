// Bounded JSON parsing and canonical output.
#include "eval/core/json.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <set>
#include <vector>

#include "eval/core/error.h"

namespace asdbench {
namespace {

// Counts depth and sees duplicate keys while nlohmann's parser builds the tree, so that neither
// costs a second pass.
class Guard {
 public:
  explicit Guard(int max_depth) : max_depth_(max_depth) {}

  bool operator()(int /*depth*/, Json::parse_event_t event, Json& parsed) {
    switch (event) {
      case Json::parse_event_t::object_start:
        open();
        break;
      case Json::parse_event_t::array_start:
        open();
        break;
      case Json::parse_event_t::key:
        if (!keys_.back().insert(parsed.get<std::string>()).second) {
          throw DataError(fmt::format("JSON: key \"{}\" occurs twice in one object",
                                      parsed.get<std::string>()));
        }
        break;
      case Json::parse_event_t::object_end:
      case Json::parse_event_t::array_end:
        keys_.pop_back();
        break;
      case Json::parse_event_t::value:
        break;
    }
    return true;
  }

 private:
  void open() {
    keys_.emplace_back();
    if (static_cast<int>(keys_.size()) > max_depth_) {
      throw DataError(fmt::format("JSON: nested more than {} deep", max_depth_));
    }
  }

  int max_depth_;
  std::vector<std::set<std::string>> keys_;
};

void append_string(std::string& out, const std::string& text) {
  out += '"';
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\f':
        out += "\\f";
        break;
      case '\r':
        out += "\\r";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
        } else {
          out += c;
        }
    }
  }
  out += '"';
}

void append(std::string& out, const Json& value) {
  switch (value.type()) {
    case Json::value_t::object: {
      // nlohmann orders keys by bytes, which for UTF-8 is the order of code points.
      out += '{';
      bool first = true;
      for (const auto& [key, item] : value.items()) {
        if (!first) out += ',';
        first = false;
        append_string(out, key);
        out += ':';
        append(out, item);
      }
      out += '}';
      return;
    }
    case Json::value_t::array: {
      out += '[';
      bool first = true;
      for (const Json& item : value) {
        if (!first) out += ',';
        first = false;
        append(out, item);
      }
      out += ']';
      return;
    }
    case Json::value_t::string:
      append_string(out, value.get_ref<const std::string&>());
      return;
    case Json::value_t::boolean:
      out += value.get<bool>() ? "true" : "false";
      return;
    case Json::value_t::number_integer:
      out += fmt::format("{}", value.get<std::int64_t>());
      return;
    case Json::value_t::number_unsigned:
      out += fmt::format("{}", value.get<std::uint64_t>());
      return;
    case Json::value_t::null:
      out += "null";
      return;
    default:
      throw InternalError(
          "canonical JSON holds integers only: pass a real number as shortest_real(x)");
  }
}

}  // namespace

Json parse_json(std::string_view text, int max_depth) {
  try {
    return Json::parse(text.begin(), text.end(), Guard(max_depth));
  } catch (const Json::exception& error) {
    throw DataError(fmt::format("not valid JSON: {}", error.what()));
  }
}

std::string canonical_json(const Json& value) {
  std::string out;
  append(out, value);
  return out;
}

std::string shortest_real(double value) {
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  ASDBENCH_CHECK(!std::isnan(value), "a NaN has no canonical form");
  std::array<char, 32> buffer{};
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return {buffer.data(), result.ptr};
}

}  // namespace asdbench
