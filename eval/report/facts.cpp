// Reads views; every number of a report comes through here or ResultStore::matrix.
#include "eval/report/facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "eval/core/error.h"
#include "eval/core/json.h"
#include "eval/report/table.h"

namespace asdbench {
namespace {

// Temporary ones stand for what a file of an earlier build lacks.
constexpr const char* kOwnNames =
    "SELECT name FROM (SELECT type, name FROM sqlite_schema UNION SELECT type, name FROM "
    "sqlite_temp_schema) WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%' "
    "ORDER BY type, name";

std::string quoted(const std::string& name, char quote) {
  std::string out(1, quote);
  for (const char c : name) {
    if (c == quote) out += c;
    out += c;
  }
  return out + quote;
}

std::string csv_cell(const Value& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return std::to_string(*whole);
  if (const auto* real = std::get_if<double>(&value)) return shortest_real(*real);
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  return "";
}

Json json_of(const Value& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return *whole;
  if (const auto* real = std::get_if<double>(&value)) {
    return std::isfinite(*real) ? Json(*real) : Json(shortest_real(*real));
  }
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  return nullptr;
}

}  // namespace

const Value& ViewRow::at(std::string_view column) const {
  const auto found = values_.find(column);
  ASDBENCH_CHECK(found != values_.end(), "the query names the column " + std::string(column));
  return found->second;
}

std::int64_t ViewRow::count(std::string_view column) const {
  const auto* whole = std::get_if<std::int64_t>(&at(column));
  ASDBENCH_CHECK(whole != nullptr, "a count is a whole number: " + std::string(column));
  return *whole;
}

std::optional<double> ViewRow::number(std::string_view column) const {
  const Value& value = at(column);
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return static_cast<double>(*whole);
  if (const auto* real = std::get_if<double>(&value)) return *real;
  return std::nullopt;
}

std::string ViewRow::text(std::string_view column) const { return csv_cell(at(column)); }

ViewRows read_rows(const ResultStore& store, const std::string& sql) {
  ViewRows rows;
  store.read(sql, [&](const std::vector<std::string>& names, const std::vector<Value>& row) {
    std::map<std::string, Value, std::less<>> values;
    for (std::size_t i = 0; i < names.size(); ++i) values.emplace(names[i], row[i]);
    rows.emplace_back(std::move(values));
  });
  return rows;
}

std::vector<std::string> view_names(const ResultStore& store) {
  std::vector<std::string> names;
  for (const ViewRow& row : read_rows(store, kOwnNames)) names.push_back(row.text("name"));
  return names;
}

std::string view_csv(const ResultStore& store, const std::string& view) {
  const std::vector<std::string> names = view_names(store);
  if (std::find(names.begin(), names.end(), view) == names.end()) {
    throw ConfigError(
        fmt::format("--view: unknown view {}{}", shown(view), known_names(view, names)));
  }
  Table table;
  // A view without rows still has its columns.
  for (const ViewRow& row :
       read_rows(store, "SELECT name FROM pragma_table_info(" + quoted(view, '\'') + ")")) {
    table.columns.push_back({row.text("name"), Align::kLeft});
  }
  store.read("SELECT * FROM " + quoted(view, '"'),
             [&](const std::vector<std::string>&, const std::vector<Value>& row) {
               std::vector<std::string> cells;
               for (const Value& value : row) cells.push_back(csv_cell(value));
               table.rows.push_back(std::move(cells));
             });
  return to_csv(table);
}

Json rows_json(const ResultStore& store, const std::string& view) {
  Json out = Json::array();
  store.read("SELECT * FROM " + quoted(view, '"'),
             [&](const std::vector<std::string>& names, const std::vector<Value>& row) {
               Json object = Json::object();
               for (std::size_t i = 0; i < names.size(); ++i) object[names[i]] = json_of(row[i]);
               out.push_back(std::move(object));
             });
  return out;
}

std::string schema_text(const ResultStore& store) {
  std::string out = "# Schema of the results database\n\n";
  out += fmt::format(
      "Version {}. Sizes are tokens, times nanoseconds, regret nats; NULL is undefined.\n",
      read_rows(store, "PRAGMA user_version").front().text("user_version"));
  for (const ViewRow& entry :
       read_rows(store,
                 "SELECT type, name, sql FROM sqlite_temp_schema WHERE name NOT LIKE 'sqlite_%' "
                 "UNION ALL SELECT type, name, sql FROM sqlite_schema WHERE type IN ('table', "
                 "'view') AND name NOT LIKE 'sqlite_%' AND name NOT IN (SELECT name FROM "
                 "sqlite_temp_schema) ORDER BY type, name")) {
    Table columns{.title = "", .columns = {{"column"}, {"type"}, {"null"}, {"key"}}, .rows = {}};
    for (const ViewRow& column :
         read_rows(store, "SELECT * FROM pragma_table_info(" + quoted(entry.text("name"), '\'') +
                              ") ORDER BY cid")) {
      const bool required = column.count("notnull") != 0 || column.count("pk") != 0;
      columns.rows.push_back({column.text("name"), column.text("type"),
                              entry.text("type") == "view" ? ""
                              : required                   ? "no"
                                                           : "yes",
                              column.count("pk") != 0 ? "primary" : ""});
    }
    out += fmt::format("\n## {} {}\n\n{}\n```sql\n{}\n```\n", entry.text("type"),
                       entry.text("name"), to_markdown(columns), entry.text("sql"));
  }
  return out;
}

}  // namespace asdbench
