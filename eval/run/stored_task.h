// The task behind a stored cell, rebuilt to grade or judge its replies without a model.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "results/store.h"
#include "tasks/task.h"

namespace asdbench {

/// What a cell's row says about its task.
struct StoredCell {
  std::int64_t id = 0;
  std::string task, split, task_options, data_sha256;
  std::int64_t task_version = 1;
  std::string grader;  // of its latest run
  std::string target, drafter, drafter_options, verifier, verifier_options;

  /// "smollm2-135m | ngram K=4 | asd B=8 g=0.25 M=2"
  std::string label() const;
};

/// All cells, in the order of their ids.
std::vector<StoredCell> stored_cells(const ResultStore& store);

struct StoredTask {
  std::unique_ptr<Task> task;
  TaskInfo info;
  std::map<std::string, Sample, std::less<>> samples;  // by id
};

/// What this build says of the task of `cell`, nullopt when it has no such task; nothing is loaded.
/// ConfigError for an option that the task does not know.
std::optional<TaskInfo> stored_task_info(const StoredCell& cell);

/// The task of `cell` with `grader` ("": the task's first), its samples loaded from `dir`.
/// ConfigError when this build does not have the task, the grader or an option; DataError when data
/// are missing, or other than those that the replies answer.
StoredTask stored_task(const StoredCell& cell, const std::string& grader, const DataDir& dir);

/// SHA-256 over all samples of a split, as cells have it.
std::string data_digest(const Samples& samples);

}  // namespace asdbench
