// What is derived from rows: log speedups, the set that gates, intervals over prompts and lengths.
#include "eval/audit/evidence.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

namespace asdbench {
namespace {

constexpr std::int64_t kStrict = 1, kAsd = 2;

SlotFacts slot(std::int64_t group, std::int64_t number, std::int64_t cell, std::int64_t ns) {
  return {.group = group,
          .slot = number,
          .cell_id = cell,
          .tokens = 100,
          .passes = 50,
          .decode_ns = ns,
          .tokens_sha256 = cell == kStrict ? "s" : "a"};
}

/// One group, S A A S.
TimedSet set_of(std::int64_t s1, std::int64_t a1, std::int64_t a2, std::int64_t s2) {
  return {.task = "t",
          .strict_cell = kStrict,
          .asd_cell = kAsd,
          .slots = {slot(0, 0, kStrict, s1), slot(0, 1, kAsd, a1), slot(0, 2, kAsd, a2),
                    slot(0, 3, kStrict, s2)}};
}

TEST(Speedups, AreHalfTheLogRatioOfFourSlots) {
  TimedSet set = set_of(120, 100, 105, 110);
  ASSERT_EQ(group_log_speedups(set).size(), 1u);
  EXPECT_NEAR(group_log_speedups(set)[0], std::log(120 * 110.0 / (100 * 105)) / 2, 1e-12);
  set.slots.push_back(slot(1, 0, kStrict, 100));
  EXPECT_EQ(group_log_speedups(set).size(), 1u) << "a group that lacks slots gives none";
  EXPECT_TRUE(group_log_speedups({}).empty());
}

TEST(Speedups, AClockThatWentBackwardsGivesNone) {
  EXPECT_TRUE(group_log_speedups(set_of(120, -3, 105, 110)).empty());
  EXPECT_TRUE(group_log_speedups(set_of(0, 100, 105, 110)).empty());
}

TEST(PrimarySet, IsOfReferenceLengthsWhereTooMuchCameAfterTheEnd) {
  TimedSet fixed = set_of(1, 1, 1, 1), reference = set_of(2, 2, 2, 2);
  reference.reference_lengths = true;
  std::vector<TimedSet> sets = {fixed, reference};
  EXPECT_EQ(primary_set(sets, "t"), &sets[0]);
  for (SlotFacts& each : sets[0].slots) each.post_end_tokens = each.cell_id == kAsd ? 21 : 0;
  EXPECT_DOUBLE_EQ(post_end_fraction(sets[0]), 0.21) << "of the arm that has more";
  EXPECT_EQ(primary_set(sets, "t"), &sets[1]);
  sets.pop_back();
  EXPECT_EQ(primary_set(sets, "t"), &sets[0]);
  EXPECT_EQ(primary_set(sets, "another"), nullptr);
}

Json manifest(std::int64_t batch) {
  return {{"rule", {{"options", {{"B", "8"}, {"g", "0.25"}, {"M", "2"}}}}},
          {"decoding", {{"batch", batch}}},
          {"speed", {{"groups", 2}, {"minimum_seconds", "0"}}},
          {"statistics",
           {{"alpha", "0.05"},
            {"power", "0.8"},
            {"drift_limit_pct", "3"},
            {"speed_target_pct", "0"},
            {"length_limit_pct", "3"},
            {"accuracy_floor", "0.05"},
            {"cap_margin", "0.01"},
            {"capped", "wrong"},
            {"sampling", "fixed"},
            {"bootstrap_seed", 1},
            {"resamples", 2000}}}};
}

/// Two groups over 16 prompts: strict takes 12 ms each, ASD 10 for the first half of them and 11
/// for the others.
AuditedRows timed_rows() {
  AuditedRows rows;
  rows.tasks.emplace_back();
  rows.tasks.back().name = "t";
  rows.tasks.back().entry = {{"margin", "0.05"}, {"metric", "accuracy"}};
  TimedSet set = set_of(0, 0, 0, 0);
  for (SlotFacts each : std::vector<SlotFacts>(set.slots)) {
    each.group = 1;
    set.slots.push_back(each);
  }
  for (SlotFacts& each : set.slots) {
    each.decode_ns = 0;
    for (int i = 0; i < 16; ++i) {
      const std::int64_t ms = each.cell_id == kStrict ? 12 : i < 8 ? 10 : 11;
      each.prompts.push_back(
          {.sample_id = fmt::format("t/{}", i), .tokens = 6, .decode_ns = ms * 1'000'000});
      each.decode_ns += ms * 1'000'000;
    }
    each.environment = {{.name = "load", .samples = 2, .mean = 1.5, .least = 1, .most = 2}};
  }
  rows.sets.push_back(std::move(set));
  return rows;
}

double width_over_prompts(std::int64_t batch) {
  const Json speed = derive_evidence(timed_rows(), manifest(batch)).figures.at("speed");
  const Json& interval = speed.at("tasks")[0].at("interval_prompts_pct");
  return real_of(interval[1]) - real_of(interval[0]);
}

TEST(Speed, PromptsThatShareTheirTimeAreDrawnTogether) {
  // Two batches of 8: half of the four ways to draw two of them hold one kind alone.
  EXPECT_NEAR(width_over_prompts(8), 100 * (12 / 10.0 - 12 / 11.0), 0.9);
  EXPECT_LT(width_over_prompts(1), 0.7 * width_over_prompts(8));
}

TEST(Environment, IsOnTheRecord) {
  const Json figures = derive_evidence(timed_rows(), manifest(1)).figures;
  EXPECT_EQ(
      figures.at("environment")[0],
      (Json{{"task", "t"}, {"load_strict", {"1.5", "1", "2"}}, {"load_asd", {"1.5", "1", "2"}}}));
}

}  // namespace
}  // namespace asdbench
