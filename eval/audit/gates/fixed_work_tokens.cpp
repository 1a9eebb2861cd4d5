// Gate fixed_work_tokens: a ratio of times is a speedup only over equal tokens.
#include "eval/audit/gate.h"

namespace asdbench {

std::vector<GateResult> make_fixed_work_tokens(const AuditEvidence& evidence) {
  if (evidence.tokens_equal) {
    return {{"fixed_work_tokens", GateVerdict::kPass, "equal in all arms of every group"}};
  }
  return {{"fixed_work_tokens", GateVerdict::kInconclusive, "arms counted different tokens"}};
}

}  // namespace asdbench
