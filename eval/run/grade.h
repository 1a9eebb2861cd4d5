// Stored replies graded: by the run that decoded them, and again, without a model, by another
// grader.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "results/store.h"
#include "tasks/task.h"

namespace asdbench {

/// A task with the grader that it was made with.
struct Grader {
  const Task& task;
  std::string name;
  std::int64_t version = 1;  // the task's
};

struct GradeCallbacks {
  std::function<void(std::int64_t done, std::int64_t total)> progress;
  std::function<bool()> interrupted;
};

struct GradeResult {
  std::int64_t graded = 0;
  std::int64_t left_out = 0;  // their samples are not here
  bool interrupted = false;
};

/// Grades the finished replies of a cell that this grader, in this version, has not seen, and those
/// whose program could not be run. Verdicts are stored as they come, some at a time, so that a
/// killed program loses less than a second of them. `sample_of` gives nullptr for a reply that is
/// to be left out.
GradeResult grade_stored(ResultStore& store, std::int64_t cell_id, const Grader& grader,
                         const std::function<const Sample*(const std::string& id)>& sample_of,
                         const GradeCallbacks& callbacks);

}  // namespace asdbench
