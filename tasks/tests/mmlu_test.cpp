// The MMLU task: prompts byte for byte, loading, shots, and what its answers score.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "eval/core/error.h"
#include "eval/core/temporary_folder.h"
#include "tasks/common/mmlu_files.h"
#include "tasks/task.h"

namespace asdbench {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::unique_ptr<Task> make(const std::vector<std::pair<std::string, std::string>>& options) {
  Params params("mmlu", {});
  for (const auto& [key, text] : options) params.set(key, text, {});
  for (const TaskFactory& factory : task_factories()) {
    if (factory.name == "mmlu") {
      auto task = factory.make(params);
      params.refuse_unread();
      return task;
    }
  }
  throw InternalError("mmlu is not in the table of tasks");
}

const DataDir kOurs = {"", ASDBENCH_SOURCE_DIR "/tasks/samples"};

Sample sample() {
  Sample sample;
  sample.cluster = "high_school_geography";
  sample.fields = {{"question", "Which river is longer?"},
                   {"A", "Rhine"},
                   {"B", " Nile"},
                   {"C", "Seine"},
                   {"D", "Oder "}};
  sample.targets = {"B"};
  return sample;
}

TEST(Mmlu, ChatPromptByteForByte) {
  const Prompt prompt = make({})->prompt(sample(), {});
  ASSERT_EQ(prompt.messages.size(), 1u);
  EXPECT_EQ(prompt.messages[0].role, Role::kUser);
  EXPECT_EQ(prompt.messages[0].content,
            "Which river is longer?\nA) Rhine\nB)  Nile\nC) Seine\nD) Oder \nThink step by step, "
            "then finish with a last line of the form: Answer: X, where X is one of A, B, C, D.");
}

TEST(Mmlu, LogLikelihoodPromptEndsInAnswerAndChoosesAmongLetters) {
  const auto task = make({{"variant", "loglik"}, {"shots", "0"}});
  const Prompt prompt = task->prompt(sample(), {});
  EXPECT_TRUE(prompt.messages.empty());
  EXPECT_EQ(prompt.text,
            "Multiple-choice questions about high school geography, each followed by its "
            "answer.\n\nWhich river is longer?\nA. Rhine\nB.  Nile\nC. Seine\nD. Oder \nAnswer:");
  EXPECT_THAT(task->continuations(sample()), ElementsAre(" A", " B", " C", " D"));
  EXPECT_TRUE(task->info().by_log_probs);
  EXPECT_EQ(task->score(sample(), task->extract(sample(), " B")).verdict, Verdict::kCorrect);
  EXPECT_EQ(task->score(sample(), task->extract(sample(), " C")).verdict, Verdict::kIncorrect);
  EXPECT_EQ(task->score(sample(), task->extract(sample(), "  ")).verdict, Verdict::kNoAnswer);
  EXPECT_TRUE(make({})->continuations(sample()).empty());
}

TEST(Mmlu, ShotsAreTheFirstOfTheDevelopmentSplit) {
  const auto task = make({{"split", "samples"}, {"shots", "2"}});
  const Samples samples = task->load(kOurs);
  const std::string text = task->prompt(samples[0], {}).messages[0].content;
  EXPECT_EQ(text,
            "Multiple-choice questions about elementary mathematics, each followed by its "
            "answer.\n\nWhat is 15 % of 60?\nA) 6\nB) 9\nC) 12\nD) 15\nAnswer: B\n\nWhich of these "
            "fractions is the largest?\nA) 2/5\nB) 3/8\nC) 4/9\nD) 1/3\nAnswer: C\n\n" +
                make({{"split", "samples"}})->prompt(samples[0], {}).messages[0].content);
  // What makes two prompts the same is the question, not the examples.
  EXPECT_EQ(task->questions(samples[0]), make({})->questions(samples[0]));
  const auto five = make({{"split", "samples"}, {"variant", "loglik"}});
  const std::string whole = five->prompt(five->load(kOurs)[0], {}).text;
  EXPECT_THAT(whole, HasSubstr("Answer: C\n\nA baker packs 96 rolls"));
  EXPECT_TRUE(whole.ends_with("\nAnswer:"));
}

TEST(Mmlu, OurSamplesCoverEveryCategoryAndScoreOne) {
  const auto task = make({{"split", "samples"}});
  const Samples samples = task->load(kOurs);
  EXPECT_EQ(samples.size(), 32u);
  std::set<std::string> categories, questions, ids;
  for (const Sample& item : samples) {
    categories.insert(item.category);
    EXPECT_TRUE(questions.insert(item.field("question")).second) << item.id;
    EXPECT_TRUE(ids.insert(item.id).second);
    const Score score =
        task->score(item, task->extract(item, "So.\n\nAnswer: " + item.targets.front()));
    EXPECT_EQ(score.verdict, Verdict::kCorrect) << item.id;
    EXPECT_EQ(score.rule, "anchor");
  }
  EXPECT_EQ(categories.size(), 4u);
  EXPECT_EQ(samples[0].id, "samples/elementary_mathematics/0");
}

TEST(Mmlu, OptionsAreChecked) {
  EXPECT_EQ(make({})->info().max_tokens, 1024);
  EXPECT_EQ(make({})->info().graders.size(), 7u);
  EXPECT_EQ(make({{"split", "val"}})->info().split, "val");
  EXPECT_THROW(make({{"split", "dev"}, {"shots", "1"}}), ConfigError);
  EXPECT_THROW(make({{"shots", "6"}}), ConfigError);
  EXPECT_THROW(make({{"variant", "logprob"}}), ConfigError);
  EXPECT_THROW(make({{"variant", "loglik"}, {"grader", "qwen"}}), ConfigError);
}

TEST(Mmlu, DamagedFilesAreNamed) {
  const TemporaryFolder owned;
  const fs::path& folder = owned.path();
  fs::create_directories(folder / "mmlu" / "test");
  const auto message = [&](const std::string& content) -> std::string {
    std::ofstream(folder / "mmlu" / "test" / "virology_test.csv", std::ios::binary) << content;
    try {
      make({{"split", "samples"}})->load({folder, folder});
    } catch (const DataError& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(message("q,a,b,c,d,A\r\n\"q\r\n2\",a,b,c,d,D"), "no error");
  EXPECT_THAT(message("q,a,b,c,d,A\nq,a,b,c,d,E\n"),
              HasSubstr("virology_test.csv:2: the last field is \"E\", expected A, B, C or D"));
  EXPECT_THAT(message("q,a,b,c,A\n"), HasSubstr("a record of 5 fields, expected 6"));
  EXPECT_THAT(message("\"q,a,b,c,d,A\n"), HasSubstr("not closed"));
  try {
    make({})->load({folder, folder});
    ADD_FAILURE() << "official data is missing";
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("abstract_algebra_test.csv: missing"));
  }
  EXPECT_EQ(mmlu_subjects().size(), 57u);
}

}  // namespace
}  // namespace asdbench
