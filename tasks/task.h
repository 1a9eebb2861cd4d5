// A task: data to samples, sample to prompt, text to answer, answer to score.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
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
  bool by_log_probs = false;         // chooses among continuations; no reply is decoded
  /// Limits, in words, of the programs that grading runs; "" when it runs none. Such a task is
  /// graded by `grade` only.
  std::string code_limits;
};

/// A reply to be graded.
struct TaskReply {
  const Sample* sample;
  std::string_view text;
};

class Task {
 public:
  using Interrupted = std::function<bool()>;
  using Graded = std::function<void(std::size_t reply, const Score& score)>;

  virtual ~Task() = default;
  virtual TaskInfo info() const = 0;
  /// DataError with file and line when a file is missing, damaged or not the official one.
  virtual Samples load(const DataDir& dir) const = 0;
  virtual Prompt prompt(const Sample& sample, Turns turns) const = 0;
  /// The sample's own words to the model, all turns, no examples: what makes two samples the same
  /// prompt (specs: measurement, section 9).
  virtual std::vector<std::string> questions(const Sample& sample) const {
    std::vector<std::string> texts;
    for (const Message& message : prompt(sample, {}).messages) {
      if (message.role == Role::kUser) texts.push_back(message.content);
    }
    return texts;
  }
  /// Replies to compare with, one a turn, by sample id: for judges, never shown to the target.
  /// Empty where the task has none.
  virtual std::map<std::string, std::vector<std::string>> references(const DataDir& /*dir*/) const {
    return {};
  }
  /// Turns of one conversation; the prompt of a later turn holds the replies to the earlier ones.
  virtual std::int32_t turns() const { return 1; }
  /// What a task that chooses by log-probability chooses from, ties to the earlier one.
  virtual std::vector<std::string> continuations(const Sample& /*sample*/) const { return {}; }
  /// What `text`, a reply to this sample, gives as its answer. Throws for no text.
  virtual std::optional<Answer> extract(const Sample& sample, std::string_view text) const = 0;
  virtual Score score(const Sample& sample, const std::optional<Answer>& answer) const = 0;
  /// Grades many replies; calls `graded` on this thread, once for each, in any order. What was not
  /// begun when `interrupted` turned true is left out.
  virtual void grade(std::span<const TaskReply> replies, const Interrupted& interrupted,
                     const Graded& graded) const {
    for (std::size_t i = 0; i < replies.size() && !interrupted(); ++i) {
      graded(i, score(*replies[i].sample, extract(*replies[i].sample, replies[i].text)));
    }
  }
};

struct TaskFactory {
  using Make = std::unique_ptr<Task>(const Params&);
  std::string name;
  Make* make;
};

/// Generated: one row per file of tasks/.
const std::vector<TaskFactory>& task_factories();

}  // namespace asdbench
