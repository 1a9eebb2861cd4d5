// What a request records, and how it ends.
#include "runners/request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "eval/core/error.h"

namespace asdbench {
namespace {

using testing::ElementsAre;

const std::vector<TokenId> kEnds{7, 9};

Request make(std::int32_t max_tokens, bool ignore_end_ids = false) {
  return Request("test/0", {1, 2, 3}, {max_tokens, ignore_end_ids}, kEnds, Rng());
}

TEST(RequestTest, TheFirstTokenCanEndIt) {
  Request end = make(10);
  end.commit_first(9, 100);
  EXPECT_EQ(end.finish(), FinishReason::kEos);
  Request ignored = make(10, true);
  ignored.commit_first(9, 100);
  EXPECT_FALSE(ignored.finished());
  EXPECT_EQ(ignored.stop().remaining, 9);
  Request only = make(1);
  only.commit_first(5, 100);
  EXPECT_EQ(only.finish(), FinishReason::kLength);
  Request last_end = make(1);
  last_end.commit_first(7, 100);
  EXPECT_EQ(last_end.finish(), FinishReason::kEos);
  Request full = make(10);
  full.commit_first(5, 4);
  EXPECT_EQ(full.finish(), FinishReason::kContextLimit);
  Request both = make(1);  // the token cap is reported when positions leave no less
  both.commit_first(5, 4);
  EXPECT_EQ(both.finish(), FinishReason::kLength);
}

TEST(RequestTest, RemainingIsTheSmallerOfCapAndPositions) {
  Request request = make(10);
  request.commit_first(5, 100);
  EXPECT_EQ(request.stop().remaining, 9);
  EXPECT_FALSE(request.stop().context_limited);
  Request tight = make(10);
  tight.commit_first(5, 8);
  EXPECT_EQ(tight.stop().remaining, 4);
  EXPECT_TRUE(tight.stop().context_limited);
}

TEST(RequestTest, RecordsPassesAndExceptions) {
  Request request = make(100);
  request.commit_first(5, 100);
  request.draft = {20, 21, 22, 23};
  Decision decision;
  decision.accepted = 3;
  decision.strict_length = 1;
  decision.blocked_by = kBlockedByGate;
  decision.exceptions.push_back(
      {.position = 1, .draft = 21, .choice = 30, .regret = 0.5, .weight = 3, .block_regret = 0.5});
  decision.exceptions.push_back({.position = 2,
                                 .draft = 22,
                                 .choice = 31,
                                 .regret = 0.25,
                                 .weight = 2,
                                 .block_regret = 0.75});
  Kept kept;
  kept.drafts = 3;
  kept.target_token = true;
  kept.exceptions = 2;
  kept.block_regret = 0.75;
  kept.tokens = {20, 21, 22, 40};
  request.commit(kept, decision);
  request.commit(kept, decision);
  EXPECT_THAT(request.output(), ElementsAre(5, 20, 21, 22, 40, 20, 21, 22, 40));
  EXPECT_THAT(request.prompt(), ElementsAre(1, 2, 3));
  EXPECT_EQ(request.pending(), 40);
  EXPECT_EQ(request.ledger().spent(), 1.5);
  ASSERT_EQ(request.exceptions().size(), 4U);
  const ExceptionRecord& record = request.exceptions()[3];
  EXPECT_EQ(record.pass, 1);
  EXPECT_EQ(record.output_position, 7);
  EXPECT_EQ(record.block_position, 2);
  EXPECT_EQ(record.drafted, 4);
  EXPECT_EQ(record.draft, 22);
  EXPECT_EQ(record.choice, 31);
  EXPECT_EQ(record.regret, 0.25);
  EXPECT_EQ(record.weight, 2);
  EXPECT_EQ(record.spent_after, 1.5);
  EXPECT_EQ(request.output()[7], record.draft);
  ASSERT_EQ(request.passes().size(), 2U);
  EXPECT_EQ(request.passes()[1].drafted, 4);
  EXPECT_EQ(request.passes()[1].committed, 4);
  EXPECT_EQ(request.passes()[1].strict_length, 1);
  EXPECT_EQ(request.passes()[1].blocked_by, kBlockedByGate);
  const Completion completion = request.completion();
  EXPECT_EQ(completion.tokens.size(), 9U);
  EXPECT_EQ(completion.prompt_tokens, 3);
  EXPECT_EQ(completion.spent, 1.5);
  EXPECT_FALSE(completion.finish);
}

TEST(RequestTest, FailureKeepsTokensAndLedger) {
  Request request = make(10);
  request.commit_first(5, 100);
  request.fail("nonfinite_logit");
  EXPECT_TRUE(request.finished());
  EXPECT_THAT(request.output(), ElementsAre(5));
  EXPECT_EQ(request.completion().error, "nonfinite_logit");
  EXPECT_FALSE(request.completion().finish);
}

TEST(RequestTest, RefusesAnEmptyPromptAndUnsortedEnds) {
  EXPECT_THROW(Request("a", {}, {1, false}, kEnds, Rng()), DataError);
  const std::vector<TokenId> unsorted{9, 7};
  EXPECT_THROW(Request("a", {1}, {1, false}, unsorted, Rng()), InternalError);
  EXPECT_THROW(Request("a", {1}, {0, false}, kEnds, Rng()), InternalError);
}

}  // namespace
}  // namespace asdbench
