// The rows of an audit, gathered by task and checked against the chain, the manifest and the split.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "eval/audit/campaign.h"
#include "eval/core/json.h"
#include "tasks/task.h"

namespace asdbench {

/// One prompt in both arms.
struct AuditedPair {
  OutputFacts strict, asd;
};

/// A task of the manifest with what the audit recorded of it.
struct AuditedTask {
  std::string name;
  Json entry;  // of the manifest
  std::unique_ptr<Task> task;
  std::vector<SplitRow> split;     // its prompts of B, in order
  std::vector<AuditedPair> pairs;  // in the order of the records
  std::int64_t b0_prompts = 0, b0_mismatches = 0;
};

/// The timed slots of one task, in order.
struct TimedSet {
  std::string task;
  bool reference_lengths = false;
  bool unstable = false;
  std::int64_t strict_cell = 0, asd_cell = 0;
  std::vector<SlotFacts> slots;    // of the groups that count
  std::vector<std::string> voids;  // the others, each with its reason
};

struct AuditedRows {
  std::vector<AuditedTask> tasks;
  std::vector<TimedSet> sets;
  std::vector<std::string> faults;  // in words, with the row they speak of
};

/// Reads and checks. Faults are collected, not thrown. Refused "incomplete" when nothing was
/// recorded; ConfigError when this build lacks a task of the manifest.
AuditedRows gather_rows(Campaign& campaign, const Json& manifest);

/// What a record says of an output: digests over its ids, text and trace, how it ended, its score.
Json arm_record(const std::string& cell_key, const OutputFacts& facts);

/// The body of the record of one timed group; `arms` names the cells by row id.
Json speed_record(const Json& set, std::int64_t group,
                  const std::map<std::int64_t, std::string>& arms,
                  const std::vector<SlotFacts>& slots);

/// Scores a stored reply again. `sample` is that of the split.
Verdict verdict_again(const Task& task, const Sample& sample, const OutputFacts& facts);

/// Makes the task of an entry of the manifest. ConfigError when this build lacks it.
std::unique_ptr<Task> task_of(const Json& entry);

/// A control of the manifest's rule: "B", "g", "M". DataError when it is no number.
double control_of(const Json& manifest, const char* name);

/// Prompts of B, from the first, that are decoded with B = 0 as well (a task).
inline constexpr std::int64_t kB0Prompts = 16;

}  // namespace asdbench
