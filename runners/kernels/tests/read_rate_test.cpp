// The measured read rate: positive, and refused where there is nothing to read.
#include "runners/kernels/read_rate.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace asdbench::kernels {
namespace {

TEST(ReadRateTest, MemoryIsReadAtSomeRate) {
  for (const int threads : {1, 2}) {
    Pool pool(threads);
    const double rate = ReadRate(std::int64_t{8} << 20).measure(pool);
    EXPECT_GT(rate, 1e6);
    EXPECT_LT(rate, 1e13);
  }
}

TEST(ReadRateTest, TooLittleMemoryIsRefused) {
  EXPECT_THROW(ReadRate(0), std::invalid_argument);
  EXPECT_THROW(ReadRate(-1), std::invalid_argument);
  EXPECT_THROW(ReadRate((192 << 10) - 1), std::invalid_argument);
  Pool pool(1);
  EXPECT_GT(ReadRate(192 << 10).measure(pool), 0);
}

}  // namespace
}  // namespace asdbench::kernels
