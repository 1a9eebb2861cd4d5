// The views of reports against numbers worked out by hand, and the tally against the passes it
// counts.
#include <gmock/gmock.h>

#include "results/tests/rows.h"

namespace asdbench {
namespace {

using ::testing::ElementsAre;

struct Fixture {
  Folder folder;
  ResultStore store{folder / "a.db", OpenMode::kReadWrite};
  std::int64_t run = store.begin_run(run_row());
  std::int64_t plain = store.cell(cell_row("strict", "none"));
  std::int64_t strict = store.cell(cell_row("strict"));
  std::int64_t asd = store.cell(cell_row("asd"));

  void save(std::int64_t cell, const std::string& sample, std::vector<TokenId> tokens,
            Verdict verdict = Verdict::kCorrect, FinishReason finish = FinishReason::kEos) {
    OutputRow output = output_row(cell, run, sample, verdict, finish);
    output.completion.tokens = std::move(tokens);
    store.save(output);
  }
};

constexpr const char* kTally =
    "SELECT group_concat(line, ';') FROM (SELECT cell_id || ',' || drafted || ',' || accepted || "
    "',' || "
    "kept || ',' || committed || ',' || strict_length || ',' || blocked_by || ',' || passes AS "
    "line "
    "FROM pass_tally WHERE passes > 0 ORDER BY line)";
constexpr const char* kCounted =
    "SELECT group_concat(line, ';') FROM (SELECT cell_id || ',' || drafted || ',' || accepted || "
    "',' || "
    "kept || ',' || committed || ',' || strict_length || ',' || blocked_by || ',' || count(*) AS "
    "line "
    "FROM pass JOIN output ON output.id = output_id WHERE status = 'done' GROUP BY cell_id, "
    "drafted, "
    "accepted, kept, committed, strict_length, blocked_by ORDER BY line)";

TEST(PassTally, CountsWhatFinishedOutputsHold) {
  Fixture fixture;
  fixture.save(fixture.asd, "a", {1, 2, 3, 4, 5});
  fixture.save(fixture.asd, "b", {1, 2, 3, 4, 5});
  fixture.save(fixture.strict, "a", {1, 2, 3, 4, 5});
  // A failed output counts nothing, and is replaced by a finished one.
  fixture.store.save(failed_row(fixture.asd, fixture.run, "c"));
  EXPECT_EQ(value_of(fixture.store, kTally), value_of(fixture.store, kCounted));
  EXPECT_EQ(value_of(fixture.store, "SELECT sum(passes) FROM pass_tally"), "6");
  fixture.save(fixture.asd, "c", {1, 2, 3, 4, 5});
  EXPECT_EQ(value_of(fixture.store, kTally), value_of(fixture.store, kCounted));
  EXPECT_EQ(value_of(fixture.store, "SELECT sum(passes) FROM pass_tally"), "8");
}

TEST(PairViews, PairBySampleAndFindTheFirstDifference) {
  Fixture fixture;
  fixture.save(fixture.strict, "equal", {7, 8, 9});
  fixture.save(fixture.asd, "equal", {7, 8, 9});
  fixture.save(fixture.strict, "prefix", {7, 8, 9, 10, 11, 12, 13});
  fixture.save(fixture.asd, "prefix", {7, 8, 9, 10, 11});
  fixture.save(fixture.strict, "first", {1});
  fixture.save(fixture.asd, "first", {2});
  fixture.save(fixture.strict, "late", {1, 2, 3, 4, 5, 6, 7, 8, 9}, Verdict::kCorrect);
  fixture.save(fixture.asd, "late", {1, 2, 3, 4, 5, 6, 7, 8, 0}, Verdict::kIncorrect);
  fixture.save(fixture.asd, "alone", {1, 2});
  const Rows rows =
      rows_of(fixture.store, "SELECT sample_id, position FROM first_difference ORDER BY sample_id");
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_THAT(rows[0], ElementsAre("first", "0"));
  EXPECT_THAT(rows[1], ElementsAre("late", "8"));
  EXPECT_THAT(rows[2], ElementsAre("prefix", "5"));
  const Rows paired = rows_of(
      fixture.store,
      "SELECT reference, reference_id, pairs, diverged, n, b, c, n_diverged, correct_diverged, "
      "reference_correct_diverged, output_tokens, reference_tokens FROM paired");
  ASSERT_EQ(paired.size(), 1u);
  EXPECT_THAT(paired[0],
              ElementsAre("strict", "2", "4", "3", "4", "0", "1", "3", "2", "3", "18", "20"));
}

TEST(PairViews, WhatIsHeldForAReportSaysTheSameUntilHeldAgain) {
  Fixture fixture;
  const auto save_pair = [&](const std::string& sample, TokenId last) {
    fixture.save(fixture.strict, sample, {1, 2, 3});
    fixture.save(fixture.asd, sample, {1, 2, last});
  };
  save_pair("a", 3);
  save_pair("b", 4);
  for (const char* query :
       {"SELECT * FROM pair", "SELECT * FROM verdict", "SELECT * FROM exception_tally",
        "SELECT * FROM paired", "SELECT * FROM ledger", "SELECT * FROM first_difference"}) {
    const ResultStore reader(fixture.folder / "a.db", OpenMode::kReadOnly);
    const Rows before = rows_of(reader, query);
    EXPECT_FALSE(before.empty()) << query;
    reader.hold_for_report();
    EXPECT_EQ(rows_of(reader, query), before) << query;
  }
  const ResultStore reader(fixture.folder / "a.db", OpenMode::kReadOnly);
  reader.hold_for_report();
  save_pair("c", 5);
  EXPECT_EQ(value_of(reader, "SELECT pairs FROM paired"), "2");
  reader.hold_for_report();
  EXPECT_EQ(value_of(reader, "SELECT pairs FROM paired"), "3");
}

TEST(PairViews, CappedRepliesCountAsWrongOrAsScored) {
  Fixture fixture;
  fixture.save(fixture.strict, "a", {1, 2}, Verdict::kCorrect);
  fixture.save(fixture.asd, "a", {1, 3}, Verdict::kCorrect, FinishReason::kLength);
  const Rows rows = rows_of(
      fixture.store,
      "SELECT b, c, b_as_scored, c_as_scored, only_capped, only_reference_capped FROM paired");
  EXPECT_THAT(rows.at(0), ElementsAre("0", "1", "0", "0", "1", "0"));
}

TEST(CellViews, AcceptanceLedgerAndPositions) {
  Fixture fixture;
  fixture.save(fixture.asd, "a", {1, 2, 3, 4, 5});
  EXPECT_THAT(
      rows_of(
          fixture.store,
          "SELECT requests, passes, tokens, drafted, kept, accept_length, drafts_kept_per_pass, "
          "strict_length_per_pass, draft_acceptance FROM acceptance")
          .at(0),
      ElementsAre("1", "2", "4", "8", "2", "2.0", "1.0", "0.5", "0.25"));
  const Rows places = rows_of(
      fixture.store, "SELECT position, drafted, reached, accepted, strict FROM block_position");
  ASSERT_EQ(places.size(), 4u);
  EXPECT_THAT(places[0], ElementsAre("0", "2", "2", "1", "1"));
  EXPECT_THAT(places[1], ElementsAre("1", "2", "1", "1", "0"));
  EXPECT_THAT(places[2], ElementsAre("2", "2", "1", "0", "0"));
  // One exception of 0.125 at position 1 of a block that kept 2 drafts: barren; budget 8; a pass
  // was stopped by gate and budget.
  EXPECT_THAT(rows_of(fixture.store,
                      "SELECT requests, exceptions, reused, barren, free, exhausted, regret, "
                      "exceptions_per_100_tokens, budget_used_max FROM ledger")
                  .at(0),
              ElementsAre("1", "1", "0", "1", "0", "1", "0.125", "25.0", "0.015625"));
  EXPECT_THAT(rows_of(fixture.store, "SELECT condition, passes FROM blocked ORDER BY condition"),
              ElementsAre(ElementsAre("budget", "1"), ElementsAre("gate", "2")));
  EXPECT_THAT(rows_of(fixture.store, "SELECT regret_from, exceptions FROM regret_histogram"),
              ElementsAre(ElementsAre("0.125", "1")));
}

TEST(SpeedViews, RatiosDriftAndBoundOfGroups) {
  Fixture fixture;
  for (std::int64_t group = 0; group < 2; ++group) {
    fixture.store.save_group(group_rows(fixture.run, "set", group,
                                        {fixture.strict, fixture.asd, fixture.asd, fixture.strict},
                                        {2.0, 1.0, 1.0, 1.6}));
  }
  const Rows rows =
      rows_of(fixture.store,
              "SELECT round(ratio, 6), round(drift_pct, 6) FROM group_speed WHERE cell_id = 3 "
              "AND reference = 'strict'");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_THAT(rows[0], ElementsAre("1.788854", "0.0"));
  EXPECT_EQ(value_of(fixture.store,
                     "SELECT DISTINCT round(drift_pct, 6) FROM group_speed WHERE cell_id = 2"),
            "25.0");
  // Equal tokens a pass allow no gain at all.
  EXPECT_EQ(
      value_of(fixture.store, "SELECT bound || ' ' || exceeded FROM speed_bound WHERE cell_id = 3"),
      "1.0 1");
}

TEST(SpeedViews, AVoidGroupIsKeptAndCountsNowhere) {
  Fixture fixture;
  std::vector<SpeedSlotRow> slots =
      group_rows(fixture.run, "set", 0, {fixture.strict, fixture.asd, fixture.asd, fixture.strict},
                 {2, 1, 1, 2});
  slots[1].environment = {
      {.name = "core_mhz", .samples = 3, .mean = 2900, .least = 2800, .most = 3000}};
  fixture.store.save_group(slots);
  EXPECT_EQ(value_of(fixture.store, "SELECT estimate FROM speed_ratio WHERE cell_id = 3"), "2.0");
  EXPECT_EQ(value_of(fixture.store, "SELECT name || mean FROM arm_environment"), "core_mhz2900.0");
  for (SpeedSlotRow& slot : slots) slot.group = 1;
  slots[0].decode_ns *= 100;
  fixture.store.save_group(slots, "core frequency differs");
  EXPECT_EQ(value_of(fixture.store, "SELECT count(*) FROM speed_group"), "2");
  EXPECT_EQ(value_of(fixture.store, "SELECT estimate FROM speed_ratio WHERE cell_id = 3"), "2.0");
  EXPECT_EQ(value_of(fixture.store, "SELECT groups FROM speed WHERE cell_id = 3"), "1");
  EXPECT_EQ(value_of(fixture.store, "SELECT count(*) FROM group_speed WHERE cell_id = 3"), "1");
}

// Slots of prompts that took `seconds` each, strict and ASD in turn.
std::vector<SpeedSlotRow> with_prompts(std::vector<SpeedSlotRow> slots) {
  for (SpeedSlotRow& slot : slots) {
    for (int i = 0; i < 2; ++i) {
      slot.each.push_back({.sample_id = "p" + std::to_string(i),
                           .tokens = slot.tokens / 2,
                           .decode_ns = slot.decode_ns / 2,
                           .prefill_ns = slot.prefill_ns,
                           .tokens_sha256 = "ff"});
    }
  }
  return slots;
}

TEST(SpeedViews, TheWiderIntervalIsTheOneOfTheMatrix) {
  Fixture fixture;
  for (std::int64_t group = 0; group < 3; ++group) {
    const double noise = 1 + 0.001 * static_cast<double>(group);
    fixture.store.save_group(with_prompts(group_rows(
        fixture.run, "set", group, {fixture.strict, fixture.asd, fixture.asd, fixture.strict},
        {1.25 * noise, 1, 1, 1.25})));
  }
  const double low = fixture.store.matrix()[2].vs_strict.low.value();
  EXPECT_NEAR(low, 1.25, 0.003) << "run-to-run noise only";
  SpeedIntervalRow prompts{.set_key = "set",
                           .cell_id = fixture.asd,
                           .reference_id = fixture.strict,
                           .prompts = 2,
                           .groups = 3,
                           .estimate = 1.25,
                           .low = 1.1,
                           .high = 1.4,
                           .resamples = 4,
                           .seed = 1};
  fixture.store.save_speed_intervals("set", {prompts});
  MatrixRow row = fixture.store.matrix()[2];
  EXPECT_EQ(row.vs_strict.low, 1.1);
  EXPECT_EQ(row.vs_strict.high, 1.4);
  prompts.low = 1.2499;
  prompts.high = 1.2501;
  fixture.store.save_speed_intervals("set", {prompts});
  row = fixture.store.matrix()[2];
  EXPECT_EQ(row.vs_strict.low, low) << "the narrower one is not shown";
  const std::vector<PromptTimeRow> times = fixture.store.prompt_times("set");
  ASSERT_EQ(times.size(), 4u);
  EXPECT_EQ(times[2].cell_id, fixture.asd);
  EXPECT_EQ(times[2].sample_id, "p0");
  EXPECT_EQ(times[2].slots, 6);
  EXPECT_EQ(times[2].decode_ns, 3'000'000'000);
}

TEST(SpeedViews, ReferenceLengthsSpeakWhereConstantWorkRunsOverTheEnd) {
  Fixture fixture;
  const auto time = [&](const std::string& set, const std::string& work, double seconds,
                        std::int64_t post_end) {
    fixture.store.save_speed_set({.set_key = set, .work = work});
    for (std::int64_t group = 0; group < 2; ++group) {
      auto slots = group_rows(fixture.run, set, group,
                              {fixture.strict, fixture.asd, fixture.asd, fixture.strict},
                              {seconds, 1, 1, seconds});
      for (SpeedSlotRow& slot : slots) slot.post_end_tokens = post_end;
      fixture.store.save_group(slots);
    }
  };
  const auto shown = [&] {
    const MatrixRow row = fixture.store.matrix()[2];
    return row.speed_work + " " + std::to_string(row.vs_strict.estimate.value());
  };
  time("f1", "constant", 1.5, 150);
  time("f2", "reference", 1.25, 0);
  EXPECT_EQ(shown(), "constant 1.500000") << "15 % after the end";
  time("f1 again", "constant", 1.75, 250);
  EXPECT_EQ(shown(), "reference 1.250000") << "25 % after the end";
  time("n", "natural", 4, 0);
  EXPECT_EQ(shown(), "reference 1.250000") << "natural endings are no fixed work";
  EXPECT_EQ(value_of(fixture.store, "SELECT count(*) FROM speed WHERE set_key = 'n'"), "0");
}

TEST(SpeedViews, TimeToAnswerCountsPrefillAndLength) {
  Fixture fixture;
  fixture.store.save_speed_set({.set_key = "n", .work = "natural"});
  for (std::int64_t group = 0; group < 2; ++group) {
    // Strict: 1000 tokens in 10 s; ASD: 1030 in 9.555 s, 7.8 % more a second.
    auto slots = group_rows(fixture.run, "n", group,
                            {fixture.strict, fixture.asd, fixture.asd, fixture.strict},
                            {10, 9.55555, 9.55555, 10});
    for (SpeedSlotRow& slot : slots) {
      slot.prefill_ns = 1'000'000'000;
      if (slot.cell_id == fixture.asd) slot.tokens = 1030;
    }
    fixture.store.save_group(slots);
  }
  EXPECT_THAT(rows_of(fixture.store,
                      "SELECT groups, requests, round(seconds_per_request, 4), reference, "
                      "round(ratio, 5), round(tokens_per_s_gain_pct, 2), "
                      "round(length_change_pct, 2), round(answers_per_s_change_pct, 2) "
                      "FROM time_to_answer WHERE cell_id = 3")
                  .at(0),
              ElementsAre("2", "8", "5.2778", "strict", "1.04211", "7.79", "3.0", "4.65"));
  EXPECT_EQ(value_of(fixture.store, "SELECT count(*) FROM speed_ratio"), "0");
}

TEST(SpeedViews, TriplesGiveGainAndDriftInPercent) {
  Fixture fixture;
  fixture.store.save_speed_set({.set_key = "b", .work = "constant", .design = "bcb"});
  const auto triple = [&](std::int64_t group, double before, double cell, double after) {
    fixture.store.save_group(group_rows(fixture.run, "b", group,
                                        {fixture.strict, fixture.asd, fixture.strict},
                                        {1000 / before, 1000 / cell, 1000 / after}));
  };
  triple(0, 100, 110, 102);
  triple(1, 100, 110, 104);
  EXPECT_THAT(rows_of(fixture.store,
                      "SELECT cell_id, reference_id, round(gain_pct, 3), round(drift_pct, 3), "
                      "valid FROM bracketed ORDER BY group_id"),
              ElementsAre(ElementsAre("3", "2", "8.911", "2.0", "1"),
                          ElementsAre("3", "2", "7.843", "4.0", "0")));
  // A triple of other cells has no ratio for these, and is no unequal work.
  fixture.store.save_group(group_rows(
      fixture.run, "b", 2, {fixture.plain, fixture.strict, fixture.plain}, {20, 10, 20}));
  EXPECT_EQ(value_of(fixture.store,
                     "SELECT count(*) FROM group_speed WHERE ratio IS NULL AND reference NOT NULL"),
            "0");
  EXPECT_EQ(value_of(fixture.store,
                     "SELECT round(ratio, 3) FROM group_speed WHERE number = 2 AND cell_id = 2 "
                     "AND reference = 'plain'"),
            "2.0");
}

TEST(SpeedViews, TheTailOfABatchStandsApart) {
  Fixture fixture;
  CellRow wide = cell_row("strict");
  wide.key += " batch 4";
  wide.identity += " ";
  wide.batch = 4;
  const std::int64_t cell = fixture.store.cell(wide);
  auto slots = group_rows(fixture.run, "c", 0, {cell, cell}, {10, 10});
  for (SpeedSlotRow& slot : slots) {
    slot.tail_tokens = 200;
    slot.tail_ns = 4'000'000'000;
  }
  fixture.store.save_group(slots);
  EXPECT_THAT(rows_of(fixture.store,
                      "SELECT batch, slots, tokens_per_s, round(full_tokens_per_s, 3), "
                      "tail_tokens_per_s, tail_share FROM concurrency")
                  .at(0),
              ElementsAre("4", "2", "100.0", "133.333", "50.0", "0.4"));
}

TEST(PairViews, RoundingIsSeenAgainstPlainAndAgainstBatchOne) {
  Fixture fixture;
  CellRow wide = cell_row("asd");
  wide.key += " batch 4";
  wide.identity += " ";
  wide.batch = 4;
  const std::int64_t batched = fixture.store.cell(wide);
  for (const std::string sample : {"a", "b"}) {
    fixture.save(fixture.plain, sample, {1, 2, 3});
    fixture.save(fixture.strict, sample, {1, 2, sample == "a" ? 3 : 4});
    fixture.save(fixture.asd, sample, {1, 5});
    fixture.save(batched, sample, {1, 5});
  }
  EXPECT_THAT(rows_of(fixture.store,
                      "SELECT cell_id, reference, reference_id, pairs, diverged FROM noise_floor "
                      "ORDER BY cell_id, reference"),
              ElementsAre(ElementsAre("2", "plain", "1", "2", "1"),
                          ElementsAre("4", "batch", "3", "2", "0")));
}

TEST(SpeedViews, SpotChecksAndReplaysAreKept) {
  Fixture fixture;
  fixture.store.save_spot_checks(
      {{"set", fixture.asd, "a", "11", "11"}, {"set", fixture.asd, "b", "11", "22"}});
  EXPECT_EQ(
      value_of(fixture.store,
               "SELECT sum(timed_sha256 <> again_sha256) || ' of ' || count(*) FROM spot_check"),
      "1 of 2");
  fixture.store.save_replay({{.cell_id = fixture.asd,
                              .run_id = fixture.run,
                              .sample_id = "a",
                              .passes = 10,
                              .drafted = 40,
                              .strict_committed = 20,
                              .committed = 23,
                              .exceptions = 3,
                              .regret = 0.5}});
  EXPECT_EQ(fixture.store.replayed(fixture.asd), std::set<std::string>{"a"});
  EXPECT_THAT(rows_of(fixture.store,
                      "SELECT requests, strict_tokens_per_pass, tokens_per_pass, "
                      "round(gain_pct, 6), regret FROM replayed")
                  .at(0),
              ElementsAre("1", "2.0", "2.3", "15.0", "0.5"));
}

}  // namespace
}  // namespace asdbench
