// Grades replies by running them: jobs on several cores, and what an outcome is worth.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "eval/core/params.h"
#include "eval/core/sample.h"
#include "tasks/common/sandbox.h"
#include "tasks/task.h"

namespace asdbench {

/// The job of a reply to a prompt that is itself Python and ends inside `entry_point` (HumanEval).
CodeJob completion_job(std::string_view prompt, std::string_view entry_point,
                       std::string_view tests, std::string_view reply);
/// The job of a reply to a prompt in prose (MBPP).
CodeJob function_job(std::string_view entry_point, std::string_view tests, std::string_view reply);

/// `code` in a Markdown block of Python, which ends in a line end.
std::string python_block(std::string_view code);

/// The usual limits with the time that option `timeout_s` names, in whole seconds.
SandboxLimits code_limits_of(const Params& params, std::int64_t default_timeout_s);

/// correct, incorrect, no_answer for kNoCode, unscored for kRunnerError.
Verdict verdict_of(CodeOutcome outcome);
Score score_of(const CodeResult& result);

struct CodeRunOptions {
  SandboxTools tools;
  unsigned workers = 0;  // 0: one a core, so that time limits do not depend on load
  std::function<bool()> interrupted = [] { return false; };
};

/// Runs all jobs; `done` is called on this thread, once for each job, in the order in which they
/// end. A job that ran out of time is run once more, alone, before it is done. When interrupted,
/// the jobs that have not started are left out. Without a working sandbox nothing is run and every
/// job ends as kRunnerError with what is missing.
void run_code(std::span<const CodeJob> jobs, const CodeRunOptions& options,
              const std::function<void(std::size_t job, const CodeResult& result)>& done);

/// What `Task::grade` of a task that runs code does: runs the jobs of all replies, and scores them.
void grade_code(std::span<const TaskReply> replies, const Task::Interrupted& interrupted,
                const Task::Graded& graded, const std::function<CodeJob(const TaskReply&)>& job_of);

/// What `Task::score` of such a task says: unscored, and why.
Score not_executed();

}  // namespace asdbench
