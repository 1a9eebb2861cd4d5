// The versions of the schema, and the way from one to the next.
#pragma once

#include <SQLiteCpp/SQLiteCpp.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace asdbench {

/// The text of results/schema.sql.
extern const std::string_view kSchemaVersion1;

/// Marks a file as ours: "asdb" as a big-endian word.
inline constexpr int kApplicationId = 0x61736462;

/// Step i takes a database from version i to version i + 1; the last one is what this build reads
/// and writes.
const std::vector<std::string_view>& migrations();

/// What a file says about itself; nothing is changed.
struct SchemaState {
  int version = 0;     // user_version
  bool ours = false;   // bears kApplicationId
  bool empty = false;  // holds no table at all: a new file
};
SchemaState schema_state(SQLite::Database& database);

/// StoreError when the file belongs to another program, or was written by a newer build.
void check_schema(const std::string& file, const SchemaState& state, int newest);

/// Brings a file of this version to the schema of this build: version 1 grew until its release.
/// Views hold no rows, so that they are replaced; tables that came later are made, empty. In a file
/// that is open for reading all of this is temporary. StoreError when a table of the file has other
/// columns, or one is missing that was there from the beginning.
enum class SchemaAccess : std::uint8_t { kReading, kWriting };
void complete_schema(const std::string& file, SQLite::Database& database, SchemaAccess access);

/// Keeps what each view says now in memory, found by `key`, for this connection: all that reads
/// `name` later, the next of `views` too, reads that.
struct HeldView {
  std::string_view name, key;
};
void hold_views(SQLite::Database& database, std::span<const HeldView> views);

/// Applies the missing steps, all in one transaction: a failure leaves the old version. Safe when
/// two processes do it.
void migrate(SQLite::Database& database, const std::vector<std::string_view>& steps);

}  // namespace asdbench
