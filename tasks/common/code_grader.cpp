// A queue of jobs, one thread a core, and results handed to the caller's thread.
#include "tasks/common/code_grader.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace asdbench {
namespace {

// Cores that this process may use.
unsigned cores() {
  cpu_set_t set;
  const int count = ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  return static_cast<unsigned>(std::max(count, 1));
}

/// Results on their way from the workers to the caller.
class Finished {
 public:
  explicit Finished(unsigned workers) : workers_(workers) {}
  void put(std::size_t job, CodeResult result) {
    const std::lock_guard lock(mutex_);
    results_.emplace_back(job, std::move(result));
    changed_.notify_one();
  }
  void worker_ended() {
    const std::lock_guard lock(mutex_);
    --workers_;
    changed_.notify_one();
  }
  /// Waits for a result; nullopt when all workers have ended and all results were taken.
  std::optional<std::pair<std::size_t, CodeResult>> take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !results_.empty() || workers_ == 0; });
    if (results_.empty()) return std::nullopt;
    auto result = std::move(results_.front());
    results_.pop_front();
    return result;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::pair<std::size_t, CodeResult>> results_;
  unsigned workers_;
};

struct StopAtEnd {
  std::atomic<bool>& stop;
  ~StopAtEnd() { stop = true; }
};

}  // namespace

CodeJob completion_job(std::string_view prompt, std::string_view entry_point,
                       std::string_view tests, std::string_view reply) {
  CodeJob job;
  job.candidates = code_candidates(reply, entry_point, Bodies::kAllowed);
  job.entry_point = entry_point;
  job.prompt = prompt;
  job.preamble = preamble_of(prompt, entry_point);
  job.tests = tests;
  return job;
}

CodeJob function_job(std::string_view entry_point, std::string_view tests, std::string_view reply) {
  CodeJob job;
  job.candidates = code_candidates(reply, entry_point, Bodies::kNone);
  job.entry_point = entry_point;
  job.tests = tests;
  return job;
}

std::string python_block(std::string_view code) {
  std::string block = "```python\n";
  block += code;
  if (!code.ends_with('\n')) block += '\n';
  return block + "```\n";
}

SandboxLimits code_limits_of(const Params& params, std::int64_t default_timeout_s) {
  constexpr std::int64_t kLongest = 3600;
  SandboxLimits limits;
  limits.wall = std::chrono::seconds(params.integer("timeout_s", default_timeout_s, 1, kLongest));
  return limits;
}

Verdict verdict_of(CodeOutcome outcome) {
  switch (outcome) {
    case CodeOutcome::kPassed:
      return Verdict::kCorrect;
    case CodeOutcome::kNoCode:
      return Verdict::kNoAnswer;
    case CodeOutcome::kRunnerError:
      return Verdict::kUnscored;
    default:
      return Verdict::kIncorrect;
  }
}

Score score_of(const CodeResult& result) {
  Score score;
  score.verdict = verdict_of(result.outcome);
  if (score.verdict != Verdict::kUnscored) score.value = score.verdict == Verdict::kCorrect ? 1 : 0;
  score.answer = result.program;
  score.rule = result.rule;
  score.outcome = name_of(result.outcome);
  score.detail = result.detail;
  return score;
}

void run_code(std::span<const CodeJob> jobs, const CodeRunOptions& options,
              const std::function<void(std::size_t job, const CodeResult& result)>& done) {
  if (jobs.empty()) return;
  if (const SandboxState state = check_sandbox(options.tools); !state.fault.empty()) {
    CodeResult fault;
    fault.detail = state.fault;
    for (std::size_t i = 0; i < jobs.size(); ++i) done(i, fault);
    return;
  }
  const auto workers = static_cast<unsigned>(
      std::min<std::size_t>(options.workers == 0 ? cores() : options.workers, jobs.size()));
  std::atomic<std::size_t> next = 0;
  std::atomic<bool> stop = false;
  Finished finished(workers);
  const auto work = [&] {
    for (std::size_t job = next++; job < jobs.size() && !stop; job = next++) {
      finished.put(job, run_contained(jobs[job], options.tools));
    }
    finished.worker_ended();
  };
  std::vector<std::size_t> again;
  {
    std::vector<std::jthread> threads;
    const StopAtEnd stop_at_end{stop};  // before the threads are joined, whatever `done` throws
    for (unsigned i = 0; i < workers; ++i) threads.emplace_back(work);
    while (const auto result = finished.take()) {
      if (options.interrupted()) stop = true;
      if (result->second.outcome == CodeOutcome::kTimeout) {
        again.push_back(result->first);
      } else {
        done(result->first, result->second);
      }
    }
  }
  for (const std::size_t job : again) {
    if (options.interrupted()) return;
    done(job, run_contained(jobs[job], options.tools));
  }
}

void grade_code(std::span<const TaskReply> replies, const Task::Interrupted& interrupted,
                const Task::Graded& graded,
                const std::function<CodeJob(const TaskReply&)>& job_of) {
  std::vector<CodeJob> jobs;
  for (const TaskReply& reply : replies) jobs.push_back(job_of(reply));
  CodeRunOptions options;
  options.interrupted = interrupted;
  run_code(jobs, options,
           [&](std::size_t job, const CodeResult& result) { graded(job, score_of(result)); });
}

Score not_executed() {
  Score score;
  score.outcome = name_of(CodeOutcome::kRunnerError);
  score.detail = "the program was not run";
  return score;
}

}  // namespace asdbench
