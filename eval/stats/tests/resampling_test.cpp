// The bootstrap: clusters, edges, reproducibility.
#include "eval/stats/resampling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace asdbench {
namespace {

using enum PairedStatistic;

TEST(Bootstrap, IsUndefinedOverNothing) {
  EXPECT_FALSE(paired_bootstrap({}, kMeanDifference));
  const std::vector<Pair> zero = {{1, 0}, {1, 0}};
  EXPECT_FALSE(paired_bootstrap(zero, kRatioOfSums));
  EXPECT_TRUE(paired_bootstrap(zero, kMeanDifference));
  const std::vector<Pair> bad = {{1, std::numeric_limits<double>::quiet_NaN()}};
  EXPECT_FALSE(paired_bootstrap(bad, kMeanDifference));
  const std::vector<Pair> fine = {{1, 2}};
  EXPECT_FALSE(paired_bootstrap(fine, kMeanDifference, {.confidence = 1}));
  EXPECT_FALSE(drawn_bootstrap(fine, kMeanDifference, {.resamples = 0}));
  // A resample of nothing but the second pair has no ratio.
  const std::vector<Pair> half = {{1, 1}, {1, 0}};
  EXPECT_FALSE(paired_bootstrap(half, kRatioOfSums));
}

TEST(Bootstrap, OnePairHasAnIntervalOfNoWidth) {
  const std::vector<Pair> one = {{3, 2}};
  const auto estimate = paired_bootstrap(one, kRatioOfSums);
  EXPECT_EQ(estimate->point, 1.5);
  EXPECT_EQ(estimate->interval.lo, 1.5);
  EXPECT_EQ(estimate->interval.hi, 1.5);
  EXPECT_EQ(estimate->resamples, 1u);
}

TEST(Bootstrap, EnumeratesUpToFiveUnitsAndDrawsBeyond) {
  std::vector<Pair> pairs;
  for (int i = 0; i < 5; ++i) pairs.push_back({1.0 + i, 2.0 * i});
  EXPECT_EQ(paired_bootstrap(pairs, kMeanDifference)->resamples, 3125u);
  pairs.push_back({9, 1});
  EXPECT_FALSE(exhaustive_bootstrap(pairs, kMeanDifference, {}));
  EXPECT_EQ(paired_bootstrap(pairs, kMeanDifference)->resamples, 10'000u);
  const auto first = paired_bootstrap(pairs, kMeanDifference, {.seed = 7, .resamples = 501});
  const auto again = paired_bootstrap(pairs, kMeanDifference, {.seed = 7, .resamples = 501});
  const auto other = paired_bootstrap(pairs, kMeanDifference, {.seed = 8, .resamples = 501});
  EXPECT_EQ(first->interval.lo, again->interval.lo);
  EXPECT_EQ(first->interval.hi, again->interval.hi);
  EXPECT_NE(first->interval.lo, other->interval.lo);
}

TEST(Bootstrap, DrawsWholeClusters) {
  // Two clusters: the mean of a resample is that of the one, of the other, or of both.
  const std::vector<Pair> pairs = {{0, 1}, {0, 4}, {0, 1}, {0, 4}, {0, 1}, {0, 4}};
  const std::vector<std::uint64_t> clusters = {70, 3, 70, 3, 70, 3};
  const auto estimate =
      paired_bootstrap(pairs, kMeanDifference, {.confidence = 0.98, .clusters = clusters});
  EXPECT_EQ(estimate->resamples, 4u);
  EXPECT_EQ(estimate->point, 2.5);
  EXPECT_NEAR(estimate->interval.lo, 1 + 0.03 * 1.5, 1e-12);
  EXPECT_NEAR(estimate->interval.hi, 4 - 0.03 * 1.5, 1e-12);
  const std::vector<std::uint64_t> short_list = {1};
  EXPECT_FALSE(paired_bootstrap(pairs, kMeanDifference, {.clusters = short_list}));
}

TEST(Bootstrap, ClustersOfUnequalSizeWeighByPrompts) {
  const std::vector<Pair> pairs = {{0, 1}, {0, 1}, {0, 1}, {0, 7}};
  const std::vector<std::uint64_t> clusters = {1, 1, 1, 2};
  const auto estimate = paired_bootstrap(pairs, kMeanDifference, {.clusters = clusters});
  EXPECT_EQ(estimate->point, 2.5);
  // Resamples: 1, 2.5, 2.5, 7.
  EXPECT_NEAR(estimate->interval.hi, 2.5 + (0.975 * 3 - 2) * 4.5, 1e-12);
}

}  // namespace
}  // namespace asdbench
