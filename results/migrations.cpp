// Forward only: a step is never edited once released, and nothing goes back.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <span>

#include "eval/core/error.h"
#include "results/migrations_internal.h"

namespace asdbench {
namespace {

/// Tables that files of the first builds of version 1 do not have.
constexpr std::array<std::string_view, 14> kLaterTables = {
    "judgement", "manifest",         "pass_tally", "rating",         "record",
    "replay",    "slot_environment", "split",      "speed_interval", "speed_prompt",
    "speed_set", "speed_tail",       "speed_void", "spot_check"};

/// What `pass_tally` would hold had its trigger been there.
constexpr const char* kFillTally = R"(
  INSERT INTO pass_tally
  SELECT cell_id, drafted, accepted, kept, committed, strict_length, blocked_by, count(*)
  FROM pass JOIN output ON output.id = pass.output_id AND output.status = 'done'
  GROUP BY cell_id, drafted, accepted, kept, committed, strict_length, blocked_by)";

struct SchemaEntry {
  std::string type, sql;  // "table", "view", "trigger", "index"
  std::string columns;    // of a table: "id INTEGER, name TEXT"
};

std::map<std::string, SchemaEntry> entries_of(SQLite::Database& database) {
  std::map<std::string, SchemaEntry> entries;
  SQLite::Statement select(
      database, "SELECT name, type, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%'");
  while (select.executeStep()) {
    SchemaEntry entry{.type = select.getColumn(1).getString(),
                      .sql = select.getColumn(2).getString(),
                      .columns = ""};
    if (entry.type == "table") {
      SQLite::Statement columns(database,
                                "SELECT group_concat(name || ' ' || type, ', ') FROM "
                                "(SELECT name, type FROM pragma_table_info(?) ORDER BY cid)");
      columns.bind(1, select.getColumn(0).getString());
      columns.executeStep();
      entry.columns = columns.getColumn(0).getString();
    }
    entries.emplace(select.getColumn(0).getString(), std::move(entry));
  }
  return entries;
}

/// A CREATE statement, for the connection alone.
std::string temporary(const std::string& sql) {
  constexpr std::string_view kCreate = "CREATE ";
  return "CREATE TEMP " + sql.substr(kCreate.size());
}

[[noreturn]] void refuse(const std::string& file, const std::string& name, const std::string& found,
                         const std::string& expected) {
  throw StoreError(fmt::format(
      "{}: was written by an earlier build: table {} {}; expected the columns {}\n  use that build "
      "(`sqlite3 "
      "{} 'SELECT DISTINCT version, source_commit FROM run'` names it), or run the configuration "
      "again with another file for --db",
      file, name, found, expected, file));
}

}  // namespace

const std::vector<std::string_view>& migrations() {
  static const std::vector<std::string_view> kSteps = {kSchemaVersion1};
  return kSteps;
}

SchemaState schema_state(SQLite::Database& database) {
  SchemaState state;
  state.version = database.execAndGet("PRAGMA user_version").getInt();
  state.ours = database.execAndGet("PRAGMA application_id").getInt() == kApplicationId;
  state.empty = database.execAndGet("SELECT count(*) FROM sqlite_schema").getInt() == 0;
  return state;
}

void check_schema(const std::string& file, const SchemaState& state, int newest) {
  if (!state.ours && !state.empty) {
    throw StoreError(fmt::format(
        "{}: is an SQLite database of another program; expected one of asdbench or a new file\n"
        "  give another file with --db",
        file));
  }
  // A version below the first is no earlier build's: the file was edited or damaged.
  if (state.version < 0 || (state.version == 0 && !state.empty)) {
    throw StoreError(
        fmt::format("{}: has schema version {}, which no build writes; expected {}\n  the file is "
                    "damaged; use a copy of it, or give another file with --db",
                    file, state.version, newest));
  }
  if (state.version > newest) {
    throw StoreError(
        fmt::format("{}: has schema version {}; this build knows versions up to {}\n"
                    "  use the newer asdbench that wrote it, or give another file with --db",
                    file, state.version, newest));
  }
}

void complete_schema(const std::string& file, SQLite::Database& database, SchemaAccess access) {
  SQLite::Database model(":memory:", SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
  migrate(model, migrations());
  const std::map<std::string, SchemaEntry> expected = entries_of(model),
                                           found = entries_of(database);
  std::vector<std::string> steps;
  const bool writing = access == SchemaAccess::kWriting;
  const auto make = [&](const SchemaEntry& entry) {
    steps.push_back(writing ? entry.sql : temporary(entry.sql));
  };
  // Tables first: views, triggers and indices speak of them.
  for (const auto& [name, entry] : expected) {
    if (entry.type != "table") continue;
    const auto known = found.find(name);
    if (known != found.end()) {
      if (known->second.columns != entry.columns) {
        refuse(file, name, "has the columns " + known->second.columns, entry.columns);
      }
      continue;
    }
    if (std::find(kLaterTables.begin(), kLaterTables.end(), name) == kLaterTables.end()) {
      refuse(file, name, "is missing", entry.columns);
    }
    make(entry);
    if (name == "pass_tally") steps.emplace_back(kFillTally);
  }
  // A view of the file cannot see temporary tables: with one, all of them are temporary.
  const bool same =
      steps.empty() && std::all_of(expected.begin(), expected.end(), [&](const auto& item) {
        const auto known = found.find(item.first);
        return item.second.type != "view" ||
               (known != found.end() && known->second.sql == item.second.sql);
      });
  for (const auto& [name, entry] : expected) {
    const bool fresh = !found.contains(name);
    if (entry.type == "view" && !same) {
      if (!fresh && writing) steps.push_back("DROP VIEW " + name);
      make(entry);
    } else if (entry.type != "view" && entry.type != "table" && fresh && writing) {
      make(entry);
    }
  }
  if (steps.empty()) return;
  if (writing) {
    SQLite::Transaction transaction(database, SQLite::TransactionBehavior::IMMEDIATE);
    for (const std::string& step : steps) database.exec(step);
    transaction.commit();
  } else {
    for (const std::string& step : steps) database.exec(step);
  }
}

void hold_views(SQLite::Database& database, std::span<const HeldView> views) {
  SQLite::Database model(":memory:", SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE);
  migrate(model, migrations());
  // Views of the file do not see temporary tables: each gets a temporary twin that does, instead of
  // what an earlier call made.
  for (const auto& [name, entry] : entries_of(model)) {
    if (entry.type != "view") continue;
    database.exec("DROP VIEW IF EXISTS temp." + name);
    database.exec(temporary(entry.sql));
  }
  for (const HeldView& view : views) {
    for (const char* step :
         {"DROP TABLE IF EXISTS temp.held_{0}", "CREATE TEMP TABLE held_{0} AS SELECT * FROM {0}",
          "CREATE INDEX temp.held_{0}_{1} ON held_{0} ({1})", "DROP VIEW temp.{0}",
          "CREATE TEMP VIEW {0} AS SELECT * FROM held_{0}"}) {
      database.exec(fmt::format(fmt::runtime(step), view.name, view.key));
    }
  }
}

void migrate(SQLite::Database& database, const std::vector<std::string_view>& steps) {
  SQLite::Transaction transaction(database, SQLite::TransactionBehavior::IMMEDIATE);
  const int newest = static_cast<int>(steps.size());
  // Read inside the transaction: another process may have migrated while this one waited for it.
  const int version = database.execAndGet("PRAGMA user_version").getInt();
  for (int step = version; step < newest; ++step) {
    database.exec(std::string(steps[static_cast<std::size_t>(step)]));
  }
  database.exec(fmt::format("PRAGMA application_id = {}", kApplicationId));
  database.exec(fmt::format("PRAGMA user_version = {}", newest));
  transaction.commit();
}

}  // namespace asdbench
