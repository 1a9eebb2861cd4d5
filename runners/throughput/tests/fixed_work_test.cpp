// Order of arms, equal work, and the arithmetic of one group.
#include "runners/throughput/fixed_work.h"

#include <gtest/gtest.h>

#include <cmath>

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
  warm_up(*target_, arms_, work_, 1000, [&] { return ++asked > 3; });
  EXPECT_LT(asked, 12) << "a stop is noticed after the pass under way";
}

TEST_F(FixedWorkTest, WorkThatDoesNotFitTheContextIsRefused) {
  work_[1].tokens = 1 << 20;
  EXPECT_THROW(run_group(*target_, arms_, work_, 0, [] { return false; }), Error);
}

}  // namespace
}  // namespace asdbench
