// Graders of mathematics against the published cases, and the default's properties.
#include "tasks/common/math_graders.h"

#include <gtest/gtest.h>

#include <ctime>

#include "eval/core/error.h"
#include "tasks/common/jsonl.h"
#include "tasks/common/math/equality.h"

namespace asdbench {
namespace {

using math::Comparison;
using math::Equality;

std::vector<JsonlRow> rows_of(const std::string& file) {
  std::vector<JsonlRow> rows;
  read_jsonl(ASDBENCH_TEST_DATA "/" + file, [&](const JsonlRow& row) { rows.push_back(row); });
  return rows;
}

TEST(MathGraders, AgreeWithThePublishedPairs) {
  int cases = 0;
  for (const JsonlRow& row : rows_of("scoring_math_equiv.jsonl")) {
    if (row.text("level") == "contested") continue;
    const MathGrader& grader = math_grader(row.object().value("profile", "default"));
    EXPECT_EQ(grader.compare(row.text("prediction"), row.text("gold")).equal,
              row.object().at("expected").get<bool>())
        << row.text("id");
    ++cases;
  }
  EXPECT_EQ(cases, 666);
}

TEST(MathGraders, AgreeWithThePublishedReplies) {
  int cases = 0;
  for (const JsonlRow& row : rows_of("scoring_math_grade.jsonl")) {
    if (row.text("level") == "contested") continue;
    const MathGrader& grader = math_grader("default");
    const auto answer = grader.extract(row.text("prediction"));
    const bool correct = answer && grader.compare(answer->text, row.text("gold")).equal;
    EXPECT_EQ(correct, row.object().at("expected").get<bool>()) << row.text("id");
    ++cases;
  }
  EXPECT_EQ(cases, 128);
}

// The fixtures hold what the published graders said when they were run.
TEST(MathGraders, HendrycksGivesTheRecordedVerdicts) {
  const MathGrader& grader = math_grader("hendrycks");
  int cases = 0;
  for (const JsonlRow& row : rows_of("scoring_math_equiv.jsonl")) {
    const Json& verdicts = row.object().at("verdicts");
    if (!verdicts.contains("hendrycks") || !verdicts["hendrycks"].is_boolean()) continue;
    EXPECT_EQ(grader.compare(row.text("prediction"), row.text("gold")).equal,
              verdicts["hendrycks"].get<bool>())
        << row.text("id");
    ++cases;
  }
  EXPECT_GT(cases, 600);
  for (const JsonlRow& row : rows_of("scoring_math_grade.jsonl")) {
    const Json& verdicts = row.object().at("verdicts");
    if (!verdicts.contains("hendrycks") || !verdicts["hendrycks"].is_boolean()) continue;
    const auto answer = grader.extract(row.text("prediction"));
    EXPECT_EQ(answer && grader.compare(answer->text, row.text("gold")).equal,
              verdicts["hendrycks"].get<bool>())
        << row.text("id");
  }
}

TEST(MathGraders, EqualityIsReflexiveAndSymmetric) {
  for (const JsonlRow& row : rows_of("scoring_math_equiv.jsonl")) {
    const std::string& left = row.text("prediction");
    const std::string& right = row.text("gold");
    // No answer equals nothing, itself included.
    EXPECT_EQ(math::compare_answers(left, left).equality,
              left.empty() ? Equality::kDifferent : Equality::kEqual)
        << row.text("id");
    const Comparison forth = math::compare_answers(left, right);
    const Comparison back = math::compare_answers(right, left);
    if (!forth.one_way && !back.one_way) {
      EXPECT_EQ(forth.equality, back.equality) << row.text("id");
    }
  }
}

std::string repeated(std::string_view part, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += part;
  return text;
}

double thread_ms() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

TEST(MathGraders, HostileAnswersStayBounded) {
  const std::vector<std::string> answers = {
      repeated("\\frac{", 20'000) + "1" + repeated("}{2}", 20'000),
      repeated("(", 50'000) + "1" + repeated(")", 50'000),
      repeated("9^{", 10'000) + "9" + repeated("}", 10'000),
      "9^{9^{9^{9^{9^{9}}}}}",
      "(x+y+z+w)^{99999}",
      repeated("(x+1)", 2'000),
      repeated("\\sqrt{", 5'000) + "x" + repeated("}", 5'000),
      "10^{10^{10}}!",
      repeated("7", 100'000),
      repeated("x_{1}+", 15'000) + "1",
      repeated("\\{", 30'000),
      std::string(100'000, '\0'),
      repeated("\xC3\x28", 50'000),
      repeated("1,", 40'000) + "1",
      "\\begin{pmatrix}" + repeated("1&", 30'000) + "1\\end{pmatrix}",
      "\\sum_{k=1}^{999999999}k^{99}",
      "\\binom{999999999}{499999999}",
      repeated("-", 100'000) + "1",
  };
  for (const std::string& answer : answers) {
    for (const std::string& gold : {std::string("1"), std::string("\\frac{x}{2}"), answer + " "}) {
      const double before = thread_ms();
      math_grader("default").compare(answer, gold);
      math_grader("hendrycks").compare(answer, gold);
      math_grader("default").extract("So \\boxed{" + answer + "}");
      // 50 ms each by the specification; a sanitizer build is slower, a hang is what this finds.
      EXPECT_LT(thread_ms() - before, 2'000)
          << answer.substr(0, 40) << " against " << gold.substr(0, 20);
    }
  }
}

TEST(MathGraders, UnknownNamesAreABug) { EXPECT_THROW(math_grader("nobody"), InternalError); }

}  // namespace
}  // namespace asdbench
