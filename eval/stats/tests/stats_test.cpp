// Moments, quantiles and intervals at their edges; the published cases are in fixtures_test.cpp.
#include "eval/stats/stats.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "eval/core/rng.h"

namespace asdbench {
namespace {

const double kNan = std::numeric_limits<double>::quiet_NaN();
const double kInf = std::numeric_limits<double>::infinity();

TEST(Moments, AreUndefinedForTooFewValues) {
  EXPECT_EQ(mean({}), std::nullopt);
  EXPECT_EQ(standard_deviation({}), std::nullopt);
  const std::vector<double> one = {3};
  EXPECT_EQ(mean(one), 3);
  EXPECT_EQ(standard_deviation(one), std::nullopt);
  const std::vector<double> two = {1, 3};
  EXPECT_DOUBLE_EQ(*standard_deviation(two), std::sqrt(2.0));
}

TEST(Quantiles, RefuseProbabilitiesOutsideTheOpenUnitInterval) {
  for (const double p : {-0.1, 0.0, 1.0, 1.5, kNan}) {
    EXPECT_EQ(normal_quantile(p), std::nullopt) << p;
    EXPECT_EQ(t_quantile(p, 3), std::nullopt) << p;
  }
  EXPECT_EQ(t_quantile(0.9, 0), std::nullopt);
  EXPECT_EQ(t_quantile(0.9, kNan), std::nullopt);
  EXPECT_NEAR(*normal_quantile(0.975), 1.959963984540054, 1e-14);
  EXPECT_NEAR(*t_quantile(0.975, 3), 3.182446305284, 1e-11);
  EXPECT_NEAR(normal_upper_tail(*normal_quantile(0.95)), 0.05, 1e-14);
}

TEST(QuantileLinear, HandlesEndsTiesAndBadInput) {
  EXPECT_EQ(quantile_linear({}, 0.5), std::nullopt);
  const std::vector<double> ties = {2, 2, 2, 7};
  EXPECT_EQ(quantile_linear(ties, 0), 2);
  EXPECT_EQ(quantile_linear(ties, 1), 7);
  EXPECT_EQ(quantile_linear(ties, 0.5), 2);
  EXPECT_EQ(quantile_linear(ties, 1.01), std::nullopt);
  EXPECT_EQ(quantile_linear(ties, kNan), std::nullopt);
  const std::vector<double> bad = {1, kInf};
  EXPECT_EQ(quantile_linear(bad, 0.5), std::nullopt);
}

TEST(ShareIntervals, CoverTheEndsAndRefuseImpossibleCounts) {
  for (const auto interval : {&wilson, &clopper_pearson}) {
    EXPECT_FALSE(interval(0, 0, 0.95));
    EXPECT_FALSE(interval(-1, 5, 0.95));
    EXPECT_FALSE(interval(6, 5, 0.95));
    EXPECT_FALSE(interval(1, 5, 1.0));
    EXPECT_EQ(interval(0, 1, 0.95)->lo, 0);
    EXPECT_EQ(interval(1, 1, 0.95)->hi, 1);
    const auto middle = interval(3, 6, 0.9);
    EXPECT_NEAR(middle->lo + middle->hi, 1, 1e-12);
  }
}

// Exact coverage: the sum over k of P(k) where the interval holds the true share.
TEST(ShareIntervals, ClopperPearsonNeverCoversLessThanItClaims) {
  const int n = 25;
  for (const double share : {0.02, 0.1, 0.37, 0.5, 0.93}) {
    double covered = 0;
    for (int k = 0; k <= n; ++k) {
      const auto interval = clopper_pearson(k, n, 0.95);
      if (interval->lo <= share && share <= interval->hi) {
        covered += std::exp(std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1) +
                            k * std::log(share) + (n - k) * std::log(1 - share));
      }
    }
    EXPECT_GE(covered, 0.95 - 1e-12) << share;
  }
}

TEST(LogRatio, OneGroupHasNoInterval) {
  EXPECT_FALSE(log_ratio_t({}));
  const std::vector<double> one = {std::log(1.25)};
  const auto estimate = log_ratio_t(one);
  EXPECT_NEAR(estimate->pct, 25, 1e-12);
  EXPECT_FALSE(estimate->sd);
  EXPECT_FALSE(estimate->interval_pct);
  EXPECT_FALSE(estimate->one_sided_lower_pct);
  const std::vector<double> bad = {0.1, kNan};
  EXPECT_FALSE(log_ratio_t(bad));
}

TEST(LogRatio, EqualGroupsHaveAnIntervalOfNoWidth) {
  const std::vector<double> equal = {0.5, 0.5, 0.5};
  const auto estimate = log_ratio_t(equal);
  EXPECT_EQ(estimate->sd, 0);
  EXPECT_EQ(estimate->interval_pct->lo, estimate->interval_pct->hi);
}

TEST(CertifiableMargin, MatchesTheTableOfTheSpec) {
  EXPECT_NEAR(*certifiable_margin(0.04, 1319), 0.0137, 5e-5);
  EXPECT_NEAR(*certifiable_margin(0.05, 164), 0.0434, 5e-5);
  EXPECT_FALSE(certifiable_margin(0.04, 0));
  EXPECT_FALSE(certifiable_margin(1.5, 10));
  EXPECT_FALSE(certifiable_margin(0.04, 10, 0));
  EXPECT_EQ(certifiable_margin(0, 10), 0);
}

TEST(CertifiableSampleSize, IsUndefinedWhenTheTruthIsBeyondTheMargin) {
  EXPECT_EQ(certifiable_sample_size(0.04, 0, 0.01), 2474);
  EXPECT_FALSE(certifiable_sample_size(0.04, -0.01, 0.01));
  EXPECT_FALSE(certifiable_sample_size(0.04, -0.02, 0.01));
  EXPECT_FALSE(certifiable_sample_size(0.0001, 0.5, 0.01));
}

}  // namespace
}  // namespace asdbench
