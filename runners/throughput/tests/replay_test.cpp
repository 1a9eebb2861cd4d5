// What other rules make of the blocks of a strict run.
#include "runners/throughput/replay.h"

#include <gtest/gtest.h>

#include "runners/models/planted_target.h"
#include "runners/throughput/fixed_work.h"

namespace asdbench {
namespace {

Params options(const std::string& owner, const std::map<std::string, std::string>& values) {
  Params params(owner, {});
  for (const auto& [key, value] : values) params.set(key, value, {});
  return params;
}

std::unique_ptr<Verifier> rule(const std::string& name,
                               const std::map<std::string, std::string>& values = {}) {
  for (const VerifierFactory& factory : verifier_factories()) {
    if (factory.name == name) return factory.make(options(name, values));
  }
  return nullptr;
}

class ReplayTest : public ::testing::TestWithParam<std::int32_t> {
 protected:
  ReplayTest() : target_(make_planted_target(options("planted", {{"step_us", "0"}}))) {
    for (const DrafterFactory& factory : drafter_factories()) {
      if (factory.name != "planted") continue;
      drafter_ = factory.make(
          options("planted", {{"K", "4"}, {"acceptance", "0.6"}, {"near", "0.5"}}), {*target_});
    }
    for (TokenId first = 1; first <= 5; ++first) {
      work_.push_back(
          {.sample_id = std::to_string(first), .prompt = {first, 2, 3}, .tokens = 50 + first});
    }
  }

  SlotResult decode(const Verifier& verifier) {
    const Arm arm{.name = "",
                  .drafter = drafter_.get(),
                  .verifier = &verifier,
                  .drafts = 4,
                  .batch = GetParam()};
    return decode_once(*target_, arm, work_, [] { return false; }).value();
  }

  std::unique_ptr<Target> target_;
  std::unique_ptr<Drafter> drafter_;
  std::vector<WorkItem> work_;
  std::unique_ptr<Verifier> strict_ = rule("strict");
};

TEST_P(ReplayTest, TheRunIsStrictsOwnAndStrictReplayedIsItself) {
  const ReplayVerifier replay(*strict_, {strict_.get()});
  const SlotResult plain = decode(*strict_), replayed = decode(replay);
  ASSERT_EQ(replayed.each.size(), 5U);
  ASSERT_EQ(replay.requests().size(), 5U);
  std::int64_t passes = 0;
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(replayed.each[i].tokens_sha256, plain.each[i].tokens_sha256);
    const ReplayTally& tally = replay.requests()[i][0];
    EXPECT_EQ(tally.committed, work_[i].tokens);
    EXPECT_EQ(tally.strict_committed, work_[i].tokens);
    EXPECT_EQ(tally.exceptions, 0);
    EXPECT_EQ(tally.regret, 0);
    passes += tally.passes;
  }
  EXPECT_EQ(passes, plain.passes);
}

TEST_P(ReplayTest, ARuleKeepsMoreOfTheSameBlocksWithinItsOwnLedger) {
  const auto free = rule("asd", {{"B", "inf"}, {"g", "1"}, {"M", "inf"}});
  const auto bounded = rule("asd", {{"B", "1"}, {"g", "1"}, {"M", "1"}});
  const auto none = rule("asd", {{"B", "0"}, {"g", "1"}, {"M", "1"}});
  const ReplayVerifier replay(*strict_, {free.get(), bounded.get(), none.get()});
  decode(replay);
  for (const auto& request : replay.requests()) {
    EXPECT_GT(request[0].committed, request[0].strict_committed);
    EXPECT_GT(request[0].committed, request[1].committed);
    EXPECT_GT(request[0].regret, 1);
    EXPECT_LE(request[1].regret, 1);
    EXPECT_GT(request[1].exceptions, 0);
    EXPECT_EQ(request[2].committed, request[2].strict_committed);
    EXPECT_EQ(request[0].passes, request[1].passes);
  }
}

INSTANTIATE_TEST_SUITE_P(Batches, ReplayTest, ::testing::Values(1, 3));

}  // namespace
}  // namespace asdbench
