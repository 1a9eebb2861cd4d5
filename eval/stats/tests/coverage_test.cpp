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

// Nominal levels, within one point, on average over truths and at every n of the grid. Truths
// include small discordances, so that b + c = 0 and other ties occur.
constexpr std::int64_t kGrid[] = {20, 50, 100, 200, 500, 1000, 2000};
constexpr int kRuns = 6'000;

TEST(Coverage, WilsonAndClopperPearsonOverTheGrid) {
  SplitMix64 random(46);
  for (const std::int64_t n : kGrid) {
    int wilson_covers = 0, exact_covers = 0;
    for (int run = 0; run < kRuns; ++run) {
      const double share = random.uniform();
      std::int64_t k = 0;
      for (std::int64_t i = 0; i < n; ++i) k += random.uniform() < share ? 1 : 0;
      const auto covers = [&](const std::optional<Interval>& interval) {
        return interval->lo <= share && share <= interval->hi ? 1 : 0;
      };
      wilson_covers += covers(wilson(k, n));
      exact_covers += covers(clopper_pearson(k, n));
    }
    EXPECT_NEAR(static_cast<double>(wilson_covers) / kRuns, 0.95, 0.01) << n;
    // Exact intervals never cover less than they claim; for small n they cover more.
    EXPECT_GE(static_cast<double>(exact_covers) / kRuns, 0.94) << n;
  }
}

TEST(Coverage, TangoBoundsOverTheGrid) {
  SplitMix64 random(47);
  for (const std::int64_t n : kGrid) {
    int below = 0, above = 0, none = 0;
    for (int run = 0; run < kRuns; ++run) {
      // Discordance up to 0.4, divided anyhow; about 5 of 20 runs of the smallest n have none.
      const double psi = 0.4 * random.uniform();
      const double better = psi * random.uniform();
      PairedCounts counts{n, 0, 0};
      for (std::int64_t i = 0; i < n; ++i) {
        const int x = outcome(random, better, psi - better);
        counts.b += x > 0 ? 1 : 0;
        counts.c += x < 0 ? 1 : 0;
      }
      none += counts.b + counts.c == 0 ? 1 : 0;
      const double truth = 2 * better - psi;
      const auto bounds = tango_bounds(counts, 0.05);
      below += bounds->lo <= truth ? 1 : 0;
      above += bounds->hi >= truth ? 1 : 0;
    }
    EXPECT_NEAR(static_cast<double>(below) / kRuns, 0.95, 0.01) << n;
    EXPECT_NEAR(static_cast<double>(above) / kRuns, 0.95, 0.01) << n;
    if (n == 20) {
      EXPECT_GT(none, 0) << "ties belong to the grid";
    }
  }
}

TEST(Coverage, LogRatioIntervalsOverTheNumbersOfGroups) {
  SplitMix64 random(48);
  for (const int groups : {2, 4, 9, 20}) {
    int two_sided = 0, one_sided = 0;
    for (int run = 0; run < kRuns; ++run) {
      std::vector<double> ratios(static_cast<std::size_t>(groups));
      for (double& ratio : ratios) ratio = 0.02 + 0.01 * normal_draw(random);
      const auto estimate = log_ratio_t(ratios, 0.95);
      const double truth = 100 * std::expm1(0.02);
      two_sided +=
          estimate->interval_pct->lo <= truth && truth <= estimate->interval_pct->hi ? 1 : 0;
      one_sided += *estimate->one_sided_lower_pct <= truth ? 1 : 0;
    }
    EXPECT_NEAR(static_cast<double>(two_sided) / kRuns, 0.95, 0.01) << groups;
    EXPECT_NEAR(static_cast<double>(one_sided) / kRuns, 0.95, 0.01) << groups;
  }
}

// A percentile interval is narrow by a factor of about sqrt(1 - 1/n), and its t by the normal's:
// at n = 20 that is two points of coverage, from 100 on less than one.
TEST(Coverage, PairedBootstrapOverTheGrid) {
  SplitMix64 random(49);
  for (const std::int64_t n : {std::int64_t{20}, std::int64_t{100}, std::int64_t{300}}) {
    const int runs = 1'500;
    int ratio = 0, difference = 0;
    for (int run = 0; run < runs; ++run) {
      std::vector<Pair> pairs(static_cast<std::size_t>(n));
      for (Pair& pair : pairs) {
        pair.second = 2 + random.uniform();
        pair.first = 1.1 * pair.second + 0.3 * normal_draw(random);
      }
      const BootstrapOptions options{.seed = random.next(), .resamples = 500};
      const auto covers = [](const std::optional<BootstrapEstimate>& found, double truth) {
        return found->interval.lo <= truth && truth <= found->interval.hi ? 1 : 0;
      };
      ratio += covers(paired_bootstrap(pairs, PairedStatistic::kRatioOfSums, options), 1.1);
      difference += covers(paired_bootstrap(pairs, PairedStatistic::kMeanDifference, options),
                           2.5 - 1.1 * 2.5);
    }
    // One point, the narrowness above, and three standard errors of 1,500 runs.
    const double allowed = 0.01 + 0.6 / static_cast<double>(n) +
                           3 * std::sqrt(0.95 * 0.05 / static_cast<double>(runs));
    EXPECT_NEAR(static_cast<double>(ratio) / runs, 0.95, allowed) << n;
    EXPECT_NEAR(static_cast<double>(difference) / runs, 0.95, allowed) << n;
  }
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
