// Log-probabilities of continuations against the toy target's closed form.
#include "runners/log_probs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "eval/core/error.h"
#include "runners/models/toy_target.h"

namespace asdbench {
namespace {

using Tokens = std::vector<TokenId>;
constexpr ToyOptions kToy{.vocab = 24, .positions = 64, .ends = 1, .seed = 5};

double expected(const ToyTarget& target, Tokens history, const Tokens& continuation) {
  double sum = 0;
  for (const TokenId id : continuation) {
    const std::vector<float> logits = target.logits_after(history);
    double total = 0;
    for (const float logit : logits) total += std::exp(static_cast<double>(logit));
    sum += static_cast<double>(logits[static_cast<std::size_t>(id)]) - std::log(total);
    history.push_back(id);
  }
  return sum;
}

TEST(LogProbs, SumOverTheIdsOfEachContinuation) {
  ToyTarget target(kToy);
  LogProbs log_probs(target, 4, 40);
  const Tokens prompt = {3, 1, 4, 1, 5};
  // An end id inside is an id like any other; equal first ids share the first term only.
  const std::vector<Tokens> continuations = {{2}, {2, 7}, {9, 0, 23, 1}, {0}, {2, 7, 1}};
  const std::vector<double> sums = log_probs.of(prompt, continuations);
  ASSERT_EQ(sums.size(), continuations.size());
  for (std::size_t i = 0; i < sums.size(); ++i) {
    EXPECT_NEAR(sums[i], expected(target, prompt, continuations[i]), 1e-9) << i;
  }
  EXPECT_EQ(log_probs.of(prompt, continuations), sums);  // nothing stays behind in the slot
  EXPECT_TRUE(log_probs.of(prompt, {}).empty());
}

TEST(LogProbs, ProbabilitiesOfAllIdsAddUpToOne) {
  ToyTarget target(kToy);
  LogProbs log_probs(target, 1, 40);
  std::vector<Tokens> all;
  for (TokenId id = 0; id < 24; ++id) all.push_back({id});
  double total = 0;
  for (const double value : log_probs.of(Tokens{7}, all)) total += std::exp(value);
  EXPECT_NEAR(total, 1, 1e-12);
}

TEST(LogProbs, RefusesWhatDoesNotFit) {
  ToyTarget target(kToy);
  LogProbs log_probs(target, 2, 10);
  EXPECT_NO_THROW(log_probs.of(Tokens(7, 1), {{1, 2}}));
  EXPECT_THROW(log_probs.of(Tokens(8, 1), {{1, 2}}), DataError);
  EXPECT_THROW(log_probs.of(Tokens(3, 1), {{}}), InternalError);
}

}  // namespace
}  // namespace asdbench
