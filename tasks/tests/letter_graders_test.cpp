// Letters found in replies: every rule, the published cases, and replies made to mislead.
#include "tasks/common/letter_graders.h"

#include <gtest/gtest.h>

#include <ctime>
#include <string>
#include <vector>

#include "eval/core/error.h"
#include "tasks/common/jsonl.h"

namespace asdbench {
namespace {

const std::vector<std::string> kCities = {"Paris", "London", "Berlin", "Madrid"};

std::string found(std::string_view reply, const char* grader = "default") {
  const auto answer = letter_grader(grader).extract(reply, kCities);
  return answer ? answer->text + " " + answer->rule : "none";
}

TEST(Letters, EachRuleInItsTurn) {
  EXPECT_EQ(found("Answer: A. So \\boxed{\\text{(C)}}."), "C box");
  EXPECT_EQ(found("\\boxed{7} and \\boxed{B. London}"), "B box");
  EXPECT_EQ(found("\\boxed{B} after \\boxed{12}"), "B box");
  EXPECT_EQ(found("Answer: A, no: the correct option is (D)."), "D anchor");
  EXPECT_EQ(found("The answer must be **C**"), "C anchor");
  EXPECT_EQ(found("the best choice seems to be definitely option `b`"), "B anchor");
  EXPECT_EQ(found("\u7b54\u6848\uff1aB"), "B anchor");
  EXPECT_EQ(found("**Answer**: **C**"), "C anchor");
  EXPECT_EQ(found("Answer = \"D\""), "D anchor");
  EXPECT_EQ(found("B) London\nIt is the capital."), "B first_line");
  EXPECT_EQ(found("C: because"), "C first_line");
  EXPECT_EQ(found("Some words.\n\n**D**"), "D last_line");
  EXPECT_EQ(found("Some words.\nB. London"), "B last_line");
  EXPECT_EQ(found("I would say (C), I think"), "C bracketed");
  EXPECT_EQ(found(" berlin. "), "C choice_text");
}

TEST(Letters, ArticlesWordsAndOtherLettersAreNone) {
  EXPECT_EQ(found("A good way to see this is by elimination."), "none");
  EXPECT_EQ(found("The answer is a matter of taste."), "none");
  EXPECT_EQ(found("The answer is Berlin"), "none");
  EXPECT_EQ(found("The answer is d'accord"), "none");
  EXPECT_EQ(found("The answer seems good"), "none");
  EXPECT_EQ(found("A, because it is so"), "none");  // a comma does not make a first line
  EXPECT_EQ(found("Answer: E"), "none");
  EXPECT_EQ(found("(E)"), "none");
  EXPECT_EQ(found(""), "none");
  EXPECT_EQ(found("\u00c9, \u00c0"), "none");
  EXPECT_EQ(found("The answer is B\u00e9la"), "none");
}

TEST(Letters, TheLastStatementCountsAndReasoningDoesNot) {
  EXPECT_EQ(found("Answer: A. Wait. Answer: B"), "B anchor");
  EXPECT_EQ(found("<think>Answer: A</think>\nThe answer is D."), "D anchor");
  EXPECT_EQ(found("Answer: A</think>\nNothing more."), "none");
  EXPECT_EQ(found("<think>Answer: A"), "none");
  EXPECT_EQ(found("Answer: C<|im_end|>\nAnswer: D"), "C anchor");
}

TEST(Letters, ANextQuestionThatTheModelInventsIsNotRead) {
  EXPECT_EQ(found("The answer is B\n\nQuestion: next\nA. x\nAnswer: D"), "B anchor");
  EXPECT_EQ(found("London\nQ: next\nAnswer: D"), "B choice_text");
  EXPECT_EQ(found("I like (A).\nProblem: next\nAnswer: D"), "D anchor");  // brackets last
}

TEST(Letters, AChoiceTextThatOccursTwiceIsNoAnswer) {
  const LetterGrader& grader = letter_grader("default");
  EXPECT_FALSE(grader.extract("two", {"two", "three", " Two. ", "four"}).has_value());
  EXPECT_TRUE(grader.extract("three", {"two", "three", "two", "four"}).has_value());
  EXPECT_FALSE(grader.extract("two", {}).has_value());
}

TEST(Fixtures, DefaultLettersArePublished) {
  std::size_t counted = 0;
  read_jsonl(ASDBENCH_TEST_DATA "/scoring_mmlu.jsonl", [&](const JsonlRow& row) {
    if (row.text("level") == "contested") return;
    ++counted;
    const LetterGrader& grader = letter_grader("default");
    const auto choices = row.object().at("choices").get<std::vector<std::string>>();
    const auto answer = grader.extract(row.text("prediction"), choices);
    const Json& expected = row.object().at("expected");
    EXPECT_EQ(answer ? Json(answer->text) : Json(nullptr), expected.at("answer"))
        << row.text("id") << " " << row.text("prediction");
    EXPECT_EQ(answer && grader.equal(answer->text, row.text("gold")),
              expected.at("correct").get<bool>())
        << row.text("id");
  });
  EXPECT_EQ(counted, 57u);
}

TEST(Fixtures, NamedProfilesGiveTheLettersOfTheirReferences) {
  std::size_t counted = 0;
  read_jsonl(ASDBENCH_TEST_DATA "/scoring_mmlu.jsonl", [&](const JsonlRow& row) {
    for (const LetterGrader& grader : letter_graders()) {
      const auto recorded = row.object().at("profiles").find(grader.name);
      if (recorded == row.object().at("profiles").end()) continue;
      ++counted;
      const auto choices = row.object().at("choices").get<std::vector<std::string>>();
      const auto answer = grader.extract(row.text("prediction"), choices);
      const Json& said = recorded->at("answer");
      // Where nothing was found qwen reports the reply itself.
      const bool nothing = said.is_null() || said == "[invalid]" ||
                           (grader.name == "qwen" && said.get<std::string>().size() != 1);
      EXPECT_EQ(answer ? answer->text : "", nothing ? "" : said.get<std::string>())
          << row.text("id") << " " << grader.name;
      EXPECT_EQ(answer && grader.equal(answer->text, row.text("gold")),
                recorded->at("correct").get<bool>())
          << row.text("id") << " " << grader.name;
    }
  });
  EXPECT_EQ(counted, 59u * 6);
}

// A megabyte of what each rule looks for is read in the time that a linear scan takes.
TEST(Letters, HostileRepliesAreReadInLinearTime) {
  std::vector<std::string> replies;
  const std::vector<std::string> units = {"answer is ",
                                          "Answer:",
                                          "\\boxed{",
                                          "\\boxed{7}",
                                          "(",
                                          "answer:(((((((",
                                          "final answer is ",
                                          "\n(",
                                          "Paris",
                                          ": ",
                                          "best answer is ",
                                          "**",
                                          std::string(1, '\0'),
                                          "\xff",
                                          "choice "};
  for (const std::string& unit : units) {
    std::string text;
    while (text.size() < (1u << 20)) text += unit;
    replies.push_back(text);
  }
  for (const LetterGrader& grader : letter_graders()) {
    for (const std::string& reply : replies) {
      const std::clock_t begin = std::clock();
      grader.extract(reply, kCities);
      const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
      EXPECT_LT(seconds, 2.0) << grader.name << " " << reply.substr(0, 16);
    }
  }
}

}  // namespace
}  // namespace asdbench
