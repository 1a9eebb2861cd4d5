// Gate drift: the machine's speed changed by no more than the limit within any group.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "eval/audit/gate.h"

namespace asdbench {

std::vector<GateResult> make_drift(const AuditEvidence& evidence) {
  double most = 0;
  bool inside = !evidence.drift_pct.empty();
  for (const double drift : evidence.drift_pct) {
    inside = inside && std::abs(drift) <= evidence.drift_limit_pct;
    most = std::max(most, std::abs(drift));
  }
  return {{"drift", inside ? GateVerdict::kPass : GateVerdict::kInconclusive,
           fmt::format("at most {:.2f} % in {} groups, limit {:.2f} %", most,
                       evidence.drift_pct.size(), evidence.drift_limit_pct)}};
}

}  // namespace asdbench
