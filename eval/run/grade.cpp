// Verdicts go to the database in small batches: one transaction each would cost more than grading.
#include "eval/run/grade.h"

#include <chrono>
#include <utility>
#include <vector>

#include "eval/core/error.h"

namespace asdbench {
namespace {

class ScoreBatch {
 public:
  explicit ScoreBatch(ResultStore& store) : store_(store) {}
  void add(std::int64_t output_id, ScoreRow score) {
    rows_.emplace_back(output_id, std::move(score));
    constexpr std::size_t kMost = 256;
    const auto age = std::chrono::steady_clock::now() - written_;
    if (rows_.size() >= kMost || age > std::chrono::milliseconds(500)) write();
  }
  void write() {
    if (!rows_.empty()) store_.add_scores(rows_);
    rows_.clear();
    written_ = std::chrono::steady_clock::now();
  }

 private:
  ResultStore& store_;
  std::vector<ResultStore::OutputScore> rows_;
  std::chrono::steady_clock::time_point written_ = std::chrono::steady_clock::now();
};

}  // namespace

GradeResult grade_stored(ResultStore& store, std::int64_t cell_id, const Grader& grader,
                         const std::function<const Sample*(const std::string& id)>& sample_of,
                         const GradeCallbacks& callbacks) {
  const std::vector<StoredCompletion> stored =
      store.completions_without_score(cell_id, grader.name, grader.version);
  std::vector<TaskReply> replies;
  std::vector<std::int64_t> outputs;
  GradeResult result;
  for (const StoredCompletion& completion : stored) {
    const Sample* sample = sample_of(completion.sample_id);
    if (sample == nullptr) {
      ++result.left_out;
      continue;
    }
    replies.push_back({.sample = sample, .text = completion.text});
    outputs.push_back(completion.output_id);
  }
  const auto total = static_cast<std::int64_t>(replies.size());
  ScoreBatch batch(store);
  try {
    grader.task.grade(replies, callbacks.interrupted, [&](std::size_t reply, const Score& score) {
      batch.add(outputs[reply],
                {.scorer = grader.name, .scorer_version = grader.version, .score = score});
      callbacks.progress(++result.graded, total);
    });
  } catch (const StoreError&) {
    throw;  // nothing more can be written
  } catch (...) {
    batch.write();
    throw;
  }
  batch.write();
  result.interrupted = result.graded < total;
  return result;
}

}  // namespace asdbench
