// All gates in their order, and the one word they make.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "eval/audit/gate.h"
#include "eval/core/error.h"

namespace asdbench {
namespace {

constexpr std::array<std::string_view, 9> kOrder = {"integrity",         "b0_identity", "ledger",
                                                    "fixed_work_tokens", "drift",       "speed",
                                                    "quality",           "length",      "cap_hits"};

}  // namespace

GateVerdict worse(GateVerdict a, GateVerdict b) {
  const auto rank = [](GateVerdict word) {
    return word == GateVerdict::kFail ? 2 : word == GateVerdict::kInconclusive ? 1 : 0;
  };
  return rank(a) >= rank(b) ? a : b;
}

std::string interval_text(const std::optional<Interval>& interval) {
  return interval ? fmt::format("{:.3f} to {:.3f} %", interval->lo, interval->hi) : "undefined";
}

std::vector<std::string> AuditVerdict::names(GateVerdict word) const {
  std::vector<std::string> found;
  for (const GateResult& gate : gates) {
    if (gate.verdict == word) found.push_back(gate.name);
  }
  return found;
}

AuditVerdict judge(const AuditEvidence& evidence) {
  AuditVerdict verdict{.verdict = GateVerdict::kPass, .gates = {}};
  const std::vector<GateFactory>& table = gate_factories();
  ASDBENCH_CHECK(table.size() == kOrder.size(), "every gate has a place in the order");
  for (const std::string_view name : kOrder) {
    const auto gate = std::find_if(table.begin(), table.end(),
                                   [&](const GateFactory& entry) { return entry.name == name; });
    ASDBENCH_CHECK(gate != table.end(), "a gate of the order is built in");
    for (GateResult& result : gate->make(evidence)) {
      verdict.verdict = worse(verdict.verdict, result.verdict);
      verdict.gates.push_back(std::move(result));
    }
  }
  return verdict;
}

}  // namespace asdbench
