// Rows of the report views by column name.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "eval/core/json.h"
#include "results/store.h"

namespace asdbench {

/// One row; asking for a column that the query did not name is an InternalError.
class ViewRow {
 public:
  ViewRow(std::map<std::string, Value, std::less<>> values) : values_(std::move(values)) {}

  std::int64_t count(std::string_view column) const;            // NULL is an InternalError
  std::optional<double> number(std::string_view column) const;  // NULL is nullopt
  std::string text(std::string_view column) const;              // NULL is ""
  const std::map<std::string, Value, std::less<>>& values() const { return values_; }

 private:
  const Value& at(std::string_view column) const;
  std::map<std::string, Value, std::less<>> values_;
};

using ViewRows = std::vector<ViewRow>;

ViewRows read_rows(const ResultStore& store, const std::string& sql);

/// Names of the tables and views of the database, without its own bookkeeping.
std::vector<std::string> view_names(const ResultStore& store);

/// All rows of one table or view, header first, undefined as an empty cell. ConfigError for an
/// unknown name.
std::string view_csv(const ResultStore& store, const std::string& view);

/// All rows of a view as objects; numbers keep their type, infinities are texts.
Json rows_json(const ResultStore& store, const std::string& view);

/// Tables, views, columns and their SQL as Markdown, from the database itself.
std::string schema_text(const ResultStore& store);

}  // namespace asdbench
