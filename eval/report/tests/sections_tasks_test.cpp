// Sections of tasks: subjects, conversations, judges, code runs, and fidelity to the strict output.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "eval/report/tests/hostile_internal.h"

namespace asdbench {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// The row of a table that starts with these cells.
std::vector<std::string> row_of(const Table& table, const std::vector<std::string>& start) {
  for (const auto& row : table.rows) {
    if (std::equal(start.begin(), start.end(), row.begin())) return row;
  }
  ADD_FAILURE() << "no such row: " << ::testing::PrintToString(start);
  return std::vector<std::string>(table.columns.size());
}

struct Fixture {
  Folder folder;
  ResultStore store{folder / "a.db", OpenMode::kReadWrite};
  std::int64_t run = store.begin_run(run_row());

  std::int64_t cell(const std::string& task, const std::string& verifier,
                    const std::string& grader = "default") {
    CellRow row = cell_row(verifier);
    row.task = task;
    row.grader = grader;
    row.identity = "{\"task\":\"" + task + grader + "\",\"verifier\":\"" + verifier + "\"}";
    row.key = task + verifier + grader;
    return store.cell(row);
  }
  std::int64_t save(OutputRow row) {
    EXPECT_TRUE(store.save(row));
    std::int64_t id = 0;
    store.query("SELECT max(id) FROM output",
                [&](const auto&, const auto& found) { id = std::stoll(*found[0]); });
    return id;
  }
  Report report(Capped capped = Capped::kByGrader) const {
    ReportOptions options;
    options.capped = capped;
    return make_report(store, options);
  }
};

OutputRow of_subject(std::int64_t cell, std::int64_t run, const std::string& subject, int number,
                     Verdict verdict, FinishReason finish = FinishReason::kEos) {
  OutputRow row =
      output_row(cell, run, "test/" + subject + "/" + std::to_string(number), verdict, finish);
  row.cluster = subject;
  row.category = subject == "virology" ? "other" : "STEM";
  return row;
}

TEST(TaskSections, SubjectsHaveMicroAndMacroMeans) {
  Fixture fixture;
  const std::int64_t cell = fixture.cell("mmlu", "strict");
  fixture.save(of_subject(cell, fixture.run, "algebra", 0, Verdict::kCorrect));
  fixture.save(of_subject(cell, fixture.run, "algebra", 1, Verdict::kIncorrect));
  fixture.save(of_subject(cell, fixture.run, "algebra", 2, Verdict::kNoAnswer));
  fixture.save(
      of_subject(cell, fixture.run, "algebra", 3, Verdict::kCorrect, FinishReason::kLength));
  fixture.save(of_subject(cell, fixture.run, "physics", 0, Verdict::kCorrect));
  fixture.save(of_subject(cell, fixture.run, "virology", 0, Verdict::kCorrect));
  const Report report = fixture.report();
  const Table categories = table_of(section_of(report, "categories"));
  // The capped reply counts as wrong: 3 of 6.
  EXPECT_EQ(row_of(categories, {"micro"})[1], "50.0 %");
  EXPECT_EQ(row_of(categories, {"macro"})[1], "70.0 %");  // (2/5 + 1) / 2
  EXPECT_EQ(row_of(categories, {"STEM"})[1], "40.0 % of 5");
  const Table subjects = table_of(section_of(report, "subjects"));
  EXPECT_EQ(row_of(subjects, {"macro"})[1], "75.0 %");  // (1/4 + 1 + 1) / 3
  EXPECT_EQ(row_of(subjects, {"algebra"})[1], "25.0 % of 4");
  const Table as_scored = table_of(section_of(fixture.report(Capped::kAsScored), "subjects"));
  EXPECT_EQ(row_of(as_scored, {"algebra"})[1], "50.0 % of 4");
  const Table replies = table_of(section_of(report, "replies"));
  EXPECT_THAT(replies.rows.at(0),
              ElementsAre(::testing::_, ::testing::_, "default 1", "6", "50.0 %", "66.7 %",
                          "20.4 %", "16.7 %", "16.7 %", "0", "0", "0.0 %"));
}

TEST(TaskSections, GradersStandSideBySideAndTheCappedPolicyFollowsThem) {
  Fixture fixture;
  const std::int64_t cell = fixture.cell("gsm8k", "strict", "lm-eval-strict");
  OutputRow row = output_row(cell, fixture.run, "a", Verdict::kIncorrect, FinishReason::kLength);
  ScoreRow other = score_row(Verdict::kCorrect);
  other.scorer = "lm-eval-strict";
  row.scores.push_back(other);
  fixture.save(row);
  const Report report = fixture.report();
  const Table replies = table_of(section_of(report, "replies"));
  ASSERT_EQ(replies.rows.size(), 2u);
  EXPECT_EQ(replies.rows[0][2], "default 1");
  EXPECT_EQ(replies.rows[1][2], "lm-eval-strict 1");
  // A reproduction profile counts the capped reply by its verdict, unless told otherwise.
  EXPECT_THAT(report.matrix.at(0).rows.at(0).at(1), HasSubstr("100.0 %"));
  EXPECT_THAT(fixture.report(Capped::kWrong).matrix.at(0).rows.at(0).at(1), HasSubstr("0.0 % ["));
  EXPECT_EQ(report.matrix.at(0).columns.back().header, "capped; accuracy with capped wrong");
}

TEST(TaskSections, CodeRunsByOutcome) {
  Fixture fixture;
  const std::int64_t cell = fixture.cell("humaneval", "asd");
  for (const auto& [sample, outcome] : std::vector<std::pair<const char*, const char*>>{
           {"a", "passed"}, {"b", "timeout"}, {"c", "timeout"}, {"d", "assertion"}}) {
    OutputRow row = output_row(cell, fixture.run, sample, Verdict::kIncorrect);
    row.scores.front().score.outcome = outcome;
    fixture.save(row);
  }
  const Table outcomes = table_of(section_of(fixture.report(), "outcomes"));
  ASSERT_EQ(outcomes.rows.size(), 3u);
  EXPECT_EQ(outcomes.rows[0][1], "asd B=8 M=2 g=0.25 (lossy) · ngram K=4");
  EXPECT_THAT(outcomes.rows[0], Contains("timeout"));
  EXPECT_THAT(outcomes.rows[0], Contains("50.0 %"));
}

JudgementRow judgement(std::int64_t output, const std::string& kind, std::int64_t place,
                       std::optional<double> value) {
  JudgementRow row;
  row.output_id = output;
  row.kind = kind;
  row.baseline = kind == "pair" ? "strict" : "";
  if (kind == "pair") row.baseline_output_id = output - 1;  // saved just before
  row.place = place;
  row.judge = "judge";
  row.prompts = "own-1";
  row.prompt_sha256 = "aa";
  row.status = value ? "done" : "failed";
  row.error = value ? "" : "status 500";
  row.reply = "words";
  row.ratings = {{"default", value}};
  return row;
}

TEST(TaskSections, RatingsByCategoryAndTurn) {
  Fixture fixture;
  const std::int64_t cell = fixture.cell("mt_bench", "strict");
  std::vector<std::int64_t> outputs;
  for (const char* sample : {"81", "101"}) {
    for (const std::int64_t turn : {1, 2}) {
      OutputRow row = output_row(cell, fixture.run, sample, Verdict::kUnscored);
      row.turn = turn;
      row.cluster = sample;
      row.category = *sample == '8' ? "writing" : "reasoning";
      outputs.push_back(fixture.save(row));
    }
  }
  // Without a judge there is no score, and that is said, in the short form too.
  const Report none = fixture.report();
  EXPECT_THAT(table_of(section_of(none, "judged")).title, HasSubstr("No judge has seen"));
  EXPECT_THAT(table_of(section_of(none, "judged")).rows.at(0),
              ElementsAre(::testing::_, ::testing::_, "4", "none"));
  EXPECT_THAT(make_reporter("terminal")->render(none), HasSubstr("asdbench judge"));
  for (const auto& flag : table_of(section_of(none, "flags")).rows) {
    EXPECT_NE(flag[0], "unscored replies") << "what a judge has to score is no fault";
  }
  fixture.store.save_judgement(judgement(outputs[0], "single", 0, 8));
  fixture.store.save_judgement(judgement(outputs[1], "single", 0, 6));
  fixture.store.save_judgement(judgement(outputs[2], "single", 0, 9));
  fixture.store.save_judgement(judgement(outputs[3], "single", 0, 7));
  const auto row = table_of(section_of(fixture.report(), "judged")).rows.at(0);
  // reasoning before writing
  EXPECT_THAT(std::vector<std::string>(row.begin() + 2, row.end()),
              ElementsAre("judge, prompts own-1, seed 0", ::testing::ContainsRegex("^20..-..-..$"),
                          "default", "4 of 4", "7.50", "8.50", "6.50", "8.00", "7.00"));
  // Another seed is another line.
  JudgementRow seeded = judgement(outputs[0], "single", 0, 2);
  seeded.seed = 1;
  fixture.store.save_judgement(seeded);
  EXPECT_EQ(table_of(section_of(fixture.report(), "judged")).rows.size(), 2U);
  // A failed rating shrinks the denominators; so many leave no headline.
  fixture.store.save_judgement(judgement(outputs[1], "single", 0, std::nullopt));
  const auto failed = table_of(section_of(fixture.report(), "judged")).rows.at(0);
  EXPECT_THAT(std::vector<std::string>(failed.begin() + 5, failed.end()),
              ElementsAre("3 of 4", "– (too many without)", "8.50", "7.00", "8.00", "8.00"));
  // A conversation is no subject: there is no such section.
  for (const Section& section : fixture.report().sections) EXPECT_NE(section.id, "subjects");
}

TEST(TaskSections, PreferencesAreTheMeanOfBothOrders) {
  Fixture fixture;
  const std::int64_t strict = fixture.cell("alpaca", "strict"), asd = fixture.cell("alpaca", "asd");
  std::vector<std::int64_t> outputs;
  for (const char* sample : {"a", "b", "c"}) {
    fixture.save(output_row(strict, fixture.run, sample, Verdict::kUnscored));
    outputs.push_back(fixture.save(output_row(asd, fixture.run, sample, Verdict::kUnscored)));
  }
  // A win, a win in one order only, and a pair with an error, which is dropped.
  fixture.store.save_judgement(judgement(outputs[0], "pair", 1, 2));
  fixture.store.save_judgement(judgement(outputs[0], "pair", 2, 2));
  fixture.store.save_judgement(judgement(outputs[1], "pair", 1, 2));
  fixture.store.save_judgement(judgement(outputs[1], "pair", 2, 1));
  fixture.store.save_judgement(judgement(outputs[2], "pair", 1, 2));
  fixture.store.save_judgement(judgement(outputs[2], "pair", 2, std::nullopt));
  const auto row = table_of(section_of(fixture.report(), "judged")).rows.at(0);
  EXPECT_THAT(std::vector<std::string>(row.begin() + 2, row.end()),
              ElementsAre("judge, prompts own-1, seed 0", ::testing::ContainsRegex("^20..-..-..$"),
                          "strict", "2", "75.0 %", "75.0 %", "0", "1"));
  EXPECT_EQ(section_of(fixture.report(), "judged").blocks.size(), 1U)
      << "the baseline was seen too";
}

TEST(TaskSections, FidelityIsAgainstTheStrictOutput) {
  Fixture fixture;
  const std::int64_t strict = fixture.cell("mt_bench", "strict");
  const std::int64_t asd = fixture.cell("mt_bench", "asd");
  const auto save = [&](std::int64_t cell, const char* sample, std::vector<TokenId> tokens,
                        const char* text, Verdict verdict) {
    OutputRow row = output_row(cell, fixture.run, sample, verdict);
    row.completion.tokens = std::move(tokens);
    row.completion.text = text;
    fixture.save(row);
  };
  save(strict, "a", {1, 2, 3, 4}, "one two three four", Verdict::kCorrect);
  save(asd, "a", {1, 2, 3, 4}, "one two three four", Verdict::kCorrect);
  save(strict, "b", {1, 2, 3, 4}, "one two three four", Verdict::kCorrect);
  save(asd, "b", {1, 9, 3, 4}, "one nine three four", Verdict::kNoAnswer);
  const Table table = table_of(section_of(fixture.report(), "fidelity"));
  ASSERT_EQ(table.rows.size(), 1u);
  const auto& row = table.rows[0];
  EXPECT_THAT(std::vector<std::string>(row.begin() + 2, row.end()),
              ElementsAre("2", "50.0 %", "1", "0.625", "0.875", "0.125", "0.875", "50.0 %",
                          "-0.5000 ± 0.5000"));
  EXPECT_THAT(section_of(fixture.report(), "fidelity").title, HasSubstr("no judge"));
}

// Of many diverged pairs some are compared, and stand for all.
TEST(TaskSections, FidelityOfManyPairsIsOfADrawByHash) {
  Fixture fixture;
  const std::int64_t strict = fixture.cell("gsm8k", "strict"), asd = fixture.cell("gsm8k", "asd");
  constexpr std::uint32_t kPairs = 6100;  // more than are compared
  for (std::uint32_t i = 0; i < kPairs; ++i) {
    for (const std::int64_t cell : {strict, asd}) {
      OutputRow row = output_row(cell, fixture.run, std::to_string(i));
      row.prompt_sha256 = fmt::format("{:08x}", i * 704'000U);  // spread over all of them
      row.completion.passes.clear();
      row.completion.exceptions.clear();
      row.completion.near_ties.clear();
      row.completion.text = "one two";
      if (cell == asd) row.completion.tokens = {3, 1, 4, 1, 9};
      fixture.store.save(row);
    }
  }
  const Section section = section_of(fixture.report(), "fidelity");
  EXPECT_THAT(section.note, HasSubstr("Where more than 6000 replies"));
  const auto row = table_of(section).rows.at(0);
  EXPECT_THAT(std::vector<std::string>(row.begin() + 2, row.begin() + 9),
              ElementsAre("6100", "0.0 %", "4", "0.800", "0.800", "0.200", "1.000"));
}

}  // namespace
}  // namespace asdbench
