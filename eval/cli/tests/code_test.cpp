// Coding tasks at the command line: consent, running and grading, regrading what is stored,
// published cases.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "eval/cli/tests/program_internal.h"

namespace asdbench::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class CodeProgram : public ProgramTest {
 protected:
  fs::path code_config(const std::string& task) {
    const fs::path path = folder_ / (task + ".yaml");
    write_file(path, fmt::format("run: {{name: code, seed: 7, phases: [quality]}}\n"
                                 "matrix:\n"
                                 "  task: [{{{}: {{split: samples, max_tokens: 32}}}}]\n"
                                 "  target: [toy]\n"
                                 "  drafter: [none]\n"
                                 "  verifier: [strict]\n",
                                 task));
    return path;
  }
  // What the database answers, one row a line.
  std::string ask(const std::string& sql) {
    const fs::path answer = folder_ / "answer.txt";
    EXPECT_EQ(
        std::system(
            fmt::format("sqlite3 '{}' \"{}\" > '{}'", database(), sql, answer.string()).c_str()),
        0);
    return read_file(answer);
  }
};

TEST_F(CodeProgram, RunsNothingWithoutConsent) {
  for (const char* task : {"humaneval", "mbpp"}) {
    const std::string config = code_config(task).string();
    const Outcome refused = run({"run", config, "--db", database()});
    EXPECT_EQ(refused.code, 2);
    EXPECT_THAT(refused.err,
                HasSubstr(fmt::format("grading {} runs programs that a model wrote", task)));
    EXPECT_THAT(refused.err, HasSubstr("add --allow-code-execution"));
    EXPECT_FALSE(fs::exists(database()));
    EXPECT_EQ(run({"plan", config}).code, 0) << "a plan runs nothing";
  }
}

TEST_F(CodeProgram, GradesBehindDecodingAndAgainWhatWasNotRun) {
  const std::vector<std::string> command = {
      "run", code_config("mbpp").string(), "--db", database(), "--limit",
      "3",   "--allow-code-execution"};
  const Outcome first = run(command);
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_THAT(first.err,
              HasSubstr("mbpp: runs each program with 10 s, 4096 MiB of memory a process"));
  EXPECT_THAT(first.out, HasSubstr("check programs_run: pass (3 run, 0 not)"));
  EXPECT_THAT(ask("SELECT value FROM environment WHERE name = 'sandbox'"),
              HasSubstr("bubblewrap, python 3."));
  EXPECT_EQ(ask("SELECT count(*) FROM score WHERE outcome <> 'passed'"), "3\n");
  // As if the first program had not been run and the second not been graded, and both were right.
  ask("UPDATE output SET completion = (SELECT 'def ' || 'nothing(): pass') WHERE id < 3;"
      "UPDATE score SET verdict = 'unscored', value = NULL, outcome = 'runner_error', detail = 'no "
      "room' WHERE output_id = 1;"
      "DELETE FROM score WHERE output_id = 2");
  const Outcome second = run(command);
  EXPECT_EQ(second.code, 0) << second.err;
  EXPECT_THAT(second.out, HasSubstr("decoded 0 samples, reused 3"));
  EXPECT_EQ(ask("SELECT count(*) FROM score WHERE outcome = 'no_code' AND output_id < 3"), "2\n");
}

TEST_F(CodeProgram, ARunWithProgramsThatWereNotRunIsNoResult) {
  const std::vector<std::string> command = {
      "run", code_config("humaneval").string(), "--db", database(), "--limit",
      "2",   "--allow-code-execution"};
  ASSERT_EQ(run(command).code, 0);
  // A score of another grader, which the run does not touch.
  ask("INSERT INTO score SELECT output_id, 'other', 1, 'unscored', NULL, NULL, NULL, "
      "'runner_error', 'no room' FROM score");
  const Outcome again = run(command);
  EXPECT_EQ(again.code, 1);
  EXPECT_THAT(again.out, HasSubstr("check programs_run: fail"));
  EXPECT_THAT(again.out, HasSubstr("2 run, 2 not, such as: no room"));
}

TEST_F(CodeProgram, SandboxCheckSaysWhatAProgramGets) {
  const Outcome check = run({"sandbox", "check"});
  EXPECT_EQ(check.code, 0) << check.err;
  EXPECT_THAT(check.out, HasSubstr("the sandbox works: bubblewrap, python 3."));
  EXPECT_THAT(check.out, HasSubstr("10 s, 4096 MiB of memory a process, 64 processes"));
}

TEST_F(CodeProgram, ConformanceRunsProgramsWithConsentOnly) {
  const std::string cases = ASDBENCH_SOURCE_DIR "/tasks/tests/data/scoring_code.jsonl";
  const Outcome refused = run({"conformance", "scoring", cases});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("--allow-code-execution"));
  const Outcome passed = run({"conformance", "scoring", cases, "--allow-code-execution"});
  EXPECT_EQ(passed.code, 0) << passed.out;
  EXPECT_THAT(passed.out, HasSubstr("52 passed, 0 failed"));
  EXPECT_EQ(run({"conformance", "code", "humaneval"}).code, 2);
  const Outcome unknown = run({"conformance", "code", "humanevil", "--allow-code-execution"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("did you mean \"humaneval\"?"));
}

}  // namespace
}  // namespace asdbench::testing
