// Tuning on split A: settings compared with strict, pruned by replay, narrowed, timed; one is
// selected by the rule that the configuration names.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "eval/audit/evidence.h"
#include "eval/audit/steps.h"
#include "eval/report/table.h"

namespace asdbench {

/// What is known of one setting on A.
struct SettingResult {
  Setting setting;
  std::string pruned;                 // why it was not run live to the end; "" when it was
  std::optional<double> replay_gain;  // share more tokens a pass on the same blocks
  struct OfTask {
    std::string task;
    PairedCounts counts;
    double margin = 0;
    std::optional<NonInferiority> loss;
    std::int64_t prompts = 0;  // of A in all, of which a narrowing search has seen `counts.n`
    std::optional<BootstrapEstimate> length;
    std::optional<double> strict_accuracy, accuracy;
    PairedCounts among_diverged;
    double psi = 0;
  };
  std::vector<OfTask> tasks;
  std::optional<double> tokens_per_pass;
  std::optional<double> exceptions_per_request, regret_per_request;
  std::optional<double> gain_pct;
  std::optional<Interval> speed_pct;
  bool meets_constraint = false;
  bool on_frontier = false;
};

/// The index that the rule picks; nothing when none meets the constraint. Ties: smaller B, then g,
/// then M.
std::optional<std::size_t> pick(const std::vector<SettingResult>& results, SelectionRule rule);

/// The half of these settings that a narrowing search goes on with: those first whose loss so far,
/// with the narrower bound of all prompts of A, is inside the margin, by tokens a pass; then those
/// that miss it least.
std::vector<std::size_t> better_half(const std::vector<SettingResult>& results,
                                     std::vector<std::size_t> indices);

/// Marks the settings that no other beats in accuracy, speed and length at once.
void mark_frontier(std::vector<SettingResult>& results);

/// Runs, records, selects, writes the lock file. The report is the result's text; as Markdown it
/// goes to `markdown` unless that is "". Refused "not_allowed", and kRefused with the report when
/// no setting meets the constraint.
StepResult tune(AuditContext& context, const std::filesystem::path& markdown);

}  // namespace asdbench
