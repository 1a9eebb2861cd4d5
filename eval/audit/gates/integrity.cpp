// Gate integrity: the chain holds, and every row is the one that was recorded.
#include <fmt/format.h>

#include "eval/audit/gate.h"

namespace asdbench {

std::vector<GateResult> make_integrity(const AuditEvidence& evidence) {
  const auto& faults = evidence.integrity_faults;
  if (faults.empty()) return {{"integrity", GateVerdict::kPass, "chain and hashes hold"}};
  return {{"integrity", GateVerdict::kFail,
           fmt::format("{} faults, first: {}", faults.size(), faults.front())}};
}

}  // namespace asdbench
