// The Alpaca task: instructions with and without input, references, subsets, damaged rows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "eval/core/error.h"
#include "eval/core/temporary_folder.h"
#include "tasks/task.h"

namespace asdbench {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

std::unique_ptr<Task> make(const std::vector<std::pair<std::string, std::string>>& options) {
  Params params("alpaca", {});
  for (const auto& [key, text] : options) params.set(key, text, {});
  for (const TaskFactory& factory : task_factories()) {
    if (factory.name == "alpaca") {
      auto task = factory.make(params);
      params.refuse_unread();
      return task;
    }
  }
  throw InternalError("alpaca is not in the table of tasks");
}

const DataDir kOurs = {"", ASDBENCH_SOURCE_DIR "/tasks/samples"};

TEST(Alpaca, PromptIsTheInstructionAndItsInput) {
  Sample sample;
  sample.fields = {{"instruction", "Sort the words. "}};
  EXPECT_EQ(make({})->prompt(sample, {}).messages.at(0).content, "Sort the words. ");
  sample.fields["input"] = "";
  EXPECT_EQ(make({})->prompt(sample, {}).messages.at(0).content, "Sort the words. ");
  sample.fields["input"] = "b, a";
  EXPECT_EQ(make({})->prompt(sample, {}).messages.at(0).content,
            "Sort the words. \n\nInput:\nb, a");
  EXPECT_EQ(make({})->score(sample, std::nullopt).verdict, Verdict::kUnscored);
}

TEST(Alpaca, OurSamplesHaveReferences) {
  const auto task = make({{"split", "samples"}});
  const Samples samples = task->load(kOurs);
  EXPECT_EQ(samples.size(), 24u);
  const auto references = task->references(kOurs);
  std::set<std::string> instructions;
  for (const Sample& sample : samples) {
    EXPECT_TRUE(instructions.insert(sample.field("instruction")).second);
    EXPECT_FALSE(references.at(sample.id).at(0).empty());
    EXPECT_FALSE(sample.category.empty());
  }
}

TEST(Alpaca, SubsetsOfDataThatNobodyHasAreRefused) {
  for (const char* subset : {"deepspec", "dflash"}) {
    try {
      make({{"subset", subset}});
      ADD_FAILURE() << subset;
    } catch (const ConfigError& error) {
      EXPECT_THAT(error.what(), HasSubstr("52,002"));
    }
  }
  EXPECT_EQ(make({{"subset", "eagle"}})->info().split, "test");
  EXPECT_THROW(make({{"split", "samples"}, {"subset", "eagle"}}), ConfigError);
}

TEST(Alpaca, DamagedRowsAreNamed) {
  const TemporaryFolder owned;
  const fs::path& folder = owned.path();
  fs::create_directories(folder / "alpaca");
  const auto message = [&](const std::string& content) -> std::string {
    std::ofstream(folder / "alpaca" / "alpaca_eval.json", std::ios::binary) << content;
    try {
      make({{"split", "samples"}})->load({folder, folder});
    } catch (const DataError& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(message(R"([{"dataset": "d", "instruction": "\ud83d\ude00", "output": "x"}])"),
            "no error");
  EXPECT_THAT(message(R"([{"dataset": "d", "instruction": 1}])"), HasSubstr("alpaca_eval.json[0]"));
  EXPECT_THAT(message(R"([{"dataset": "d"}])"), HasSubstr("\"instruction\" is missing"));
  EXPECT_THAT(message("[]"), HasSubstr("alpaca_eval.json"));
  EXPECT_THAT(message("[{"), HasSubstr("alpaca_eval.json"));
}

}  // namespace
}  // namespace asdbench
