// Speed figures: drift that cancels, and input over which nothing is defined.
#include "eval/stats/speed.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>

namespace asdbench {
namespace {

TEST(Speed, IsUndefinedOverNothing) {
  EXPECT_FALSE(compare_speed({0, 1}, {1, 1}));
  EXPECT_FALSE(compare_speed({1, 1}, {1, 0}));
  EXPECT_FALSE(compare_speed({1, 1}, {1, std::numeric_limits<double>::infinity()}));
  EXPECT_FALSE(bracketed_gain(0, 1, 1));
  EXPECT_FALSE(bracketed_gain(1, 1, 1, -1));
  EXPECT_FALSE(abba_log_speedup(std::array<double, 4>{1, 1, 0, 1}));
  EXPECT_FALSE(passes_saved(0, 1));
  EXPECT_FALSE(time_to_answer(-100, 0));
  EXPECT_FALSE(time_to_answer(std::nan(""), 0));
}

TEST(Speed, LinearDriftOfAMirroredGroupCancels) {
  for (const double drift : {-0.05, 0.0, 0.02}) {
    std::array<double, 4> seconds{};
    for (int slot = 0; slot < 4; ++slot) {
      const bool asd = slot == 1 || slot == 2;
      seconds[static_cast<std::size_t>(slot)] = 10 * std::exp(drift * slot - (asd ? 0.07 : 0));
    }
    EXPECT_NEAR(*abba_log_speedup(seconds), 0.07, 1e-14);
  }
}

TEST(Speed, FixedWorkGainIsTheInverseRatioOfTimes) {
  const auto comparison = compare_speed({100, 5}, {100, 4});
  EXPECT_NEAR(comparison->ratio, 1.25, 1e-15);
  EXPECT_EQ(comparison->tokens_pct, 0);
  EXPECT_NEAR(comparison->time_pct, -20, 1e-12);
  EXPECT_TRUE(bracketed_gain(100, 110, 103)->eligible);
  EXPECT_FALSE(bracketed_gain(100, 110, 103.1)->eligible);
}

}  // namespace
}  // namespace asdbench
