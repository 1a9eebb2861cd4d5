// What one comparison may cost. Verdicts must not depend on the load of the machine, so work is
// counted; the processor time of the thread is the second limit, for what the count misjudges.
#pragma once

#include <cstdint>
#include <ctime>

namespace asdbench::math {

/// Unwinds a comparison that has used up its time or memory; caught in equality.cpp.
struct OutOfBudget {
  const char* why;
};

class Budget {
 public:
  Budget() : start_ns_(thread_ns()) {}

  /// `units` of about a nanosecond each.
  void spend(std::uint64_t units) {
    spent_ += units;
    if (spent_ < next_check_) return;
    next_check_ = spent_ + kCheckEvery;
    if (spent_ > kUnits) throw OutOfBudget{"work limit"};
    if (thread_ns() - start_ns_ > kThreadNs) throw OutOfBudget{"time limit"};
  }

 private:
  static constexpr std::uint64_t kUnits = 25'000'000;
  static constexpr std::int64_t kThreadNs = 40'000'000;  // 50 ms less the longest single step
  static constexpr std::uint64_t kCheckEvery = 100'000;

  static std::int64_t thread_ns() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
  }

  std::int64_t start_ns_;
  std::uint64_t spent_ = 0;
  std::uint64_t next_check_ = kCheckEvery;
};

}  // namespace asdbench::math
