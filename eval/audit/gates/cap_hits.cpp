// Gate cap_hits: replies that never end are not more frequent by the margin; the worst task
// decides.
#include <fmt/format.h>

#include "eval/audit/gate.h"

namespace asdbench {

std::vector<GateResult> make_cap_hits(const AuditEvidence& evidence) {
  GateResult worst{.name = "cap_hits", .verdict = GateVerdict::kPass, .reason = ""};
  if (evidence.caps.empty()) worst.verdict = GateVerdict::kInconclusive;
  for (const CapEvidence& task : evidence.caps) {
    const auto found = non_inferiority(task.counts, task.margin, evidence.alpha);
    worst.verdict = worse(worst.verdict, found ? found->verdict : GateVerdict::kInconclusive);
    worst.reason +=
        fmt::format("{}{} n = {}, only strict {}, only ASD {}", worst.reason.empty() ? "" : "; ",
                    task.task, task.counts.n, task.counts.b, task.counts.c);
    if (found) {
      worst.reason += fmt::format(" [{:+.3f}, {:+.3f}] %, margin {:.3f} %", 100 * found->bounds.lo,
                                  100 * found->bounds.hi, 100 * task.margin);
    }
  }
  return {worst};
}

}  // namespace asdbench
