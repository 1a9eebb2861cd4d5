// What is stored is what was given, once, whoever else writes.
#include "results/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "eval/core/digest.h"
#include "eval/core/error.h"
#include "results/tests/rows.h"

namespace asdbench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

TEST(ResultStore, StoresEveryFieldOfARun) {
  const Folder folder;
  ResultStore store(folder / "a.db", OpenMode::kReadWrite);
  RunRow row = run_row();
  row.dirty = true;
  row.seed = std::numeric_limits<std::int64_t>::max();
  const std::int64_t id = store.begin_run(row);
  EXPECT_THAT(
      rows_of(store,
              "SELECT name, status, config_file, config_text, config_sha256, command, "
              "version, source_commit, dirty, host, device, engine, seed, ended FROM run"),
      ElementsAre(ElementsAre("test", "running", "configs/test.yaml", "run: {name: test}\n",
                              "c0ffee", "asdbench run configs/test.yaml", "0.1.0", "abc", "1",
                              "host", "cpu", "toy", "9223372036854775807", std::nullopt)));
  store.end_run(id, "done");
  EXPECT_EQ(value_of(store, "SELECT status || (ended >= started) FROM run"), "done1");
  EXPECT_THROW(store.end_run(id + 1, "done"), InternalError);
  EXPECT_THROW(store.end_run(id, "perhaps"), InternalError);
  store.save_environment(id, {{"cpu", "fast"}, {"compiler", "g++ 12"}});
  EXPECT_THAT(rows_of(store, "SELECT name, value FROM environment ORDER BY name"),
              ElementsAre(ElementsAre("compiler", "g++ 12"), ElementsAre("cpu", "fast")));
}

TEST(ResultStore, FindsACellByItsKeyOrInsertsIt) {
  const Folder folder;
  ResultStore store(folder / "a.db", OpenMode::kReadWrite);
  const std::int64_t strict = store.cell(cell_row("strict"));
  const std::int64_t asd = store.cell(cell_row("asd"));
  EXPECT_NE(strict, asd);
  EXPECT_EQ(store.cell(cell_row("strict")), strict);
  EXPECT_THAT(rows_of(store,
                      "SELECT key, drafts, verifier_options, regret_budget, gate, max_exceptions, "
                      "max_tokens, batch, baseline FROM cell ORDER BY id"),
              ElementsAre(ElementsAre("ngram/strict", "4", "", std::nullopt, std::nullopt,
                                      std::nullopt, "64", "1", "1"),
                          ElementsAre("ngram/asd", "4", "B=8 M=2 g=0.25", "8.0", "0.25", "2.0",
                                      "64", "1", "0")));
  CellRow other = cell_row("strict");
  other.baseline = false;
  EXPECT_EQ(store.cell(other), strict);
  EXPECT_EQ(value_of(store, "SELECT baseline FROM cell WHERE verifier = 'strict'"), "0");
  other.identity = "{}";
  EXPECT_THROW(store.cell(other), StoreError);
  EXPECT_EQ(value_of(store, "SELECT count(*) FROM cell"), "2");
}

TEST(ResultStore, StoresInfiniteControls) {
  const Folder folder;
  ResultStore store(folder / "a.db", OpenMode::kReadWrite);
  CellRow cell = cell_row("asd");
  cell.regret_budget = std::numeric_limits<double>::infinity();
  store.cell(cell);
  EXPECT_EQ(value_of(store, "SELECT regret_budget FROM cell"), "Inf");
}

TEST(ResultStore, GradesStoredOutputsOnceMoreWithAnotherScorer) {
  const Folder folder;
  ResultStore store(folder / "a.db", OpenMode::kReadWrite);
  const std::int64_t run = store.begin_run(run_row());
  const std::int64_t cell = store.cell(cell_row("asd"));
  store.save(output_row(cell, run, "test/1"));
  EXPECT_THAT(store.completions_without_score(cell, "default", 1), IsEmpty());
  const auto missing = store.completions_without_score(cell, "other", 2);
  ASSERT_EQ(missing.size(), 1U);
  EXPECT_EQ(missing[0].sample_id, "test/1");
  EXPECT_EQ(missing[0].text, "#### 18");
  ScoreRow score{.scorer = "other", .scorer_version = 2, .score = {}};
  score.score.verdict = Verdict::kIncorrect;
  score.score.value = 0;
  store.add_scores({{missing[0].output_id, score}});
  score.score.verdict = Verdict::kCorrect;
  score.score.value = 1;
  store.add_scores({{missing[0].output_id, score}});  // the first one stays
  EXPECT_THAT(rows_of(store, "SELECT verdict FROM score WHERE scorer = 'other'"),
              ElementsAre(ElementsAre("incorrect")));
  EXPECT_THAT(store.completions_without_score(cell, "other", 2), IsEmpty());
}

TEST(ResultStore, StoresAnOutputWithPassesExceptionsAndScores) {
  const Folder folder;
  ResultStore store(folder / "a.db", OpenMode::kReadWrite);
  const std::int64_t run = store.begin_run(run_row());
  const std::int64_t cell = store.cell(cell_row("asd"));
  EXPECT_THAT(store.done(cell), IsEmpty());
  EXPECT_TRUE(store.save(output_row(cell, run, "test/1")));
  EXPECT_THAT(store.done(cell), ElementsAre(Pair("test/1", 0)));
  const std::vector<TokenId> tokens = {3, 1, 4, 1, 5};
  EXPECT_THAT(
      rows_of(store,
              "SELECT status, error, hex(tokens), tokens_sha256, completion, finish_reason, "
              "prompt_tokens, output_tokens, passes, regret, exceptions, "
              "prefill_ns, decode_ns FROM output"),
      ElementsAre(ElementsAre("done", std::nullopt, "0300000001000000040000000100000005000000",
                              sha256_tokens(tokens), "#### 18", "eos", "11", "5", "2", "0.125", "1",
                              "1000", "2000")));
  EXPECT_THAT(rows_of(store, "SELECT output_position, gap FROM near_tie"),
              ElementsAre(ElementsAre("1", "0.0005")));
  EXPECT_THAT(rows_of(store,
                      "SELECT number, drafted, accepted, kept, committed, strict_length, "
                      "blocked_by FROM pass ORDER BY number"),
              ElementsAre(ElementsAre("0", "4", "2", "2", "3", "1", "5"),
                          ElementsAre("1", "4", "0", "0", "1", "0", "1")));
  EXPECT_THAT(
      rows_of(store,
              "SELECT number, pass, output_position, block_position, drafted, draft, "
              "choice, regret, weight, spent_after FROM exception"),
      ElementsAre(ElementsAre("0", "0", "2", "1", "4", "4", "9", "0.125", "0.75", "0.125")));
  EXPECT_THAT(rows_of(store,
                      "SELECT scorer, scorer_version, verdict, value, answer, rule, outcome, "
                      "detail FROM score"),
              ElementsAre(ElementsAre("default", "1", "correct", "1.0", "18", "hash", std::nullopt,
                                      std::nullopt)));
}

TEST(ResultStore, KeepsTextWithNulBytesAndQuotes) {
  const Folder folder;
  ResultStore store(folder / "a.db", OpenMode::kReadWrite);
  const std::int64_t run = store.begin_run(run_row());
  const std::int64_t cell = store.cell(cell_row("asd"));
  OutputRow output = output_row(cell, run, "te'st/\"1\"");
  output.completion.text = std::string("a\0b'\xF0\x9F", 6);
  store.save(output);
  EXPECT_EQ(value_of(store, "SELECT completion FROM output"), output.completion.text);
  EXPECT_THAT(store.done(cell), ElementsAre(Pair("te'st/\"1\"", 0)));
}

TEST(ResultStore, AFinishedOutputReplacesAFailedOneAndNeverTheOtherWayRound) {
  const Folder folder;
  ResultStore store(folder / "a.db", OpenMode::kReadWrite);
  const std::int64_t run = store.begin_run(run_row());
  const std::int64_t cell = store.cell(cell_row("asd"));
  EXPECT_TRUE(store.save(failed_row(cell, run, "test/1")));
  EXPECT_THAT(store.done(cell), IsEmpty());
  EXPECT_EQ(value_of(store, "SELECT error FROM output"), "logit row 3 holds NaN");
  EXPECT_TRUE(store.save(failed_row(cell, run, "test/1")));
  EXPECT_TRUE(store.save(output_row(cell, run, "test/1")));
  EXPECT_FALSE(store.save(failed_row(cell, run, "test/1")));
  EXPECT_THAT(store.done(cell), ElementsAre(Pair("test/1", 0)));
  EXPECT_EQ(value_of(store, "SELECT count(*) FROM output"), "1");
  EXPECT_EQ(value_of(store, "SELECT count(*) FROM pass"), "2");
  EXPECT_EQ(value_of(store, "SELECT count(*) FROM exception"), "1");
  EXPECT_EQ(value_of(store, "SELECT count(*) FROM score"), "1");
}

TEST(ResultStore, TwoRunsOnOneDatabaseLoseAndDoubleNothing) {
  const Folder folder;
  ResultStore first(folder / "a.db", OpenMode::kReadWrite);
  ResultStore second(folder / "a.db", OpenMode::kReadWrite);
  const std::int64_t run = first.begin_run(run_row());
  const std::int64_t other = second.begin_run(run_row());
  EXPECT_NE(run, other);
  const std::int64_t cell = first.cell(cell_row("asd"));
  EXPECT_EQ(second.cell(cell_row("asd")), cell);
  EXPECT_TRUE(first.save(output_row(cell, run, "test/1")));
  EXPECT_FALSE(second.save(output_row(cell, other, "test/1")));
  EXPECT_TRUE(second.save(output_row(cell, other, "test/2")));
  EXPECT_EQ(value_of(first, "SELECT group_concat(sample_id || ' by ' || run_id) FROM output"),
            "test/1 by 1,test/2 by 2");
  OutputRow differs = output_row(cell, other, "test/1");
  differs.completion.tokens.back() = 6;
  try {
    second.save(differs);
    FAIL() << "no error";
  } catch (const StoreError& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("a.db: sample test/1 of cell 1 was recorded by run 1 with other tokens "
                          "than run 2 decoded"));
  }
  EXPECT_EQ(value_of(first, "SELECT count(*) FROM output"), "2");
}

TEST(ResultStore, RepeatsOfASampleAreRowsOfTheirOwn) {
  const Folder folder;
  ResultStore store(folder / "a.db", OpenMode::kReadWrite);
  const std::int64_t run = store.begin_run(run_row());
  const std::int64_t cell = store.cell(cell_row("asd"));
  OutputRow output = output_row(cell, run, "test/1");
  store.save(output);
  output.repeat = 1;
  store.save(output);
  EXPECT_THAT(store.done(cell), ElementsAre(Pair("test/1", 0), Pair("test/1", 1)));
}

TEST(ResultStore, StoresSpeedGroupsOfASetOnce) {
  const Folder folder;
  ResultStore store(folder / "a.db", OpenMode::kReadWrite);
  const std::int64_t run = store.begin_run(run_row());
  const std::int64_t strict = store.cell(cell_row("strict"));
  const std::int64_t asd = store.cell(cell_row("asd"));
  const auto rows = group_rows(run, "set", 0, {strict, asd, asd, strict}, {2, 1, 1, 2});
  store.save_group(rows);
  store.save_group(group_rows(run, "set", 3, {asd, strict, strict, asd}, {1, 2, 2, 1}));
  store.save_group(group_rows(run, "other", 1, {strict, asd, asd, strict}, {2, 1, 1, 2}));
  EXPECT_THAT(store.groups_done("set"), ElementsAre(0, 3));
  EXPECT_THAT(store.groups_done("other"), ElementsAre(1));
  EXPECT_THAT(store.groups_done("none"), IsEmpty());
  EXPECT_THAT(rows_of(store,
                      "SELECT slot, cell_id, tokens, decode_ns, rule_ns, tokens_sha256 FROM "
                      "speed_slot WHERE group_id = 1 ORDER BY slot"),
              ElementsAre(ElementsAre("0", "1", "1000", "2000000000", "1000000", "ee"),
                          ElementsAre("1", "2", "1000", "1000000000", "1000000", "ee"),
                          ElementsAre("2", "2", "1000", "1000000000", "1000000", "ee"),
                          ElementsAre("3", "1", "1000", "2000000000", "1000000", "ee")));
  try {
    store.save_group(rows);
    FAIL() << "no error";
  } catch (const StoreError& error) {
    EXPECT_THAT(error.what(), HasSubstr("speed group 0 was recorded by run 1"));
  }
  EXPECT_EQ(value_of(store, "SELECT count(*) FROM speed_slot"), "12");
}

TEST(ResultStore, AGroupIsStoredWholeOrNotAtAll) {
  const Folder folder;
  ResultStore store(folder / "a.db", OpenMode::kReadWrite);
  const std::int64_t run = store.begin_run(run_row());
  const std::int64_t cell = store.cell(cell_row("strict"));
  auto rows = group_rows(run, "set", 0, {cell, cell}, {1, 1});
  rows.back().slot = 0;  // twice the same slot
  EXPECT_THROW(store.save_group(rows), InternalError);
  rows.back().slot = 1;
  rows.back().cell_id = 99;  // no such cell
  EXPECT_THROW(store.save_group(rows), InternalError);
  rows.back().cell_id = cell;
  rows.back().decode_ns = 0;  // no logarithm
  EXPECT_THROW(store.save_group(rows), InternalError);
  EXPECT_THAT(store.groups_done("set"), IsEmpty());
  EXPECT_EQ(value_of(store, "SELECT count(*) FROM speed_slot"), "0");
}

TEST(ResultStore, RefusesRowsThatContradictThemselves) {
  const Folder folder;
  ResultStore store(folder / "a.db", OpenMode::kReadWrite);
  const std::int64_t run = store.begin_run(run_row());
  const std::int64_t cell = store.cell(cell_row("asd"));
  OutputRow output = output_row(cell, run, "test/1");
  output.completion.error = "and an error";
  EXPECT_THROW(store.save(output), InternalError);
  output = output_row(cell, run, "test/1", Verdict::kUnscored);
  output.scores[0].score.value = 1;
  EXPECT_THROW(store.save(output), InternalError);
  EXPECT_THROW(store.save(output_row(99, run, "test/1")), InternalError);
  output = output_row(cell, run, "test/1");
  output.scores.push_back(output.scores[0]);
  EXPECT_THROW(store.save(output), InternalError);
  EXPECT_EQ(value_of(store, "SELECT count(*) FROM output"), "0");
}

TEST(ResultStore, QueriesNameTheirColumnsAndRefuseBadSql) {
  const Folder folder;
  const ResultStore store(folder / "a.db", OpenMode::kReadWrite);
  std::vector<std::string> seen;
  store.query("SELECT 1 AS one, NULL AS none",
              [&](const auto& names, const auto&) { seen = names; });
  EXPECT_THAT(seen, ElementsAre("one", "none"));
  EXPECT_THROW(rows_of(store, "SELECT nonsense"), InternalError);
}

}  // namespace
}  // namespace asdbench
