// MATH-500: rows, prompt, scores, and our own samples.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "eval/core/error.h"
#include "eval/core/temporary_folder.h"
#include "tasks/common/boxes.h"
#include "tasks/task.h"

namespace asdbench {

std::unique_ptr<Task> make_math500(const Params& params);

namespace {

using testing::HasSubstr;

std::unique_ptr<Task> make(const std::vector<std::pair<std::string, std::string>>& values) {
  Params params("math500", {});
  for (const auto& [key, value] : values) params.set(key, value, {});
  return make_math500(params);
}

Samples own_samples() {
  return make({{"split", "samples"}})->load({"", ASDBENCH_SOURCE_DIR "/tasks/samples"});
}

std::string error_of(const std::string& line) {
  const TemporaryFolder folder;
  std::ofstream(folder / "math500.jsonl") << line << "\n";
  try {
    make({{"split", "samples"}})->load({"", folder.path()});
  } catch (const DataError& error) {
    return error.what();
  }
  return "";
}

TEST(Math500, OwnSamplesAreSound) {
  const Samples samples = own_samples();
  EXPECT_GE(samples.size(), 30u);
  const auto task = make({{"split", "samples"}});
  std::set<std::string> problems, subjects;
  for (const Sample& sample : samples) {
    EXPECT_TRUE(problems.insert(sample.field("problem")).second) << sample.id;
    subjects.insert(sample.category);
    // The worked solution ends in the gold, and a reply that gives it is right.
    const auto box = last_box(sample.field("solution"));
    ASSERT_TRUE(box) << sample.id;
    EXPECT_EQ(*box, sample.targets[0]) << sample.id;
    EXPECT_EQ(task->score(sample, task->extract(sample, sample.field("solution"))).verdict,
              Verdict::kCorrect)
        << sample.id;
    EXPECT_EQ(task->score(sample, task->extract(sample, "\\boxed{-12345.678}")).verdict,
              Verdict::kIncorrect)
        << sample.id;
    EXPECT_EQ(task->score(sample, task->extract(sample, "")).verdict, Verdict::kNoAnswer);
  }
  EXPECT_GE(subjects.size(), 6u);
}

TEST(Math500, PromptIsTheProblemAndTheBoxedSentence) {
  Sample sample;
  sample.fields = {{"problem", "What is $1+1$?"}};
  const Prompt prompt = make({})->prompt(sample, {});
  ASSERT_EQ(prompt.messages.size(), 1u);
  EXPECT_EQ(prompt.messages[0].content,
            "What is $1+1$?\nPlease reason step by step, and put your final answer within "
            "\\boxed{}.");
}

TEST(Math500, GradersDiffer) {
  const Sample sample = own_samples().front();
  Sample half = sample;
  half.targets = {"\\frac{1}{2}"};
  const auto verdict = [&](const std::string& grader, const std::string& reply) {
    const auto task = make({{"grader", grader}});
    return task->score(half, task->extract(half, reply)).verdict;
  };
  EXPECT_EQ(verdict("default", "It is \\boxed{\\frac{2}{4}}."), Verdict::kCorrect);
  EXPECT_EQ(verdict("hendrycks", "It is $\\frac{2}{4}$."), Verdict::kIncorrect);
  EXPECT_EQ(verdict("hendrycks", "It is $\\frac12$."), Verdict::kCorrect);
}

TEST(Math500, BadRowsAreRefusedWithTheirPlace) {
  EXPECT_THAT(error_of(R"({"problem": "p", "solution": "s", "subject": "Algebra"})"),
              HasSubstr("math500.jsonl:1: field \"answer\" is missing"));
  EXPECT_THAT(error_of(R"({"problem": "p", "solution": "s", "answer": "", "subject": "Algebra"})"),
              HasSubstr("math500.jsonl:1: field \"answer\" is empty"));
  EXPECT_THAT(error_of(R"({"problem": 1, "solution": "s", "answer": "1", "subject": "A"})"),
              HasSubstr("expected a string"));
}

}  // namespace
}  // namespace asdbench
