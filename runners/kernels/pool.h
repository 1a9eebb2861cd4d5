// The one thread pool of the process, for the native CPU engine.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

namespace asdbench::kernels {

/// Runs numbered tasks on the calling thread and its workers.
///
/// Tasks are claimed in runs of neighbours that get shorter towards the end, so a worker that has
/// lost its core to another process delays only the tasks it holds, and one that never wakes delays
/// nothing: the caller does the work itself.
/// Waiting spins for up to a millisecond, then sleeps (a worker) or yields (the caller). Which
/// thread runs a task is not determined; results must not depend on it.
class Pool {
 public:
  /// `threads` counts the calling thread: 1 has no workers. More than the machine has cores is
  /// allowed. Errors: std::invalid_argument below 1.
  explicit Pool(int threads);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  /// The pool of the process, with as many threads as the process may use cores.
  static Pool& process();

  /// Cores that this process may run on.
  static int usable_cores();

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  /// Calls task(i) once for each i in [0, count) and returns when all are done; task(i, thread)
  /// when it takes the number of the thread that calls it too, 0 to threads() - 1. The first
  /// exception of a task is rethrown here when no task runs any more; then some may not have been
  /// called. Calls from several threads take turns; a task must not call run() itself. Allocates
  /// nothing.
  template <typename Task>
  void run(std::int64_t count, Task&& task) {
    using Plain = std::remove_reference_t<Task>;
    run_tasks(count, &task, [](void* context, std::int64_t index, int thread) {
      if constexpr (std::is_invocable_v<Plain&, std::int64_t, int>) {
        (*static_cast<Plain*>(context))(index, thread);
      } else {
        (*static_cast<Plain*>(context))(index);
      }
    });
  }

 private:
  using Call = void (*)(void* context, std::int64_t index, int thread);

  void run_tasks(std::int64_t count, void* context, Call call);
  void work(std::uint32_t round, int thread);
  void stop();
  std::uint32_t claimed_round() const {
    return static_cast<std::uint32_t>(claim_.load(std::memory_order_acquire) >> kRoundShift);
  }
  void worker_loop(int thread);

  static constexpr int kRoundShift = 32;
  // The round's number (upper half) and its next unclaimed task (lower half; all ones: closed). One
  // word, so that a claim succeeds only in the round it was meant for.
  alignas(64) std::atomic<std::uint64_t> claim_{0};
  // The current round, written before `claim_` opens it and unchanged until its last task is done.
  std::atomic<std::int64_t> count_{0};
  std::atomic<void*> context_{nullptr};
  std::atomic<Call> call_{nullptr};
  alignas(64) std::atomic<std::int64_t> done_{0};
  std::atomic<std::uint32_t> round_{0};  // what sleeping workers wait on
  std::atomic<bool> stop_{false};
  std::mutex callers_;
  std::mutex failure_lock_;
  std::exception_ptr failure_;
  std::vector<std::thread> workers_;
};

}  // namespace asdbench::kernels
