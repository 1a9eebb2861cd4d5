// What the `deploy` section of a configuration says: margins, levels, limits and the ways of
// selecting and sampling.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "eval/config/run_config.h"

namespace asdbench {

/// How `select` picks among settings; named before anything is measured.
enum class SelectionRule : std::uint8_t {
  kLargestLowerSpeedBound,  // of those that meet the constraint on A; ties: smaller B, then g, M
  kGiven,                   // the only setting of the matrix, whatever A says of it
};
std::string_view name_of(SelectionRule rule);

enum class Search : std::uint8_t {
  kGrid,    // every setting over all of A
  kNarrow,  // twice the prompts and half the settings from round to round
};

enum class Sampling : std::uint8_t { kFixed, kEProcess };

struct DeploySettings {
  std::map<std::string, double> margins;  // task -> share; empty where the file gives none
  double alpha = 0.05;
  double power = 0.8;
  double length_limit_pct = 3;
  double cap_margin = 0.01;
  double drift_limit_pct = 3;
  double speed_target_pct = 0;
  double accuracy_floor = 0.05;
  double minimum_seconds = 60;  // timed, an arm and group
  std::int64_t size = 0;        // prompts of B a task; 0: as many as the discordance on A asks for
  Sampling sampling = Sampling::kFixed;
  double eta = 0;  // of the e-process; 0: margin / psi, at most 0.5
  SelectionRule select = SelectionRule::kLargestLowerSpeedBound;
  Search search = Search::kGrid;
  std::int64_t first = 32;       // prompts of the first round of a narrowing search
  std::int64_t replay = 16;      // prompts whose blocks are replayed to prune settings; 0: none
  double replay_gain_pct = 0.5;  // settings that keep fewer drafts more than this are pruned
  std::uint64_t bootstrap_seed = 20'240'229;
  std::uint64_t resamples = 10'000;
  std::string ledger;      // one-shot ledger of splits
  std::string trained_on;  // prompt hashes of the drafter's training, one a line; "" unknown
};

/// Reads and checks every value. ConfigError when the section is missing, a margin names no task,
/// a key is unknown or a value out of range.
DeploySettings read_deploy_settings(const RunConfig& config);

}  // namespace asdbench
