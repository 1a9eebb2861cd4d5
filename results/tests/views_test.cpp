// The views against the shared statistics cases and numbers worked out by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "eval/core/json.h"
#include "results/store.h"
#include "results/tests/rows.h"

namespace asdbench {
namespace {

/// The cases of one kind of the shared statistics fixtures.
std::vector<Json> cases_of(const std::string& kind) {
  std::ifstream in(ASDBENCH_TEST_DATA "/stats_cases.jsonl");
  std::vector<Json> cases;
  for (std::string line; std::getline(in, line);) {
    Json entry = parse_json(line);
    if (entry["kind"] == kind) cases.push_back(std::move(entry));
  }
  EXPECT_FALSE(cases.empty()) << kind;
  return cases;
}

void expect_near(std::optional<double> found, double expected, double tolerance,
                 const std::string& what) {
  ASSERT_TRUE(found.has_value()) << what;
  EXPECT_NEAR(*found, expected, tolerance * std::max(1.0, std::fabs(expected))) << what;
}

struct Fixture {
  Folder folder;
  ResultStore store{folder / "a.db", OpenMode::kReadWrite};
  std::int64_t run = store.begin_run(run_row());

  MatrixRow row(std::int64_t cell) const {
    for (const MatrixRow& found : store.matrix()) {
      if (found.cell_id == cell) return found;
    }
    ADD_FAILURE() << "no row of cell " << cell;
    return {};
  }
};

TEST(AccuracyView, WilsonIntervalsEqualTheSharedCases) {
  for (const Json& entry : cases_of("wilson")) {
    Fixture fixture;
    const std::int64_t cell = fixture.store.cell(cell_row("asd"));
    const int correct = entry["input"]["k"];
    const int n = entry["input"]["n"];
    ASSERT_EQ(entry["input"]["confidence"], 0.95);
    for (int i = 0; i < n; ++i) {
      fixture.store.save(output_row(cell, fixture.run, "test/" + std::to_string(i),
                                    i < correct ? Verdict::kCorrect : Verdict::kIncorrect));
    }
    const MatrixRow row = fixture.row(cell);
    EXPECT_EQ(row.n, n);
    EXPECT_EQ(row.correct, correct);
    const double tolerance = entry["tol"];
    const std::string id = entry["id"];
    for (const Estimate& found : {row.accuracy_as_scored, row.accuracy_capped_wrong}) {
      expect_near(found.estimate, entry["expect"]["p"], tolerance, id);
      expect_near(found.low, entry["expect"]["lo"], tolerance, id);
      expect_near(found.high, entry["expect"]["hi"], tolerance, id);
    }
  }
}

TEST(AccuracyView, CountsCappedFailedUnscoredAndUnparsedApart) {
  Fixture fixture;
  const std::int64_t cell = fixture.store.cell(cell_row("asd"));
  int next = 0;
  const auto save = [&](Verdict verdict, FinishReason finish) {
    fixture.store.save(
        output_row(cell, fixture.run, "test/" + std::to_string(next++), verdict, finish));
  };
  save(Verdict::kCorrect, FinishReason::kEos);
  save(Verdict::kCorrect, FinishReason::kStopString);
  save(Verdict::kCorrect, FinishReason::kLength);
  save(Verdict::kCorrect, FinishReason::kContextLimit);
  save(Verdict::kIncorrect, FinishReason::kEos);
  save(Verdict::kIncorrect, FinishReason::kLength);
  save(Verdict::kNoAnswer, FinishReason::kLength);
  save(Verdict::kUnscored, FinishReason::kEos);
  save(Verdict::kUnscored, FinishReason::kLength);
  fixture.store.save(failed_row(cell, fixture.run, "test/failed"));
  const MatrixRow row = fixture.row(cell);
  EXPECT_EQ(row.n, 7);
  EXPECT_EQ(row.correct, 4);
  EXPECT_EQ(row.no_answer, 1);
  EXPECT_EQ(row.unscored, 2);
  EXPECT_EQ(row.failed, 1);
  EXPECT_EQ(row.capped, 5);
  EXPECT_DOUBLE_EQ(row.accuracy_as_scored.estimate.value(), 4.0 / 7);
  EXPECT_DOUBLE_EQ(row.accuracy_capped_wrong.estimate.value(), 2.0 / 7);
  EXPECT_EQ(value_of(fixture.store, "SELECT incorrect || '/' || failed FROM accuracy"), "2/1");
}

TEST(AccuracyView, UndecidedRepliesAreIncorrectAndCounted) {
  Fixture fixture;
  const std::int64_t cell = fixture.store.cell(cell_row("asd"));
  for (const char* detail : {"undecided: time limit", "", "the answer is undecided: no"}) {
    OutputRow output =
        output_row(cell, fixture.run, std::string("test/") + detail, Verdict::kIncorrect);
    output.scores[0].score.detail = detail;
    fixture.store.save(output);
  }
  const MatrixRow row = fixture.row(cell);
  EXPECT_EQ(row.n, 3);
  EXPECT_EQ(row.undecided, 1);
  EXPECT_EQ(row.correct, 0);
}

TEST(AccuracyView, NothingScoredIsUndefinedAndNotZero) {
  Fixture fixture;
  const std::int64_t empty = fixture.store.cell(cell_row("strict"));
  const std::int64_t failed = fixture.store.cell(cell_row("asd"));
  const std::int64_t unscored = fixture.store.cell(cell_row("top_k"));
  fixture.store.save(failed_row(failed, fixture.run, "test/1"));
  fixture.store.save(output_row(unscored, fixture.run, "test/1", Verdict::kUnscored));
  for (const std::int64_t cell : {empty, failed, unscored}) {
    const MatrixRow row = fixture.row(cell);
    EXPECT_EQ(row.n, 0);
    for (const Estimate& found :
         {row.accuracy_as_scored, row.accuracy_capped_wrong, row.vs_strict, row.vs_plain}) {
      EXPECT_FALSE(found.estimate.has_value());
      EXPECT_FALSE(found.low.has_value());
      EXPECT_FALSE(found.high.has_value());
    }
    EXPECT_FALSE(row.tokens_per_s.has_value());
    EXPECT_EQ(row.groups, 0);
  }
  EXPECT_FALSE(fixture.row(empty).accept_length.has_value());
  EXPECT_FALSE(fixture.row(failed).accept_length.has_value());
  EXPECT_FALSE(fixture.row(failed).regret_per_request.has_value());
  EXPECT_EQ(fixture.row(failed).failed, 1);
  EXPECT_EQ(fixture.row(unscored).unscored, 1);
}

TEST(AccuracyView, TakesTheCellsOwnGraderInItsLatestVersion) {
  Fixture fixture;
  const std::int64_t cell = fixture.store.cell(cell_row("asd"));
  OutputRow output = output_row(cell, fixture.run, "test/1", Verdict::kIncorrect);
  output.scores.push_back(score_row(Verdict::kCorrect));
  output.scores.back().scorer_version = 2;
  output.scores.push_back(score_row(Verdict::kNoAnswer));
  output.scores.back().scorer = "other";
  output.scores.back().scorer_version = 9;
  fixture.store.save(output);
  const MatrixRow row = fixture.row(cell);
  EXPECT_EQ(row.n, 1);
  EXPECT_EQ(row.correct, 1);
  EXPECT_EQ(value_of(fixture.store, "SELECT count(*) FROM accuracy"), "3");
}

TEST(MatrixView, AcceptLengthIsCommittedPerPassWithoutTheFirstToken) {
  Fixture fixture;
  const std::int64_t cell = fixture.store.cell(cell_row("asd"));
  const std::int64_t plain = fixture.store.cell(cell_row("strict", "none"));
  fixture.store.save(output_row(cell, fixture.run, "test/1"));  // 5 tokens, 2 passes
  OutputRow longer = output_row(cell, fixture.run, "test/2");
  longer.completion.tokens = {1, 2, 3, 4, 5, 6, 7, 8};
  longer.completion.passes.resize(3);
  longer.completion.exceptions.clear();
  longer.completion.spent = 0;
  fixture.store.save(longer);
  fixture.store.save(failed_row(cell, fixture.run, "test/3"));
  OutputRow single = output_row(plain, fixture.run, "test/1");
  single.completion.passes.resize(4);
  fixture.store.save(single);
  const MatrixRow row = fixture.row(cell);
  EXPECT_DOUBLE_EQ(row.accept_length.value(), (4.0 + 7.0) / 5.0);
  EXPECT_DOUBLE_EQ(row.regret_per_request.value(), 0.0625);
  EXPECT_DOUBLE_EQ(row.exceptions_per_request.value(), 0.5);
  EXPECT_DOUBLE_EQ(fixture.row(plain).accept_length.value(), 1.0);
}

TEST(SpeedView, LogRatioIntervalsEqualTheSharedCases) {
  int compared = 0;
  for (const Json& entry : cases_of("log_ratio_t")) {
    if (entry["input"]["confidence"] != 0.95) continue;
    Fixture fixture;
    const std::int64_t strict = fixture.store.cell(cell_row("strict"));
    const std::int64_t asd = fixture.store.cell(cell_row("asd"));
    std::int64_t group = 0;
    for (const double log_ratio : entry["input"]["log_ratios"]) {
      const double arm = 100 / std::exp(log_ratio);
      fixture.store.save_group(group_rows(fixture.run, "set", group++, {strict, asd, asd, strict},
                                          {100, arm, arm, 100}));
    }
    const MatrixRow row = fixture.row(asd);
    const std::string id = entry["id"];
    EXPECT_EQ(row.groups, entry["expect"]["n"]);
    const double tolerance = entry["tol"];
    expect_near(row.vs_strict.estimate, 1 + entry["expect"]["pct"].get<double>() / 100, tolerance,
                id);
    expect_near(row.vs_strict.low, 1 + entry["expect"]["lo_pct"].get<double>() / 100, tolerance,
                id);
    expect_near(row.vs_strict.high, 1 + entry["expect"]["hi_pct"].get<double>() / 100, tolerance,
                id);
    ++compared;
  }
  EXPECT_GE(compared, 4);
}

TEST(SpeedView, DriftWithinAGroupCancelsAsInTheSharedCases) {
  for (const Json& entry : cases_of("abba")) {
    Fixture fixture;
    const std::int64_t strict = fixture.store.cell(cell_row("strict"));
    const std::int64_t asd = fixture.store.cell(cell_row("asd"));
    fixture.store.save_group(
        group_rows(fixture.run, "set", 0, {strict, asd, asd, strict}, entry["input"]["seconds"]));
    const MatrixRow row = fixture.row(asd);
    const std::string id = entry["id"];
    expect_near(row.vs_strict.estimate, std::exp(entry["expect"]["log_speedup"].get<double>()),
                entry["tol"], id);
    EXPECT_FALSE(row.vs_strict.low.has_value()) << "one group has no interval";
    EXPECT_FALSE(row.vs_strict.high.has_value());
  }
}

TEST(SpeedView, ComparesWithinSetsByDrafterAndWithPlainDecoding) {
  Fixture fixture;
  const std::int64_t plain = fixture.store.cell(cell_row("strict", "none"));
  const std::int64_t strict = fixture.store.cell(cell_row("strict"));
  const std::int64_t asd = fixture.store.cell(cell_row("asd"));
  const std::int64_t lone = fixture.store.cell(cell_row("asd", "eagle3"));
  for (std::int64_t group = 0; group < 2; ++group) {
    const double slow = group == 0 ? 8.0 : 8.8;
    fixture.store.save_group(group_rows(fixture.run, "set", group,
                                        {plain, strict, asd, lone, lone, asd, strict, plain},
                                        {slow, 4, 2, 1, 1, 2, 4, slow}));
  }
  const double versus = std::sqrt(8.0 * 8.8);
  EXPECT_NEAR(fixture.row(asd).vs_strict.estimate.value(), 2.0, 1e-12);
  EXPECT_NEAR(fixture.row(asd).vs_strict.low.value(), 2.0, 1e-12);
  EXPECT_NEAR(fixture.row(asd).vs_plain.estimate.value(), versus / 2, 1e-12);
  EXPECT_LT(fixture.row(asd).vs_plain.low.value(), versus / 2);
  EXPECT_NEAR(fixture.row(strict).vs_plain.estimate.value(), versus / 4, 1e-12);
  EXPECT_EQ(fixture.row(strict).vs_strict.estimate, 1.0);
  EXPECT_FALSE(fixture.row(strict).vs_strict.low.has_value()) << "itself, by definition";
  EXPECT_FALSE(fixture.row(plain).vs_strict.estimate.has_value()) << "a dash for plain decoding";
  EXPECT_EQ(fixture.row(plain).vs_plain.estimate, 1.0);
  EXPECT_FALSE(fixture.row(lone).vs_strict.estimate.has_value()) << "no strict cell of its drafter";
  EXPECT_NEAR(fixture.row(lone).vs_plain.estimate.value(), versus, 1e-12);
  EXPECT_NEAR(fixture.row(asd).tokens_per_s.value(), 500, 1e-9);
  EXPECT_EQ(fixture.row(asd).groups, 2);
  EXPECT_EQ(value_of(fixture.store,
                     "SELECT printf('%.3f %.3f %.4f', post_end_fraction, tokens_per_pass, "
                     "rule_ms_per_pass) FROM speed WHERE cell_id = 3"),
            "0.100 2.000 0.0020");
}

TEST(SpeedView, NeverMixesSetsAndShowsTheLatest) {
  Fixture fixture;
  const std::int64_t strict = fixture.store.cell(cell_row("strict"));
  const std::int64_t asd = fixture.store.cell(cell_row("asd"));
  fixture.store.save_group(
      group_rows(fixture.run, "old", 0, {strict, asd, asd, strict}, {9, 1, 1, 9}));
  fixture.store.save_group(
      group_rows(fixture.run, "old", 1, {asd, strict, strict, asd}, {1, 9, 9, 1}));
  fixture.store.save_group(
      group_rows(fixture.run, "new", 0, {strict, asd, asd, strict}, {3, 2, 2, 3}));
  const MatrixRow row = fixture.row(asd);
  EXPECT_EQ(row.groups, 1);
  EXPECT_NEAR(row.vs_strict.estimate.value(), 1.5, 1e-12);
  EXPECT_EQ(value_of(fixture.store, "SELECT count(*) FROM speed"), "4");
}

TEST(SpeedView, UnequalWorkHasNoRatio) {
  Fixture fixture;
  const std::int64_t strict = fixture.store.cell(cell_row("strict"));
  const std::int64_t asd = fixture.store.cell(cell_row("asd"));
  auto rows = group_rows(fixture.run, "set", 0, {strict, asd, asd, strict}, {2, 1, 1, 2});
  rows[1].tokens = rows[2].tokens = 999;
  fixture.store.save_group(rows);
  EXPECT_FALSE(fixture.row(asd).vs_strict.estimate.has_value());
  EXPECT_EQ(fixture.row(asd).groups, 1);
}

TEST(SpeedView, OtherTasksTargetsAndDecodingsAreNoReference) {
  using Change = void (*)(CellRow&);
  const std::vector<Change> changes = {[](CellRow& c) { c.task = "math500"; },
                                       [](CellRow& c) { c.split = "train"; },
                                       [](CellRow& c) { c.target = "planted"; },
                                       [](CellRow& c) { c.target_sha256 = "71"; },
                                       [](CellRow& c) { c.batch = 2; },
                                       [](CellRow& c) { c.max_tokens = 65; },
                                       [](CellRow& c) { c.device = "cuda"; },
                                       [](CellRow& c) { c.engine = "torch"; },
                                       [](CellRow& c) { c.weight_dtype = "bf16"; },
                                       [](CellRow& c) { c.drafter_options = "K=4 x=1"; },
                                       [](CellRow& c) { c.drafts = 5; }};
  for (std::size_t i = 0; i < changes.size(); ++i) {
    Fixture fixture;
    CellRow base = cell_row("strict");
    changes[i](base);
    const std::int64_t strict = fixture.store.cell(base);
    const std::int64_t asd = fixture.store.cell(cell_row("asd"));
    fixture.store.save_group(
        group_rows(fixture.run, "set", 0, {strict, asd, asd, strict}, {2, 1, 1, 2}));
    EXPECT_FALSE(fixture.row(asd).vs_strict.estimate.has_value()) << "change " << i;
  }
}

/// Student's t density integrated by Simpson's rule: the probability of [-t, t].
double central_probability(double t, int degrees) {
  const double scale = std::exp(std::lgamma((degrees + 1) / 2.0) - std::lgamma(degrees / 2.0)) /
                       std::sqrt(degrees * M_PI);
  const auto density = [&](double x) {
    return scale * std::pow(1 + x * x / degrees, -(degrees + 1) / 2.0);
  };
  constexpr int kSteps = 20'000;
  const double step = 2 * t / kSteps;
  double sum = density(-t) + density(t);
  for (int i = 1; i < kSteps; ++i) sum += density(-t + i * step) * (i % 2 == 1 ? 4 : 2);
  return sum * step / 3;
}

TEST(TQuantiles, HoldNinetyFivePercentOfTheDistribution) {
  Fixture fixture;
  const Rows rows =
      rows_of(fixture.store, "SELECT degrees, value FROM t_quantile ORDER BY degrees");
  ASSERT_EQ(rows.size(), 200u);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const int degrees = static_cast<int>(i) + 1;
    EXPECT_EQ(rows[i][0], std::to_string(degrees));
    EXPECT_NEAR(central_probability(std::stod(*rows[i][1]), degrees), 0.95, 1e-10) << degrees;
  }
}

TEST(TQuantiles, TheExpansionGoesOnWhereTheTableEnds) {
  Fixture fixture;
  const std::int64_t strict = fixture.store.cell(cell_row("strict"));
  const std::int64_t asd = fixture.store.cell(cell_row("asd"));
  constexpr int kGroups = 251;
  for (int group = 0; group < kGroups; ++group) {
    const double arm = group % 2 == 0 ? 1.0 : 1.1;
    fixture.store.save_group(
        group_rows(fixture.run, "set", group, {strict, asd, asd, strict}, {2, arm, arm, 2}));
  }
  const Rows rows = rows_of(fixture.store,
                            "SELECT printf('%.17g', (ln(high) - mean_log) / (sd_log / "
                            "sqrt(groups))) FROM speed_ratio WHERE "
                            "cell_id = 2 AND reference = 'strict'");
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_NEAR(central_probability(std::stod(*rows[0][0]), kGroups - 1), 0.95, 1e-9);
}

}  // namespace
}  // namespace asdbench
