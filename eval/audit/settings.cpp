// Typed, ranged reading of the `deploy` section.
#include "eval/audit/settings.h"

#include <fmt/format.h>

#include <limits>
#include <vector>

#include "eval/core/error.h"

namespace asdbench {

std::string_view name_of(SelectionRule rule) {
  return rule == SelectionRule::kGiven ? "given" : "largest_lower_speed_bound";
}

DeploySettings read_deploy_settings(const RunConfig& config) {
  if (!config.deploy) {
    throw ConfigError(
        fmt::format("{}: the key \"deploy\" is missing; expected the splits, margins and limits of "
                    "an audit, as in configs/deploy/gsm8k.yaml",
                    config.file.string()));
  }
  const bool usual = config.speed_config.work == std::vector{SpeedWork::kConstant} &&
                     config.speed_config.order == SpeedOrder::kAbba;
  if (!usual) {
    throw ConfigError(
        fmt::format("{}: speed: an audit times constant work in mirrored order, and reference "
                    "lengths where too much of it came after the end; leave out work and order",
                    config.file.string()));
  }
  constexpr std::int64_t kAny = std::numeric_limits<std::int64_t>::max();
  // Open ends: a level of exactly 0 or 1, or a margin of 0, asks for what no data can give.
  constexpr double kLeast = 1e-9, kMost = 1 - 1e-9;
  const Params& options = config.deploy->options;
  DeploySettings settings;
  settings.alpha = options.number("alpha", settings.alpha, kLeast, 0.5);
  settings.power = options.number("power", settings.power, kLeast, kMost);
  settings.length_limit_pct = options.number("length_limit_pct", 3, kLeast, 100);
  settings.cap_margin = options.number("cap_margin", 0.01, kLeast, kMost);
  settings.drift_limit_pct = options.number("drift_limit_pct", 3, 0, 1e6);
  settings.speed_target_pct = options.number("speed_target_pct", 0, -100, 1000);
  settings.accuracy_floor = options.number("accuracy_floor", 0.05, 0, 1);
  settings.minimum_seconds = options.number("minimum_seconds", 60, 0, 86'400);
  settings.size = options.integer("size", 0, 0, kAny);
  settings.sampling = options.choice("sampling", "fixed", {"fixed", "e_process"}) == "fixed"
                          ? Sampling::kFixed
                          : Sampling::kEProcess;
  settings.eta = options.number("eta", 0, 0, 0.5);
  settings.select = options.choice("select", "largest_lower_speed_bound",
                                   {"largest_lower_speed_bound", "given"}) == "given"
                        ? SelectionRule::kGiven
                        : SelectionRule::kLargestLowerSpeedBound;
  settings.search = options.choice("search", "grid", {"grid", "narrow"}) == "grid"
                        ? Search::kGrid
                        : Search::kNarrow;
  settings.first = options.integer("first", settings.first, 1, kAny);
  settings.replay = options.integer("replay", settings.replay, 0, kAny);
  settings.replay_gain_pct = options.number("replay_gain_pct", settings.replay_gain_pct, 0, 100);
  settings.bootstrap_seed = static_cast<std::uint64_t>(options.integer(
      "bootstrap_seed", static_cast<std::int64_t>(settings.bootstrap_seed), 0, kAny));
  settings.resamples =
      static_cast<std::uint64_t>(options.integer("resamples", 10'000, 100, 10'000'000));
  settings.ledger = options.text("ledger", "results/splits.jsonl");
  settings.trained_on = options.text("trained_on", "");
  options.refuse_unread();
  const Params& margins = config.deploy->margins;
  for (const Choice& task : config.deploy->audit) {
    if (margins.has(task.name)) {
      settings.margins[task.name] = margins.number(task.name, 0, kLeast, 1e6);
    }
  }
  margins.refuse_unread();
  return settings;
}

}  // namespace asdbench
