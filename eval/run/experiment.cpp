// Builds the plugins of a configuration and takes the samples of a run.
#include "eval/run/experiment.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

#include "eval/core/digest.h"
#include "eval/core/error.h"
#include "eval/core/json.h"
#include "eval/run/stored_task.h"
#include "runners/drafter.h"

namespace asdbench {
namespace {

template <typename Factory>
std::vector<std::string> names_of(const std::vector<Factory>& table) {
  std::vector<std::string> names;
  for (const Factory& factory : table) names.push_back(factory.name);
  return names;
}

template <typename Factory>
const Factory& find_factory(const std::vector<Factory>& table, const Choice& choice) {
  for (const Factory& factory : table) {
    if (factory.name == choice.name) return factory;
  }
  throw ConfigError(fmt::format("{}: unknown name \"{}\"{}", choice.params.where().text(),
                                choice.name, known_names(choice.name, names_of(table))));
}

/// Sorts by a keyed hash of the id: a larger limit keeps the samples of a smaller one.
void order_by_seed(Samples& samples, std::uint64_t seed) {
  std::vector<std::pair<std::string, std::size_t>> keys;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    keys.emplace_back(sha256_hex(fmt::format("{}\n{}", seed, samples[i].id)), i);
  }
  std::sort(keys.begin(), keys.end());
  Samples ordered;
  ordered.reserve(samples.size());
  for (const auto& [unused, index] : keys) ordered.push_back(std::move(samples[index]));
  samples = std::move(ordered);
}

TaskSet make_task_set(const Choice& choice, const RunConfig& config,
                      const ExperimentOptions& options) {
  const Params& params = choice.params;
  TaskSet set;
  set.task = find_factory(task_factories(), choice).make(params);
  set.info = set.task->info();
  if (!set.info.code_limits.empty() && !options.allow_code_execution) {
    throw ConfigError(fmt::format(
        "{}: grading {} runs programs that a model wrote\n  add --allow-code-execution to let them "
        "run contained; `asdbench sandbox check` says whether this machine can",
        params.where().text(), set.info.name));
  }
  constexpr std::int64_t kNoLimit = std::numeric_limits<std::int32_t>::max();
  const std::int64_t own_limit = params.integer("limit", kNoLimit, 1, kNoLimit);
  set.max_tokens = static_cast<std::int32_t>(
      params.integer("max_tokens", set.info.max_tokens, 1, std::int64_t{1} << 20));
  const std::string order =
      params.choice("order", params.has("subset") ? "file" : "seeded", {"seeded", "file"});
  const std::vector<std::string>& graders = set.info.graders;
  ASDBENCH_CHECK(!graders.empty(), "a task names its graders");
  set.grader = params.choice("grader", graders.front(), graders);
  params.refuse_unread();
  // These have columns of their own, or choose among outputs without changing any.
  const std::set<std::string_view> elsewhere = {"grader", "limit", "max_tokens", "order", "split"};
  for (const auto& [key, value] : params.resolved()) {
    if (elsewhere.contains(key)) continue;
    set.identity.emplace(key, value);
    if (params.has(key))
      set.options += fmt::format("{}{}={}", set.options.empty() ? "" : " ", key, value);
  }
  set.samples = set.task->load({.data = options.paths.data, .samples = options.paths.samples});
  set.available = static_cast<std::int64_t>(set.samples.size());
  set.data_sha256 = data_digest(set.samples);
  if (order == "seeded") order_by_seed(set.samples, config.seed);
  const auto limit = static_cast<std::size_t>(options.limit.value_or(own_limit));
  if (set.samples.size() > limit) set.samples.resize(limit);
  if (options.shard.count > 1) {
    Samples part;
    for (std::size_t i = 0; i < set.samples.size(); ++i) {
      const auto position = static_cast<std::int64_t>(i);
      if (position % options.shard.count == options.shard.index) {
        part.push_back(std::move(set.samples[i]));
      }
    }
    set.samples = std::move(part);
  }
  if (set.samples.empty()) {
    throw ConfigError(fmt::format(
        "{}: shard {}/{} of task {} holds none of its samples\n  use fewer shards or a larger "
        "limit",
        params.where().text(), options.shard.index + 1, options.shard.count, set.info.name));
  }
  return set;
}

RuleSet make_rule_set(const Choice& choice) {
  RuleSet set;
  set.verifier = find_factory(verifier_factories(), choice).make(choice.params);
  choice.params.refuse_unread();
  set.info = set.verifier->info();
  set.options = choice.params.given();
  Json identity = {{"name", choice.name}};
  for (const auto& [key, value] : choice.params.resolved()) identity["options"][key] = value;
  set.identity = canonical_json(identity);
  return set;
}

DrafterSet make_drafter_set(const Choice& choice) {
  find_factory(drafter_factories(), choice);
  // A K that no drafter takes is found before a model is loaded; its own limit and default come
  // then.
  if (choice.name != "none" && choice.params.has("K")) choice.params.integer("K", 1, 1, kMaxDraft);
  return {.choice = &choice};
}

DecodingSet make_decoding_set(const Choice& choice) {
  constexpr std::int64_t kLargestBatch = 1024;
  DecodingSet set;
  set.batch = static_cast<std::int32_t>(choice.params.integer("batch", 1, 1, kLargestBatch));
  const double temperature =
      choice.params.number("temperature", 0, 0, std::numeric_limits<double>::infinity());
  if (temperature != 0) {
    choice.params.fail(
        "temperature",
        fmt::format("decoding is greedy: temperature must be 0, found {}; strict and "
                    "ASD verification are defined for it only",
                    shortest_real(temperature)));
  }
  choice.params.refuse_unread();
  return set;
}

/// A choice by log-probability is the target's alone: of the cells that differ in drafter, rule or
/// decoding only, the first is kept.
void drop_repeated_choices(Experiment& experiment) {
  std::set<std::pair<std::size_t, std::size_t>> seen;
  std::erase_if(experiment.cells, [&](const CellIndex& cell) {
    return experiment.tasks[cell.task].info.by_log_probs &&
           !seen.emplace(cell.task, cell.target).second;
  });
}

}  // namespace

std::string Experiment::rule_label(const CellIndex& cell) const {
  if (config.drafters[cell.drafter].name == "none") return "plain (no drafter)";
  const RuleSet& rule = rules[cell.verifier];
  return rule.info.name + (rule.options.empty() ? "" : " " + rule.options);
}

std::string Experiment::cell_label(const CellIndex& cell) const {
  const Choice& drafter = config.drafters[cell.drafter];
  std::string label = fmt::format("{} · {}", tasks[cell.task].info.name, rule_label(cell));
  if (drafter.name != "none" && config.drafters.size() > 1) label += " · " + drafter.name;
  return label;
}

KnownNames known_names_of_build() {
  return {.tasks = names_of(task_factories()),
          .targets = known_models(),
          .drafters = names_of(drafter_factories()),
          .verifiers = names_of(verifier_factories())};
}

Experiment make_experiment(RunConfig config, const ExperimentOptions& options) {
  Experiment experiment;
  experiment.config = std::move(config);
  RunConfig& run = experiment.config;
  // Cheap checks first: a misspelt rule must not wait for a data set to load.
  for (const Choice& choice : run.verifiers) {
    experiment.rules.push_back(make_rule_set(choice));
    const auto same = std::find_if(
        experiment.rules.begin(), experiment.rules.end() - 1,
        [&](const RuleSet& rule) { return rule.identity == experiment.rules.back().identity; });
    if (same != experiment.rules.end() - 1) {
      refuse_same(run.verifiers[static_cast<std::size_t>(same - experiment.rules.begin())], choice);
    }
  }
  for (const Choice& choice : run.drafters) experiment.drafters.push_back(make_drafter_set(choice));
  for (const Choice& choice : run.decodings) {
    experiment.decodings.push_back(make_decoding_set(choice));
  }
  if (!options.device.empty()) {
    for (Choice& choice : run.targets) {
      choice.params.replace("device", options.device, {.file = "--device"});
    }
  }
  for (Choice& choice : run.tasks) {
    if (!options.split.empty()) choice.params.replace("split", options.split, {.file = "--split"});
    if (!options.grader.empty()) {
      choice.params.replace("grader", options.grader, {.file = "--grader"});
    }
  }
  experiment.cells = expand(run);
  for (const CellIndex& cell : experiment.cells) {
    if (run.drafters[cell.drafter].name == "none" &&
        experiment.rules[cell.verifier].info.keeps == Keeps::kNothing) {
      throw ConfigError(fmt::format(
          "{}: the rule \"{}\" has nothing to decide without a drafter\n  add `{{drafter: none, "
          "verifier: {}}}` to skip",
          run.verifiers[cell.verifier].params.where().text(), run.verifiers[cell.verifier].name,
          run.verifiers[cell.verifier].name));
    }
  }
  for (const Choice& choice : run.tasks) {
    experiment.tasks.push_back(make_task_set(choice, run, options));
  }
  drop_repeated_choices(experiment);
  return experiment;
}

void refuse_same(const Choice& first, const Choice& second) {
  throw ConfigError(
      fmt::format("{}: the same setting as {}, spelled otherwise; expected different entries\n"
                  "  remove one of the two: they would be timed as two arms",
                  second.params.where().text(), first.params.where().text()));
}

std::unique_ptr<Drafter> make_drafter(const DrafterSet& set, const DrafterContext& context) {
  auto drafter = find_factory(drafter_factories(), *set.choice).make(set.choice->params, context);
  set.choice->params.refuse_unread();
  return drafter;
}

}  // namespace asdbench
