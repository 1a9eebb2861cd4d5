// Disks fill, files are damaged, processes are killed: a clear error each time, and nothing
// recorded is lost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <thread>

#include "eval/core/error.h"
#include "results/database_internal.h"
#include "results/store.h"
#include "results/tests/rows.h"

namespace asdbench {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

template <typename Body>
std::string error_of(Body&& body) {
  try {
    body();
  } catch (const StoreError& error) {
    return error.what();
  }
  return "no error";
}

std::string open_error(const std::filesystem::path& file, OpenMode mode) {
  return error_of([&] { const ResultStore store(file, mode); });
}

/// Runs `body` in a child process and returns its wait status.
template <typename Body>
int in_child(Body&& body) {
  const pid_t child = fork();
  if (child == 0) {
    int code = 99;
    try {
      code = body();
    } catch (...) {
    }
    _exit(code);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status;
}

TEST(Faults, MakesTheFolderOfANewFile) {
  const Folder folder;
  const std::filesystem::path file = folder / "new/deep/a.db";
  EXPECT_EQ(open_error(file, OpenMode::kReadWrite), "no error");
  EXPECT_TRUE(std::filesystem::exists(file));
}

TEST(Faults, AFileWhereAFolderShouldBe) {
  const Folder folder;
  std::ofstream(folder / "file") << "x";
  EXPECT_THAT(open_error(folder / "file/a.db", OpenMode::kReadWrite),
              HasSubstr("file/a.db: its folder cannot be made: "));
  std::filesystem::create_directory(folder / "dir.db");
  for (const OpenMode mode : {OpenMode::kReadWrite, OpenMode::kReadOnly}) {
    EXPECT_THAT(open_error(folder / "dir.db", mode), HasSubstr("dir.db: is a folder"));
  }
}

TEST(Faults, AnSqliteWithoutMathematicalFunctions) {
  SQLite::Database database(":memory:", SQLite::OPEN_READWRITE);
  const auto refuse_ln = [](void*, int action, const char*, const char* function, const char*,
                            const char*) {
    return action == SQLITE_FUNCTION && std::string_view(function) == "ln" ? SQLITE_DENY
                                                                           : SQLITE_OK;
  };
  EXPECT_EQ(error_of([&] { check_sqlite("a.db", database); }), "no error");
  sqlite3_set_authorizer(database.getHandle(), refuse_ln, nullptr);
  EXPECT_THAT(error_of([&] { check_sqlite("a.db", database); }),
              AllOf(StartsWith("a.db: SQLite 3."), HasSubstr("lacks ln, exp and sqrt"),
                    HasSubstr("SQLITE_ENABLE_MATH_FUNCTIONS")));
}

TEST(Faults, ReadingAFileThatIsNotThere) {
  const Folder folder;
  EXPECT_THAT(open_error(folder / "a.db", OpenMode::kReadOnly),
              AllOf(HasSubstr("a.db: there is no such file; `asdbench run"), HasSubstr("--db")));
  EXPECT_FALSE(std::filesystem::exists(folder / "a.db"));
}

TEST(Faults, GarbageIsNoDatabaseAndStaysAsItIs) {
  const Folder folder;
  const std::string garbage = "This is a letter, not a database. " + std::string(5000, '?');
  std::ofstream(folder / "a.db") << garbage;
  for (const OpenMode mode : {OpenMode::kReadWrite, OpenMode::kReadOnly}) {
    EXPECT_THAT(open_error(folder / "a.db", mode),
                AllOf(HasSubstr("a.db: cannot open the results"),
                      HasSubstr("the file is not an SQLite database"),
                      HasSubstr("give another file with --db")));
  }
  EXPECT_EQ(std::filesystem::file_size(folder / "a.db"), garbage.size());
}

TEST(Faults, ATruncatedFileIsRefusedAtEveryLength) {
  const Folder folder;
  {
    ResultStore store(folder / "whole.db", OpenMode::kReadWrite);
    const std::int64_t run = store.begin_run(run_row());
    const std::int64_t cell = store.cell(cell_row("asd"));
    for (int i = 0; i < 20; ++i) store.save(output_row(cell, run, "test/" + std::to_string(i)));
  }
  const auto size = std::filesystem::file_size(folder / "whole.db");
  for (std::uintmax_t length = 1; length < size; length += length < 600 ? 37 : 4099) {
    std::filesystem::copy_file(folder / "whole.db", folder / "cut.db",
                               std::filesystem::copy_options::overwrite_existing);
    std::filesystem::resize_file(folder / "cut.db", length);
    for (const OpenMode mode : {OpenMode::kReadOnly, OpenMode::kReadWrite}) {
      EXPECT_THAT(open_error(folder / "cut.db", mode),
                  AnyOf(HasSubstr("truncated or damaged"), HasSubstr("not an SQLite database")))
          << length;
    }
  }
}

TEST(Faults, ADamagedPageIsAnErrorAndNotANumber) {
  const Folder folder;
  {
    ResultStore store(folder / "a.db", OpenMode::kReadWrite);
    const std::int64_t run = store.begin_run(run_row());
    const std::int64_t cell = store.cell(cell_row("asd"));
    for (int i = 0; i < 200; ++i) store.save(output_row(cell, run, "test/" + std::to_string(i)));
  }
  {
    std::fstream file(folder / "a.db", std::ios::in | std::ios::out | std::ios::binary);
    const auto size = static_cast<std::streamoff>(std::filesystem::file_size(folder / "a.db"));
    // Every page behind those of the schema, which the views and their quantiles fill.
    for (std::streamoff page = size / 2 / 4096; (page + 1) * 4096 <= size; ++page) {
      file.seekp(page * 4096);
      file << std::string(4096, '\xA5');
    }
  }
  EXPECT_THAT(error_of([&] {
                const ResultStore store(folder / "a.db", OpenMode::kReadOnly);
                store.matrix();
                std::ostringstream out;
                store.dump_outputs(out);
              }),
              HasSubstr("truncated or damaged"));
}

TEST(Faults, AFullDiskKeepsWhatIsRecorded) {
  const Folder folder;
  ResultStore store(folder / "a.db", OpenMode::kReadWrite);
  const std::int64_t run = store.begin_run(run_row());
  const std::int64_t cell = store.cell(cell_row("asd"));
  const std::string pages = value_of(store, "PRAGMA page_count");
  rows_of(store, "PRAGMA max_page_count = " + std::to_string(std::stoi(pages) + 8));
  int stored = 0;
  const std::string error = error_of([&] {
    for (; stored < 10'000; ++stored) {
      store.save(output_row(cell, run, "test/" + std::to_string(stored)));
    }
  });
  EXPECT_THAT(error, AllOf(HasSubstr("a.db: cannot record an output: the disk is full"),
                           HasSubstr("the run resumes")));
  EXPECT_GT(stored, 0);
  EXPECT_EQ(value_of(store, "SELECT count(*) FROM output"), std::to_string(stored));
  EXPECT_EQ(value_of(store, "SELECT count(*) FROM pass"), std::to_string(2 * stored));
  // Space again: the same store goes on.
  rows_of(store, "PRAGMA max_page_count = 1000000");
  EXPECT_TRUE(store.save(output_row(cell, run, "test/" + std::to_string(stored))));
  EXPECT_EQ(value_of(store, "PRAGMA integrity_check"), "ok");
}

TEST(Faults, WritingThroughAReadOnlyStore) {
  const Folder folder;
  { const ResultStore store(folder / "a.db", OpenMode::kReadWrite); }
  ResultStore store(folder / "a.db", OpenMode::kReadOnly);
  EXPECT_THAT(error_of([&] { store.begin_run(run_row()); }),
              HasSubstr("a.db: cannot record the run: the file or its folder is read-only"));
}

// Permissions bind no superuser, so the attempt is made by an unprivileged child.
TEST(Faults, AFileWithoutWritePermission) {
  const Folder folder;
  {
    ResultStore store(folder / "a.db", OpenMode::kReadWrite);
    store.cell(cell_row("asd"));
  }
  std::filesystem::permissions(folder / "a.db", std::filesystem::perms(0444));
  std::filesystem::permissions(folder / "", std::filesystem::perms(0555));
  const auto unprivileged = [&](auto&& body) {
    return in_child([&] {
      constexpr uid_t kNobody = 65534;
      if (geteuid() == 0 && setuid(kNobody) != 0) return 98;
      return body();
    });
  };
  const int writing = unprivileged([&] {
    const std::string error = open_error(folder / "a.db", OpenMode::kReadWrite);
    const bool said = error.find("read-only") != std::string::npos ||
                      error.find("cannot be opened") != std::string::npos;
    return said && error.find("--db") != std::string::npos ? 0 : 1;
  });
  EXPECT_EQ(writing, 0);
  const int reading = unprivileged([&] {
    const ResultStore store(folder / "a.db", OpenMode::kReadOnly);
    return store.matrix().size() == 1 ? 0 : 1;
  });
  EXPECT_EQ(reading, 0) << "a report reads what it may not write";
  std::filesystem::permissions(folder / "", std::filesystem::perms(0755));
}

TEST(Faults, ASecondWriterWaitsAndThenSaysWhy) {
  const Folder folder;
  ResultStore first(folder / "a.db", OpenMode::kReadWrite);
  const std::int64_t run = first.begin_run(run_row());
  const std::int64_t cell = first.cell(cell_row("asd"));
  ResultStore second(folder / "a.db", OpenMode::kReadWrite, std::chrono::milliseconds(50));
  rows_of(first, "BEGIN IMMEDIATE");
  const std::string error = error_of([&] { second.save(output_row(cell, run, "test/1")); });
  EXPECT_THAT(error,
              AllOf(HasSubstr("a.db: cannot record an output: another process is writing to it"),
                    HasSubstr("give this run its own file with --db")));
  EXPECT_EQ(second.done(cell).size(), 0u) << "reading goes on";
  rows_of(first, "COMMIT");
  EXPECT_TRUE(second.save(output_row(cell, run, "test/1")));
}

TEST(Faults, ManyProcessesOnOneNewFile) {
  const Folder folder;
  constexpr int kWriters = 4;
  constexpr int kSamples = 15;
  std::vector<pid_t> children;
  for (int writer = 0; writer < kWriters; ++writer) {
    const pid_t child = fork();
    if (child == 0) {
      int code = 1;
      try {
        ResultStore store(folder / "a.db", OpenMode::kReadWrite, std::chrono::seconds(60));
        const std::int64_t run = store.begin_run(run_row());
        const std::int64_t cell = store.cell(cell_row("asd"));
        for (int i = 0; i < kSamples; ++i) {
          store.save(output_row(cell, run, "shared/" + std::to_string(i)));
          store.save(output_row(cell, run, std::to_string(writer) + "/" + std::to_string(i)));
        }
        code = 0;
      } catch (...) {
      }
      _exit(code);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  const ResultStore store(folder / "a.db", OpenMode::kReadOnly);
  EXPECT_EQ(value_of(store, "SELECT count(*) FROM output"),
            std::to_string((kWriters + 1) * kSamples));
  EXPECT_EQ(value_of(store, "SELECT count(*) FROM score"),
            std::to_string((kWriters + 1) * kSamples));
  EXPECT_EQ(value_of(store, "SELECT count(*) FROM cell"), "1");
  EXPECT_EQ(value_of(store, "SELECT count(*) FROM run"), std::to_string(kWriters));
}

/// A writer that reports each finished save on a pipe until it is killed.
pid_t start_writer(const std::filesystem::path& file, int report) {
  const pid_t child = fork();
  if (child != 0) return child;
  try {
    ResultStore store(file, OpenMode::kReadWrite);
    const std::int64_t run = store.begin_run(run_row());
    const std::int64_t cell = store.cell(cell_row("asd"));
    const auto done = store.done(cell);
    for (int i = 0; i < 100'000; ++i) {
      const std::string sample = "test/" + std::to_string(i);
      if (done.contains({sample, 0})) continue;
      store.save(output_row(cell, run, sample));
      if (write(report, &i, sizeof i) != sizeof i) _exit(2);
    }
  } catch (...) {
  }
  _exit(1);
}

TEST(Faults, KillingAWriterLosesNothingItReported) {
  const Folder folder;
  std::set<int> reported;
  for (int round = 0; round < 6; ++round) {
    int pipe_ends[2];
    ASSERT_EQ(pipe(pipe_ends), 0);
    const pid_t child = start_writer(folder / "a.db", pipe_ends[1]);
    close(pipe_ends[1]);
    // Killed at another moment each round: somewhere inside a later transaction.
    int number = 0;
    for (int i = 0; i < 5 && read(pipe_ends[0], &number, sizeof number) == sizeof number; ++i) {
      EXPECT_TRUE(reported.insert(number).second) << "decoded twice: " << number;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(777 * round));
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status));
    while (read(pipe_ends[0], &number, sizeof number) == sizeof number) {
      EXPECT_TRUE(reported.insert(number).second) << "decoded twice: " << number;
    }
    close(pipe_ends[0]);
    ResultStore store(folder / "a.db", OpenMode::kReadWrite);
    EXPECT_EQ(value_of(store, "PRAGMA integrity_check"), "ok");
    for (const int sample : reported) {
      EXPECT_EQ(value_of(store,
                         "SELECT count(*) FROM output JOIN score ON output_id = output.id WHERE "
                         "sample_id = 'test/" +
                             std::to_string(sample) + "'"),
                "1");
    }
    EXPECT_EQ(value_of(store, "SELECT count(*) * 2 FROM output"),
              value_of(store, "SELECT count(*) FROM pass"));
    // A save may have been finished but not yet reported; it counts as reported from here on.
    for (const auto& [sample, repeat] : store.done(1)) {
      reported.insert(std::stoi(sample.substr(sample.find('/') + 1)));
    }
  }
  EXPECT_GE(reported.size(), 30u);
}

}  // namespace
}  // namespace asdbench
