// asdbench rescore: graders side by side, resumed after a kill or a full disk, over replies that
// try to break them.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "eval/cli/tests/program_internal.h"
#include "eval/core/json.h"

namespace asdbench::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class RescoreProgram : public ProgramTest {
 protected:
  // What the database answers, one row a line.
  std::string sql(const std::string& text, const std::string& name = "test.db") {
    const fs::path answer = folder_ / "answer.txt", question = folder_ / "question.sql";
    write_file(question, text);
    EXPECT_EQ(std::system(fmt::format("sqlite3 '{}' < '{}' > '{}'", database(name),
                                      question.string(), answer.string())
                              .c_str()),
              0);
    return read_file(answer);
  }
  std::string scores(const std::string& name = "test.db") {
    return sql(
        "SELECT cell.key, sample_id, repeat, scorer, verdict, answer, rule, detail FROM score "
        "JOIN output ON output.id = output_id JOIN cell ON cell.id = cell_id "
        "ORDER BY 1, 2, 3, 4;",
        name);
  }
  void decode(const std::string& name = "test.db") {
    const Outcome outcome = run({"run", config().string(), "--db", database(name), "--limit", "8"});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
  }
  // Every reply `times` times more.
  void multiply(int times, const std::string& name = "test.db") {
    sql(fmt::format(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {}) "
            "INSERT INTO output (cell_id, run_id, sample_id, repeat, turn, status, cluster, "
            "category, prompt_sha256, identity_sha256, tokens, tokens_sha256, completion, "
            "finish_reason, prompt_tokens, output_tokens, passes, regret, exceptions) "
            "SELECT cell_id, run_id, sample_id, i, turn, status, cluster, category, prompt_sha256, "
            "identity_sha256, tokens, tokens_sha256, completion || ' so ' || i, finish_reason, "
            "prompt_tokens, output_tokens, passes, regret, exceptions FROM output, n;",
            times),
        name);
  }
  std::vector<std::string> rescore(const std::string& grader = "lm-eval-flexible",
                                   const std::string& name = "test.db") {
    return {"rescore", database(name), "--grader", grader};
  }
};

TEST_F(RescoreProgram, GradesAsARunWouldAndStandsBesideTheFirst) {
  decode();
  const Outcome outcome = run(rescore());
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("graded 24 replies by lm-eval-flexible"));
  EXPECT_THAT(outcome.out, HasSubstr("default 1"));
  EXPECT_THAT(outcome.out, HasSubstr("lm-eval-flexible 1"));
  EXPECT_THAT(run(rescore()).out, HasSubstr("graded 0 replies"));
  const std::string report = run({"report", database()}).out;
  EXPECT_THAT(report, HasSubstr("lm-eval-flexible 1"));
  EXPECT_THAT(report, Not(HasSubstr("grader=")))
      << "the cells are still those of the grader that they were run with";
  // The same verdicts as by a run with that grader.
  decode("other.db");
  ASSERT_EQ(run({"run", config().string(), "--db", database("other.db"), "--limit", "8", "--grader",
                 "lm-eval-flexible"})
                .code,
            0);
  EXPECT_EQ(scores(), scores("other.db"));
  EXPECT_THAT(run({"report", database("other.db")}).out, HasSubstr("grader=lm-eval-flexible"));
}

TEST_F(RescoreProgram, MachinesGetTheFiguresOfEveryGrader) {
  decode();
  std::vector<std::string> command = rescore();
  command.emplace_back("--json");
  const Outcome outcome = run(command);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const Json out = parse_json(outcome.out);
  EXPECT_EQ(out["graded"], 24);
  EXPECT_EQ(out["accuracy"].size(), 6U) << "three cells, two graders";
}

TEST_F(RescoreProgram, KilledAnywhereAndResumedScoresTheSame) {
  decode();
  multiply(300);
  fs::copy_file(database(), database("whole.db"));
  ASSERT_EQ(run(rescore("lm-eval-flexible", "whole.db")).code, 0);
  const std::string expected = scores("whole.db");
  EXPECT_EQ(std::count(expected.begin(), expected.end(), '\n'), 24 + 301 * 24);
  for (const int milliseconds : {5, 30, 60, 120}) {
    const std::string name = fmt::format("killed-{}.db", milliseconds);
    fs::copy_file(database(), database(name));
    const pid_t child = start(rescore("lm-eval-flexible", name));
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    kill(child, SIGKILL);
    wait(child);
    ASSERT_EQ(run(rescore("lm-eval-flexible", name)).code, 0);
    EXPECT_EQ(scores(name), expected) << milliseconds;
  }
}

// A file-size limit stands in for a full disk: every write past it fails.
TEST_F(RescoreProgram, FullDiskIsAnErrorAndLosesNothing) {
  decode();
  multiply(300);
  fs::copy_file(database(), database("whole.db"));
  ASSERT_EQ(run(rescore("lm-eval-flexible", "whole.db")).code, 0);
  rlimit old_limit{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  rlimit small = old_limit;
  small.rlim_cur = 300 * 1024;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const pid_t child = start(rescore());
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old_limit), 0);
  const Outcome full = wait(child);
  EXPECT_EQ(full.code, 3) << full.err;
  EXPECT_THAT(full.err, HasSubstr("test.db: cannot record scores"));
  ASSERT_EQ(run(rescore()).code, 0);
  EXPECT_EQ(scores(), scores("whole.db"));
}

TEST_F(RescoreProgram, NoReplyBreaksAGrader) {
  const fs::path path = folder_ / "tasks.yaml";
  write_file(path,
             "run: {name: test, seed: 7, phases: [quality]}\n"
             "matrix:\n"
             "  task:\n"
             "    - gsm8k: {split: samples, limit: 12, max_tokens: 16}\n"
             "    - math500: {split: samples, limit: 12, max_tokens: 16}\n"
             "    - mmlu: {split: samples, limit: 12, max_tokens: 16}\n"
             "  target: [toy]\n"
             "  drafter: [none]\n"
             "  verifier: [strict]\n");
  ASSERT_EQ(run({"run", path.string(), "--db", database()}).code, 0);
  // A megabyte of digits, of boxes, of backslashes, of open brackets; NUL; bytes that are no text;
  // right-to-left marks; open fences and boxes; the graders' own marks; nothing.
  const std::string million = "hex(zeroblob(500000))";
  const std::vector<std::string> texts = {
      million,
      "replace(" + million + ", '00', '\\boxed{1}')",
      "replace(" + million + ", '00', '\\\\')",
      "replace(" + million + ", '00', '({') || '7'",
      "replace(" + million + ", '00', 'A) ') || '#### 5'",
      "replace(" + million + ", '00', '1,') || ' is the answer'",
      "CAST(x'416e7377657220697300203720' AS TEXT)",
      "CAST(x'fffe80c0af2323232320ff' AS TEXT)",
      "char(8238) || 'answer is 7' || char(8236) || char(1633)",
      "'\\boxed{\\frac{1}{'",
      "'```' || char(10) || '#### '",
      "''"};
  for (std::size_t i = 0; i < texts.size(); ++i) {
    sql(fmt::format("UPDATE output SET completion = {} WHERE id % 12 = {};", texts[i], i));
  }
  sql("DELETE FROM score;");
  const Json graders = parse_json(run({"list", "--json"}).out);
  std::set<std::string> names;
  for (const Json& task : graders["tasks"]) {
    if (task["name"] != "gsm8k" && task["name"] != "math500" && task["name"] != "mmlu") continue;
    for (const Json& grader : task["graders"]) names.insert(grader.get<std::string>());
  }
  EXPECT_GT(names.size(), 15U);
  const auto begin = std::chrono::steady_clock::now();
  for (const std::string& name : names) {
    const Outcome outcome = run(rescore(name));
    EXPECT_EQ(outcome.code, 0) << name << outcome.err;
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::minutes(2));
  EXPECT_EQ(sql("SELECT count(*) FROM output WHERE id NOT IN (SELECT output_id FROM score WHERE "
                "scorer = 'default');"),
            "0\n");
  EXPECT_EQ(sql("SELECT count(*) FROM score WHERE verdict = 'unscored';"), "0\n");
  // What the report says of such replies is text.
  EXPECT_EQ(run({"report", database(), "--format", "html"}).code, 0);
}

TEST_F(RescoreProgram, RefusesWhatItCannotGrade) {
  decode();
  const Outcome unknown = run(rescore("lm-eval"));
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("no task of " + database() + " has the grader \"lm-eval\""));
  EXPECT_THAT(unknown.err, HasSubstr("gsm8k: default, lm-eval-strict"));
  std::vector<std::string> task = rescore();
  task.insert(task.end(), {"--task", "gsm8"});
  const Outcome absent = run(task);
  EXPECT_EQ(absent.code, 2);
  EXPECT_THAT(absent.err, HasSubstr("did you mean \"gsm8k\"?"));
  const Outcome nowhere = run(rescore("default", "absent.db"));
  EXPECT_EQ(nowhere.code, 3);
  EXPECT_THAT(nowhere.err, HasSubstr("absent.db: no such file"));
  EXPECT_FALSE(fs::exists(database("absent.db")));
  EXPECT_EQ(run({"rescore", database()}).code, 2) << "--grader is required";
  // Replies to other data than those here are not graded by these.
  sql("UPDATE cell SET data_sha256 = 'd0' WHERE id = 2;");
  const Outcome other = run(rescore());
  EXPECT_EQ(other.code, 3);
  EXPECT_THAT(other.err, HasSubstr("cell 2: its replies answer other data than those here"));
}

TEST_F(RescoreProgram, ProgramsAreRunWithConsentOnly) {
  const fs::path path = folder_ / "code.yaml";
  write_file(path,
             "run: {name: code, seed: 7, phases: [quality]}\n"
             "matrix:\n"
             "  task: [{mbpp: {split: samples, max_tokens: 16, limit: 3}}]\n"
             "  target: [toy]\n"
             "  drafter: [none]\n"
             "  verifier: [strict]\n");
  ASSERT_EQ(run({"run", path.string(), "--db", database(), "--allow-code-execution"}).code, 0);
  EXPECT_EQ(run(rescore("default")).code, 0) << "nothing is left to be run";
  sql("DELETE FROM score;");
  const Outcome refused = run(rescore("default"));
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("add --allow-code-execution"));
  std::vector<std::string> agreed = rescore("default");
  agreed.emplace_back("--allow-code-execution");
  const Outcome outcome = run(agreed);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("graded 3 replies by default"));
}

}  // namespace
}  // namespace asdbench::testing
