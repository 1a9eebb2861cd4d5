// The laws of the built-in targets, and their caches.
#include "runners/models/toy_target.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "eval/core/error.h"
#include "runners/models/planted_target.h"

namespace asdbench {
namespace {

std::vector<TokenId> random_ids(SplitMix64& random, std::size_t count, std::uint64_t vocab) {
  std::vector<TokenId> ids(count);
  for (TokenId& id : ids) id = static_cast<TokenId>(random.index(vocab));
  return ids;
}

TEST(ToyTargetTest, LogitsAreMultiplesOf64thsAndOftenTie) {
  const ToyTarget target({});
  SplitMix64 random(3);
  int ties = 0;
  for (int i = 0; i < 1000; ++i) {
    std::vector<float> row = target.logits_after(random_ids(random, 10, 64));
    for (const float logit : row) ASSERT_EQ(logit * 64, std::round(logit * 64));
    std::sort(row.begin(), row.end());
    ties += row[62] == row[63] ? 1 : 0;
  }
  EXPECT_GT(ties, 100);
  EXPECT_LT(ties, 900);
}

TEST(ToyTargetTest, EveryIdOfTheHistoryMatters) {
  const ToyTarget toy({});
  const PlantedTarget planted({});
  SplitMix64 random(4);
  for (const HistoryTarget* target :
       {static_cast<const HistoryTarget*>(&toy), static_cast<const HistoryTarget*>(&planted)}) {
    const std::vector<TokenId> history = random_ids(random, 30, 60);
    const std::vector<float> before = target->logits_after(history);
    for (std::size_t i = 0; i < history.size(); ++i) {
      std::vector<TokenId> changed = history;
      ++changed[i];
      EXPECT_NE(target->logits_after(changed), before) << i;
      if (i > 0 && history[i] != history[i - 1]) {
        changed = history;
        std::swap(changed[i], changed[i - 1]);
        EXPECT_NE(target->logits_after(changed), before) << i;
      }
    }
  }
}

TEST(ToyTargetTest, StepsEqualTheClosedForm) {
  ToyTarget target({.vocab = 20, .positions = 64, .ends = 2, .seed = 9});
  target.reserve({.requests = 2, .drafts = 3, .positions = 64}, true);
  Request first("a", {1, 2, 3}, {20, true}, {}, Rng()), second("b", {4, 5}, {20, true}, {}, Rng());
  second.slot = 1;
  const auto expect_row = [&](const StepView& step, std::int64_t row,
                              std::vector<TokenId> history) {
    const auto got = step.logits.row(row);
    const std::vector<float> expected = target.logits_after(history);
    EXPECT_TRUE(std::equal(got.begin(), got.end(), expected.begin(), expected.end())) << row;
    const auto at = static_cast<std::size_t>(row);
    EXPECT_EQ(step.scores.choice[at],
              std::max_element(expected.begin(), expected.end()) - expected.begin());
    EXPECT_EQ(step.scores.bad[at], 0);
  };
  expect_row(target.prefill(first), 0, {1, 2, 3});
  expect_row(target.prefill(second), 0, {4, 5});
  first.commit_first(7, 64);
  second.commit_first(8, 64);
  first.draft = {10, 11, 12};
  Request* const live[] = {&second, &first};
  StepView step = target.forward(live);
  expect_row(step, 0, {4, 5, 8});
  expect_row(step, 1, {1, 2, 3, 7});
  expect_row(step, 2, {1, 2, 3, 7, 10});
  expect_row(step, 3, {1, 2, 3, 7, 10, 11});
  expect_row(step, 4, {1, 2, 3, 7, 10, 11, 12});
  EXPECT_EQ(step.scores.draft_logit[2],
            target.logits_after(std::vector<TokenId>{1, 2, 3, 7, 10})[11]);
  target.keep(second, 0);
  target.keep(first, 1);
  EXPECT_EQ(target.cached(0).size(), 5U);
  EXPECT_EQ(target.cached(1).size(), 3U);
  // A history that is not what the cache was cut to is noticed.
  EXPECT_THROW(target.forward(live), InternalError);
}

TEST(ToyTargetTest, HostRowsAreThereOnlyWhenAskedFor) {
  ToyTarget target({});
  target.reserve({.requests = 1, .drafts = 0, .positions = 64}, false);
  const Request request("a", {1}, {5, false}, {}, Rng());
  EXPECT_EQ(target.prefill(request).logits.data, nullptr);
}

TEST(ToyTargetTest, OptionsAreChecked) {
  Params params("toy", {});
  params.set("vocab", "10", {});
  params.set("ends", "3", {});
  params.set("seed", "4", {});
  const auto target = make_toy_target(params);
  EXPECT_EQ(target->info().vocab, 10);
  EXPECT_EQ(target->info().end_ids, (std::vector<TokenId>{7, 8, 9}));
  params.refuse_unread();
  for (const auto& [key, value] : {std::pair{"vocab", "1"}, std::pair{"positions", "0"},
                                   std::pair{"ends", "64"}, std::pair{"seed", "-1"}}) {
    Params bad("toy", {});
    bad.set(key, value, {});
    EXPECT_THROW(make_toy_target(bad), ConfigError) << key;
  }
}

TEST(PlantedTargetTest, ChoiceRunnerUpAndRegretAreThePlannedOnes) {
  const PlantedTarget target(
      {.vocab = 30, .regret = 0.25, .regret_spread = 0.75, .mean_tokens = 20});
  SplitMix64 random(8);
  int ends = 0;
  double regret = 0;
  for (int i = 0; i < 4000; ++i) {
    const std::vector<TokenId> history = random_ids(random, 6, 30);
    HistoryTarget::State state = HistoryTarget::kEmpty;
    for (const TokenId id : history) state = HistoryTarget::fold(state, id);
    const PlantedTarget::Plan plan = target.plan(state);
    const std::vector<float> row = target.logits_after(history);
    for (TokenId id = 0; id < 30; ++id) {
      const float gap =
          row[static_cast<std::size_t>(plan.choice)] - row[static_cast<std::size_t>(id)];
      ASSERT_EQ(gap, id == plan.choice ? 0 : id == plan.runner_up ? plan.regret : 8);
    }
    ASSERT_NE(plan.runner_up, 29);
    ASSERT_NE(plan.runner_up, plan.choice);
    ASSERT_GE(plan.regret, 0.25F);
    ASSERT_LE(plan.regret, 1.0F);
    ends += plan.choice == 29 ? 1 : 0;
    regret += plan.regret;
  }
  EXPECT_NEAR(ends, 4000 / 20, 70);  // five standard deviations
  EXPECT_NEAR(regret / 4000, 0.25 + 0.75 / 2, 0.025);
}

TEST(PlantedTargetTest, AStepTakesItsTime) {
  PlantedTarget target({.step_us = 1000, .row_us = 500});
  target.reserve({.requests = 1, .drafts = 3, .positions = 64}, false);
  Request request("a", {1, 2}, {5, false}, {}, Rng());
  target.prefill(request);
  request.commit_first(1, 64);
  request.draft = {1, 2, 3};
  Request* const live[] = {&request};
  const auto begin = std::chrono::steady_clock::now();
  target.forward(live);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::microseconds(3000));
}

}  // namespace
}  // namespace asdbench
