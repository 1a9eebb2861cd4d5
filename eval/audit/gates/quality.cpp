// Gate quality, one word a task: the loss is smaller than the margin.
#include <fmt/format.h>

#include "eval/audit/gate.h"

namespace asdbench {
namespace {

GateResult right_or_wrong(const QualityEvidence& task, double alpha) {
  GateResult result{.name = "", .verdict = GateVerdict::kInconclusive, .reason = ""};
  const auto found = non_inferiority(task.counts, task.margin, alpha);
  if (!found) {
    result.reason = fmt::format("undefined over n = {}", task.counts.n);
    return result;
  }
  result.verdict = task.sequential.value_or(found->verdict);
  result.reason =
      fmt::format("n = {}, b = {}, c = {}, lambda {:+.3f} % [{:+.3f}, {:+.3f}], margin {:.3f} %",
                  task.counts.n, task.counts.b, task.counts.c, 100 * found->lambda,
                  100 * found->bounds.lo, 100 * found->bounds.hi, 100 * task.margin);
  if (task.sequential) result.reason += ", by e-process";
  return result;
}

GateResult graded(const QualityEvidence& task) {
  const Interval& bounds = task.graded->interval;
  GateResult result{.name = "", .verdict = GateVerdict::kInconclusive, .reason = ""};
  if (bounds.lo > -task.margin) {
    result.verdict = GateVerdict::kPass;
  } else if (bounds.hi < -task.margin) {
    result.verdict = GateVerdict::kFail;
  }
  result.reason = fmt::format("n = {}, mean difference {:+.4f} [{:+.4f}, {:+.4f}], margin {:.4f}",
                              task.counts.n, task.graded->point, bounds.lo, bounds.hi, task.margin);
  return result;
}

}  // namespace

std::vector<GateResult> make_quality(const AuditEvidence& evidence) {
  std::vector<GateResult> results;
  for (const QualityEvidence& task : evidence.quality) {
    GateResult result = task.graded ? graded(task) : right_or_wrong(task, evidence.alpha);
    result.name = "quality:" + task.task;
    // On a floor there is nothing to lose, so that a pass would say nothing.
    if (task.strict_accuracy && *task.strict_accuracy < evidence.accuracy_floor &&
        result.verdict == GateVerdict::kPass) {
      result.verdict = GateVerdict::kInconclusive;
      result.reason =
          fmt::format("floor: strict accuracy {:.2f} % is below {:.2f} %; {}",
                      100 * *task.strict_accuracy, 100 * evidence.accuracy_floor, result.reason);
    }
    results.push_back(std::move(result));
  }
  return results;
}

}  // namespace asdbench
