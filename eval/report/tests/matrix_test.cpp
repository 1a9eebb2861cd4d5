// The matrix as people and machines read it.
#include "eval/report/matrix.h"

#include <gtest/gtest.h>

#include "eval/core/json.h"

namespace asdbench {
namespace {

MatrixRow row(const std::string& drafter, const std::string& verifier, const std::string& options) {
  MatrixRow out;
  out.task = "gsm8k";
  out.split = "samples";
  out.grader = "default";
  out.target = "toy";
  out.device = "cpu";
  out.drafter = drafter;
  out.verifier = verifier;
  out.verifier_options = options;
  out.n = 4;
  out.correct = 2;
  out.capped = 1;
  out.accuracy_capped_wrong = {.estimate = 0.5, .low = 0.15, .high = 0.85};
  out.accuracy_as_scored = {.estimate = 0.75, .low = 0.3, .high = 0.95};
  return out;
}

std::vector<MatrixRow> rows() {
  std::vector<MatrixRow> out = {row("ngram", "strict", ""), row("none", "strict", ""),
                                row("ngram", "asd", "B=8 M=2 g=0.25")};
  out[0].vs_strict = {.estimate = 1, .low = std::nullopt, .high = std::nullopt};
  out[0].accept_length = 1.5;
  out[1].vs_plain = {.estimate = 1, .low = std::nullopt, .high = std::nullopt};
  out[2].vs_strict = {.estimate = 1.25, .low = 1.2, .high = 1.3};
  out[2].vs_plain = {.estimate = 1.5, .low = 1.4, .high = 1.6};
  out[2].tokens_per_s = 123.45;
  out[2].failed = 1;
  return out;
}

TEST(MatrixTest, PlainStandsFirstAndTheTitleSaysWhatWasMeasured) {
  const std::vector<Table> tables = matrix_tables(rows());
  ASSERT_EQ(tables.size(), 1U);
  EXPECT_EQ(
      tables[0].title,
      "task gsm8k (our samples, not the official set) · target toy · drafter ngram · device cpu "
      "· n = 4");
  ASSERT_EQ(tables[0].rows.size(), 3U);
  EXPECT_EQ(tables[0].rows[0],
            (std::vector<std::string>{"plain (no drafter)", "50.0 % [15.0, 85.0]", "–", "1.000",
                                      "–", "–", "1 of 4; 75.0 %"}));
  EXPECT_EQ(tables[0].rows[1][2], "1.000");
  EXPECT_EQ(tables[0].rows[1][4], "1.50");
  EXPECT_EQ(
      tables[0].rows[2],
      (std::vector<std::string>{"asd B=8 M=2 g=0.25 (1 failed)", "50.0 % [15.0, 85.0]",
                                "1.250 [1.200, 1.300]", "1.500", "–", "123.5", "1 of 4; 75.0 %"}));
}

TEST(MatrixTest, AsScoredSwapsTheTwoAccuracies) {
  const std::vector<Table> tables = matrix_tables(rows(), Capped::kAsScored);
  EXPECT_EQ(tables[0].rows[0][1], "75.0 % [30.0, 95.0]");
  EXPECT_EQ(tables[0].rows[0].back(), "1 of 4; 50.0 %");
  EXPECT_EQ(tables[0].columns.back().header, "capped; accuracy with capped wrong");
}

// A profile that reproduces another harness counts capped replies as that one does, unless told
// otherwise, and is named; rows of two graders never share a table.
TEST(MatrixTest, TheGraderChoosesTheCappedPolicyAndIsNamed) {
  std::vector<MatrixRow> both = rows();
  both.push_back(both[2]);
  both.back().grader = "lm-eval-flexible";
  const std::vector<Table> tables = matrix_tables(both);
  ASSERT_EQ(tables.size(), 2U);
  EXPECT_EQ(tables[0].rows[2][1], "50.0 % [15.0, 85.0]");
  EXPECT_EQ(tables[0].columns.back().header, "capped; accuracy as scored");
  ASSERT_EQ(tables[1].rows.size(), 1U);
  EXPECT_EQ(tables[1].rows[0][1], "75.0 % [30.0, 95.0]");
  EXPECT_EQ(tables[1].rows[0].back(), "1 of 4; 50.0 %");
  EXPECT_EQ(tables[1].columns.back().header, "capped; accuracy with capped wrong");
  EXPECT_NE(tables[1].title.find("grader=lm-eval-flexible"), std::string::npos);
  const std::vector<Table> strict = matrix_tables(both, Capped::kWrong);
  EXPECT_EQ(strict[1].rows[0][1], "50.0 % [15.0, 85.0]");
}

TEST(MatrixTest, RepliesThatNobodyScoredAreCountedApart) {
  std::vector<MatrixRow> judged = {row("none", "strict", "")};
  judged[0].n = 0;
  judged[0].unscored = 20;
  judged[0].accuracy_as_scored = judged[0].accuracy_capped_wrong = {};
  const Table table = matrix_tables(judged).at(0);
  EXPECT_EQ(table.title.substr(table.title.rfind("n = ")), "n = 0, 20 unscored");
  EXPECT_EQ(table.rows[0][1], "–");
  EXPECT_EQ(table.rows[0].back(), "1 of 20; –");
}

TEST(MatrixTest, OneTableForEachDrafterAndPlainAloneHasOneToo) {
  std::vector<MatrixRow> all = rows();
  all.push_back(row("other", "strict", ""));
  MatrixRow alone = row("none", "strict", "");
  alone.task = "mmlu";
  all.push_back(alone);
  const std::vector<Table> tables = matrix_tables(all);
  ASSERT_EQ(tables.size(), 3U);
  EXPECT_EQ(tables[1].rows.size(), 2U);
  EXPECT_EQ(tables[2].rows.size(), 1U);
}

TEST(MatrixTest, MachinesGetNullForTheUndefined) {
  const Json parsed = parse_json(matrix_json(rows()));
  ASSERT_EQ(parsed.size(), 3U);
  EXPECT_TRUE(parsed[0]["vs_strict"]["low"].is_null());
  EXPECT_EQ(parsed[2]["vs_strict"]["high"], 1.3);
  const std::string csv = matrix_csv(rows());
  EXPECT_EQ(csv.substr(0, csv.find(',')), "accept_length");
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 4);
  EXPECT_EQ(csv.find("nan"), std::string::npos);
}

TEST(MatrixTest, AnEmptyDatabaseGivesNoTable) {
  EXPECT_TRUE(matrix_tables({}).empty());
  EXPECT_EQ(matrix_json({}), "[]\n");
}

}  // namespace
}  // namespace asdbench
