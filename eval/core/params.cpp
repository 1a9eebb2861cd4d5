// Typed access to plugin options.
#include "eval/core/params.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>

#include "eval/core/error.h"
#include "eval/core/json.h"

namespace asdbench {

std::string SourceLocation::text() const {
  std::string out = file;
  if (line > 0) out += fmt::format(":{}", line);
  if (!path.empty()) out += (out.empty() ? "" : ": ") + path;
  return out;
}

std::optional<double> parse_number(std::string_view text) {
  if (text == "inf" || text == ".inf" || text == "+.inf")
    return std::numeric_limits<double>::infinity();
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

std::optional<std::int64_t> parse_integer(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  std::int64_t value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || end != text.data() + text.size() || text.empty())
    return std::nullopt;
  return value;
}

void Params::set(const std::string& key, std::string text, const SourceLocation& where) {
  if (!values_.emplace(key, Value{std::move(text), where}).second) {
    throw ConfigError(fmt::format("{}: \"{}\" is given twice", where.text(), key));
  }
  order_.push_back(key);
}

void Params::replace(const std::string& key, std::string text, SourceLocation where) {
  if (values_.insert_or_assign(key, Value{std::move(text), std::move(where)}).second) {
    order_.push_back(key);
  }
}

const Params::Value* Params::find(std::string_view key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? nullptr : &found->second;
}

void Params::record(std::string_view key, std::string text) const {
  (*resolved_)[std::string(key)] = std::move(text);
}

void Params::fail_missing(std::string_view key, std::string_view expected) const {
  std::vector<std::string> unread;
  for (const std::string& given : order_) {
    // Of options of one letter, any is near any other.
    if (!resolved_->contains(given) && given.front() == key.front()) unread.push_back(given);
  }
  const std::string meant = nearest_name(key, unread);
  throw ConfigError(fmt::format(
      "{}: {} needs \"{}\"{}{}", meant.empty() ? where_.text() : find(meant)->where.text(), owner_,
      key, expected, meant.empty() ? "" : fmt::format("; found \"{}\"", meant)));
}

void Params::fail(std::string_view key, const std::string& message) const {
  const Value* value = find(key);
  throw ConfigError(fmt::format("{}: {}", value ? value->where.text() : where_.text(), message));
}

namespace {

std::string range_text(double minimum, double maximum) {
  if (std::isinf(maximum)) return fmt::format("at least {}", shortest_real(minimum));
  return fmt::format("{} to {}", shortest_real(minimum), shortest_real(maximum));
}

}  // namespace

double Params::number(std::string_view key, double fallback, double minimum, double maximum) const {
  double result = fallback;
  if (const Value* value = find(key)) {
    const auto parsed = parse_number(value->text);
    if (!parsed)
      fail(key, fmt::format("\"{}\" is not a number; expected {}", value->text,
                            range_text(minimum, maximum)));
    if (*parsed < minimum || *parsed > maximum) {
      fail(key, fmt::format("{} is out of range; expected {}", value->text,
                            range_text(minimum, maximum)));
    }
    result = *parsed;
  }
  record(key, shortest_real(result));
  return result;
}

std::int64_t Params::integer(std::string_view key, std::int64_t fallback, std::int64_t minimum,
                             std::int64_t maximum) const {
  std::int64_t result = fallback;
  if (const Value* value = find(key)) {
    const auto parsed = parse_integer(value->text);
    const std::string range = maximum == std::numeric_limits<std::int64_t>::max()
                                  ? fmt::format("at least {}", minimum)
                                  : fmt::format("{} to {}", minimum, maximum);
    if (!parsed)
      fail(key, fmt::format("\"{}\" is not a whole number; expected {}", value->text, range));
    if (*parsed < minimum || *parsed > maximum) {
      fail(key, fmt::format("{} is out of range; expected {}", value->text, range));
    }
    result = *parsed;
  }
  record(key, std::to_string(result));
  return result;
}

std::int64_t Params::at_least(std::string_view key, std::int64_t minimum) const {
  if (!has(key)) fail_missing(key, fmt::format(", a whole number of at least {}", minimum));
  return integer(key, minimum, minimum, std::numeric_limits<std::int64_t>::max());
}

double Params::at_least(std::string_view key, double minimum) const {
  if (!has(key)) {
    fail_missing(key, fmt::format(", a number of at least {}", shortest_real(minimum)));
  }
  return number(key, minimum, minimum, std::numeric_limits<double>::infinity());
}

bool Params::flag(std::string_view key, bool fallback) const {
  bool result = fallback;
  if (const Value* value = find(key)) {
    if (value->text != "true" && value->text != "false") {
      fail(key, fmt::format("\"{}\" is neither true nor false", value->text));
    }
    result = value->text == "true";
  }
  record(key, result ? "true" : "false");
  return result;
}

std::string Params::text(std::string_view key) const {
  const Value* value = find(key);
  if (value == nullptr) fail_missing(key, "");
  record(key, value->text);
  return value->text;
}

std::string Params::text(std::string_view key, std::string_view fallback) const {
  const Value* value = find(key);
  std::string result = value ? value->text : std::string(fallback);
  record(key, result);
  return result;
}

std::string Params::choice(std::string_view key, std::string_view fallback,
                           const std::vector<std::string>& known) const {
  std::string result = text(key, fallback);
  for (const std::string& name : known) {
    if (name == result) return result;
  }
  fail(key, fmt::format("unknown {} \"{}\"{}", key, result, known_names(result, known)));
}

void Params::refuse_unread() const {
  for (const auto& [key, value] : values_) {
    if (resolved_->find(key) != resolved_->end()) continue;
    std::vector<std::string> known;
    for (const auto& [name, unused] : *resolved_) known.push_back(name);
    const std::string hint = known.empty() ? "\n  it takes no options" : known_names(key, known);
    throw ConfigError(
        fmt::format("{}: {} has no option \"{}\"{}", value.where.text(), owner_, key, hint));
  }
}

std::string Params::given() const {
  std::string out;
  for (const std::string& key : order_) {
    out += fmt::format("{}{}={}", out.empty() ? "" : " ", key, find(key)->text);
  }
  return out;
}

}  // namespace asdbench
