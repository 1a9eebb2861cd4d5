// HumanEval and MBPP: loading, prompts byte for byte, and our own samples: their solutions pass,
// plausible mistakes do not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "eval/core/error.h"
#include "eval/core/temporary_folder.h"
#include "tasks/common/code_grader.h"
#include "tasks/common/jsonl.h"
#include "tasks/task.h"

namespace asdbench {

std::unique_ptr<Task> make_humaneval(const Params& params);
std::unique_ptr<Task> make_mbpp(const Params& params);

namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

using Options = std::map<std::string, std::string>;

std::unique_ptr<Task> make(const std::string& name, const Options& options = {}) {
  Params params(name, {});
  for (const auto& [key, value] : options) params.set(key, value, {});
  auto task = name == "humaneval" ? make_humaneval(params) : make_mbpp(params);
  params.refuse_unread();
  return task;
}

const DataDir kOurs = {.data = "", .samples = ASDBENCH_SOURCE_DIR "/tasks/samples"};

std::map<std::string, Score> grade(const Task& task, const std::vector<TaskReply>& replies) {
  std::map<std::string, Score> scores;
  task.grade(
      replies, [] { return false; },
      [&](std::size_t i, const Score& score) {
        EXPECT_TRUE(scores.emplace(replies[i].sample->id, score).second) << "graded twice";
      });
  return scores;
}

class CodeTask : public ::testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Both, CodeTask, ::testing::Values("humaneval", "mbpp"),
                         [](const auto& test) { return test.param; });

TEST_P(CodeTask, SolutionsOfOurSamplesPassAndMistakesAreCaught) {
  ASSERT_EQ(check_sandbox().fault, "");
  const auto task = make(GetParam(), {{"split", "samples"}});
  const Samples samples = task->load(kOurs);
  ASSERT_GE(samples.size(), 20u);
  ASSERT_LE(samples.size(), 40u);
  std::map<std::string, std::string> wrong;
  read_jsonl(ASDBENCH_TEST_DATA "/wrong_solutions.jsonl", [&](const JsonlRow& row) {
    if (row.text("task") == GetParam()) wrong[row.text("id")] = row.text("reply");
  });
  std::vector<std::string> texts;
  for (const Sample& sample : samples)
    texts.push_back("Here it is.\n\n" + python_block(sample.field("solution")));
  std::vector<TaskReply> right_replies, wrong_replies;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    right_replies.push_back({&samples[i], texts[i]});
    wrong_replies.push_back({&samples[i], wrong.at(samples[i].id)});
  }
  for (const auto& [id, score] : grade(*task, right_replies)) {
    EXPECT_EQ(score.verdict, Verdict::kCorrect) << id << ": " << score.detail;
    EXPECT_EQ(score.outcome, "passed");
    EXPECT_EQ(score.rule, "fence");
    EXPECT_THAT(score.answer, HasSubstr("def "));
  }
  const auto mistakes = grade(*task, wrong_replies);
  EXPECT_EQ(mistakes.size(), samples.size());
  for (const auto& [id, score] : mistakes) {
    EXPECT_EQ(score.verdict, Verdict::kIncorrect) << id << ": " << score.detail << "\n"
                                                  << score.answer;
    EXPECT_TRUE(score.outcome == "assertion" || score.outcome == "exception")
        << id << ": " << score.outcome;
  }
}

TEST_P(CodeTask, EveryKindOfReplyIsClassed) {
  ASSERT_EQ(check_sandbox().fault, "");
  const auto task = make(GetParam(), {{"split", "samples"}, {"timeout_s", "1"}});
  const Samples samples = task->load(kOurs);
  const Sample& sample = samples.front();
  const std::string name = sample.field("entry_point");
  const auto outcome = [&](const std::string& reply) {
    return grade(*task, {{&sample, reply}}).at(sample.id).outcome;
  };
  EXPECT_EQ(outcome("I am sorry, I cannot help with that."), "no_code");
  EXPECT_EQ(outcome(""), "no_code");
  EXPECT_EQ(outcome("<think>\ndef " + name + "(*_): return 1"), "no_code");
  EXPECT_EQ(outcome("```python\ndef " + name + "(*_) return 1\n```"), "syntax");
  EXPECT_EQ(outcome("def " + name + "(*_):\n    while True: pass\n"), "timeout");
  EXPECT_EQ(outcome("def " + name + "(*_):\n    raise ValueError(3)\n"), "exception");
  EXPECT_EQ(outcome("def " + name + "(*_):\n    return 'nothing'\n"), "assertion");
}

TEST_P(CodeTask, SaysWhatItRunsAndIsNeverGradedWithoutRunning) {
  const auto task = make(GetParam(), {{"timeout_s", "7"}});
  EXPECT_THAT(task->info().code_limits, HasSubstr("7 s, 4096 MiB of memory"));
  EXPECT_EQ(task->info().metric, "pass@1");
  const Score score = task->score({}, Answer{});
  EXPECT_EQ(score.verdict, Verdict::kUnscored);
  EXPECT_EQ(score.value, std::nullopt);
  EXPECT_THROW(make(GetParam(), {{"split", "dev"}}), ConfigError);
  EXPECT_THROW(make(GetParam(), {{"timeout_s", "0"}}), ConfigError);
}

TEST_P(CodeTask, OfficialFilesThatAreMissingAreNamed) {
  const auto task = make(GetParam());
  try {
    task->load({.data = "/nonexistent", .samples = ""});
    FAIL() << "no error";
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("asdbench data fetch " + GetParam()));
  }
}

TEST(HumanEval, PromptIsAskedForAsAWhole) {
  const auto task = make("humaneval");
  Sample sample;
  sample.fields = {{"prompt", "def f(x):\n    \"\"\" Adds one. \"\"\"\n"}};
  const Prompt prompt = task->prompt(sample, {});
  ASSERT_EQ(prompt.messages.size(), 1u);
  EXPECT_EQ(prompt.messages[0].role, Role::kUser);
  EXPECT_EQ(
      prompt.messages[0].content,
      "Complete this Python function. Reply with the whole function in one Python code block.\n\n"
      "```python\ndef f(x):\n    \"\"\" Adds one. \"\"\"\n```\n");
}

TEST(Mbpp, PromptHoldsTheAsserts) {
  const auto task = make("mbpp");
  Sample sample;
  sample.fields = {{"prompt", "Write a function to add one."},
                   {"asserts", "assert f(1) == 2\nassert f(2) == 3\n"}};
  EXPECT_EQ(task->prompt(sample, {}).messages[0].content,
            "Write a function to add one.\n\nThe function must satisfy:\n\n"
            "```python\nassert f(1) == 2\nassert f(2) == 3\n```\n\n"
            "Reply with the whole function in one Python code block.");
}

class CodeFiles : public ::testing::Test {
 protected:
  Samples load(const std::string& task, const std::string& content) {
    std::ofstream(folder_ / (task + ".jsonl")) << content;
    return make(task, {{"split", "samples"}})->load({.data = "", .samples = folder_});
  }
  std::string refusal(const std::string& task, const std::string& content) {
    try {
      load(task, content);
    } catch (const DataError& error) {
      return error.what();
    }
    return "no error";
  }
  const TemporaryFolder owned_;
  const fs::path& folder_ = owned_.path();
};

TEST_F(CodeFiles, HumanEvalRowsBecomeSamples) {
  const std::string row =
      R"({"task_id":"t/1","prompt":"import math\n\ndef f(x):\n","entry_point":"f","canonical_solution":"    return x\n","test":"def check(c): pass"})";
  const Samples samples = load("humaneval", row);
  ASSERT_EQ(samples.size(), 1u);
  EXPECT_EQ(samples[0].id, "t/1");
  EXPECT_EQ(samples[0].field("solution"), "import math\n\ndef f(x):\n    return x\n");
  EXPECT_EQ(samples[0].field("test"), "def check(c): pass\ncheck(f)\n");
  EXPECT_THAT(refusal("humaneval", row + "\n" + row),
              HasSubstr("id \"t/1\" occurs in rows 1 and 2"));
  EXPECT_THAT(refusal("humaneval", R"({"task_id":"t/1","prompt":"def g(x):\n","entry_point":"f"})"),
              HasSubstr("humaneval.jsonl:1: field \"prompt\" does not define \"f\""));
  EXPECT_THAT(refusal("humaneval", R"({"prompt":"def f(x):\n","entry_point":"f"})"),
              HasSubstr("field \"task_id\" is missing"));
}

TEST_F(CodeFiles, MbppEntryPointIsTheFunctionOfTheReference) {
  const auto row = [](const std::string& code, const std::string& test) {
    return R"({"text":"t","code":")" + code +
           R"(","task_id":3,"test_setup_code":"","test_list":[")" + test + R"("]})";
  };
  const auto name = [&](const std::string& code, const std::string& test) {
    return load("mbpp", row(code, test)).at(0).field("entry_point");
  };
  EXPECT_EQ(name("def f(x):\\r\\n  return 1", "assert f(1) == 2"), "f");
  EXPECT_EQ(name("def f(x): 1", "assert math.isclose(f(1), 2)"), "f");
  EXPECT_EQ(name("def sum(x): 1\\ndef helper(x): 1", "assert set( sum (1)) == helper(2)"), "sum");
  EXPECT_THAT(
      refusal("mbpp", row("def g(x): 1", "assert f(1) == 2")),
      HasSubstr("mbpp.jsonl:1: no function of field \"code\" is called in field \"test_list\""));
  EXPECT_THAT(refusal("mbpp", R"({"text":"t","code":"","task_id":"3","test_list":[]})"),
              HasSubstr("field \"task_id\" is a string, expected a whole number"));
  EXPECT_THAT(refusal("mbpp", R"({"text":"t","code":"","task_id":3,"test_list":[3]})"),
              HasSubstr("field \"test_list\" is no list of strings"));
}

TEST_F(CodeFiles, MbppSetupRunsBehindTheProgram) {
  const Samples samples =
      load("mbpp", R"({"text":"t","code":"class Node: pass\r\ndef f(x): return 1","task_id":3,)"
                   R"("test_setup_code":"root = Node()\r\n","test_list":["assert f(root) == 1"]})");
  EXPECT_EQ(samples[0].id, "mbpp/3");
  EXPECT_EQ(samples[0].field("test"), "root = Node()\n\nassert f(root) == 1\n");
  EXPECT_EQ(samples[0].field("solution"), "class Node: pass\ndef f(x): return 1");
}

}  // namespace
}  // namespace asdbench
