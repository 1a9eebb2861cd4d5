// Coverage of the intervals and error rates of the tests by simulation.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "eval/core/rng.h"
#include "eval/stats/paired.h"
#include "eval/stats/resampling.h"
#include "eval/stats/stats.h"

namespace asdbench {
namespace {

// Box and Muller's pair, one of it.
double normal_draw(SplitMix64& random) {
  const double radius = std::sqrt(-2 * std::log(1 - random.uniform()));
  return radius * std::cos(2 * 3.141592653589793 * random.uniform());
}

TEST(Coverage, LogRatioIntervalHoldsTheTruthAsOftenAsItClaims) {
  SplitMix64 random(41);
  const int runs = 20'000;
  int covered = 0;
  for (int run = 0; run < runs; ++run) {
    std::vector<double> ratios(4);
    for (double& ratio : ratios) ratio = 0.06 + 0.006 * normal_draw(random);
    const auto estimate = log_ratio_t(ratios, 0.95);
    const double truth = 100 * std::expm1(0.06);
    covered += estimate->interval_pct->lo <= truth && truth <= estimate->interval_pct->hi ? 1 : 0;
  }
  // Five standard errors of a share of 20,000.
  EXPECT_NEAR(static_cast<double>(covered) / runs, 0.95, 5 * std::sqrt(0.95 * 0.05 / runs));
}

TEST(Coverage, WilsonIsNearItsLevelOnAverage) {
  SplitMix64 random(42);
  int covered = 0;
  const int runs = 20'000;
  for (int run = 0; run < runs; ++run) {
    const double share = random.uniform();
    int k = 0;
    for (int i = 0; i < 60; ++i) k += random.uniform() < share ? 1 : 0;
    const auto interval = wilson(k, 60, 0.95);
    covered += interval->lo <= share && share <= interval->hi ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(covered) / runs, 0.95, 0.01);
}

int outcome(SplitMix64& random, double better, double worse) {
  const double u = random.uniform();
  return u < better ? 1 : u < better + worse ? -1 : 0;
}

TEST(Coverage, NonInferiorityPassesTrueHarmAtMostAsOftenAsAlpha) {
  SplitMix64 random(43);
  const int runs = 4'000;
  int passed = 0;
  for (int run = 0; run < runs; ++run) {
    PairedCounts counts{400, 0, 0};
    for (int i = 0; i < 400; ++i) {
      const int x = outcome(random, 0.01, 0.04);  // exactly on the margin
      counts.b += x > 0 ? 1 : 0;
      counts.c += x < 0 ? 1 : 0;
    }
    passed += non_inferiority(counts, 0.03, 0.05)->verdict == GateVerdict::kPass ? 1 : 0;
  }
  // The score test is approximate: near alpha, here within two points.
  EXPECT_LE(static_cast<double>(passed) / runs, 0.07);
  EXPECT_GE(static_cast<double>(passed) / runs, 0.03);
}

TEST(Coverage, EProcessPassesTrueHarmAtMostAsOftenAsAlphaHoweverOftenLookedAt) {
  SplitMix64 random(44);
  const int runs = 4'000;
  int passed = 0;
  for (int run = 0; run < runs; ++run) {
    EProcess process(0.03, 0.4, 0.05);
    for (int i = 0; i < 1'500 && !process.pass_at(); ++i) {
      process.observe(outcome(random, 0.01, 0.04));
    }
    passed += process.pass_at() ? 1 : 0;
  }
  EXPECT_LE(static_cast<double>(passed) / runs, 0.05);
}

TEST(Coverage, BootstrapOfTheRatioIsNearItsLevel) {
  SplitMix64 random(45);
  const int runs = 600;
  int covered = 0;
  for (int run = 0; run < runs; ++run) {
    std::vector<Pair> pairs(60);
    for (Pair& pair : pairs) {
      pair.second = 2 + random.uniform();
      pair.first = pair.second * (1.1 + 0.1 * (random.uniform() - 0.5));
    }
    const auto estimate =
        paired_bootstrap(pairs, PairedStatistic::kRatioOfSums,
                         {.seed = static_cast<std::uint64_t>(run), .resamples = 800});
    covered += estimate->interval.lo <= 1.1 && 1.1 <= estimate->interval.hi ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(covered) / runs, 0.95, 0.04);
}

}  // namespace
}  // namespace asdbench
