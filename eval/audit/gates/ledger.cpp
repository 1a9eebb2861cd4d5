// Gate ledger: no request spent more than B, and none began with what another had spent.
#include <fmt/format.h>

#include "eval/audit/gate.h"
#include "eval/core/json.h"

namespace asdbench {

std::vector<GateResult> make_ledger(const AuditEvidence& evidence) {
  // A comparison that a NaN fails: what cannot be compared did not stay within B.
  const bool within = evidence.max_spent <= evidence.regret_budget && evidence.state_leaks == 0;
  return {{"ledger", within ? GateVerdict::kPass : GateVerdict::kFail,
           fmt::format("at most {:.6g} of B = {} nats spent, {} state leaks", evidence.max_spent,
                       shortest_real(evidence.regret_budget), evidence.state_leaks)}};
}

}  // namespace asdbench
