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

}  // namespace
}  // namespace asdbench
