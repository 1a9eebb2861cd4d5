// tasks/samples: every written-out calculation is evaluated, and the official solution scores 1.
#include <gtest/gtest.h>

#include <cctype>
#include <cmath>
#include <set>
#include <string>

#include "eval/core/params.h"
#include "eval/core/prompt_identity.h"
#include "tasks/common/jsonl.h"
#include "tasks/common/numbers.h"
#include "tasks/task.h"

namespace asdbench {
namespace {

// Value of an expression of decimals, + - * / and parentheses; written for trusted test data.
class Calculator {
 public:
  explicit Calculator(std::string text) : text_(std::move(text)) {}
  double value() {
    const double result = sum();
    EXPECT_EQ(at_, text_.size()) << text_;
    return result;
  }

 private:
  double sum() {
    double result = product();
    while (at_ < text_.size() && (text_[at_] == '+' || text_[at_] == '-')) {
      const char sign = text_[at_++];
      result += sign == '+' ? product() : -product();
    }
    return result;
  }
  double product() {
    double result = factor();
    while (at_ < text_.size() && (text_[at_] == '*' || text_[at_] == '/')) {
      const char sign = text_[at_++];
      const double right = factor();
      result = sign == '*' ? result * right : result / right;
    }
    return result;
  }
  double factor() {
    if (text_.at(at_) == '-') {
      ++at_;
      return -factor();
    }
    if (text_.at(at_) == '(') {
      ++at_;
      const double result = sum();
      EXPECT_EQ(text_.at(at_++), ')') << text_;
      return result;
    }
    std::size_t length = 0;
    const double result = std::stod(text_.substr(at_), &length);
    at_ += length;
    return result;
  }

  std::string text_;
  std::size_t at_ = 0;
};

Samples gsm8k_samples(std::unique_ptr<Task>& task) {
  Params params("gsm8k", {});
  params.set("split", "samples", {});
  for (const TaskFactory& factory : task_factories()) {
    if (factory.name == "gsm8k") task = factory.make(params);
  }
  return task->load({"", ASDBENCH_SOURCE_DIR "/tasks/samples"});
}

TEST(Gsm8kSamples, EveryCalculationHoldsAndTheLastIsTheResult) {
  std::unique_ptr<Task> task;
  std::set<std::string> questions;
  const Samples samples = gsm8k_samples(task);
  EXPECT_EQ(samples.size(), 40u);
  for (const Sample& sample : samples) {
    EXPECT_TRUE(questions.insert(sample.field("question")).second) << sample.id;
    const std::string& solution = sample.field("answer");
    std::string last;
    for (std::size_t at = solution.find("<<"); at != std::string::npos;
         at = solution.find("<<", at + 2)) {
      const std::size_t end = solution.find(">>", at);
      ASSERT_NE(end, std::string::npos) << sample.id;
      const std::string mark = solution.substr(at + 2, end - at - 2);
      const std::size_t equals = mark.rfind('=');
      ASSERT_NE(equals, std::string::npos) << sample.id;
      last = mark.substr(equals + 1);
      EXPECT_NEAR(Calculator(mark.substr(0, equals)).value(), std::stod(last), 1e-9)
          << sample.id << " " << mark;
    }
    EXPECT_TRUE(same_number(last, sample.targets.at(0))) << sample.id;
    EXPECT_EQ(solution.substr(solution.rfind("\n") + 1), "#### " + sample.targets.at(0));
  }
}

TEST(Gsm8kSamples, OfficialSolutionsScoreOneUnderEveryGraderOfTheirFormat) {
  std::unique_ptr<Task> task;
  for (const Sample& sample : gsm8k_samples(task)) {
    const Score score = task->score(sample, task->extract(sample, sample.field("answer")));
    EXPECT_EQ(score.verdict, Verdict::kCorrect) << sample.id;
    EXPECT_EQ(score.value, 1);
    EXPECT_EQ(score.rule, "hash");
    const Score boxed =
        task->score(sample, task->extract(sample, "\\boxed{" + sample.targets[0] + "}"));
    EXPECT_EQ(boxed.verdict, Verdict::kCorrect) << sample.id;
    const Score wrong =
        task->score(sample, task->extract(sample, "\\boxed{" + sample.targets[0] + "1}"));
    EXPECT_EQ(wrong.verdict, Verdict::kIncorrect) << sample.id;
  }
}

TEST(TrainingPrompts, AreDistinctAndNoneIsASample) {
  std::unique_ptr<Task> task;
  std::set<std::string> samples;
  for (const Sample& sample : gsm8k_samples(task))
    samples.insert(prompt_hash(sample.field("question")));
  std::set<std::string> seen;
  read_jsonl(ASDBENCH_SOURCE_DIR "/tasks/samples/training_prompts.jsonl", [&](const JsonlRow& row) {
    const std::string& prompt = row.text("prompt");
    EXPECT_TRUE(seen.insert(prompt_hash(prompt)).second) << row.where();
    // With the words that the task adds, and without them.
    EXPECT_FALSE(samples.contains(prompt_hash(prompt))) << row.where();
    EXPECT_FALSE(samples.contains(prompt_hash(prompt.substr(0, prompt.find('\n'))))) << row.where();
  });
  EXPECT_GE(seen.size(), 60U);
}

}  // namespace
}  // namespace asdbench
