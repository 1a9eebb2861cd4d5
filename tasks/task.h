// A task: data to samples, sample to prompt, text to answer, answer to score.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "eval/core/params.h"
#include "eval/core/sample.h"

namespace asdbench {

/// Where official data and our own samples lie.
struct DataDir {
  std::filesystem::path data;     // fetched or imported official files
  std::filesystem::path samples;  // tasks/samples of the source tree or of the installation
};

struct TaskInfo {
  std::string name;
  std::int32_t version = 1;     // raised whenever a prompt, an extraction or a score may change
  std::string metric;           // "accuracy"
  std::string split;            // "test", "train", "samples", ...
  std::int32_t max_tokens = 0;  // the task's own limit on new tokens
  std::vector<std::string> graders;  // known profiles, the default first
};

class Task {
 public:
  virtual ~Task() = default;
  virtual TaskInfo info() const = 0;
  /// DataError with file and line when a file is missing, damaged or not the official one.
  virtual Samples load(const DataDir& dir) const = 0;
  virtual Prompt prompt(const Sample& sample, Turns turns) const = 0;
  virtual std::int32_t turns() const { return 1; }
  virtual std::optional<Answer> extract(std::string_view text) const = 0;
  virtual Score score(const Sample& sample, const std::optional<Answer>& answer) const = 0;
};

struct TaskFactory {
  using Make = std::unique_ptr<Task>(const Params&);
  std::string name;
  Make* make;
};

/// Generated: one row per file of tasks/.
const std::vector<TaskFactory>& task_factories();

}  // namespace asdbench
