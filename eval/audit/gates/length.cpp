// Gate length: answers are neither longer nor shorter by more than the limit; the worst task
// decides.
#include <fmt/format.h>

#include "eval/audit/gate.h"

namespace asdbench {

std::vector<GateResult> make_length(const AuditEvidence& evidence) {
  const double limit = evidence.length_limit_pct;
  GateResult worst{.name = "length", .verdict = GateVerdict::kPass, .reason = ""};
  if (evidence.length.empty()) worst.verdict = GateVerdict::kInconclusive;
  for (const LengthEvidence& task : evidence.length) {
    const auto& change = task.change_pct;
    GateVerdict word = GateVerdict::kInconclusive;
    if (change && change->lo >= -limit && change->hi <= limit) word = GateVerdict::kPass;
    if (change && (change->lo > limit || change->hi < -limit)) word = GateVerdict::kFail;
    worst.verdict = worse(worst.verdict, word);
    worst.reason +=
        fmt::format("{}{} {}", worst.reason.empty() ? "" : "; ", task.task, interval_text(change));
  }
  worst.reason += fmt::format(", limit {:.2f} %", limit);
  return {worst};
}

}  // namespace asdbench
