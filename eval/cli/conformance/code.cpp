// conformance code: the reference solutions of the official files, through extraction, sandbox and
// tests.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "eval/cli/conformance/code_cases.h"
#include "eval/cli/conformance/conformance.h"
#include "eval/core/error.h"
#include "tasks/task.h"

namespace asdbench {
namespace {

struct OfficialSplit {
  std::string task, split;
  bool by_default;  // run when only the task is named; the larger sets take minutes
};
const std::vector<OfficialSplit> kSplits = {{"humaneval", "test", true},
                                            {"humaneval", "plus", false},
                                            {"mbpp", "all", true},
                                            {"mbpp", "sanitized-all", true},
                                            {"mbpp", "plus", false}};

// Reference solutions that are known not to pass, by "split/id", and why.
const std::map<std::string, std::string> kKnownFaults = {
    {"plus/HumanEval/32", "its test calls _poly with the arguments turned round"}};

std::string describe(const Score& score) {
  return score.detail.empty() ? score.outcome : score.outcome + ": " + score.detail;
}

void run_split(const OfficialSplit& split, const ConformanceOptions& options,
               ConformanceReport& report) {
  Params params(split.task, {});
  params.set("split", split.split, {});
  // Some references take seconds; whether they are right must not depend on what else this machine
  // does.
  params.set("timeout_s", "60", {});
  const auto& factories = task_factories();
  const auto factory =
      std::find_if(factories.begin(), factories.end(),
                   [&](const TaskFactory& each) { return each.name == split.task; });
  ASDBENCH_CHECK(factory != factories.end(), split.task);
  const auto task = factory->make(params);
  const Samples samples = task->load({.data = options.data_dir, .samples = {}});
  std::vector<std::string> texts;
  for (const Sample& sample : samples) texts.push_back(python_block(sample.field("solution")));
  std::vector<TaskReply> replies;
  for (std::size_t i = 0; i < samples.size(); ++i) replies.push_back({&samples[i], texts[i]});
  const auto start = std::chrono::steady_clock::now();
  task->grade(
      replies, [] { return false; },
      [&](std::size_t reply, const Score& score) {
        const std::string id = split.split + "/" + samples[reply].id;
        if (const auto known = kKnownFaults.find(id); known != kKnownFaults.end()) {
          report.note(
              fmt::format("{}: known fault ({}), got {}", id, known->second, describe(score)));
        } else {
          report.expect(id, score.verdict == Verdict::kCorrect, "passed", describe(score));
        }
      });
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  report.note(fmt::format("{}/{}: {} programs in {:.1f} s, each with {}", split.task, split.split,
                          samples.size(), seconds, task->info().code_limits));
}

}  // namespace

void require_consent(const ConformanceOptions& options, const std::string& what) {
  if (options.allow_code_execution) return;
  throw ConfigError(
      what +
      " are programs\n  add --allow-code-execution to let them run contained; `asdbench sandbox "
      "check` says whether this machine can");
}

void CodeCases::add(const JsonlRow& row) {
  const std::string& name = row.text("entry_point");
  const std::string called = row.text("gold") + "\ncheck(" + name + ")\n";
  CodeJob job;
  if (row.text("kind") == "sandbox") {
    job.program = row.text("prompt") + row.text("prediction");
    job.tests = called;
  } else if (row.text("task") == "humaneval") {
    job = completion_job(row.text("prompt"), name, called, row.text("prediction"));
  } else {
    job = function_job(name, row.text("gold"), row.text("prediction"));
  }
  cases_.push_back({.id = row.text("id"),
                    .passes = row.object().at("expected").get<bool>(),
                    .contested = row.text("level") == "contested"});
  jobs_.push_back(std::move(job));
}

void CodeCases::run(ConformanceReport& report) const {
  if (jobs_.empty()) return;
  if (const SandboxState state = check_sandbox(); !state.fault.empty())
    throw DataError(state.fault);
  run_code(jobs_, {}, [&](std::size_t job, const CodeResult& result) {
    const Case& each = cases_[job];
    const bool ok = (result.outcome == CodeOutcome::kPassed) == each.passes &&
                    result.outcome != CodeOutcome::kRunnerError;
    const std::string wanted = each.passes ? "passes" : "does not pass";
    const std::string found = fmt::format("{} {}", name_of(result.outcome), result.detail);
    if (!each.contested) {
      report.expect(each.id, ok, wanted, found);
    } else if (!ok) {
      report.note(fmt::format("{}: contested, recorded: {}, got {}", each.id, wanted, found));
    }
  });
}

void conformance_code(const ConformanceOptions& options, ConformanceReport& report) {
  const std::string name = options.path.string();
  std::vector<OfficialSplit> chosen;
  std::vector<std::string> known;
  for (const OfficialSplit& split : kSplits) {
    const std::string full = split.task + "/" + split.split;
    known.push_back(full);
    if (split.by_default) known.push_back(split.task);
    if (name == full || (name == split.task && split.by_default)) chosen.push_back(split);
  }
  if (chosen.empty()) {
    std::sort(known.begin(), known.end());
    known.erase(std::unique(known.begin(), known.end()), known.end());
    throw ConfigError(fmt::format("conformance code: unknown set of solutions \"{}\"{}", name,
                                  known_names(name, known)));
  }
  require_consent(options, "the solutions of " + name);
  if (const SandboxState state = check_sandbox(); !state.fault.empty())
    throw DataError(state.fault);
  for (const OfficialSplit& split : chosen) run_split(split, options, report);
}

}  // namespace asdbench
