// A run configuration: axes of the matrix as choices with options, and what is done with every
// cell.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "eval/core/params.h"

namespace asdbench {

/// One entry of an axis: a plugin's name and its options.
struct Choice {
  std::string name;
  Params params;
};

/// Names that the configuration may use; handed in, since this layer sees no plugin.
struct KnownNames {
  std::vector<std::string> tasks;
  std::vector<std::string> targets;  // built-in names; a path is accepted as well
  std::vector<std::string> drafters;
  std::vector<std::string> verifiers;
};

/// How far a timed prompt is decoded (specs: measurement, section 1: F1, F2, N).
enum class SpeedWork : std::uint8_t {
  kConstant,   // `tokens`, ends ignored
  kReference,  // the length of the strict reply, ends ignored
  kNatural,    // to the end of each arm's own reply
};

/// "constant", "reference", "natural".
const char* name_of(SpeedWork work);

enum class SpeedOrder : std::uint8_t {
  kAbba,  // mirrored; a palindrome for more than two arms
  kBcb,   // triples: baseline, cell, baseline
};

struct SpeedConfig {
  std::vector<SpeedWork> work = {SpeedWork::kConstant};
  SpeedOrder order = SpeedOrder::kAbba;
  std::int32_t tokens = 128;  // T: counted tokens per prompt, the one from prefill excluded
  std::int32_t prompts = 8;
  std::int32_t groups = 4;
  std::int32_t warmup = 2;        // fewest requests of each arm before the first group
  std::int32_t warmup_most = 30;  // until the last three agree, no more than these
  std::int32_t spot_checks = 2;   // timed prompts of each arm that are decoded once more
};

/// What stands under `deploy`: how settings of the matrix are selected, frozen and audited.
struct DeployConfig {
  std::vector<Choice> audit;  // split B: one entry for each of matrix.task, of the same task
  Params margins;             // task -> how much may be lost
  Params options;             // every single value; eval/audit reads them
};

/// kByGrader: nothing was said; wrong for our default grader, as scored for one that reproduces
/// another's figures.
enum class CappedPolicy : std::uint8_t { kByGrader, kWrong, kAsScored };

struct RunConfig {
  std::filesystem::path file;
  std::string text;  // as read, stored with the run
  std::string name;
  std::uint64_t seed = 0;
  bool quality = true;
  bool speed = false;
  bool replay = false;  // strict's blocks are shown to the other rules
  std::int64_t max_failed_samples = 0;
  std::vector<Choice> tasks, targets, drafters, verifiers, decodings;
  /// Cells that match all given axis names of an entry are left out: {"drafter": "none",
  /// "verifier": "asd"}.
  std::vector<std::map<std::string, std::string>> skip;
  std::string baseline_verifier = "strict";
  SpeedConfig speed_config;
  CappedPolicy capped = CappedPolicy::kByGrader;
  std::optional<DeployConfig> deploy;
  std::int64_t round_samples = 0;  // not of the file: prompts a round; 0: all in one
};

/// Indices into the axes of the configuration.
struct CellIndex {
  std::size_t task, target, drafter, verifier, decoding;
};

/// An override from the command line: "speed.groups=2", "run.name=x",
/// "matrix.task[0].gsm8k.limit=5".
struct Override {
  std::string key, value;
};

/// ConfigError with file, line, key path and nearest known name.
RunConfig read_config(const std::filesystem::path& file, const KnownNames& known,
                      const std::vector<Override>& overrides = {});
RunConfig parse_config(const std::string& text, const std::filesystem::path& file,
                       const KnownNames& known, const std::vector<Override>& overrides = {});

/// What `train` makes a drafter from.
struct TrainConfig {
  std::filesystem::path file;
  std::string text;  // as read
  Params train;      // name, seed, steps, ...
  Choice target;
  std::vector<Choice> data;  // tasks, and files of prompts under kPromptFile
  Params replies;            // how the target's replies are made
  Choice drafter;            // the kind and its sizes
};

/// The name of an entry of `data` that is no task but a file of ours: {prompts: {file: ...}}.
inline constexpr const char* kPromptFile = "prompts";

/// `known` brings the tasks, the targets, and as `drafters` the kinds that can be trained.
/// ConfigError as read_config.
TrainConfig read_train_config(const std::filesystem::path& file, const KnownNames& known,
                              const std::vector<Override>& overrides = {});
TrainConfig parse_train_config(const std::string& text, const std::filesystem::path& file,
                               const KnownNames& known,
                               const std::vector<Override>& overrides = {});

/// The matrix minus `skip`, in the order of the axes (task outermost, verifier innermost).
/// ConfigError when empty.
std::vector<CellIndex> expand(const RunConfig& config);

}  // namespace asdbench
