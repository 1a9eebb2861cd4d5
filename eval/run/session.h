// Runs the cells of an experiment: quality on natural endings, speed on fixed work, every sample
// stored as it ends.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "eval/run/experiment.h"
#include "results/store.h"
#include "runners/throughput/fixed_work.h"

namespace asdbench {

/// One step of a long run, for a progress line.
struct ProgressEvent {
  std::string phase;  // "load", "quality", "grade", "replay", "warm-up", "speed"
  std::string what;   // the cell or group
  std::int64_t done = 0;
  std::int64_t total = 0;
};

/// What follows a round of prompts.
enum class RoundAnswer : std::uint8_t {
  kGoOn,
  kEnough,  // no further prompts of this task
  kStop,    // nothing further at all
};

struct SessionResult {
  std::int64_t decoded = 0;   // samples decoded by this run
  std::int64_t reused = 0;    // samples that were there already
  std::int64_t failed = 0;    // samples stored as failed by this run
  std::int64_t groups = 0;    // speed groups timed by this run
  std::int64_t replayed = 0;  // strict runs shown to other rules by this run
  bool interrupted = false;
  bool too_many_failed = false;
  bool stopped = false;                 // by a round's answer
  std::vector<std::string> cells;       // keys, in the order of the experiment's cells
  std::vector<std::string> speed_sets;  // keys of the sets of groups, in order
  std::vector<std::string> unstable;    // sets whose warm-up found no steady machine
};

struct SessionCallbacks {
  std::function<void(const ProgressEvent&)> progress = [](const ProgressEvent&) {};
  std::function<void(const std::string&)> warning = [](const std::string&) {};
  std::function<bool()> interrupted = [] { return false; };
  /// After every `round_samples` prompts of the task at this index are stored by all its cells.
  std::function<RoundAnswer(std::size_t task, const SessionResult& so_far)> round =
      [](std::size_t, const SessionResult&) { return RoundAnswer::kGoOn; };
};

class Session {
 public:
  Session(Experiment& experiment, const ExperimentOptions& options, ResultStore& store,
          SessionCallbacks callbacks);

  /// Decodes, scores, times and stores what the database does not hold yet. `run` describes this
  /// invocation, `environment` the machine and the build.
  SessionResult run(const RunRow& run, const std::map<std::string, std::string>& environment);

 private:
  struct LoadedCell;
  struct Item;
  bool halted() const { return result_.interrupted || result_.too_many_failed || result_.stopped; }
  void run_target(std::size_t target);
  LoadedCell load_cell(const CellIndex& index, Model& model);
  /// ConfigError when two entries of an axis come to one cell: only loading tells for some.
  void refuse_same_cells(const std::vector<std::unique_ptr<LoadedCell>>& cells) const;
  void quality_rounds(const std::vector<std::unique_ptr<LoadedCell>>& cells, Model& model);
  void quality(LoadedCell& cell, Model& model, std::span<const Sample> samples);
  /// Decodes the samples that have no output yet.
  void decode(LoadedCell& cell, Model& model, std::span<const Sample> samples);
  /// Decodes the samples whose reply to this turn is missing and whose earlier turns are there.
  void decode_turn(LoadedCell& cell, Model& model, std::int32_t turn,
                   std::span<const Sample> samples);
  /// Grades stored completions that the run's grader has not seen yet.
  void rescore(const LoadedCell& cell);
  /// Notes how many requests each arm took to come to a steady pace.
  void record_warm_up(const std::vector<LoadedCell*>& cells, SpeedWork kind,
                      const std::vector<WarmUp>& warm_ups);
  /// The prompts of the speed phase and how far they are decoded.
  std::vector<WorkItem> timed_work(const std::vector<LoadedCell*>& cells, SpeedWork kind,
                                   const Model& model) const;
  /// Prompts for the warm-up alone; empty: those that are timed.
  std::vector<WorkItem> warm_up_work(const TaskSet& task, const Model& model) const;
  /// Arms of every slot, group by group.
  std::vector<std::vector<std::size_t>> slot_orders(const std::vector<LoadedCell*>& cells) const;
  void speed(const std::vector<LoadedCell*>& cells, SpeedWork kind, Model& model);
  /// Decodes some timed prompts again and notes whether the tokens are those of `timed`, the last
  /// slot of each arm.
  void spot_check(const std::string& set_key, const std::vector<LoadedCell*>& cells,
                  const std::vector<Arm>& arms, const std::vector<WorkItem>& work,
                  const std::map<std::size_t, SlotResult>& timed, Model& model);
  /// Shows the blocks of strict runs to the other rules of the same task, drafter and decoding.
  void replay(const std::vector<std::unique_ptr<LoadedCell>>& cells, Model& model);
  void replay_beside(LoadedCell& strict, const std::vector<LoadedCell*>& others, Model& model);
  /// For tasks that choose among continuations: by the target's log-probabilities, nothing decoded.
  void choose(const LoadedCell& cell, Model& model, std::span<const Sample> samples);
  OutputRow row_of(const LoadedCell& cell, const Sample& sample, const std::string& rendered) const;
  ScoreRow grade(const TaskSet& task, const Sample& sample, const std::string& text) const;
  OutputRow finished_row(const LoadedCell& cell, const Model& model, const Item& item,
                         const Request& request) const;

  Experiment& experiment_;
  const ExperimentOptions& options_;
  ResultStore& store_;
  SessionCallbacks callbacks_;
  SessionResult result_;
  std::int64_t run_id_ = 0;
  std::string machine_;  // what timed groups are tied to
};

}  // namespace asdbench
