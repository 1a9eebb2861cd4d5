// Opens the file with the guarantees the store promises, and says in words what went wrong.
#include <fmt/format.h>
#include <sqlite3.h>

#include <cstdint>
#include <thread>

#include "eval/core/error.h"
#include "results/database_internal.h"
#include "results/migrations_internal.h"

namespace asdbench {
namespace {

/// STRICT tables came with 3.37.
constexpr int kOldestSqlite = 3'037'000;

/// Primary code of an extended one (sqlite.org/rescode.html).
int primary(int code) { return code & 0xFF; }

struct Reason {
  std::string_view what, remedy;
};

std::optional<Reason> reason_of(int code) {
  switch (primary(code)) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return Reason{"another process is writing to it",
                    "wait for it to end, or give this run its own file with --db; what is recorded "
                    "is kept"};
    case SQLITE_FULL:
      return Reason{"the disk is full",
                    "free space and run again: what is recorded is kept, and the run resumes"};
    case SQLITE_READONLY:
      return Reason{"the file or its folder is read-only",
                    "change the permissions, or give another file with --db"};
    case SQLITE_PERM:
    case SQLITE_AUTH:
    case SQLITE_CANTOPEN:
      return Reason{"the file cannot be opened",
                    "check that its folder exists and that both may be read and written, or give "
                    "another file with --db"};
    case SQLITE_NOTADB:
      return Reason{"the file is not an SQLite database", "give another file with --db"};
    case SQLITE_CORRUPT:
      return Reason{"the file is truncated or damaged",
                    "restore a copy or give another file with --db; `sqlite3 FILE .recover` shows "
                    "what is left"};
    case SQLITE_IOERR:
      return Reason{"reading or writing failed",
                    "check the disk; what is recorded is kept, and the run resumes"};
    case SQLITE_NOMEM:
    case SQLITE_TOOBIG:
      return Reason{"a value is too large for memory or for SQLite", "run with fewer tokens"};
    default:
      return std::nullopt;
  }
}

/// Switches to a write-ahead log. SQLite does not wait for other connections here, so this does.
void use_write_ahead_log(const std::string& file, SQLite::Database& database,
                         std::chrono::milliseconds busy_timeout) {
  constexpr std::chrono::milliseconds kPause{10};
  const auto deadline = std::chrono::steady_clock::now() + busy_timeout;
  while (true) {
    try {
      const std::string mode = database.execAndGet("PRAGMA journal_mode = WAL").getString();
      if (mode == "wal") return;
      throw StoreError(
          fmt::format("{}: the file system does not allow a write-ahead log (SQLite chose \"{}\")\n"
                      "  give a file on a local disk with --db",
                      file, mode));
    } catch (const SQLite::Exception& error) {
      if (primary(error.getErrorCode()) != SQLITE_BUSY) throw;
      if (std::chrono::steady_clock::now() >= deadline) throw;
    }
    std::this_thread::sleep_for(kPause);
  }
}

/// A file name as a URI that says nobody writes: for a log-less database in a folder that cannot be
/// written.
std::string immutable_uri(const std::string& file) {
  std::string uri = "file:";
  for (const char c : file) {
    if (c == '?' || c == '#' || c == '%') {
      uri += fmt::format("%{:02x}", static_cast<unsigned>(c));
    } else {
      uri += c;
    }
  }
  return uri + "?immutable=1";
}

bool has_pending_log(const std::string& file) {
  std::error_code status;
  const auto size = std::filesystem::file_size(file + "-wal", status);
  return !status && size > 0;
}

SQLite::Database open_for_reading(const std::string& file, int busy_ms) {
  try {
    SQLite::Database database(file, SQLite::OPEN_READONLY, busy_ms);
    schema_state(database);
    return database;
  } catch (const SQLite::Exception& error) {
    const int code = primary(error.getErrorCode());
    if ((code != SQLITE_CANTOPEN && code != SQLITE_READONLY) || has_pending_log(file)) throw;
  }
  return SQLite::Database(immutable_uri(file), SQLite::OPEN_READONLY | SQLite::OPEN_URI, busy_ms);
}

void make_folder_of(const std::filesystem::path& path) {
  const std::filesystem::path folder = path.parent_path();
  std::error_code status;
  if (!folder.empty()) std::filesystem::create_directories(folder, status);
  if (status) {
    throw StoreError(fmt::format("{}: its folder cannot be made: {}\n  give another file with --db",
                                 path.string(), status.message()));
  }
}

}  // namespace

void check_sqlite(const std::string& file, SQLite::Database& database) {
  if (sqlite3_libversion_number() < kOldestSqlite) {
    throw StoreError(fmt::format("{}: SQLite {} is too old; expected 3.37 or newer", file,
                                 sqlite3_libversion()));
  }
  try {
    database.execAndGet("SELECT ln(2.0) + exp(1.0) + sqrt(2.0)");
  } catch (const SQLite::Exception&) {
    throw StoreError(
        fmt::format("{}: SQLite {} lacks ln, exp and sqrt, which the views need\n"
                    "  use an SQLite built with SQLITE_ENABLE_MATH_FUNCTIONS, as Debian's is",
                    file, sqlite3_libversion()));
  }
}

void rethrow(const std::string& file, std::string_view action, const SQLite::Exception& error) {
  const int code = error.getErrorCode();
  if (const auto reason = reason_of(code)) {
    throw StoreError(fmt::format("{}: cannot {}: {} ({})\n  {}", file, action, reason->what,
                                 error.what(), reason->remedy));
  }
  throw InternalError(
      fmt::format("{}: cannot {}: SQLite error {}: {}", file, action, code, error.what()));
}

SQLite::Database open_database(const std::filesystem::path& path, OpenMode mode,
                               std::chrono::milliseconds busy_timeout) {
  // Statistics of memory, which nobody asks for, are kept under one lock for all connections: two
  // threads would wait for each other at every allocation. Only before the first connection.
  [[maybe_unused]] static const int kUncounted = sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
  const std::string file = path.string();
  const int newest = static_cast<int>(migrations().size());
  const int busy_ms = static_cast<int>(busy_timeout.count());
  if (file.empty()) {
    throw StoreError("--db: the name is empty; expected a database file");  // SQLite's: temporary
  }
  std::error_code status;
  if (std::filesystem::is_directory(path, status)) {
    throw StoreError(fmt::format("{}: is a folder; expected a database file", file));
  }
  if (std::filesystem::exists(path, status) && !std::filesystem::is_regular_file(path, status)) {
    throw StoreError(fmt::format("{}: is no regular file; expected a database file", file));
  }
  // SQLite takes what is shorter than its header for an empty file and would write over it.
  constexpr std::uintmax_t kHeaderBytes = 100;
  const std::uintmax_t size = std::filesystem::file_size(path, status);
  if (!status && size > 0 && size < kHeaderBytes) {
    throw StoreError(
        fmt::format("{}: has {} bytes: it is truncated or damaged, or not an SQLite database\n"
                    "  give another file with --db",
                    file, size));
  }
  if (mode == OpenMode::kReadOnly) {
    if (!std::filesystem::exists(path, status)) {
      throw StoreError(fmt::format(
          "{}: there is no such file; `asdbench run CONFIG --db {}` makes it", file, file));
    }
    return guarded(file, "open the results", [&] {
      SQLite::Database database = open_for_reading(file, busy_ms);
      check_sqlite(file, database);
      const SchemaState state = schema_state(database);
      check_schema(file, state, newest);
      if (state.version < newest) {
        throw StoreError(fmt::format(
            "{}: has schema version {}; expected {}\n  `asdbench run` brings it up to date", file,
            state.version, newest));
      }
      database.exec("PRAGMA trusted_schema = OFF");
      // KiB, at most: a report joins its tables in no order of the file. Not mapped, since a file
      // that is cut meanwhile would kill the reader.
      database.exec("PRAGMA cache_size = -262144");
      // Before anything temporary is made: a change drops it.
      database.exec("PRAGMA temp_store = MEMORY");
      complete_schema(file, database, SchemaAccess::kReading);
      return database;
    });
  }
  make_folder_of(path);
  return guarded(file, "open the results for writing", [&] {
    SQLite::Database database(file, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE, busy_ms);
    check_sqlite(file, database);
    // Before anything is written: the file may be somebody else's.
    const SchemaState state = schema_state(database);
    check_schema(file, state, newest);
    database.exec("PRAGMA trusted_schema = OFF");
    database.exec("PRAGMA foreign_keys = ON");
    use_write_ahead_log(file, database, busy_timeout);
    // FULL: a finished sample survives a power cut, for a sync that its decoding outweighs a
    // hundredfold.
    database.exec("PRAGMA synchronous = FULL");
    if (state.version < newest) migrate(database, migrations());
    complete_schema(file, database, SchemaAccess::kWriting);
    return database;
  });
}

}  // namespace asdbench
