// pass@k against counting subsets, and where it is undefined.
#include "eval/stats/pass_at_k.h"

#include <gtest/gtest.h>

#include <bit>
#include <vector>

namespace asdbench {
namespace {

// Share of the k-subsets of n samples, the first c of which passed, that hold one of these.
double by_counting(int n, int c, int k) {
  int subsets = 0, solved = 0;
  for (unsigned set = 0; set < 1U << n; ++set) {
    if (std::popcount(set) != k) continue;
    ++subsets;
    if ((set & ((1U << c) - 1)) != 0) ++solved;
  }
  return static_cast<double>(solved) / subsets;
}

TEST(PassAtK, IsTheShareOfSubsetsThatHoldAPass) {
  for (int n = 1; n <= 9; ++n) {
    for (int c = 0; c <= n; ++c) {
      for (int k = 1; k <= n; ++k) {
        const auto value = pass_at_k(SolvedSamples{n, c}, k);
        ASSERT_TRUE(value);
        EXPECT_NEAR(*value, by_counting(n, c, k), 1e-12) << n << " " << c << " " << k;
      }
    }
  }
}

TEST(PassAtK, OfOneSampleIsWhetherItPassed) {
  EXPECT_EQ(pass_at_k(SolvedSamples{1, 0}, 1), 0);
  EXPECT_EQ(pass_at_k(SolvedSamples{1, 1}, 1), 1);
  EXPECT_NEAR(*pass_at_k(SolvedSamples{100'000, 1}, 50'000), 0.5, 1e-12);
}

TEST(PassAtK, IsUndefinedWhereItCannotBeEstimated) {
  EXPECT_FALSE(pass_at_k(SolvedSamples{0, 0}, 1));
  EXPECT_FALSE(pass_at_k(SolvedSamples{3, 1}, 4));
  EXPECT_FALSE(pass_at_k(SolvedSamples{3, 1}, 0));
  EXPECT_FALSE(pass_at_k(SolvedSamples{3, 4}, 1));
  EXPECT_FALSE(pass_at_k(SolvedSamples{3, -1}, 1));
  EXPECT_FALSE(pass_at_k(std::vector<SolvedSamples>{}, 1));
  EXPECT_FALSE(pass_at_k(std::vector<SolvedSamples>{{5, 1}, {1, 1}}, 2))
      << "k is above the smallest n";
}

TEST(PassAtK, MeanGivesEachProblemTheSameWeight) {
  EXPECT_NEAR(*pass_at_k(std::vector<SolvedSamples>{{5, 5}, {5, 0}, {5, 2}}, 1), 1.4 / 3, 1e-12);
  EXPECT_NEAR(*pass_at_k(std::vector<SolvedSamples>{{10, 10}, {2, 0}}, 1), 0.5, 1e-12);
}

}  // namespace
}  // namespace asdbench
