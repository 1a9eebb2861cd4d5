// What is read of the machine, and when a group does not count.
#include "runners/throughput/environment.h"

#include <gmock/gmock.h>

#include <chrono>

namespace asdbench {
namespace {

using ::testing::HasSubstr;

std::vector<EnvironmentFigure> at_mhz(double mhz) {
  return {{.name = "load", .samples = 2, .mean = 9},
          {.name = "core_mhz", .samples = 2, .mean = mhz}};
}

TEST(CpuTicksTest, ReadsTheFirstLineOfProcStat) {
  const auto ticks = parse_cpu_ticks("cpu  100 20 30 400 50 6 7 8 9 10");
  ASSERT_TRUE(ticks);
  EXPECT_EQ(ticks->busy, 163);
  EXPECT_EQ(ticks->steal, 8);
  EXPECT_EQ(ticks->total, 621);
  EXPECT_FALSE(parse_cpu_ticks("cpu0 1 2 3 4 5 6 7 8"));
  EXPECT_FALSE(parse_cpu_ticks("cpu 1 2 3"));
  EXPECT_FALSE(parse_cpu_ticks(""));
}

TEST(VoidTest, ArmsAtDifferentFrequenciesDoNotCount) {
  EXPECT_EQ(void_reason({0, 1, 1, 0}, {at_mhz(3000), at_mhz(3050), at_mhz(3000), at_mhz(3000)}),
            "");
  EXPECT_THAT(void_reason({0, 1, 1, 0}, {at_mhz(3000), at_mhz(2900), at_mhz(2900), at_mhz(3000)}),
              HasSubstr("differs by 3.4 %: 2900 to 3000 MHz"));
}

TEST(VoidTest, WhatCannotBeReadCannotVoid) {
  EXPECT_EQ(void_reason({0, 1}, {{}, {}}), "");
  EXPECT_EQ(void_reason({0, 1}, {at_mhz(3000), {}}), "");
}

TEST(EnvironmentSamplerTest, ASlotHasFiguresAndTheNextStartsAfresh) {
  EnvironmentSampler sampler;
  for (int slot = 0; slot < 2; ++slot) {
    sampler.begin_slot();
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(60);
    while (std::chrono::steady_clock::now() < end) {
    }
    bool found = false;
    for (const EnvironmentFigure& figure : sampler.end_slot()) {
      EXPECT_LE(figure.least, figure.mean) << figure.name;
      EXPECT_LE(figure.mean, figure.most) << figure.name;
      if (figure.name.ends_with("_share")) {
        EXPECT_GE(figure.least, 0) << figure.name;
        EXPECT_LE(figure.most, 1) << figure.name;
      }
      if (figure.name != "memory_mib") continue;
      found = true;
      EXPECT_GE(figure.samples, 2);
      EXPECT_LE(figure.samples, 3);
      EXPECT_GT(figure.mean, 1);
    }
    EXPECT_TRUE(found);
  }
}

}  // namespace
}  // namespace asdbench
