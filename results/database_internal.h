// The connection behind a ResultStore: how it is opened, and how SQLite's errors become ours.
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <chrono>
#include <concepts>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "results/store.h"

namespace asdbench {

/// Opens, checks and (for writing) creates and migrates. StoreError.
SQLite::Database open_database(const std::filesystem::path& path, OpenMode mode,
                               std::chrono::milliseconds busy_timeout);

/// StoreError when this SQLite is too old for STRICT tables or lacks the functions that the views
/// call.
void check_sqlite(const std::string& file, SQLite::Database& database);

/// Raises what `error` means to a user: StoreError with file, action, reason and remedy;
/// InternalError for a broken constraint or bad SQL of ours.
[[noreturn]] void rethrow(const std::string& file, std::string_view action,
                          const SQLite::Exception& error);

/// Runs `body`, and turns SQLite's exceptions into ours. `action` reads as "{file}: cannot
/// {action}".
template <typename Body>
auto guarded(const std::string& file, std::string_view action, Body&& body) {
  try {
    return std::forward<Body>(body)();
  } catch (const SQLite::Exception& error) {
    rethrow(file, action, error);
  }
}

inline void bind_value(SQLite::Statement& statement, int index, const std::string& value) {
  statement.bind(index, value);
}
template <std::integral Integer>
void bind_value(SQLite::Statement& statement, int index, Integer value) {
  statement.bind(index, static_cast<std::int64_t>(value));
}
inline void bind_value(SQLite::Statement& statement, int index, double value) {
  statement.bind(index, value);
}
template <typename Value>
void bind_value(SQLite::Statement& statement, int index, const std::optional<Value>& value) {
  if (value) {
    bind_value(statement, index, *value);
  } else {
    statement.bind(index);
  }
}

/// Binds all parameters in order, leaving earlier ones of the same statement behind.
template <typename... Values>
void bind_all(SQLite::Statement& statement, const Values&... values) {
  statement.reset();
  int index = 0;
  (bind_value(statement, ++index, values), ...);
}

/// Binds and runs a statement without result rows.
template <typename... Values>
void execute(SQLite::Statement& statement, const Values&... values) {
  bind_all(statement, values...);
  statement.exec();
}

struct ResultStore::State {
  std::string file;
  mutable SQLite::Database database;  // reading changes the connection, not the store
};

}  // namespace asdbench
