// Whole audits of a planted target whose loss and speedup are known: what an audit will detect,
// and how often it errs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "eval/audit/steps.h"
#include "eval/config/simulate_config.h"

namespace asdbench {

/// The truth behind a simulated deployment, and the audit that looks at it.
struct SimulatedTruth {
  std::int64_t prompts = 400;
  double discordance = 0.06;  // share of prompts that one arm alone answers right
  double loss = 0;            // strict accuracy minus ASD's
  double gain_pct = 5;        // of throughput
};

struct SimulationOptions {
  std::uint64_t seed = 7;
  std::int64_t audits = 1000;
  double margin = 0.05;
  double alpha = 0.05;
  double eta = 0;           // of the e-process; 0: margin / discordance, at most 0.5
  double accuracy = 0.5;    // of strict
  std::int64_t groups = 4;  // timed
  double group_sd = 0.006;  // of a group's log speedup
  double speed_target_pct = 0;
  double length_sd = 0.2;  // of the log ratio of a prompt's two lengths
  double length_change_pct = 0;
  double cap_rate = 0.01;  // of replies, in each arm alone
  double cap_margin = 0.01;
  std::uint64_t resamples = 200;
};

/// How often each word was given.
struct Words {
  std::int64_t pass = 0, fail = 0, inconclusive = 0;
  void add(GateVerdict word);
  double share(GateVerdict word) const;
};

struct SimulatedPoint {
  SimulatedTruth truth;
  Words verdict, quality, speed, sequential;
  double sequential_prompts = 0;  // mean number after which the e-process decided, or all
};

/// Draws `options.audits` audits; the same seed gives the same ones. InternalError for a truth that
/// cannot be: a loss above the discordance.
SimulatedPoint simulate_point(const SimulatedTruth& truth, const SimulationOptions& options);

/// Every combination of the lists: power curves, and the error rates at the points where the truth
/// lies on the margin or the speed target. Exit code kFail when one is above alpha by more than
/// three standard errors.
StepResult simulate(const SimulateConfig& config);

}  // namespace asdbench
