// Paired tests at n = 0, 1, 2, and where variances vanish.
#include "eval/stats/paired.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "eval/core/error.h"

namespace asdbench {
namespace {

TEST(McNemarTest, IsSymmetricAndBounded) {
  EXPECT_FALSE(mcnemar(-1, 3));
  for (int b = 0; b < 12; ++b) {
    for (int c = 0; c < 12; ++c) {
      const auto test = mcnemar(b, c);
      EXPECT_NEAR(test->two_sided, mcnemar(c, b)->two_sided, 1e-12);
      EXPECT_LE(test->mid_p, test->two_sided + 1e-12);
      EXPECT_LE(test->two_sided, 1);
      EXPECT_GT(test->two_sided, 0);
      // P(X >= c) + P(X < c) = 1, and P(X < c) = P(X' >= b + 1) by symmetry of the coin.
      if (b + c > 0) {
        double below = 0;
        for (int k = 0; k < c; ++k) {
          below += std::exp(std::lgamma(b + c + 1) - std::lgamma(k + 1) -
                            std::lgamma(b + c - k + 1) - (b + c) * std::log(2.0));
        }
        EXPECT_NEAR(test->harm_one_sided, 1 - below, 1e-12);
      }
    }
  }
}

TEST(TangoTest, RefusesImpossibleCounts) {
  EXPECT_FALSE(tango_bounds({0, 0, 0}, 0.05));
  EXPECT_FALSE(tango_bounds({5, 3, 3}, 0.05));
  EXPECT_FALSE(tango_bounds({5, -1, 3}, 0.05));
  EXPECT_FALSE(tango_bounds({5, 1, 3}, 0));
  EXPECT_FALSE(tango_z({5, 1, 3}, 1.5));
  EXPECT_FALSE(non_inferiority({5, 1, 1}, -0.1));
  EXPECT_FALSE(paired_wald({0, 0, 0}, 0.05, true));
}

TEST(TangoTest, BoundsEncloseTheEstimateAndMirror) {
  for (const std::int64_t n : {1, 2, 7, 40, 1319}) {
    for (std::int64_t b = 0; b <= std::min<std::int64_t>(n, 5); ++b) {
      for (std::int64_t c = 0; b + c <= n && c <= 5; ++c) {
        const auto bounds = tango_bounds({n, b, c}, 0.05);
        const double lambda = static_cast<double>(b - c) / static_cast<double>(n);
        EXPECT_LE(bounds->lo, lambda + 1e-12);
        EXPECT_GE(bounds->hi, lambda - 1e-12);
        EXPECT_GE(bounds->lo, -1);
        EXPECT_LE(bounds->hi, 1);
        const auto mirrored = tango_bounds({n, c, b}, 0.05);
        EXPECT_NEAR(mirrored->lo, -bounds->hi, 1e-9) << n << " " << b << " " << c;
      }
    }
  }
}

TEST(TangoTest, AllDiscordantPromptsOnOneSide) {
  const auto harm = non_inferiority({30, 0, 30}, 0.1);
  EXPECT_EQ(harm->lambda, -1);
  EXPECT_NEAR(harm->bounds.lo, -1, 1e-9);
  EXPECT_LT(harm->bounds.hi, -0.1);
  EXPECT_EQ(harm->verdict, GateVerdict::kFail);
  const auto gain = non_inferiority({3, 3, 0}, 0.1);
  EXPECT_EQ(gain->verdict, GateVerdict::kPass);
  EXPECT_EQ(tango_z({3, 0, 0}, 0), 0);
}

TEST(TangoTest, VerdictsOfTheTableInTheSpec) {
  EXPECT_EQ(non_inferiority({1319, 22, 25}, 0.02)->verdict, GateVerdict::kPass);
  EXPECT_EQ(non_inferiority({1319, 22, 25}, 0.01)->verdict, GateVerdict::kInconclusive);
  EXPECT_EQ(non_inferiority({164, 3, 4}, 0.01)->verdict, GateVerdict::kInconclusive);
  EXPECT_EQ(non_inferiority({500, 0, 0}, 0.01)->verdict, GateVerdict::kPass);
  EXPECT_EQ(non_inferiority({500, 0, 0}, 0.005)->verdict, GateVerdict::kInconclusive);
  EXPECT_EQ(non_inferiority({1000, 5, 60}, 0.01)->verdict, GateVerdict::kFail);
}

TEST(HolmTest, EdgesAndTies) {
  EXPECT_TRUE(holm({})->empty());
  const std::vector<double> one = {0.04};
  EXPECT_EQ(*holm(one), one);
  const std::vector<double> bad = {0.1, 1.1};
  EXPECT_FALSE(holm(bad));
  const std::vector<double> nan = {std::nan("")};
  EXPECT_FALSE(holm(nan));
  const std::vector<double> ties = {0.02, 0.02, 0.9};
  EXPECT_EQ(*holm(ties), (std::vector<double>{0.06, 0.06, 0.9}));
}

TEST(EProcessTest, DecidesByWhatCameFirst) {
  EProcess harm(0.02, 0.3, 0.05);
  EProcess fine(0.02, 0.3, 0.05);
  for (int i = 0; i < 2000; ++i) {
    harm.observe(-1);
    fine.observe(0);
  }
  EXPECT_EQ(harm.verdict(), GateVerdict::kFail);
  EXPECT_FALSE(harm.pass_at());
  EXPECT_EQ(fine.verdict(), GateVerdict::kPass);
  const double per_prompt = std::log1p(0.3 * 0.02);
  EXPECT_EQ(fine.pass_at(), static_cast<std::int64_t>(std::ceil(std::log(20.0) / per_prompt)));
  EXPECT_EQ(EProcess(0.02, 0.3, 0.05).verdict(), GateVerdict::kInconclusive);
}

TEST(EProcessTest, RefusesWhatTheProtocolForbids) {
  EXPECT_THROW(EProcess(0.02, 0, 0.05), InternalError);
  EXPECT_THROW(EProcess(0.02, 0.6, 0.05), InternalError);
  EXPECT_THROW(EProcess(1.0, 0.5, 0.05), InternalError);
  EXPECT_THROW(EProcess(0.02, 0.3, 1), InternalError);
  EProcess process(0.02, 0.3, 0.05);
  EXPECT_THROW(process.observe(2), InternalError);
}

}  // namespace
}  // namespace asdbench
