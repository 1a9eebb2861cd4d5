// Named options of a plugin as written in a configuration: typed, ranged, and refused when nobody
// reads them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace asdbench {

/// Where a value stands: file, line from 1 (0 when unknown) and key path
/// ("matrix.verifier[1].asd.B").
struct SourceLocation {
  std::string file;
  int line = 0;
  std::string path;

  /// "configs/study.yaml:14: matrix.verifier[1].asd.B", without the parts that are unknown.
  std::string text() const;
};

/// The scalar options of one plugin. Getters convert, check the range, note the key as read, and
/// record the value that holds (given or default), so that two spellings of one setting have one
/// identity.
class Params {
 public:
  Params() = default;
  Params(std::string owner, SourceLocation where)
      : owner_(std::move(owner)), where_(std::move(where)) {}

  /// ConfigError when the key is already there. `text` is the scalar as written.
  void set(const std::string& key, std::string text, const SourceLocation& where);
  /// Sets or replaces: for values given on the command line.
  void replace(const std::string& key, std::string text, SourceLocation where);
  bool has(std::string_view key) const { return values_.find(key) != values_.end(); }

  /// Required values: ConfigError when absent, of the wrong type, or below `minimum`.
  std::int64_t at_least(std::string_view key, std::int64_t minimum) const;
  double at_least(std::string_view key, double minimum) const;  // finite or "inf"
  std::string text(std::string_view key) const;

  /// Optional values, with the same checks. Integers accept no fraction, numbers accept "inf" and
  /// ".inf".
  std::int64_t integer(std::string_view key, std::int64_t fallback, std::int64_t minimum,
                       std::int64_t maximum) const;
  double number(std::string_view key, double fallback, double minimum, double maximum) const;
  bool flag(std::string_view key, bool fallback) const;
  std::string text(std::string_view key, std::string_view fallback) const;
  /// One of `known`; ConfigError names the nearest.
  std::string choice(std::string_view key, std::string_view fallback,
                     const std::vector<std::string>& known) const;

  /// ConfigError when a key was given that no getter asked for, with the nearest key that was asked
  /// for.
  void refuse_unread() const;

  /// Raises a ConfigError about `key`, at its location.
  [[noreturn]] void fail(std::string_view key, const std::string& message) const;
  /// ConfigError: `key` is required and was not given; names a given one that it may be misspelt
  /// as.
  [[noreturn]] void fail_missing(std::string_view key, std::string_view expected) const;

  /// What holds after all getters ran, key -> canonical text; part of the cell's identity.
  const std::map<std::string, std::string, std::less<>>& resolved() const { return *resolved_; }
  /// "B=8 g=0.25 M=2" of the values that were given, in their order; "" when none were.
  std::string given() const;

  const std::string& owner() const { return owner_; }
  const SourceLocation& where() const { return where_; }

 private:
  struct Value {
    std::string text;
    SourceLocation where;
  };
  const Value* find(std::string_view key) const;
  void record(std::string_view key, std::string text) const;

  std::string owner_;
  SourceLocation where_;
  std::map<std::string, Value, std::less<>> values_;
  std::vector<std::string> order_;  // keys as they were given
  // Shared and written by const getters: reading is what resolves, and copies of one Params share
  // what was learnt.
  std::shared_ptr<std::map<std::string, std::string, std::less<>>> resolved_ =
      std::make_shared<std::map<std::string, std::string, std::less<>>>();
};

/// Reads all of `text` as a number of YAML's core schema; nullopt when it is none. "inf", ".inf",
/// "+.inf" are infinite.
std::optional<double> parse_number(std::string_view text);
/// Reads all of `text` as a decimal integer; nullopt when it is none or does not fit.
std::optional<std::int64_t> parse_integer(std::string_view text);

}  // namespace asdbench
