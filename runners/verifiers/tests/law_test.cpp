// Sums over a row against values worked out by hand.
#include "runners/verifiers/common/law.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "eval/core/error.h"

namespace asdbench {
namespace {

// Probabilities 1/2, 1/4, 1/8, 1/8 up to a constant, far from zero.
const std::vector<float> kHalves{static_cast<float>(std::log(4.0)) + 100,
                                 static_cast<float>(std::log(2.0)) + 100, 100, 100};

TEST(LawTest, ProbabilitiesEntropyAndMass) {
  const Law law(kHalves);
  EXPECT_NEAR(law.prob(0), 0.5, 1e-5);  // float32 at 100 has steps of 8e-6
  EXPECT_NEAR(law.prob(3), 0.125, 1e-5);
  EXPECT_NEAR(law.max_prob(), 0.5, 1e-5);
  EXPECT_NEAR(law.entropy(), 1.75 * std::log(2.0), 1e-5);
  EXPECT_EQ(law.mass_before(0), 0);
  EXPECT_NEAR(law.mass_before(1), 0.5, 1e-5);
  EXPECT_NEAR(law.mass_before(2), 0.75, 1e-5);
  EXPECT_NEAR(law.mass_before(3), 0.875, 1e-5);  // a tie goes to the lower id
}

TEST(LawTest, EntropyOfTheTopIsNotRenormalised) {
  const Law law(kHalves);
  EXPECT_NEAR(law.top_entropy(1), 0.5 * std::log(2.0), 1e-5);
  EXPECT_NEAR(law.top_entropy(3), (0.5 + 0.5 + 0.375) * std::log(2.0), 1e-5);
  EXPECT_NEAR(law.top_entropy(4), law.entropy(), 1e-12);
  EXPECT_NEAR(law.top_entropy(8), law.entropy(), 1e-12);
  EXPECT_THROW(law.top_entropy(9), InternalError);
  const std::vector<float> rising{100, 100, kHalves[1], kHalves[0]};
  EXPECT_NEAR(Law(rising).top_entropy(2), law.top_entropy(2), 1e-12);
}

TEST(LawTest, RanksBreakTiesByLowestId) {
  const std::vector<float> row{1, 3, 2, 3, 2};
  EXPECT_EQ(rank(row, 1), 1);
  EXPECT_EQ(rank(row, 3), 2);
  EXPECT_EQ(rank(row, 2), 3);
  EXPECT_EQ(rank(row, 4), 4);
  EXPECT_EQ(rank(row, 0), 5);
}

TEST(LawTest, Divergences) {
  const std::vector<float> left{0, -800}, right{-800, 0}, even{0, 0};
  EXPECT_NEAR(total_variation(Law(left), Law(right)), 1, 1e-12);
  EXPECT_NEAR(jensen_shannon(Law(left), Law(right)), std::log(2.0), 1e-12);
  EXPECT_NEAR(total_variation(Law(left), Law(even)), 0.5, 1e-12);
  EXPECT_EQ(jensen_shannon(Law(even), Law(even)), 0);
  // KL of a sure law against the middle 3/4, and of the even one against 3/4 and 1/4.
  const double expected = (std::log(4.0 / 3) + 0.5 * std::log(2.0 / 3) + 0.5 * std::log(2.0)) / 2;
  EXPECT_NEAR(jensen_shannon(Law(left), Law(even)), expected, 1e-12);
}

TEST(LawTest, NoRowIsAnError) { EXPECT_THROW(Law({}), InternalError); }

}  // namespace
}  // namespace asdbench
