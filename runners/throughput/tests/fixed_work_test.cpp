// Order of arms, equal work, and the arithmetic of one group.
#include "runners/throughput/fixed_work.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "eval/core/error.h"
#include "runners/models/planted_target.h"
#include "runners/models/toy_target.h"

namespace asdbench {
namespace {

using Order = std::vector<std::size_t>;

TEST(SlotOrderTest, TwoArmsAlternateTheirMirrors) {
  EXPECT_EQ(slot_order(2, 0), (Order{0, 1, 1, 0}));
  EXPECT_EQ(slot_order(2, 1), (Order{1, 0, 0, 1}));
  EXPECT_EQ(slot_order(2, 2), (Order{0, 1, 1, 0}));
}

TEST(SlotOrderTest, MoreArmsAreAPalindromeThatRotates) {
  EXPECT_EQ(slot_order(3, 0), (Order{0, 1, 2, 2, 1, 0}));
  EXPECT_EQ(slot_order(3, 1), (Order{1, 2, 0, 0, 2, 1}));
  EXPECT_EQ(slot_order(1, 5), (Order{0, 0}));
}

TEST(GroupLogRatioTest, LinearDriftOnTheLogScaleCancels) {
  // Slots S A A S, true speedup 1.25, every slot 3 % slower than the one before.
  std::vector<SlotResult> slots(4);
  const Order order = slot_order(2, 0);
  for (std::size_t i = 0; i < 4; ++i) {
    slots[i].arm = order[i];
    const double seconds = (order[i] == 0 ? 1.25 : 1.0) * std::pow(1.03, static_cast<double>(i));
    slots[i].decode_ns = std::llround(seconds * 1e12);
  }
  EXPECT_NEAR(group_log_ratio(slots, 1, 0), std::log(1.25), 1e-9);
  EXPECT_NEAR(group_log_ratio(slots, 0, 1), -std::log(1.25), 1e-9);
  EXPECT_EQ(group_log_ratio(slots, 0, 0), 0);
}

class FixedWorkTest : public ::testing::Test {
 protected:
  FixedWorkTest() : target_(make_toy_target(Params("toy", {}))) {
    for (const DrafterFactory& factory : drafter_factories()) {
      if (factory.name == "none") none_ = factory.make(Params("none", {}), {*target_});
      if (factory.name == "ngram") ngram_ = factory.make(Params("ngram", {}), {*target_});
    }
    for (const VerifierFactory& factory : verifier_factories()) {
      if (factory.name == "strict") strict_ = factory.make(Params("strict", {}));
    }
    arms_ = {{.name = "plain", .drafter = none_.get(), .verifier = strict_.get(), .drafts = 0},
             {.name = "strict", .drafter = ngram_.get(), .verifier = strict_.get(), .drafts = 4}};
    for (TokenId first = 1; first <= 3; ++first) {
      work_.push_back({.sample_id = std::to_string(first), .prompt = {first, 2, 3}, .tokens = 20});
    }
  }

  std::unique_ptr<Target> target_;
  std::unique_ptr<Drafter> none_, ngram_;
  std::unique_ptr<Verifier> strict_;
  std::vector<Arm> arms_;
  std::vector<WorkItem> work_;
};

TEST_F(FixedWorkTest, EveryArmCountsTheSameTokensAndStrictGivesPlainsOutput) {
  const std::vector<SlotResult> slots = run_group(*target_, arms_, work_, 0, [] { return false; });
  ASSERT_EQ(slots.size(), 4U);
  for (const SlotResult& slot : slots) {
    EXPECT_EQ(slot.prompts, 3);
    EXPECT_EQ(slot.tokens, 60);
    EXPECT_GT(slot.decode_ns, 0);
    EXPECT_GT(slot.prefill_ns, 0);
    EXPECT_EQ(slot.tokens_sha256, slots[0].tokens_sha256);
  }
  EXPECT_EQ(slots[0].passes, 60) << "plain decoding commits one token a pass";
  EXPECT_EQ(slots[0].drafted, 0);
  EXPECT_LE(slots[1].passes, 60);
}

TEST_F(FixedWorkTest, BatchedWorkCountsTheSame) {
  for (Arm& arm : arms_) arm.batch = 2;  // three prompts: the last batch is ragged
  const std::vector<SlotResult> slots = run_group(*target_, arms_, work_, 1, [] { return false; });
  ASSERT_EQ(slots.size(), 4U);
  for (const SlotResult& slot : slots) EXPECT_EQ(slot.tokens, 60);
}

TEST_F(FixedWorkTest, AnInterruptedGroupGivesNothing) {
  EXPECT_TRUE(run_group(*target_, arms_, work_, 0, [] { return true; }).empty());
}

TEST_F(FixedWorkTest, WarmUpStopsInsideARequest) {
  int asked = 0;
  work_[0].tokens = 1000;
  warm_up(*target_, arms_, work_, {.least = 1000, .most = 1000}, [&] { return ++asked > 3; });
  EXPECT_LT(asked, 12) << "a stop is noticed after the pass under way";
}

TEST_F(FixedWorkTest, WarmUpEndsWhenThreeRequestsAgreeOrAtItsLimit) {
  for (const WarmUp& arm :
       warm_up(*target_, arms_, work_, {.least = 2, .most = 9}, [] { return false; })) {
    EXPECT_GE(arm.requests, 3);
    EXPECT_LE(arm.requests, 9);
    EXPECT_TRUE(arm.stable || arm.requests == 9);
  }
  // A rule without room counts requests and nothing else.
  const std::vector<WarmUp> fixed =
      warm_up(*target_, arms_, work_, {.least = 1, .most = 1}, [] { return false; });
  ASSERT_EQ(fixed.size(), 2U);
  EXPECT_EQ(fixed[0].requests, 1);
  EXPECT_FALSE(fixed[0].stable);
}

TEST_F(FixedWorkTest, WorkThatDoesNotFitTheContextIsRefused) {
  work_[1].tokens = 1 << 20;
  EXPECT_THROW(run_group(*target_, arms_, work_, 0, [] { return false; }), Error);
}

Params options(const std::string& owner, const std::map<std::string, std::string>& values) {
  Params params(owner, {});
  for (const auto& [key, value] : values) params.set(key, value, {});
  return params;
}

// A pass of the planted target costs the same under every rule, so that the speedup must be the
// ratio of passes; that ratio is planted too: 1 + a + ... + a^4 with a = 0.6 against a = 0.6 + 0.4
// near.
TEST(PlantedSpeedTest, TheMeasuredSpeedupIsThePredictedOne) {
  for (const auto& [near, predicted] : {std::pair("0", 1.0), {"0.1183", 1.09}, {"0.5363", 1.5}}) {
    const auto target = make_planted_target(options("planted", {{"step_us", "300"}}));
    std::unique_ptr<Drafter> drafter;
    for (const DrafterFactory& factory : drafter_factories()) {
      if (factory.name != "planted") continue;
      drafter = factory.make(
          options("planted", {{"K", "4"}, {"acceptance", "0.6"}, {"near", near}}), {*target});
    }
    std::unique_ptr<Verifier> strict, asd;
    for (const VerifierFactory& factory : verifier_factories()) {
      if (factory.name == "strict") strict = factory.make(Params("strict", {}));
      if (factory.name == "asd") {
        asd = factory.make(options("asd", {{"B", "inf"}, {"g", "1"}, {"M", "inf"}}));
      }
    }
    const std::vector<Arm> arms = {
        {.name = "strict", .drafter = drafter.get(), .verifier = strict.get(), .drafts = 4},
        {.name = "asd", .drafter = drafter.get(), .verifier = asd.get(), .drafts = 4}};
    std::vector<WorkItem> work;
    for (TokenId first = 1; first <= 3; ++first) {
      work.push_back({.sample_id = std::to_string(first), .prompt = {first, 2, 3}, .tokens = 200});
    }
    std::vector<double> logs;
    std::map<std::size_t, double> passes;
    for (std::int64_t group = 0; group < 4; ++group) {
      const std::vector<SlotResult> slots =
          run_group(*target, arms, work, group, [] { return false; });
      for (const SlotResult& slot : slots) passes[slot.arm] += static_cast<double>(slot.passes);
      logs.push_back(group_log_ratio(slots, 1, 0));
    }
    const double tau_ratio = passes[0] / passes[1];
    EXPECT_NEAR(tau_ratio, predicted, 0.12) << "600 tokens say no more";
    double mean = 0, square = 0;
    for (const double value : logs) mean += value / static_cast<double>(logs.size());
    for (const double value : logs) square += (value - mean) * (value - mean);
    const double error =
        std::sqrt(square / static_cast<double>(logs.size() - 1) / static_cast<double>(logs.size()));
    // Four groups: a t quantile of 99.9 % is 12.9; beside it the cost of the loop itself.
    EXPECT_NEAR(mean, std::log(tau_ratio), 12.9 * error + 0.03) << near;
  }
}

}  // namespace
}  // namespace asdbench
