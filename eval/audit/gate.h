// What an audit found, the gates that judge it, and the verdict. Source: specs/measurement.md,
// sections 3, 4 and 8.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "eval/stats/paired.h"
#include "eval/stats/resampling.h"
#include "eval/stats/stats.h"

namespace asdbench {

/// Right and wrong answers of one task on natural endings, or the mean difference of judged scores.
struct QualityEvidence {
  std::string task;
  PairedCounts counts;                      // under the manifest's capped policy
  double margin = 0;                        // a share, or score units for a graded task
  std::optional<double> strict_accuracy;    // absent: no floor is asked for
  std::optional<BootstrapEstimate> graded;  // of ASD minus strict, at confidence 1 - 2 alpha
  std::optional<GateVerdict> sequential;    // the word of the e-process, where the manifest has one
};

/// Completion length of ASD over strict, as a change in percent, two-sided 95 %.
struct LengthEvidence {
  std::string task;
  std::optional<Interval> change_pct;
};

/// Replies that end, paired: `b` only strict hit the cap, `c` only ASD did.
struct CapEvidence {
  std::string task;
  PairedCounts counts;
  double margin = 0.01;
};

struct AuditEvidence {
  std::vector<std::string> integrity_faults;  // empty: chain and hashes hold
  std::int64_t b0_mismatches = 0;
  double max_spent = 0;                                            // nats
  double regret_budget = std::numeric_limits<double>::infinity();  // B
  std::int64_t state_leaks = 0;  // ledgers that did not start at 0 or do not add up
  bool tokens_equal = true;      // fixed work, all arms of every group
  std::vector<double> drift_pct;
  double drift_limit_pct = 3;
  std::optional<Interval> speed_pct;  // gain, two-sided 95 %
  double speed_target_pct = 0;
  std::string speed_fault;  // why the timing cannot be trusted; "" when it can
  std::vector<QualityEvidence> quality;
  std::vector<LengthEvidence> length;
  double length_limit_pct = 3;
  std::vector<CapEvidence> caps;
  double accuracy_floor = 0;
  double alpha = 0.05;
};

struct GateResult {
  std::string name;  // "speed", "quality:gsm8k"
  GateVerdict verdict = GateVerdict::kInconclusive;
  std::string reason;  // figures behind the word
};

/// One gate: a pure function of the evidence; quality gives one result a task.
struct GateFactory {
  using Make = std::vector<GateResult>(const AuditEvidence&);
  std::string name;
  Make* make;
};

/// Generated: one row per file of eval/audit/gates/.
const std::vector<GateFactory>& gate_factories();

struct AuditVerdict {
  GateVerdict verdict = GateVerdict::kInconclusive;
  std::vector<GateResult> gates;  // in the order of section 8

  /// Names of the gates with this word, in order.
  std::vector<std::string> names(GateVerdict word) const;
};

/// Any fail: fail; else any inconclusive: inconclusive; else pass.
AuditVerdict judge(const AuditEvidence& evidence);

/// The worse of two words: fail, inconclusive, pass.
GateVerdict worse(GateVerdict a, GateVerdict b);

/// "-0.44 to 2.00" percent, for reasons.
std::string interval_text(const std::optional<Interval>& interval);

}  // namespace asdbench
