// Claims by compare-and-swap on one word; waiting that spins, then sleeps.
#include "runners/kernels/pool.h"

#include <sched.h>

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>

namespace asdbench::kernels {
namespace {

// A step of a small model opens a round every 10 to 50 µs. These many pauses (30 to 140 cycles
// each) cover that gap and the serial stretches between steps. Then a worker sleeps: a thread that
// yields gives its core away for a whole slice, even to a process of the lowest priority, while one
// that is woken takes it back at once.
constexpr int kSpins = 20'000;

// As a next task: none, of whatever round. Rounds have fewer tasks.
constexpr std::uint64_t kTaskMask = 0xffffffffu;

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/// Whether `ready` became true while spinning.
template <typename Ready>
bool spin_until(Ready ready) {
  for (int i = 0; i < kSpins; ++i) {
    if (ready()) return true;
    pause();
  }
  return ready();
}

}  // namespace

Pool::Pool(int threads) {
  if (threads < 1) {
    throw std::invalid_argument("a pool of " + std::to_string(threads) +
                                " threads; at least 1 is needed");
  }
  workers_.reserve(static_cast<std::size_t>(threads - 1));
  try {
    for (int i = 1; i < threads; ++i) workers_.emplace_back([this, i] { worker_loop(i); });
  } catch (...) {
    stop();
    throw;
  }
}

Pool::~Pool() { stop(); }

void Pool::stop() {
  stop_ = true;
  round_.fetch_add(1);
  round_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

int Pool::usable_cores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return CPU_COUNT(&set);
  const unsigned cores = std::thread::hardware_concurrency();
  return cores == 0 ? 1 : static_cast<int>(cores);
}

Pool& Pool::process() {
  static Pool pool(usable_cores());
  return pool;
}

void Pool::run_tasks(std::int64_t count, void* context, Call call) {
  if (count < 0 || count > std::numeric_limits<std::int32_t>::max()) {
    throw std::invalid_argument("a round of " + std::to_string(count) + " tasks");
  }
  if (workers_.empty() || count <= 1) {
    for (std::int64_t i = 0; i < count; ++i) call(context, i, 0);
    return;
  }
  const std::lock_guard<std::mutex> turn(callers_);
  // The round before is closed first. A worker that comes late to it may have read the claim word
  // already; were it unchanged, the new count would let it claim tasks that the old round never
  // had.
  claim_.fetch_or(kTaskMask, std::memory_order_relaxed);
  count_.store(count, std::memory_order_release);  // whoever reads it sees the round closed
  context_.store(context, std::memory_order_relaxed);
  call_.store(call, std::memory_order_relaxed);
  done_.store(0, std::memory_order_relaxed);
  const std::uint32_t round = round_.load(std::memory_order_relaxed) + 1;
  claim_.store(std::uint64_t{round} << kRoundShift, std::memory_order_release);
  round_.store(round, std::memory_order_release);
  round_.notify_all();
  work(round, 0);
  // Only tasks that a worker has claimed are waited for.
  const auto all_done = [&] { return done_.load(std::memory_order_acquire) == count; };
  // Yields instead of sleeping: libstdc++ 12 waits for a 64-bit atomic through a proxy, and a test
  // was seen to sleep for ever there.
  while (!spin_until(all_done)) std::this_thread::yield();
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void Pool::work(std::uint32_t round, int thread) {
  std::int64_t finished = 0;
  std::uint64_t claim = claim_.load(std::memory_order_acquire);
  for (;;) {
    const std::int64_t count = count_.load(std::memory_order_acquire);
    const auto index = static_cast<std::int64_t>(claim & kTaskMask);
    if (claim >> kRoundShift != round || index >= count) break;
    const std::int64_t some = std::max<std::int64_t>(1, (count - index) / (2 * threads()));
    // Success proves that the round was not closed meanwhile, hence that `count` is its own: its
    // fields stay until the tasks claimed here are reported done.
    if (!claim_.compare_exchange_weak(claim, claim + static_cast<std::uint64_t>(some),
                                      std::memory_order_acq_rel)) {
      continue;
    }
    const Call call = call_.load(std::memory_order_relaxed);
    void* context = context_.load(std::memory_order_relaxed);
    for (std::int64_t task = index; task < index + some; ++task) {
      try {
        call(context, task, thread);
      } catch (...) {
        const std::lock_guard<std::mutex> lock(failure_lock_);
        if (!failure_) failure_ = std::current_exception();
      }
    }
    finished += some;
    claim = claim_.load(std::memory_order_acquire);
  }
  if (finished > 0) {
    done_.fetch_add(finished, std::memory_order_acq_rel);
  }
}

void Pool::worker_loop(int thread) {
  std::uint32_t seen = 0;
  for (;;) {
    // Spinning looks at the word that is claimed from, whose line is needed next anyway.
    const auto opened = [&] { return claimed_round() != seen || stop_.load(); };
    if (!spin_until(opened)) round_.wait(seen, std::memory_order_acquire);
    if (stop_.load()) return;
    const std::uint32_t round = claimed_round();
    if (round == seen) continue;  // a spurious wake-up
    seen = round;
    work(round, thread);
  }
}

}  // namespace asdbench::kernels
