// The pool: every task once, any number of threads, failures, and busy cores.
#include "runners/kernels/pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

namespace asdbench::kernels {
namespace {

TEST(PoolTest, EveryTaskRunsOnceForEveryNumberOfThreads) {
  for (const int threads : {1, 2, 3, 9}) {
    Pool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (const std::int64_t count : {0, 1, 2, 7, 1'000}) {
      std::vector<std::atomic<int>> calls(static_cast<std::size_t>(count));
      pool.run(count, [&](std::int64_t task) { ++calls[static_cast<std::size_t>(task)]; });
      for (const auto& called : calls) EXPECT_EQ(called.load(), 1);
    }
  }
}

TEST(PoolTest, ManyShortRoundsSeeEachOthersWrites) {
  // Plain integers: the pool alone must order a round after the one before.
  Pool pool(4);
  std::vector<std::int64_t> values(16, 0);
  for (std::int64_t round = 1; round <= 5'000; ++round) {
    pool.run(16, [&](std::int64_t task) {
      const std::int64_t next = (task + 1) % 16;
      if (round % 2 == 0) {
        values[static_cast<std::size_t>(task)] += 1;
      } else {
        values[static_cast<std::size_t>(next)] += 1;
      }
    });
  }
  for (const std::int64_t value : values) EXPECT_EQ(value, 5'000);
}

TEST(PoolTest, AWorkerThatComesLateTakesNothingOfTheNextRound) {
  // Short and long rounds in turn, more threads than cores: workers lose their core between looking
  // for a task of one round and claiming it in the next. Once this hung, after ten thousand rounds.
  constexpr std::int64_t kLong = 40;
  Pool pool(9);
  std::vector<std::atomic<int>> calls(kLong);
  for (int round = 0; round < 60'000; ++round) {
    const std::int64_t count = round % 2 == 0 ? 2 : kLong;
    pool.run(count, [&](std::int64_t task) { ++calls[static_cast<std::size_t>(task)]; });
    for (std::int64_t task = 0; task < kLong; ++task) {
      ASSERT_EQ(calls[static_cast<std::size_t>(task)].exchange(0), task < count ? 1 : 0)
          << "task " << task << " of round " << round;
    }
  }
}

TEST(PoolTest, WorkersWakeAfterTheyHaveGoneToSleep) {
  Pool pool(3);
  for (int round = 0; round < 5; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // past spinning and yielding
    std::atomic<int> calls{0};
    pool.run(50, [&](std::int64_t) { ++calls; });
    EXPECT_EQ(calls.load(), 50);
  }
}

TEST(PoolTest, AThrowingTaskReachesTheCallerAndThePoolGoesOn) {
  for (const int threads : {1, 4}) {
    Pool pool(threads);
    EXPECT_THROW(pool.run(100,
                          [](std::int64_t task) {
                            if (task == 37) throw std::runtime_error("task 37");
                          }),
                 std::runtime_error);
    std::atomic<int> calls{0};
    pool.run(100, [&](std::int64_t) { ++calls; });
    EXPECT_EQ(calls.load(), 100);
  }
}

TEST(PoolTest, CallersTakeTurns) {
  Pool pool(2);
  std::atomic<int> calls{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&] {
      for (int round = 0; round < 200; ++round) pool.run(10, [&](std::int64_t) { ++calls; });
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(calls.load(), 4 * 200 * 10);
}

TEST(PoolTest, ASlowWorkerDelaysNoTaskButItsOwn) {
  // The last task, which is claimed alone, blocks until all others are done: another thread must
  // have taken them.
  Pool pool(2);
  std::atomic<int> others{0};
  pool.run(64, [&](std::int64_t task) {
    if (task == 63) {
      while (others.load() < 63) std::this_thread::yield();
    } else {
      ++others;
    }
  });
  EXPECT_EQ(others.load(), 63);
}

TEST(PoolTest, ATaskLearnsWhichThreadRunsIt) {
  constexpr int kThreads = 3;
  Pool pool(kThreads);
  std::vector<std::thread::id> ids(kThreads);  // of each number, written by that thread alone
  std::atomic<int> wrong{0};
  for (int round = 0; round < 200; ++round) {
    pool.run(30, [&](std::int64_t, int thread) {
      if (thread < 0 || thread >= kThreads) {
        ++wrong;
        return;
      }
      std::thread::id& id = ids[static_cast<std::size_t>(thread)];
      if (id == std::thread::id()) id = std::this_thread::get_id();
      if (id != std::this_thread::get_id()) ++wrong;
    });
  }
  EXPECT_EQ(wrong.load(), 0);
  EXPECT_TRUE(ids[0] == std::thread::id() || ids[0] == std::this_thread::get_id()) << "0 calls";
}

TEST(PoolTest, FewerThanOneThreadIsRefused) {
  EXPECT_THROW(Pool(0), std::invalid_argument);
  EXPECT_THROW(Pool(-3), std::invalid_argument);
}

TEST(PoolTest, ThePoolOfTheProcessIsOne) {
  EXPECT_EQ(&Pool::process(), &Pool::process());
  EXPECT_GE(Pool::process().threads(), 1);
}

}  // namespace
}  // namespace asdbench::kernels
