// Old files are brought up to date, newer and foreign ones refused, and a failing step changes
// nothing.
#include <SQLiteCpp/SQLiteCpp.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "eval/core/error.h"
#include "results/migrations_internal.h"
#include "results/store.h"
#include "results/tests/rows.h"

namespace asdbench {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

int new_file_flags() { return SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE; }

std::string error_of(const std::filesystem::path& file, OpenMode mode) {
  try {
    const ResultStore store(file, mode);
  } catch (const StoreError& error) {
    return error.what();
  }
  return "no error";
}

std::string text_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  EXPECT_TRUE(in.is_open()) << file;
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

/// A file of schema version 1 with a run, three cells, outputs and speed groups, as version 1 wrote
/// it.
void make_version_1(const std::filesystem::path& file) {
  SQLite::Database database(file.string(), new_file_flags());
  database.exec("PRAGMA synchronous = OFF");
  database.exec(text_of(ASDBENCH_TEST_DATA "/schema_v1.sql"));
  database.exec(text_of(ASDBENCH_TEST_DATA "/report_views_v1.sql"));
  database.exec(text_of(ASDBENCH_TEST_DATA "/rows_v1.sql"));
}

TEST(Migrations, AFileOfVersion1OpensWithAllItsNumbers) {
  const Folder folder;
  make_version_1(folder / "v1.db");
  for (const OpenMode mode : {OpenMode::kReadWrite, OpenMode::kReadOnly}) {
    const ResultStore store(folder / "v1.db", mode);
    const std::vector<MatrixRow> rows = store.matrix();
    ASSERT_EQ(rows.size(), 3u);
    EXPECT_EQ(rows[0].drafter, "none");
    EXPECT_EQ(rows[2].verifier, "asd");
    EXPECT_EQ(rows[2].n, 3);
    EXPECT_EQ(rows[2].correct, 2);
    EXPECT_EQ(rows[2].failed, 1);
    EXPECT_EQ(rows[2].capped, 1);
    EXPECT_NEAR(rows[2].accuracy_as_scored.estimate.value(), 2.0 / 3, 1e-12);
    EXPECT_NEAR(rows[2].accuracy_capped_wrong.estimate.value(), 1.0 / 3, 1e-12);
    EXPECT_NEAR(rows[2].vs_strict.estimate.value(), 1.25, 1e-12);
    EXPECT_NEAR(rows[2].vs_plain.estimate.value(), 2.0, 1e-12);
    EXPECT_TRUE(rows[2].vs_plain.low.has_value());
    std::ostringstream dump;
    store.dump_outputs(dump);
    EXPECT_EQ(dump.str(), text_of(ASDBENCH_TEST_DATA "/dump_v1.jsonl"));
  }
}

TEST(Migrations, TheSavedFileHasTheSchemaOfSchemaSql) {
  const Folder folder;
  make_version_1(folder / "v1.db");
  { const ResultStore fresh(folder / "fresh.db", OpenMode::kReadWrite); }
  const auto schema_of = [](const std::filesystem::path& file) {
    SQLite::Database database(file.string());
    SQLite::Statement select(database,
                             "SELECT sql FROM sqlite_schema WHERE sql NOT NULL ORDER BY name");
    std::vector<std::string> out;
    while (select.executeStep()) out.push_back(select.getColumn(0).getString());
    return out;
  };
  EXPECT_EQ(schema_of(folder / "v1.db"), schema_of(folder / "fresh.db"));
}

/// A file as an earlier build left it: without `lacking` (by type), and an older text of a view.
void make_earlier(const std::filesystem::path& file, const std::vector<std::string>& dropped) {
  make_version_1(file);
  SQLite::Database database(file.string(), SQLite::OPEN_READWRITE);
  for (const std::string& statement : dropped) database.exec(statement);
}

const std::vector<std::string>& earlier_build() {
  static const std::vector<std::string> kDropped = {"DROP VIEW speed_primary",
                                                    "DROP VIEW matrix",
                                                    "CREATE VIEW matrix AS SELECT 1 AS old",
                                                    "DROP TABLE speed_set",
                                                    "DROP TRIGGER pass_counted",
                                                    "DROP TRIGGER pass_uncounted",
                                                    "DROP TABLE pass_tally",
                                                    "DROP TABLE replay",
                                                    "DROP INDEX output_facts"};
  return kDropped;
}

TEST(Migrations, AFileOfAnEarlierBuildIsReadAsItIsAndWritableOnesAreCompleted) {
  const Folder folder;
  make_earlier(folder / "a.db", earlier_build());
  const std::string before = text_of(folder / "a.db");
  const auto look = [](const ResultStore& store) {
    EXPECT_EQ(store.matrix().size(), 3u);
    EXPECT_NEAR(store.matrix()[2].vs_strict.estimate.value(), 1.25, 1e-12);
    EXPECT_NE(value_of(store, "SELECT sum(passes) FROM pass_tally"), "NULL");
    EXPECT_EQ(value_of(store, "SELECT sum(passes) FROM pass_tally"),
              value_of(store,
                       "SELECT count(*) FROM pass JOIN output ON output.id = output_id WHERE "
                       "status = 'done'"));
    EXPECT_EQ(value_of(store, "SELECT count(*) FROM replay"), "0");
    store.hold_for_report();
    EXPECT_NEAR(store.matrix()[2].vs_strict.estimate.value(), 1.25, 1e-12);
  };
  look(ResultStore(folder / "a.db", OpenMode::kReadOnly));
  EXPECT_EQ(text_of(folder / "a.db"), before) << "reading writes nothing";
  {
    ResultStore store(folder / "a.db", OpenMode::kReadWrite);
    look(store);
    const std::string tally = value_of(store, "SELECT sum(passes) FROM pass_tally");
    store.save(output_row(3, 1, "one more"));
    EXPECT_EQ(value_of(store, "SELECT sum(passes) FROM pass_tally"),
              std::to_string(std::stoi(tally) + 2))
        << "the trigger is back";
  }
  look(ResultStore(folder / "a.db", OpenMode::kReadOnly));
}

TEST(Migrations, AFileWithOtherColumnsIsRefusedWithWhatToDo) {
  const Folder folder;
  make_earlier(folder / "a.db", {"ALTER TABLE near_tie DROP COLUMN gap"});
  make_earlier(folder / "b.db", {"DROP TABLE near_tie"});
  for (const OpenMode mode : {OpenMode::kReadWrite, OpenMode::kReadOnly}) {
    EXPECT_THAT(
        error_of(folder / "a.db", mode),
        AllOf(HasSubstr("was written by an earlier build: table near_tie has the columns "
                        "output_id INTEGER, output_position INTEGER; expected the columns "),
              HasSubstr("SELECT DISTINCT version, source_commit FROM run"),
              HasSubstr("another file for --db")));
    EXPECT_THAT(error_of(folder / "b.db", mode), HasSubstr("table near_tie is missing; expected"));
  }
}

TEST(Migrations, OpeningTwiceChangesNothing) {
  const Folder folder;
  { const ResultStore store(folder / "a.db", OpenMode::kReadWrite); }
  const std::string before = text_of(folder / "a.db");
  { const ResultStore store(folder / "a.db", OpenMode::kReadWrite); }
  { const ResultStore store(folder / "a.db", OpenMode::kReadOnly); }
  EXPECT_EQ(text_of(folder / "a.db"), before);
}

TEST(Migrations, StepsGoForwardFromAnyVersion) {
  const Folder folder;
  SQLite::Database database((folder / "a.db").string(), new_file_flags());
  const std::vector<std::string_view> one = {"CREATE TABLE a (x INTEGER) STRICT"};
  const std::vector<std::string_view> two = {one[0], "ALTER TABLE a ADD COLUMN y INTEGER"};
  migrate(database, one);
  EXPECT_EQ(schema_state(database).version, 1);
  migrate(database, two);
  migrate(database, two);
  const SchemaState state = schema_state(database);
  EXPECT_EQ(state.version, 2);
  EXPECT_TRUE(state.ours);
  EXPECT_EQ(database.execAndGet("SELECT count(y) FROM a").getInt(), 0);
}

TEST(Migrations, AFailingStepLeavesTheOldVersion) {
  const Folder folder;
  SQLite::Database database((folder / "a.db").string(), new_file_flags());
  const std::vector<std::string_view> steps = {
      "CREATE TABLE a (x INTEGER) STRICT",
      "CREATE TABLE b (x INTEGER); CREATE TABLE a (x INTEGER)"};
  EXPECT_THROW(migrate(database, steps), SQLite::Exception);
  const SchemaState state = schema_state(database);
  EXPECT_EQ(state.version, 0);
  EXPECT_TRUE(state.empty);
  EXPECT_FALSE(state.ours);
}

TEST(Migrations, RefusesANewerSchemaInBothModes) {
  const Folder folder;
  { const ResultStore store(folder / "a.db", OpenMode::kReadWrite); }
  {
    SQLite::Database database((folder / "a.db").string(), SQLite::OPEN_READWRITE);
    database.exec("PRAGMA user_version = 99");
  }
  const std::string expected =
      (folder / "a.db").string() +
      ": has schema version 99; this build knows versions up to 1\n"
      "  use the newer asdbench that wrote it, or give another file with --db";
  EXPECT_EQ(error_of(folder / "a.db", OpenMode::kReadWrite), expected);
  EXPECT_EQ(error_of(folder / "a.db", OpenMode::kReadOnly), expected);
}

TEST(Migrations, RefusesAVersionThatNoBuildWrites) {
  const Folder folder;
  { const ResultStore store(folder / "a.db", OpenMode::kReadWrite); }
  for (const int version : {-5, 0}) {
    SQLite::Database((folder / "a.db").string(), SQLite::OPEN_READWRITE)
        .exec("PRAGMA user_version = " + std::to_string(version));
    for (const OpenMode mode : {OpenMode::kReadWrite, OpenMode::kReadOnly}) {
      EXPECT_THAT(
          error_of(folder / "a.db", mode),
          HasSubstr("has schema version " + std::to_string(version) + ", which no build writes"));
    }
  }
}

TEST(Migrations, RefusesTheDatabaseOfAnotherProgramUnchanged) {
  const Folder folder;
  {
    SQLite::Database database((folder / "a.db").string(), new_file_flags());
    database.exec("CREATE TABLE bookmarks (x)");
  }
  const std::string before = text_of(folder / "a.db");
  for (const OpenMode mode : {OpenMode::kReadWrite, OpenMode::kReadOnly}) {
    EXPECT_THAT(error_of(folder / "a.db", mode),
                HasSubstr("a.db: is an SQLite database of another program"));
  }
  EXPECT_EQ(text_of(folder / "a.db"), before);
}

TEST(Migrations, ReadingAnEmptyFileSaysThatItHoldsNothing) {
  const Folder folder;
  std::ofstream(folder / "a.db").flush();
  EXPECT_THAT(error_of(folder / "a.db", OpenMode::kReadOnly),
              HasSubstr("has schema version 0; expected 1"));
  EXPECT_EQ(error_of(folder / "a.db", OpenMode::kReadWrite), "no error");
}

}  // namespace
}  // namespace asdbench
