// The GSM8K task: prompt byte for byte, loading, and the official solutions of our own samples.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "eval/core/error.h"
#include "eval/core/temporary_folder.h"
#include "tasks/task.h"

namespace asdbench {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<Task> make(const std::vector<std::pair<std::string, std::string>>& options) {
  Params params("gsm8k", {});
  for (const auto& [key, text] : options) params.set(key, text, {});
  for (const TaskFactory& factory : task_factories()) {
    if (factory.name == "gsm8k") {
      auto task = factory.make(params);
      params.refuse_unread();
      return task;
    }
  }
  throw InternalError("gsm8k is not in the table of tasks");
}

class Gsm8kTest : public ::testing::Test {
 protected:
  Gsm8kTest() { std::filesystem::create_directories(folder_ / "gsm8k"); }
  DataDir dirs() const { return {folder_, folder_}; }
  std::string message(const Task& task) const {
    try {
      task.load(dirs());
    } catch (const DataError& error) {
      return error.what();
    }
    return "no error";
  }

  const TemporaryFolder owned_;
  const std::filesystem::path& folder_ = owned_.path();
};

TEST_F(Gsm8kTest, PromptIsTheQuestionAndTheSentenceByteForByte) {
  Sample sample;
  sample.fields["question"] = "How many \u00bd eggs\u00a0are 2\u2019s?";
  const Prompt prompt = make({})->prompt(sample, {});
  ASSERT_EQ(prompt.messages.size(), 1u);
  EXPECT_EQ(prompt.messages[0].role, Role::kUser);
  EXPECT_EQ(
      prompt.messages[0].content,
      "How many \u00bd eggs\u00a0are 2\u2019s?\nPlease reason step by step, and put your final "
      "answer within \\boxed{}.");
  EXPECT_THROW(make({})->prompt(Sample{}, {}), DataError);
}

TEST_F(Gsm8kTest, InfoNamesSplitLimitAndGraders) {
  const TaskInfo info = make({{"split", "train"}})->info();
  EXPECT_EQ(info.name, "gsm8k");
  EXPECT_EQ(info.metric, "accuracy");
  EXPECT_EQ(info.split, "train");
  EXPECT_EQ(info.max_tokens, 1024);
  EXPECT_EQ(info.graders.front(), "default");
  EXPECT_EQ(make({})->turns(), 1);
  EXPECT_THROW(make({{"split", "valid"}}), ConfigError);
  EXPECT_THROW(make({{"grader", "lm_eval"}}), ConfigError);
  EXPECT_THROW(make({{"shots", "9"}}), ConfigError);
  EXPECT_THROW(make({{"split", "train"}, {"shots", "1"}}), ConfigError);
  EXPECT_THROW(make({{"split", "train"}, {"subset", "eagle"}}), ConfigError);
}

TEST_F(Gsm8kTest, ShotsAreEarlierTurnsFromTheTrainingSplit) {
  const auto task = make({{"split", "samples"}, {"shots", "8"}});
  const DataDir ours = {"", ASDBENCH_SOURCE_DIR "/tasks/samples"};
  const Samples samples = task->load(ours);
  const Prompt prompt = task->prompt(samples[0], {});
  ASSERT_EQ(prompt.messages.size(), 17u);
  EXPECT_EQ(prompt.messages[0].content,
            "A gardener plants 4 rows of 9 tulips. Rabbits eat 7 of them. How many tulips are "
            "left?\nPlease reason step by step, and put your final answer within \\boxed{}.");
  EXPECT_EQ(prompt.messages[1].role, Role::kAssistant);
  EXPECT_EQ(prompt.messages[1].content,
            "He plants 4 x 9 = 36 tulips.\nAfter the rabbits 36 - 7 = 29 are left.\nThe final "
            "answer is \\boxed{29}.");
  EXPECT_THAT(prompt.messages[11].content, HasSubstr("\\boxed{2,160}"));
  const auto none = make({{"split", "samples"}});
  EXPECT_EQ(prompt.messages[16].content, none->prompt(none->load(ours)[0], {}).messages[0].content);
  EXPECT_EQ(task->questions(samples[0]), none->questions(samples[0]));
  // No example is a question under test.
  for (const Sample& sample : samples) {
    for (int i = 1; i <= 8; ++i) {
      EXPECT_NE(sample.field("question"), sample.field("example_" + std::to_string(i)));
    }
  }
  std::ofstream(folder_ / "gsm8k.jsonl") << R"({"question": "a?", "answer": "#### 1"})"
                                         << "\n";
  std::ofstream(folder_ / "gsm8k_train.jsonl") << R"({"question": "b?", "answer": "#### 1"})"
                                               << "\n";
  EXPECT_THAT(message(*make({{"split", "samples"}, {"shots", "2"}})), HasSubstr("1 rows"));
}

TEST_F(Gsm8kTest, LoadsRowsWithIdsFromZeroAndGoldsAsWritten) {
  std::ofstream(folder_ / "gsm8k.jsonl")
      << R"({"question": "a?", "answer": "2*540=<<2*540=1080>>1080\n#### 1,080"})"
      << "\n"
      << R"({"question": "b?", "answer": "#### -3"})"
      << "\n";
  const auto task = make({{"split", "samples"}});
  const Samples samples = task->load(dirs());
  ASSERT_EQ(samples.size(), 2u);
  EXPECT_EQ(samples[0].id, "samples/0");
  EXPECT_EQ(samples[0].targets, std::vector<std::string>{"1,080"});
  EXPECT_EQ(samples[1].id, "samples/1");
  EXPECT_EQ(samples[1].field("question"), "b?");
  const Score score = task->score(samples[0], task->extract(samples[0], "So \\boxed{1080}."));
  EXPECT_EQ(score.verdict, Verdict::kCorrect);
}

TEST_F(Gsm8kTest, GraderOptionSelectsTheProfile) {
  Sample sample;
  sample.targets = {"18"};
  const auto verdict = [&](const char* grader) {
    const auto task = make({{"grader", grader}});
    return task->score(sample, task->extract(sample, "The answer is $18.00")).verdict;
  };
  EXPECT_EQ(verdict("default"), Verdict::kCorrect);
  EXPECT_EQ(verdict("lm-eval-flexible"), Verdict::kIncorrect);
  EXPECT_EQ(verdict("lm-eval-strict"), Verdict::kNoAnswer);
}

TEST_F(Gsm8kTest, RowsWithoutAResultAreNamed) {
  const auto task = make({{"split", "samples"}});
  const auto with = [&](const std::string& line) {
    std::ofstream(folder_ / "gsm8k.jsonl") << line << "\n";
    return message(*task);
  };
  EXPECT_THAT(with(R"({"question": "a?"})"),
              HasSubstr("gsm8k.jsonl:1: field \"answer\" is missing"));
  EXPECT_THAT(with(R"({"question": "a?", "answer": "18"})"), HasSubstr("gsm8k.jsonl:1: "));
  EXPECT_THAT(with(R"({"question": "a?", "answer": "#### x"})"), HasSubstr("expected a number"));
  EXPECT_THAT(with(R"({"question": "a?")"), HasSubstr("gsm8k.jsonl:1: "));
}

TEST_F(Gsm8kTest, OfficialSplitsAreCheckedByDigest) {
  const auto task = make({});
  const std::string missing = message(*task);
  EXPECT_THAT(missing, HasSubstr("test.jsonl: missing"));
  EXPECT_THAT(missing, HasSubstr("asdbench data fetch gsm8k"));
  EXPECT_THAT(missing, HasSubstr("data import FOLDER"));
  EXPECT_THAT(missing, HasSubstr("split: samples"));
  std::ofstream(folder_ / "gsm8k" / "test.jsonl") << "{}\n";
  const std::string different = message(*task);
  EXPECT_THAT(different, HasSubstr("not the official file"));
  EXPECT_THAT(different,
              HasSubstr("found SHA-256 "
                        "ca3d163bab055381827226140568f3bef7eaac187cebd76878e0b63e9e442356"));
  EXPECT_THAT(different,
              HasSubstr("3730d312f6e3440559ace48831e51066acaca737f6eabec99bccb9e4b3c39d14"));
}

}  // namespace
}  // namespace asdbench
