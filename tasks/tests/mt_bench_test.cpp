// The MT-Bench task: two turns in one conversation, references, subsets, damaged rows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "eval/core/error.h"
#include "eval/core/temporary_folder.h"
#include "tasks/task.h"

namespace asdbench {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::unique_ptr<Task> make(const std::vector<std::pair<std::string, std::string>>& options) {
  Params params("mt_bench", {});
  for (const auto& [key, text] : options) params.set(key, text, {});
  for (const TaskFactory& factory : task_factories()) {
    if (factory.name == "mt_bench") {
      auto task = factory.make(params);
      params.refuse_unread();
      return task;
    }
  }
  throw InternalError("mt_bench is not in the table of tasks");
}

const DataDir kOurs = {"", ASDBENCH_SOURCE_DIR "/tasks/samples"};

TEST(MtBench, TheSecondPromptHoldsTheFirstReply) {
  Sample sample;
  sample.fields = {{"turn_1", "Say a.\n"}, {"turn_2", "Now b."}};
  const auto task = make({});
  EXPECT_EQ(task->turns(), 2);
  const Prompt first = task->prompt(sample, {});
  ASSERT_EQ(first.messages.size(), 1u);
  EXPECT_EQ(first.messages[0].content, "Say a.\n");
  const std::vector<std::string> replies = {" a \n"};
  const Prompt second = task->prompt(sample, replies);
  ASSERT_EQ(second.messages.size(), 3u);
  EXPECT_EQ(second.messages[0].role, Role::kUser);
  EXPECT_EQ(second.messages[1].role, Role::kAssistant);
  EXPECT_EQ(second.messages[1].content, " a \n");  // as it was written
  EXPECT_EQ(second.messages[2].role, Role::kUser);
  EXPECT_EQ(second.messages[2].content, "Now b.");
  EXPECT_THAT(task->questions(sample), ElementsAre("Say a.\n", "Now b."));
  EXPECT_EQ(make({{"subset", "deepspec"}})->turns(), 1);
  EXPECT_THAT(make({{"subset", "deepspec"}})->questions(sample), ElementsAre("Say a.\n"));
}

TEST(MtBench, RepliesAreUnscoredAndTheRowSaysWhy) {
  Sample sample;
  sample.category = "writing";
  const Score score = make({})->score(sample, make({})->extract(sample, "[[10]]"));
  EXPECT_EQ(score.verdict, Verdict::kUnscored);
  EXPECT_FALSE(score.value.has_value());
  EXPECT_THAT(score.detail, HasSubstr("decoded greedily"));
  EXPECT_THAT(score.detail, HasSubstr("writing questions have temperature 0.7"));
  sample.category = "stem";
  EXPECT_THAT(make({})->score(sample, std::nullopt).detail, HasSubstr("temperature 0.1"));
}

TEST(MtBench, OurSamplesCoverTheCategoriesAndReferTheCheckableOnes) {
  const auto task = make({{"split", "samples"}});
  const Samples samples = task->load(kOurs);
  EXPECT_EQ(samples.size(), 24u);
  const auto references = task->references(kOurs);
  std::map<std::string, int> categories;
  for (const Sample& sample : samples) {
    ++categories[sample.category];
    EXPECT_EQ(sample.cluster, sample.id);
    const bool checkable =
        sample.category == "math" || sample.category == "reasoning" || sample.category == "coding";
    EXPECT_EQ(references.contains(sample.id), checkable) << sample.id;
  }
  EXPECT_EQ(categories.size(), 8u);
  for (const auto& [category, count] : categories) EXPECT_EQ(count, 3) << category;
  EXPECT_EQ(samples[0].id, "samples/1001");
  EXPECT_THAT(references.at("samples/1011")[0], HasSubstr("x = 17"));
}

TEST(MtBench, DamagedRowsAreNamed) {
  const TemporaryFolder owned;
  const fs::path& folder = owned.path();
  fs::create_directories(folder / "mt_bench");
  const auto message = [&](const std::string& content) -> std::string {
    std::ofstream(folder / "mt_bench" / "question.jsonl", std::ios::binary) << content;
    try {
      make({{"split", "samples"}})->load({folder, folder});
    } catch (const DataError& error) {
      return error.what();
    }
    return "no error";
  };
  const std::string good = R"({"question_id": 1, "category": "stem", "turns": ["a", "b"]})";
  EXPECT_EQ(message(good + "\r\n"), "no error");
  EXPECT_THAT(message(good + "\n" + good), HasSubstr("id \"samples/1\" occurs in rows 1 and 2"));
  EXPECT_THAT(message(R"({"question_id": 1, "category": "stem", "turns": ["a"]})"),
              HasSubstr("question.jsonl:1: field \"turns\""));
  EXPECT_THAT(message(R"({"question_id": 1, "category": "stem", "turns": ["a", 2]})"),
              HasSubstr("something else than two texts"));
  EXPECT_THAT(message(R"({"question_id": "1", "category": "stem", "turns": ["a", "b"]})"),
              HasSubstr("\"question_id\""));
  EXPECT_THAT(message(R"({"question_id": 1, "turns": ["a", "b"]})"),
              HasSubstr("field \"category\" is missing"));
  EXPECT_THROW(make({{"split", "samples"}, {"subset", "eagle"}}), ConfigError);
  EXPECT_THROW(make({{"subset", "specforge"}}), ConfigError);
}

}  // namespace
}  // namespace asdbench
