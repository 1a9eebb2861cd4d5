// Forward only: a step is never edited once released, and nothing goes back.
#include <fmt/format.h>

#include "eval/core/error.h"
#include "results/migrations_internal.h"

namespace asdbench {

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
  if (state.version > newest) {
    throw StoreError(
        fmt::format("{}: has schema version {}; this build knows versions up to {}\n"
                    "  use the newer asdbench that wrote it, or give another file with --db",
                    file, state.version, newest));
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
