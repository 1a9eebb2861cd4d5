// Threads take questions in order and hand outcomes to the caller, who alone touches the database.
#include "eval/run/ask_queue.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "eval/core/rng.h"

namespace asdbench {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// What the threads share; everything behind `mutex`.
struct Shared {
  std::mutex mutex;
  std::condition_variable changed;
  std::size_t next = 0;     // question to be taken
  std::size_t working = 0;  // threads that have not ended
  std::size_t requests = 0;
  bool stop = false;
  Clock::time_point free_at;  // when the rate allows the next request
  std::deque<std::pair<std::size_t, ChatOutcome>> outcomes;
  std::deque<std::pair<std::string, std::chrono::seconds>> waits;  // that a user should know of
  std::exception_ptr failure;                                      // the first that a judge threw
};

class Worker {
 public:
  Worker(Shared& shared, const AskOptions& options,
         const std::vector<const std::vector<Message>*>& prompts, std::unique_ptr<Judge> judge)
      : shared_(shared), options_(options), prompts_(prompts), judge_(std::move(judge)) {}

  void run() {
    std::exception_ptr failure;
    try {
      answer_all();
    } catch (...) {
      failure = std::current_exception();
    }
    const std::lock_guard lock(shared_.mutex);
    if (shared_.failure == nullptr) shared_.failure = failure;
    --shared_.working;
    shared_.changed.notify_all();
  }
  /// Called with the mutex held: breaks off a request that outlived its time, or any when stopping.
  void watch(Clock::time_point now) {
    constexpr auto kGrace = std::chrono::seconds(2);
    const bool late = asking_since_ && now > *asking_since_ + options_.timeout + kGrace;
    if (asking_since_ && (late || shared_.stop)) judge_->stop();
  }

 private:
  void answer_all() {
    while (const auto question = take()) {
      const std::optional<ChatOutcome> outcome = answer(*question);
      if (!outcome) return;
      std::unique_lock lock(shared_.mutex);
      shared_.outcomes.emplace_back(*question, *outcome);
      if (outcome->fault == ChatFault::kServer) shared_.stop = true;  // nobody asks it again
      shared_.changed.notify_all();
      // No more answers wait to be stored than judges are asked: a kill loses them.
      shared_.changed.wait(lock, [&] {
        return shared_.stop ||
               shared_.outcomes.size() < static_cast<std::size_t>(options_.concurrency);
      });
    }
  }

  std::optional<std::size_t> take() {
    const std::lock_guard lock(shared_.mutex);
    if (shared_.stop || shared_.next == prompts_.size()) return std::nullopt;
    return shared_.next++;
  }

  /// Asks until there is a reply, a fault that repeating cannot mend, or no attempt left; nullopt
  /// when stopped.
  std::optional<ChatOutcome> answer(std::size_t question) {
    for (std::int32_t attempt = 0;; ++attempt) {
      if (!wait_for_rate()) return std::nullopt;
      mark(Clock::now());
      ChatOutcome outcome = judge_->ask(*prompts_[question]);
      mark(std::nullopt);
      const bool again = outcome.fault == ChatFault::kRetry && attempt + 1 < options_.attempts;
      if (!again)
        return stopped() && outcome.fault != ChatFault::kNone ? std::nullopt
                                                              : std::optional(std::move(outcome));
      const Clock::duration pause = back_off(question, attempt, outcome);
      tell_of(outcome.error, pause);
      if (!wait(Clock::now() + pause)) return std::nullopt;
    }
  }

  /// Between half and all of a wait that doubles, so that threads do not come back together; never
  /// shorter than the server asks.
  Clock::duration back_off(std::size_t question, std::int32_t attempt,
                           const ChatOutcome& outcome) const {
    const std::int32_t doublings = std::min(attempt, 20);
    const auto longest =
        std::min<milliseconds>(options_.first_wait * (1 << doublings), options_.longest_wait);
    SplitMix64 random(question * 1000 + static_cast<std::size_t>(attempt));
    const auto half = longest / 2;
    const auto extra =
        half.count() == 0 ? 0 : random.next() % static_cast<std::uint64_t>(half.count() + 1);
    const auto wait = half + milliseconds(extra);
    return std::max<Clock::duration>(wait, outcome.retry_after.value_or(std::chrono::seconds(0)));
  }

  void tell_of(const std::string& why, Clock::duration pause) {
    constexpr auto kNoticed = std::chrono::seconds(5);
    if (pause < kNoticed) return;
    const std::lock_guard lock(shared_.mutex);
    shared_.waits.emplace_back(why, std::chrono::ceil<std::chrono::seconds>(pause));
    shared_.changed.notify_all();
  }

  bool wait_for_rate() {
    Clock::time_point mine = Clock::now();
    {
      const std::lock_guard lock(shared_.mutex);
      if (options_.per_minute > 0) {
        mine = std::max(mine, shared_.free_at);
        shared_.free_at = mine + std::chrono::duration_cast<Clock::duration>(
                                     std::chrono::duration<double>(60 / options_.per_minute));
      }
      ++shared_.requests;
    }
    return wait(mine);
  }
  /// False when stopped meanwhile.
  bool wait(Clock::time_point until) {
    std::unique_lock lock(shared_.mutex);
    shared_.changed.wait_until(lock, until, [&] { return shared_.stop; });
    return !shared_.stop;
  }
  bool stopped() {
    const std::lock_guard lock(shared_.mutex);
    return shared_.stop;
  }
  void mark(std::optional<Clock::time_point> since) {
    const std::lock_guard lock(shared_.mutex);
    asking_since_ = since;
  }

  Shared& shared_;
  const AskOptions& options_;
  const std::vector<const std::vector<Message>*>& prompts_;
  std::unique_ptr<Judge> judge_;
  std::optional<Clock::time_point> asking_since_;
};

/// Whether asking on makes sense after this outcome; the reason goes into the summary.
void judge_the_judge(const ChatOutcome& outcome, const AskOptions& options, AskSummary& summary) {
  if (outcome.fault == ChatFault::kServer) {
    summary.fatal = outcome.error;
  } else if (summary.answered == 0 && outcome.fault == ChatFault::kRetry &&
             summary.failed >= static_cast<std::size_t>(std::max(3, options.concurrency))) {
    summary.fatal = "nothing was answered so far; the last reason: " + outcome.error;
  }
}

}  // namespace

AskSummary ask_all(const std::vector<const std::vector<Message>*>& prompts,
                   const std::function<std::unique_ptr<Judge>()>& make, const AskOptions& options,
                   const std::function<void(std::size_t, const ChatOutcome&)>& answered,
                   const std::function<bool()>& interrupted) {
  Shared shared;
  shared.free_at = Clock::now();
  const std::size_t count = std::min(prompts.size(), static_cast<std::size_t>(options.concurrency));
  std::vector<std::unique_ptr<Worker>> workers;
  for (std::size_t i = 0; i < count; ++i) {
    workers.push_back(std::make_unique<Worker>(shared, options, prompts, make()));
  }
  std::vector<std::thread> threads;
  threads.reserve(count);
  const auto end_all = [&] {
    {
      const std::lock_guard lock(shared.mutex);
      shared.stop = true;
    }
    shared.changed.notify_all();
    for (std::thread& thread : threads) {
      while (thread.joinable()) {
        {
          std::unique_lock lock(shared.mutex);
          for (const auto& worker : workers) worker->watch(Clock::now());
          shared.changed.wait_for(lock, milliseconds(20), [&] { return shared.working == 0; });
          if (shared.working > 0) continue;
        }
        thread.join();
      }
    }
  };
  AskSummary summary;
  const auto report = [&](std::size_t question, const ChatOutcome& outcome) {
    ++(outcome.fault == ChatFault::kNone ? summary.answered : summary.failed);
    answered(question, outcome);
    judge_the_judge(outcome, options, summary);
  };
  try {
    std::unique_lock lock(shared.mutex);
    for (const auto& worker : workers) {
      threads.emplace_back([&w = *worker] { w.run(); });
      ++shared.working;
    }
    while (true) {
      while (!shared.outcomes.empty() && summary.fatal.empty()) {
        const auto [question, outcome] = std::move(shared.outcomes.front());
        lock.unlock();
        report(question, outcome);
        lock.lock();
        shared.outcomes.pop_front();
        shared.changed.notify_all();
      }
      while (!shared.waits.empty()) {
        const auto [why, pause] = std::move(shared.waits.front());
        shared.waits.pop_front();
        lock.unlock();
        options.waiting(why, pause);
        lock.lock();
      }
      if (shared.failure != nullptr) std::rethrow_exception(shared.failure);
      if (!summary.fatal.empty() || (shared.working == 0 && shared.outcomes.empty())) break;
      if (interrupted()) {
        summary.interrupted = true;
        break;
      }
      for (const auto& worker : workers) worker->watch(Clock::now());
      shared.changed.wait_for(lock, milliseconds(100));
    }
  } catch (...) {
    end_all();
    throw;
  }
  end_all();
  summary.requests = shared.requests;
  // Replies that came in while everything was ending were paid for.
  for (const auto& [question, outcome] : shared.outcomes) {
    if (outcome.fault == ChatFault::kNone) report(question, outcome);
  }
  return summary;
}

}  // namespace asdbench
