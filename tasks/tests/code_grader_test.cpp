// Replies to verdicts: the published cases, and how many jobs are run.
#include "tasks/common/code_grader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "tasks/common/jsonl.h"

namespace asdbench {
namespace {

using ::testing::HasSubstr;

struct Case {
  std::string id;
  bool expected = false, contested = false;
};

void run_cases(const std::vector<Case>& cases, const std::vector<CodeJob>& jobs) {
  ASSERT_EQ(check_sandbox().fault, "");
  std::size_t done = 0;
  run_code(jobs, {}, [&](std::size_t job, const CodeResult& result) {
    ++done;
    if (cases[job].contested) return;
    EXPECT_NE(result.outcome, CodeOutcome::kRunnerError) << cases[job].id << ": " << result.detail;
    EXPECT_EQ(result.outcome == CodeOutcome::kPassed, cases[job].expected)
        << cases[job].id << ": " << name_of(result.outcome) << " " << result.detail << "\n"
        << result.program;
  });
  EXPECT_EQ(done, jobs.size());
}

TEST(CodeGrader, AgreesWithThePublishedCases) {
  std::vector<Case> cases;
  std::vector<CodeJob> jobs;
  read_jsonl(ASDBENCH_TEST_DATA "/scoring_code.jsonl", [&](const JsonlRow& row) {
    const std::string& name = row.text("entry_point");
    jobs.push_back(row.text("task") == "humaneval"
                       ? completion_job(row.text("prompt"), name,
                                        row.text("gold") + "\ncheck(" + name + ")\n",
                                        row.text("prediction"))
                       : function_job(name, row.text("gold"), row.text("prediction")));
    cases.push_back({row.text("id"), row.object().at("expected").get<bool>(),
                     row.text("level") == "contested"});
  });
  ASSERT_GT(jobs.size(), 50u);
  run_cases(cases, jobs);
}

TEST(CodeGrader, SandboxCasesAreContained) {
  std::vector<Case> cases;
  std::vector<CodeJob> jobs;
  read_jsonl(ASDBENCH_TEST_DATA "/scoring_sandbox.jsonl", [&](const JsonlRow& row) {
    CodeJob job;
    job.program = row.text("prompt") + row.text("prediction");
    job.tests = row.text("gold") + "\ncheck(f)\n";
    job.limits.wall = std::chrono::seconds(2);
    jobs.push_back(std::move(job));
    cases.push_back({row.text("id"), row.object().at("expected").get<bool>(),
                     row.text("level") == "contested"});
  });
  ASSERT_GT(jobs.size(), 20u);
  run_cases(cases, jobs);
}

TEST(CodeGrader, OutcomesBecomeVerdicts) {
  CodeResult result;
  const auto score = [&](CodeOutcome outcome) {
    result.outcome = outcome;
    return score_of(result);
  };
  EXPECT_EQ(score(CodeOutcome::kPassed).verdict, Verdict::kCorrect);
  EXPECT_EQ(score(CodeOutcome::kPassed).value, 1);
  EXPECT_EQ(score(CodeOutcome::kNoCode).verdict, Verdict::kNoAnswer);
  EXPECT_EQ(score(CodeOutcome::kNoCode).value, 0);
  EXPECT_EQ(score(CodeOutcome::kRunnerError).verdict, Verdict::kUnscored);
  EXPECT_EQ(score(CodeOutcome::kRunnerError).value, std::nullopt);
  for (const CodeOutcome outcome :
       {CodeOutcome::kAssertion, CodeOutcome::kException, CodeOutcome::kTimeout,
        CodeOutcome::kSyntax, CodeOutcome::kMemory, CodeOutcome::kKilled}) {
    EXPECT_EQ(score(outcome).verdict, Verdict::kIncorrect);
    EXPECT_EQ(score(outcome).value, 0);
    EXPECT_EQ(score(outcome).outcome, name_of(outcome));
  }
}

std::vector<CodeJob> right_jobs(std::size_t count) {
  return std::vector<CodeJob>(count, function_job("f", "assert f() == 1\n", "def f(): return 1\n"));
}

TEST(CodeGrader, ATimeOutIsRunAgainAlone) {
  ASSERT_EQ(check_sandbox().fault, "");
  std::vector<CodeJob> jobs = right_jobs(3);
  jobs[0] = function_job("f", "assert f() == 1\n", "def f():\n    while True: pass\n");
  jobs[0].limits.wall = std::chrono::milliseconds(500);
  std::vector<std::size_t> order;
  const auto start = std::chrono::steady_clock::now();
  run_code(jobs, {}, [&](std::size_t job, const CodeResult& result) {
    order.push_back(job);
    EXPECT_EQ(result.outcome == CodeOutcome::kTimeout, job == 0);
  });
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::seconds(1))
      << "twice half a second";
  ASSERT_EQ(order.size(), 3u);
  EXPECT_EQ(order.back(), 0u);
}

TEST(CodeGrader, WithoutASandboxNothingIsJudged) {
  CodeRunOptions options;
  options.tools.bubblewrap = "/nonexistent/bwrap";
  std::size_t done = 0;
  run_code(right_jobs(4), options, [&](std::size_t, const CodeResult& result) {
    ++done;
    const Score score = score_of(result);
    EXPECT_EQ(score.verdict, Verdict::kUnscored);
    EXPECT_EQ(score.outcome, "runner_error");
    EXPECT_THAT(score.detail, HasSubstr("install the package bubblewrap"));
  });
  EXPECT_EQ(done, 4u);
}

TEST(CodeGrader, StopsWhenInterruptedAndWhenTheCallerThrows) {
  ASSERT_EQ(check_sandbox().fault, "");
  CodeRunOptions options;
  options.workers = 1;
  options.interrupted = [] { return true; };
  std::size_t done = 0;
  run_code(right_jobs(20), options, [&](std::size_t, const CodeResult&) { ++done; });
  EXPECT_GE(done, 1u);
  EXPECT_LT(done, 20u);
  EXPECT_THROW(run_code(right_jobs(20), {},
                        [](std::size_t, const CodeResult&) { throw std::runtime_error("full"); }),
               std::runtime_error);
}

}  // namespace
}  // namespace asdbench
