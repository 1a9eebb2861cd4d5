// A configuration made concrete: plugins built, options checked, samples loaded, cells named.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "eval/config/run_config.h"
#include "eval/core/sample.h"
#include "runners/drafter.h"
#include "runners/models/models.h"
#include "runners/verifier.h"
#include "tasks/task.h"

namespace asdbench {

/// Folders that a run reads.
struct Paths {
  std::filesystem::path models;
  std::filesystem::path data;
  std::filesystem::path samples;   // tasks/samples
  std::filesystem::path drafters;  // runners/drafters/shipped
};

/// Part `index` of `count` of every cell's samples, by position in the seeded order.
struct Shard {
  std::int64_t index = 0;
  std::int64_t count = 1;
};

struct ExperimentOptions {
  Paths paths;
  std::optional<std::int64_t> limit;  // samples per task; overrides the task's own
  Shard shard;
  std::string device;  // overrides every target's; "" leaves them
  /// Whether the user agreed to run what a model writes. ConfigError when a task does so otherwise.
  bool allow_code_execution = false;
  std::string split, grader;  // override every task's; "" leaves them
};

/// A task of the matrix with the samples that a run takes from it.
struct TaskSet {
  std::unique_ptr<Task> task;
  TaskInfo info;
  Samples samples;  // in the order of the run: seeded, limited, sharded
  Samples warm_up;  // what comes before timed groups; empty: the timed prompts themselves
  std::int64_t available = 0;  // before limit and shard
  std::string data_sha256;     // over all samples of the split
  std::int32_t max_tokens = 0;
  std::string grader;
  /// What beside split and grader the task read from its options: as given, for people, and as it
  /// holds, for the cell's identity.
  std::string options;
  std::map<std::string, std::string, std::less<>> identity;
};

/// A verification rule of the matrix.
struct RuleSet {
  std::unique_ptr<Verifier> verifier;
  VerifierInfo info;
  std::string options;   // as given: "B=8 g=0.25 M=2"
  std::string identity;  // canonical JSON of what holds
};

/// A drafter of the matrix; it is built when its target is loaded.
struct DrafterSet {
  const Choice* choice = nullptr;
};

/// A decoding of the matrix.
struct DecodingSet {
  std::int32_t batch = 1;
};

/// Everything of a run but the loaded models.
struct Experiment {
  RunConfig config;
  std::vector<TaskSet> tasks;
  std::vector<RuleSet> rules;
  std::vector<DrafterSet> drafters;
  std::vector<DecodingSet> decodings;
  std::vector<CellIndex> cells;

  /// "asd B=8 g=0.25 M=2", "plain (no drafter)", ...
  std::string rule_label(const CellIndex& cell) const;
  std::string cell_label(const CellIndex& cell) const;
};

/// Names of everything built in.
KnownNames known_names_of_build();

/// ConfigError, DataError.
Experiment make_experiment(RunConfig config, const ExperimentOptions& options);

/// ConfigError: two entries of an axis are one setting.
[[noreturn]] void refuse_same(const Choice& first, const Choice& second);

/// Builds the drafter of `set`. ConfigError for options it does not know.
std::unique_ptr<Drafter> make_drafter(const DrafterSet& set, const DrafterContext& context);

}  // namespace asdbench
