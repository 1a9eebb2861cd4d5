// The planted drafter's acceptance and cost are those asked for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "eval/core/error.h"
#include "runners/decoder.h"
#include "runners/models/planted_target.h"

namespace asdbench {
namespace {

std::unique_ptr<Drafter> planted(Target& target,
                                 const std::vector<std::pair<std::string, std::string>>& options) {
  Params params("planted", {"study.yaml", 3, "matrix.drafter[0].planted"});
  for (const auto& [key, value] : options) params.set(key, value, {});
  for (const DrafterFactory& factory : drafter_factories()) {
    if (factory.name == "planted") return factory.make(params, {target});
  }
  throw InternalError("no planted drafter");
}

// Draft by draft, what the target would have chosen after the drafts before it.
struct Shares {
  double choice = 0, runner_up = 0;
};

Shares measure(const std::string& acceptance, const std::string& near) {
  PlantedTarget target({.vocab = 50, .positions = 100'000});
  const auto by = planted(target, {{"K", "64"}, {"acceptance", acceptance}, {"near", near}});
  by->reserve({.requests = 1, .drafts = 64, .positions = 100'000});
  Shares shares;
  double drafts = 0;
  for (TokenId prompt = 0; prompt < 40; ++prompt) {
    Request request("a", {prompt}, {10, false}, {}, Rng());
    request.commit_first(3, 100'000);
    by->begin(request);
    Request* const live[] = {&request};
    const DraftLimits limits[] = {{64}};
    by->propose(live, limits);
    HistoryTarget::State state = HistoryTarget::kEmpty;
    for (const TokenId id : request.history()) state = HistoryTarget::fold(state, id);
    for (const TokenId id : request.draft) {
      const PlantedTarget::Plan plan = target.plan(state);
      shares.choice += id == plan.choice ? 1 : 0;
      shares.runner_up += id == plan.runner_up ? 1 : 0;
      state = HistoryTarget::fold(state, id);
      ++drafts;
    }
  }
  EXPECT_EQ(drafts, 40 * 64);
  return {shares.choice / drafts, shares.runner_up / drafts};
}

TEST(PlantedTest, AcceptanceIsTheOneAskedFor) {
  // Five standard errors of a share of 2560 draws are at most 0.05.
  EXPECT_EQ(measure("1", "1").choice, 1);
  EXPECT_EQ(measure("0", "1").runner_up, 1);
  EXPECT_NEAR(measure("0.7", "1").choice, 0.7, 0.05);
  EXPECT_NEAR(measure("0.7", "1").runner_up, 0.3, 0.05);
  EXPECT_NEAR(measure("0.5", "0.4").choice, 0.5, 0.05);
  EXPECT_NEAR(measure("0.5", "0.4").runner_up, 0.2, 0.05);
}

TEST(PlantedTest, NeedsThePlantedTarget) {
  ToyTarget toy({});
  EXPECT_THROW(planted(toy, {}), ConfigError);
}

TEST(PlantedTest, ADraftTakesItsTime) {
  PlantedTarget target({});
  const auto by = planted(target, {{"K", "5"}, {"token_us", "200"}});
  by->reserve({.requests = 1, .drafts = 5, .positions = 100});
  Request request("a", {1}, {10, false}, {}, Rng());
  request.commit_first(3, 100);
  by->begin(request);
  Request* const live[] = {&request};
  const DraftLimits limits[] = {{5}};
  const auto begin = std::chrono::steady_clock::now();
  by->propose(live, limits);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::microseconds(1000));
}

}  // namespace
}  // namespace asdbench
