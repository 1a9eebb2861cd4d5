// Gate speed: the gain on fixed work against its target.
#include <fmt/format.h>

#include "eval/audit/gate.h"

namespace asdbench {

std::vector<GateResult> make_speed(const AuditEvidence& evidence) {
  GateResult result{
      .name = "speed",
      .verdict = GateVerdict::kInconclusive,
      .reason = fmt::format("gain {}, target {:.2f} %", interval_text(evidence.speed_pct),
                            evidence.speed_target_pct)};
  if (evidence.speed_pct && evidence.speed_pct->hi <= evidence.speed_target_pct) {
    result.verdict = GateVerdict::kFail;
  } else if (evidence.speed_pct && evidence.speed_pct->lo > evidence.speed_target_pct) {
    result.verdict = GateVerdict::kPass;
  }
  if (!evidence.speed_fault.empty()) {
    result.verdict = GateVerdict::kInconclusive;
    result.reason += "; " + evidence.speed_fault;
  }
  return {result};
}

}  // namespace asdbench
