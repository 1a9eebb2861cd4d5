// Gate b0_identity: with B = 0 every output is that of strict verification.
#include <fmt/format.h>

#include "eval/audit/gate.h"

namespace asdbench {

std::vector<GateResult> make_b0_identity(const AuditEvidence& evidence) {
  const bool equal = evidence.b0_mismatches == 0;
  return {{"b0_identity", equal ? GateVerdict::kPass : GateVerdict::kFail,
           fmt::format("{} prompts differ between B = 0 and strict", evidence.b0_mismatches)}};
}

}  // namespace asdbench
