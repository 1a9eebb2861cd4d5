// Ends, lengths, and what a cut takes off the ledger.
#include "runners/cut.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace asdbench {
namespace {

using testing::ElementsAre;

// A block of drafts 10, 11, 12, 13 whose target token is 20, with exceptions at 0 and 2.
class CutTest : public testing::Test {
 protected:
  CutTest() {
    decision_.accepted = 4;
    decision_.target_token = 20;
    decision_.exceptions.push_back({.position = 0,
                                    .draft = 10,
                                    .choice = 1,
                                    .regret = 0.25,
                                    .weight = 4,
                                    .block_regret = 0.25});
    decision_.exceptions.push_back({.position = 2,
                                    .draft = 12,
                                    .choice = 1,
                                    .regret = 0.5,
                                    .weight = 2,
                                    .block_regret = 0.75});
  }
  Kept run() {
    stop_.end_ids = end_ids_;
    return cut(
        {.draft = draft_, .scores = {}, .target = {}, .draft_logits = std::nullopt, .stop = stop_},
        decision_);
  }
  static std::vector<TokenId> tokens(const Kept& kept) {
    const auto committed = kept.committed_tokens();
    return {committed.begin(), committed.end()};
  }

  std::vector<TokenId> draft_{10, 11, 12, 13};
  std::vector<TokenId> end_ids_;
  StopRule stop_;
  Decision decision_;
};

TEST_F(CutTest, KeepsEverythingWithoutEndOrLimit) {
  const Kept kept = run();
  EXPECT_THAT(tokens(kept), ElementsAre(10, 11, 12, 13, 20));
  EXPECT_TRUE(kept.target_token);
  EXPECT_EQ(kept.exceptions, 2);
  EXPECT_EQ(kept.block_regret, 0.75);
  EXPECT_FALSE(kept.finish);
}

TEST_F(CutTest, RejectedDraftsAreNotKept) {
  decision_.accepted = 1;
  decision_.exceptions.shrink(1);
  const Kept kept = run();
  EXPECT_THAT(tokens(kept), ElementsAre(10, 20));
  EXPECT_EQ(kept.block_regret, 0.25);
}

TEST_F(CutTest, AnEndAmongTheDraftsCutsAfterItself) {
  end_ids_ = {11, 13};
  const Kept kept = run();
  EXPECT_THAT(tokens(kept), ElementsAre(10, 11));
  EXPECT_FALSE(kept.target_token);
  EXPECT_EQ(kept.finish, FinishReason::kEos);
  EXPECT_EQ(kept.exceptions, 1);  // the one at 2 is not charged
  EXPECT_EQ(kept.block_regret, 0.25);
}

TEST_F(CutTest, AnEndFromTheTargetIsCommitted) {
  end_ids_ = {20};
  const Kept kept = run();
  EXPECT_THAT(tokens(kept), ElementsAre(10, 11, 12, 13, 20));
  EXPECT_EQ(kept.finish, FinishReason::kEos);
}

TEST_F(CutTest, IgnoredEndsAreOrdinary) {
  end_ids_ = {11, 20};
  stop_.ignore_end_ids = true;
  const Kept kept = run();
  EXPECT_THAT(tokens(kept), ElementsAre(10, 11, 12, 13, 20));
  EXPECT_FALSE(kept.finish);
}

TEST_F(CutTest, LengthCutsWhatIsTooMuch) {
  struct Case {
    std::int32_t remaining, drafts, exceptions;
    bool target;
    double regret;
  };
  for (const Case& c :
       {Case{1, 1, 1, false, 0.25}, Case{2, 2, 1, false, 0.25}, Case{3, 3, 2, false, 0.75},
        Case{4, 4, 2, false, 0.75}, Case{5, 4, 2, true, 0.75}}) {
    stop_.remaining = c.remaining;
    const Kept kept = run();
    EXPECT_EQ(kept.committed(), c.remaining);
    EXPECT_EQ(kept.drafts, c.drafts);
    EXPECT_EQ(kept.target_token, c.target);
    EXPECT_EQ(kept.exceptions, c.exceptions) << c.remaining;
    EXPECT_EQ(kept.block_regret, c.regret);
    EXPECT_EQ(kept.finish, FinishReason::kLength);
  }
  stop_.remaining = 6;
  EXPECT_FALSE(run().finish);
}

TEST_F(CutTest, AnEndAtTheLimitIsAnEnd) {
  end_ids_ = {12};
  stop_.remaining = 3;
  EXPECT_EQ(run().finish, FinishReason::kEos);
  stop_.remaining = 2;  // the end lies beyond the cut
  EXPECT_EQ(run().finish, FinishReason::kLength);
  stop_.remaining = 4;
  EXPECT_EQ(run().finish, FinishReason::kEos);
  EXPECT_EQ(run().committed(), 3);
}

TEST_F(CutTest, TheModelsPositionsAreNamed) {
  stop_.remaining = 2;
  stop_.context_limited = true;
  EXPECT_EQ(run().finish, FinishReason::kContextLimit);
}

TEST_F(CutTest, ABlockWithoutDrafts) {
  draft_.clear();
  decision_ = {};
  decision_.target_token = 20;
  EXPECT_THAT(tokens(run()), ElementsAre(20));
  end_ids_ = {20};
  EXPECT_EQ(run().finish, FinishReason::kEos);
  EXPECT_EQ(run().block_regret, 0);
}

}  // namespace
}  // namespace asdbench
