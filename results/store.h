// The results database: rows before aggregates, one transaction per sample.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "eval/core/completion.h"
#include "eval/core/sample.h"

namespace asdbench {

struct RunRow {
  std::string name, config_file, config_text, config_sha256, command, version, commit, host, device,
      engine;
  bool dirty = false;
  std::uint64_t seed = 0;
};

/// One column per coordinate; `key` is the digest of `identity`, the canonical JSON of all of them.
struct CellRow {
  std::string key, identity;
  std::string task, split, grader;
  std::int64_t task_version = 1;
  std::string task_options, data_sha256;
  std::string target, target_sha256, target_options;
  std::string drafter, drafter_options;
  std::string verifier, verifier_options, verifier_keeps;
  std::optional<double> regret_budget, gate, max_exceptions;
  std::int64_t drafts = 0;  // K
  std::int64_t max_tokens = 0, batch = 1;
  std::string weight_dtype, compute_dtype, logit_dtype, device, engine, activations;
  bool baseline = false;
};

struct ScoreRow {
  std::string scorer;  // grader profile
  std::int64_t scorer_version = 1;
  Score score;
};

struct OutputRow {
  std::int64_t cell_id = 0, run_id = 0;
  std::string sample_id;
  std::int64_t repeat = 0, turn = 1;
  std::string prompt_sha256, identity_sha256, cluster, category;
  Completion completion;  // failed if and only if completion.error is not empty
  std::vector<ScoreRow> scores;
};

/// A finished output, to be graded again.
struct StoredCompletion {
  std::int64_t output_id = 0;
  std::string sample_id, text;
};

/// A judge's word on one reply (kind "single") or on a pair ("pair").
struct JudgementRow {
  std::int64_t output_id = 0;
  std::string kind;
  std::string baseline;  // "strict" or "reference" for a pair
  std::optional<std::int64_t> baseline_output_id;
  std::int64_t place = 0;  // of the reply in its pair: 1 or 2
  std::string judge, version, prompts, prompt_sha256;
  std::int64_t seed = 0;
  std::string status;  // "done", "failed", "equal"
  std::string error;   // of a failed one
  std::string reply, finish;
  std::optional<std::int64_t> prompt_tokens, reply_tokens;
  std::vector<std::pair<std::string, std::optional<double>>> ratings;  // (grader, value)
};

/// One quantity of the machine during one slot.
struct SlotEnvironmentRow {
  std::string name;
  std::int64_t samples = 0;
  double mean = 0, least = 0, most = 0;
};

/// One slot of one group of the fixed-work phase.
struct SpeedSlotRow {
  std::int64_t cell_id = 0, run_id = 0;
  std::string set_key;  // digest of the arms and the work: only slots of one set are compared
  std::int64_t group = 0, slot = 0;
  std::int64_t prompts = 0, tokens = 0;  // counted tokens: equal in all arms of a group
  std::int64_t passes = 0, drafted = 0, accepted = 0, post_end_tokens = 0;
  std::int64_t decode_ns = 0, prefill_ns = 0;
  std::int64_t draft_ns = 0, verify_ns = 0, rule_ns = 0, cache_ns = 0;
  std::string tokens_sha256;  // over the outputs of all prompts in order
  std::vector<SlotEnvironmentRow> environment;
  struct Prompt {
    std::string sample_id;
    std::int64_t tokens = 0, decode_ns = 0, prefill_ns = 0;
    std::string tokens_sha256;
  };
  std::vector<Prompt> each;  // prompt by prompt, in the order of the work; may be empty
  std::int64_t tail_tokens = 0, tail_ns = 0;  // while places of the batch stood empty
};

/// What a set of groups measures: work is "constant", "reference" or "natural", design "abba" or
/// "bcb".
struct SpeedSetRow {
  std::string set_key, work = "constant", design = "abba";
};

/// A ratio of times with its bootstrap over prompts.
struct SpeedIntervalRow {
  std::string set_key;
  std::int64_t cell_id = 0, reference_id = 0, prompts = 0, groups = 0;
  double estimate = 0, low = 0, high = 0;
  std::int64_t resamples = 0, seed = 0;
};

/// All slots of one prompt and cell of a set, void groups left out.
struct PromptTimeRow {
  std::int64_t cell_id = 0, position = 0, slots = 0;
  std::string sample_id;
  std::int64_t decode_ns = 0, prefill_ns = 0;  // sums
};

/// A timed prompt that was decoded again.
struct SpotCheckRow {
  std::string set_key;
  std::int64_t cell_id = 0;
  std::string sample_id, timed_sha256, again_sha256;
};

/// The blocks of one request of a strict run, shown to the rule of a cell.
struct ReplayRow {
  std::int64_t cell_id = 0, run_id = 0;
  std::string sample_id;
  std::int64_t passes = 0, drafted = 0, strict_committed = 0, committed = 0, exceptions = 0;
  double regret = 0;  // nats
};

/// An estimate with its two-sided 95 % interval.
struct Estimate {
  std::optional<double> estimate, low, high;
};

/// One line of the matrix view: task x setting.
struct MatrixRow {
  std::int64_t cell_id = 0;
  std::string task, split, task_options, grader, target, drafter, drafter_options, verifier,
      verifier_options, verifier_keeps, device;
  std::int64_t max_tokens = 0, batch = 1;
  std::int64_t n = 0, failed = 0, correct = 0, capped = 0, no_answer = 0, unscored = 0;
  std::int64_t undecided = 0;  // incorrect because a comparison hit its limits
  Estimate accuracy_capped_wrong, accuracy_as_scored;
  Estimate vs_strict, vs_plain;        // ratio of throughputs on fixed work
  std::optional<double> tokens_per_s;  // fixed work
  std::int64_t groups = 0;
  std::string speed_work;               // "constant", "reference"; "" where nothing was timed
  std::optional<double> accept_length;  // quality runs: committed per pass, first token excluded
  std::optional<double> regret_per_request, exceptions_per_request;
};

/// A column of a row as SQLite has it; NULL is the first.
using Value = std::variant<std::monostate, std::int64_t, double, std::string>;

enum class OpenMode : std::uint8_t { kReadWrite, kReadOnly };

/// WAL, foreign keys on, busy timeout, one writer. Every failure is a StoreError that names the
/// file.
class ResultStore {
 public:
  /// Creates and migrates in kReadWrite. StoreError for a newer schema, a file that is no database,
  /// no permission, ...
  /// A writer waits `busy_timeout` for another process before it gives up with a StoreError.
  ResultStore(const std::filesystem::path& path, OpenMode mode,
              std::chrono::milliseconds busy_timeout = std::chrono::seconds(10));
  ~ResultStore();
  ResultStore(const ResultStore&) = delete;
  ResultStore& operator=(const ResultStore&) = delete;

  const std::string& file() const;

  std::int64_t begin_run(const RunRow& run);
  void end_run(std::int64_t run_id, const std::string& status);  // "done", "failed", "interrupted"
  /// Finds the cell by key or inserts it; grader and baseline are those of the latest call.
  std::int64_t cell(const CellRow& cell);
  /// (sample_id, repeat) of outputs of one turn with status done.
  std::set<std::pair<std::string, std::int64_t>> done(std::int64_t cell_id,
                                                      std::int64_t turn = 1) const;
  /// Texts of the finished outputs of one turn, by (sample_id, repeat).
  std::map<std::pair<std::string, std::int64_t>, std::string> replies(std::int64_t cell_id,
                                                                      std::int64_t turn) const;
  /// Tokens of each finished output of a cell, its first turn, by sample.
  std::map<std::string, std::int64_t> output_lengths(std::int64_t cell_id) const;
  /// Output, passes, exceptions and scores in one transaction; returns whether they were inserted.
  /// A failed output of before is replaced. Where another run has finished the same sample
  /// meanwhile, its rows stay: false when the tokens are equal (or this one failed), StoreError
  /// when they differ.
  bool save(const OutputRow& output);
  /// Finished outputs of a cell that `scorer` of this version has not graded, or whose program
  /// could not be run.
  std::vector<StoredCompletion> completions_without_score(std::int64_t cell_id,
                                                          const std::string& scorer,
                                                          std::int64_t scorer_version) const;
  /// Adds scores to stored outputs, all in one transaction; a score of the same scorer and version
  /// stays as it is, unless its outcome is runner_error.
  using OutputScore = std::pair<std::int64_t, ScoreRow>;  // (output_id, score)
  void add_scores(const std::vector<OutputScore>& scores);
  /// A judgement and its ratings in one transaction. It takes the place of one of the same output,
  /// kind, baseline, place, judge, prompts and seed.
  void save_judgement(const JudgementRow& judgement);
  /// All slots of one group of one set in one transaction; StoreError when the set has the group
  /// already. A group with a `void_reason` is kept and counts nowhere.
  void save_group(const std::vector<SpeedSlotRow>& slots, const std::string& void_reason = "");
  /// Notes what a set measures; a set that is not noted is constant work in mirrored order.
  void save_speed_set(const SpeedSetRow& row);
  /// Times of every prompt of a set, by cell and position.
  std::vector<PromptTimeRow> prompt_times(const std::string& set_key) const;
  /// Replaces the intervals of a set.
  void save_speed_intervals(const std::string& set_key, const std::vector<SpeedIntervalRow>& rows);
  void save_spot_checks(const std::vector<SpotCheckRow>& rows);
  /// Samples of a cell that were replayed.
  std::set<std::string> replayed(std::int64_t cell_id) const;
  void save_replay(const std::vector<ReplayRow>& rows);
  /// Numbers of the groups that a set has.
  std::set<std::int64_t> groups_done(const std::string& set_key) const;
  /// Key/value pairs that describe the machine and build of a run.
  void save_environment(std::int64_t run_id, const std::map<std::string, std::string>& values);

  /// Reads the `matrix` view; all numbers come from it.
  std::vector<MatrixRow> matrix() const;
  /// Outputs and scores, one JSON object a line, without ids and times, in a fixed order.
  void dump_outputs(std::ostream& out) const;
  /// Keeps in memory what the views say now that a report asks for many times, for the reads that
  /// follow.
  void hold_for_report() const;
  /// Runs `sql` and hands each row's columns with their types, blobs as hexadecimal text.
  void read(const std::string& sql,
            const std::function<void(const std::vector<std::string>& names,
                                     const std::vector<Value>& row)>& each) const;
  /// Runs `sql` and hands each row's columns as text (NULL: nullopt). For reports and tests.
  void query(
      const std::string& sql,
      const std::function<void(const std::vector<std::string>& names,
                               const std::vector<std::optional<std::string>>& row)>& each) const;

 private:
  friend class AuditStore;
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace asdbench
