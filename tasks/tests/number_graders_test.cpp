// The default extraction rule by rule, and every profile against what its reference answered.
#include "tasks/common/number_graders.h"

#include <gtest/gtest.h>

#include <ctime>
#include <map>
#include <string>
#include <vector>

#include "eval/core/error.h"
#include "tasks/common/jsonl.h"
#include "tasks/common/numbers.h"

namespace asdbench {
namespace {

struct Row {
  std::string reply;
  std::string answer;  // "" for none
  std::string rule;
};

void expect_rows(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    const auto answer = number_grader("default").extract(row.reply);
    EXPECT_EQ(answer ? answer->text : "", row.answer) << row.reply;
    EXPECT_EQ(answer ? answer->rule : "", row.rule) << row.reply;
  }
}

TEST(DefaultExtraction, HashComesFirst) {
  expect_rows({
      {"The answer is 5. \\boxed{6}\n#### 18\nand 7", "18", "hash"},
      {"#### 20\nno:\n#### 25", "25", "hash"},
      {"####18", "18", "hash"},
      {"#### $1,080.50 in all, 3 times", "$1,080.50", "hash"},
      {"#### -3", "-3", "hash"},
      {"##### 4", "4", "hash"},
      {"#### Answer\n18", "18", "last_number"},  // nothing on its line
      {"#### none\n\\boxed{3}", "3", "box"},
      {"**#### 18**", "18", "hash"},
  });
}

TEST(DefaultExtraction, ThenTheLastBox) {
  expect_rows({
      {"The answer is 5 or \\boxed{6}. Check: 7", "6", "box"},
      {"\\boxed{x = 9 * 2 = 18}", "18", "box"},
      {"\\boxed{18 \\text{ of } 20}", "18", "box"},
      {"\\boxed{\\$1{,}080}", "\\$1{,}080", "box"},
      {"\\boxed{eighteen}. The answer is 18.", "18", "anchor"},
      {"\\boxed 5", "5", "box"},
      {"\\boxed{5} then \\boxed{6", "5", "box"},
      {"the answer goes in \\boxed{}: \\boxed{4}", "4", "box"},
  });
}

TEST(DefaultExtraction, ThenTheLastAnchorThatYieldsANumber) {
  expect_rows({
      {"The answer is 18. She had 16 eggs.", "18", "anchor"},
      {"The answer is 9 * 2 = 18. She had 16.", "18", "anchor"},
      {"ANSWER: 18", "18", "anchor"},
      {"**Answer:** $18 per day, 7 days", "$18", "anchor"},
      {"Answer = 18 of 20", "18", "anchor"},
      {"The answer was 18 not 20", "18", "anchor"},
      {"the answer would be 18 on day 2", "18", "anchor"},
      {"The answer is:\n\n18\n19", "18", "anchor"},
      {"The final answer to the question of how many eggs remain is 9. Day 2", "9", "anchor"},
      {"answer is 4. The answer is unknown", "4", "anchor"},
      {"The answer is $3.50. I sold 2.", "$3.50", "anchor"},
      {"The answer is 25%. Of 80.", "25", "anchor"},
      {"The answer is twenty (20). Or 21.", "20", "anchor"},
      {"The answer is x = 3 = y, 7", "7", "anchor"},
      {"The answer is 3 = y", "3", "last_number"},  // nothing behind the last "="
  });
}

TEST(DefaultExtraction, WordsThatOnlyLookLikeAnchorsAreNone) {
  expect_rows({
      {"The answers: 3 and 4", "4", "last_number"},
      {"unanswered: 3 of 4", "4", "last_number"},
      {"The answer isn 3 on day 4", "4", "last_number"},
      {"The answer island 3 of 4", "4", "last_number"},
      {"The answer to a question that goes on for far more than sixty characters in all is 3, 4",
       "4", "last_number"},
  });
}

TEST(DefaultExtraction, ThenTheLastNumberOrNothing) {
  expect_rows({
      {"1. Eggs: 9\n2. Revenue: $18\n", "$18", "last_number"},
      {"72 clips, altogether...", "72", "last_number"},
      {"16-3-4", "4", "last_number"},
      {"She makes eighteen.", "", ""},
      {"...", "", ""},
      {"", "", ""},
      {std::string("\0\0", 2), "", ""},
      {"\xff\xfe 18 \xff", "18", "last_number"},
  });
}

TEST(DefaultExtraction, RunOnTextCannotTakeOverAStatedAnswer) {
  expect_rows({
      {"#### 72\nQuestion: another\nAnswer: #### 10", "72", "hash"},
      {"The answer is 18.\n\nProblem: 5 and 6?\nSolution: 11", "18", "anchor"},
      {"It is 18\nQ: 5 and 6?\nA: The answer is 11.", "11", "anchor"},  // nothing stated before
      {"Question: 5 and 6?\nThe answer is 11.", "11", "anchor"},
  });
}

TEST(DefaultExtraction, ReasoningAndSpecialTokensAreNotRead) {
  expect_rows({
      {"<think>The answer is 5.</think> It is 6", "6", "last_number"},
      {"The answer is 5.</think>", "", ""},
      {"<think>16 - 3 = 13, so 13", "", ""},
      {"18<|im_end|>\n#### 19", "18", "last_number"},
      {"The answer is \u221218\u00a0eggs", "-18", "anchor"},
      {"\x1b[1mThe answer is 18\x1b[0m of 20", "18", "anchor"},
  });
}

TEST(DefaultExtraction, IsLinearInHostileReplies) {
  const std::clock_t start = std::clock();  // processor time: other programs do not count
  for (const std::string& piece :
       {std::string("answer:"), std::string("answer to "), std::string("####"),
        std::string("\\boxed{"), std::string("\x1b]"), std::string("1,"), std::string("-$"),
        std::string("5/0"), std::string("\nQ:"), std::string("the answer is 7=")}) {
    std::string reply;
    while (reply.size() < 1'000'000) reply += piece;
    for (const NumberGrader& grader : number_graders()) grader.extract(reply);
  }
  // 80 extractions from 1 MB; a quadratic one takes minutes each.
  EXPECT_LT(std::clock() - start, 60 * CLOCKS_PER_SEC);
}

TEST(ScoreNumber, GivesAVerdictAValueAndTheAnswer) {
  const NumberGrader& grader = number_grader("default");
  const Score right = score_number(grader, {"7", "1,080"}, Answer{"1080.0", "box"});
  EXPECT_EQ(right.verdict, Verdict::kCorrect);
  EXPECT_EQ(right.value, 1);
  EXPECT_EQ(right.answer, "1080.0");
  EXPECT_EQ(right.rule, "box");
  EXPECT_EQ(score_number(grader, {"7"}, Answer{"8", "box"}).verdict, Verdict::kIncorrect);
  EXPECT_EQ(score_number(grader, {"7"}, Answer{"8", "box"}).value, 0);
  const Score none = score_number(grader, {"7"}, std::nullopt);
  EXPECT_EQ(none.verdict, Verdict::kNoAnswer);
  EXPECT_EQ(none.value, 0);
  EXPECT_THROW(number_grader("lm-eval"), InternalError);
}

// What the fixtures call a profile, and ours. Graders that need a symbolic algebra system, and
// qwen's, come with the MATH profiles.
const std::map<std::string, std::string> kProfiles = {
    {"lm-eval-strict", "lm-eval-strict"},
    {"lm-eval-flexible", "lm-eval-flexible"},
    {"lm-eval-cot-strict", "lm-eval-cot-strict"},
    {"lm-eval-llama", "lm-eval-llama"},
    {"openai-gsm8k", "openai-gsm8k"},
    {"simple-evals-mgsm", "simple-evals"},
    {"specforge", "specforge"},
};

TEST(Fixtures, DefaultProfileAnswersAsPublished) {
  std::size_t counted = 0;
  read_jsonl(ASDBENCH_TEST_DATA "/scoring_gsm8k.jsonl", [&](const JsonlRow& row) {
    if (row.text("level") == "contested" || row.object().contains("profile")) return;
    ++counted;
    const NumberGrader& grader = number_grader("default");
    const auto answer = grader.extract(row.text("prediction"));
    const Json& expected = row.object().at("expected");
    EXPECT_EQ(answer.has_value(), expected.at("answer").is_string()) << row.text("id");
    if (answer && expected.at("answer").is_string()) {
      EXPECT_EQ(canonical_number(answer->text), expected.at("answer").get<std::string>())
          << row.text("id");
    }
    EXPECT_EQ(score_number(grader, {row.text("gold")}, answer).verdict == Verdict::kCorrect,
              expected.at("correct").get<bool>())
        << row.text("id");
  });
  EXPECT_EQ(counted, 56u);
}

TEST(Fixtures, NamedProfilesAnswerAsTheirReferencesDid) {
  std::size_t counted = 0;
  read_jsonl(ASDBENCH_TEST_DATA "/scoring_gsm8k.jsonl", [&](const JsonlRow& row) {
    for (const auto& [theirs, ours] : kProfiles) {
      const auto recorded = row.object().at("profiles").find(theirs);
      if (recorded == row.object().at("profiles").end()) continue;
      ++counted;
      const NumberGrader& grader = number_grader(ours);
      const auto answer = grader.extract(row.text("prediction"));
      // The references' words for "nothing found".
      const Json& said = recorded->at("answer");
      const bool nothing = said.is_null() || said == "[invalid]" || said == "-9999999";
      EXPECT_EQ(answer ? answer->text : "", nothing ? "" : said.get<std::string>())
          << row.text("id") << " " << theirs;
      EXPECT_EQ(score_number(grader, {row.text("gold")}, answer).verdict == Verdict::kCorrect,
                recorded->at("correct").get<bool>())
          << row.text("id") << " " << theirs;
    }
  });
  EXPECT_EQ(counted, 58u * kProfiles.size());
}

TEST(Profiles, DifferWhereTheirReferencesDo) {
  const auto answer = [](const char* grader, std::string_view reply) {
    const auto found = number_grader(grader).extract(reply);
    return found ? found->text : std::string();
  };
  const auto correct = [](const char* grader, std::string_view reply, const char* gold) {
    const NumberGrader& named = number_grader(grader);
    return score_number(named, {gold}, named.extract(reply)).verdict == Verdict::kCorrect;
  };
  EXPECT_EQ(answer("lm-eval-strict", "#### $18\n#### 19"), "19");
  EXPECT_EQ(answer("lm-eval-strict", "#### -3.5,"), "-3.5,");
  EXPECT_TRUE(correct("lm-eval-strict", "#### 1080", "1,080"));
  EXPECT_EQ(answer("lm-eval-flexible", "10-3"), "-3");
  EXPECT_EQ(answer("lm-eval-flexible", "7 and -"), "7");
  EXPECT_EQ(answer("lm-eval-flexible", "x.5 y"), ".5");
  EXPECT_EQ(answer("lm-eval-cot-strict", "The answer is 5"), "");  // one character has to follow
  EXPECT_EQ(answer("lm-eval-cot-strict", "The answer is 15"), "1");
  EXPECT_EQ(answer("lm-eval-cot-strict", "The answer is -5\n"), "");
  EXPECT_EQ(answer("lm-eval-llama", "The final answer is 7. The final answer is x"), "7.");
  EXPECT_FALSE(correct("openai-gsm8k", "#### 18.", "18"));
  EXPECT_TRUE(correct("openai-gsm8k", "#### 1,080", "1080"));
  EXPECT_EQ(answer("simple-evals", "18"), "");
  EXPECT_TRUE(correct("simple-evals", "Answer: 18.500.", "18.5"));
  EXPECT_TRUE(correct("simple-evals", "Answer: -18", "18"));
  EXPECT_TRUE(correct("specforge", "-3", "3"));
  EXPECT_TRUE(correct("specforge", "2.5", "3.5"));
  EXPECT_EQ(answer("specforge", "018"), "");
}

}  // namespace
}  // namespace asdbench
