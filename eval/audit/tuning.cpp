// Sweep, prune, narrow, time, select, report.
#include "eval/audit/tuning.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>

#include "eval/audit/replay.h"
#include "eval/core/error.h"
#include "eval/core/output_file.h"

namespace asdbench {
namespace {

double margin_of(const AuditContext& context, const std::string& task) {
  const auto margin = context.settings.margins.find(task);
  if (margin == context.settings.margins.end()) {
    throw ConfigError(fmt::format(
        "{}: deploy.margins: task {} has no margin, and there is no default\n  write how much of "
        "its score may be lost, such as {{{}: 0.02}}",
        context.config.file.string(), task, task));
  }
  return margin->second;
}

double control(const Setting& setting, const char* name) {
  if (!setting.verifier.params.has(name)) return 0;
  return parse_number(setting.verifier.params.text(name)).value_or(0);
}

std::unique_ptr<Verifier> make_rule(const Choice& choice) {
  for (const VerifierFactory& factory : verifier_factories()) {
    if (factory.name == choice.name) return factory.make(choice.params);
  }
  throw ConfigError(fmt::format("unknown verifier {}", shown(choice.name)));
}

/// One drafter's part of a sweep: its strict cell, its settings, and what is known of them.
class Sweep {
 public:
  Sweep(AuditContext& context, Choice drafter, std::vector<Choice> rules)
      : context_(context), drafter_(std::move(drafter)) {
    for (Choice& rule : rules) {
      results_.push_back({.setting = {.drafter = drafter_, .verifier = std::move(rule)}});
    }
  }

  /// False when interrupted or too many samples failed.
  bool run() { return strict() && live() && timed(); }

  std::vector<SettingResult> take() { return std::move(results_); }
  const std::vector<double>& mismatch_ratios() const { return ratios_; }
  const SessionResult& last() const { return last_; }
  /// Facts of the outputs of a setting that was run to the end, task by task.
  std::vector<std::vector<AuditedPair>> pairs_of(std::size_t setting) {
    std::vector<std::vector<AuditedPair>> all;
    for (std::size_t task = 0; task < task_count_; ++task) all.push_back(pairs(task, setting));
    return all;
  }

 private:
  std::vector<std::size_t> alive() const {
    std::vector<std::size_t> indices;
    for (std::size_t i = 0; i < results_.size(); ++i) {
      if (results_[i].pruned.empty()) indices.push_back(i);
    }
    return indices;
  }

  bool session(Experiment& experiment, const ExperimentOptions& options) {
    last_ = run_session(context_, experiment, options, context_.callbacks);
    return !last_.interrupted && !last_.too_many_failed;
  }

  /// Strict over all of A, and the replay of its first blocks.
  bool strict() {
    Experiment experiment =
        make_experiment(calibration_config(context_.config, {drafter_}, {}), context_.options);
    task_count_ = experiment.tasks.size();
    for (const TaskSet& task : experiment.tasks) {
      if (task.info.by_log_probs || task.task->turns() > 1) {
        throw ConfigError(fmt::format("{}: task {}: an audit needs decoded replies of one turn",
                                      context_.config.file.string(), task.info.name));
      }
      if (is_judged(task.info.metric)) {
        throw ConfigError(
            fmt::format("{}: task {}: its replies are rated by a judge, whose word comes after an "
                        "audit is closed; expected a task with right and wrong answers",
                        context_.config.file.string(), task.info.name));
      }
    }
    RecordedRequests requests;
    experiment.rules.front().verifier = std::make_unique<RecordingVerifier>(
        std::move(experiment.rules.front().verifier), context_.settings.replay, requests);
    if (!session(experiment, context_.options)) return false;
    strict_keys_ = last_.cells;
    ratios_ = first_mismatch_ratios(requests);
    if (context_.settings.select == SelectionRule::kGiven || context_.settings.replay == 0) {
      return true;
    }
    if (requests.empty()) {
      context_.say("split A was decoded before: no blocks to replay, so that every setting runs");
    } else {
      prune_by_replay(requests);
    }
    return true;
  }

  void prune_by_replay(const RecordedRequests& requests) {
    const ReplayTotals base = replay_blocks(requests, *make_rule({"strict", Params("strict", {})}));
    std::map<std::vector<std::int8_t>, std::size_t> acts;
    for (std::size_t i = 0; i < results_.size(); ++i) {
      SettingResult& result = results_[i];
      const auto rule = make_rule(result.setting.verifier);
      const VerifierInfo info = rule->info();
      if (info.needs_draft_logits || info.needs_target_logits) continue;
      const ReplayTotals totals = replay_blocks(requests, *rule);
      result.replay_gain = *totals.tokens_per_pass() / *base.tokens_per_pass() - 1;
      if (100 * *result.replay_gain < context_.settings.replay_gain_pct) {
        result.pruned = fmt::format("replay: {:+.2f} % tokens a pass on the same blocks",
                                    100 * *result.replay_gain);
        continue;
      }
      const auto [first, fresh] = acts.emplace(totals.kept, i);
      if (fresh) continue;
      // Equal on every block: the one with the smaller controls stays.
      std::size_t loser = i;
      if (controls(i) < controls(first->second)) std::swap(loser, first->second);
      results_[loser].pruned = "replay: acts as " + results_[first->second].setting.label();
    }
  }

  std::tuple<double, double, double> controls(std::size_t i) const {
    const Setting& setting = results_[i].setting;
    return {control(setting, "B"), control(setting, "g"), control(setting, "M")};
  }

  /// Natural endings of what is left: all of A at once, or more prompts for fewer settings from
  /// round to round.
  bool live() {
    const bool narrow = context_.settings.search == Search::kNarrow;
    std::int64_t limit = narrow ? context_.settings.first : 0;
    while (true) {
      const std::vector<std::size_t> indices = alive();
      if (indices.empty()) return true;
      std::vector<Choice> rules;
      for (const std::size_t i : indices) rules.push_back(results_[i].setting.verifier);
      Experiment experiment =
          make_experiment(calibration_config(context_.config, {drafter_}, rules), context_.options);
      bool all = true;
      prompts_of_a_.clear();
      for (TaskSet& task : experiment.tasks) {
        prompts_of_a_.push_back(std::ssize(task.samples));
        if (limit == 0 || std::ssize(task.samples) <= limit) continue;
        task.samples.resize(static_cast<std::size_t>(limit));
        all = false;
      }
      if (!session(experiment, context_.options)) return false;
      note_cells(experiment, indices);
      for (const std::size_t i : indices) measure(i);
      if (all) return true;
      halve(indices, limit);
      limit *= 2;
    }
  }

  /// Keys of the cells of each setting: strict first, then the rules, task by task.
  void note_cells(const Experiment& experiment, const std::vector<std::size_t>& indices) {
    const std::size_t rules = indices.size() + 1;
    keys_.resize(results_.size());
    samples_.clear();
    graders_.clear();
    for (std::size_t task = 0; task < experiment.tasks.size(); ++task) {
      const TaskSet& set = experiment.tasks[task];
      std::vector<std::string> ids;
      for (const Sample& sample : set.samples) ids.push_back(sample.id);
      samples_.push_back(std::move(ids));
      graders_.push_back({set.grader, set.info.version, set.info.name});
      for (std::size_t k = 0; k < indices.size(); ++k) {
        keys_[indices[k]].resize(experiment.tasks.size());
        keys_[indices[k]][task] = last_.cells[task * rules + k + 1];
      }
    }
  }

  std::map<std::string, OutputFacts> outputs(const std::string& key, std::size_t task) {
    AuditStore store(context_.store);
    std::map<std::string, OutputFacts> found;
    const auto cell = store.cell(key);
    if (!cell) return found;
    const auto& [grader, version, name] = graders_[task];
    for (OutputFacts& facts : store.outputs(cell->id, grader, version, 0)) {
      const std::string sample = facts.sample_id;
      found.emplace(sample, std::move(facts));
    }
    return found;
  }

  std::vector<AuditedPair> pairs(std::size_t task, std::size_t setting) {
    const auto strict = outputs(strict_keys_[task], task);
    const auto other = outputs(keys_[setting][task], task);
    std::vector<AuditedPair> pairs;
    for (const std::string& sample : samples_[task]) {
      const auto x = strict.find(sample), y = other.find(sample);
      if (x == strict.end() || y == other.end()) continue;
      if (x->second.status != "done" || y->second.status != "done") continue;
      pairs.push_back({.strict = x->second, .asd = y->second});
    }
    return pairs;
  }

  void measure(std::size_t index) {
    SettingResult& result = results_[index];
    const bool wrong = context_.config.capped != CappedPolicy::kAsScored;
    result.tasks.clear();
    double tokens = 0, passes = 0, exceptions = 0, regret = 0, requests = 0;
    for (std::size_t task = 0; task < samples_.size(); ++task) {
      const std::vector<AuditedPair> found = pairs(task, index);
      const std::string& name = std::get<2>(graders_[task]);
      SettingResult::OfTask of{.task = name, .counts = correct_counts(found, wrong)};
      of.margin = std::min(margin_of(context_, name), 1.0);
      of.loss = non_inferiority(of.counts, of.margin, context_.settings.alpha);
      of.prompts = prompts_of_a_[task];
      of.length =
          length_ratio(found, context_.settings.bootstrap_seed, context_.settings.resamples);
      std::vector<AuditedPair> diverged;
      double strict_right = 0, right = 0;
      for (const AuditedPair& pair : found) {
        strict_right += counts_as_correct(pair.strict, wrong) ? 1 : 0;
        right += counts_as_correct(pair.asd, wrong) ? 1 : 0;
        if (pair.strict.tokens != pair.asd.tokens) diverged.push_back(pair);
        tokens += static_cast<double>(std::ssize(pair.asd.tokens) - 1);
        passes += static_cast<double>(pair.asd.passes);
        exceptions += static_cast<double>(pair.asd.exceptions);
        regret += pair.asd.regret;
        requests += 1;
      }
      of.among_diverged = correct_counts(diverged, wrong);
      if (!found.empty()) {
        const double n = static_cast<double>(found.size());
        of.strict_accuracy = strict_right / n;
        of.accuracy = right / n;
        of.psi = static_cast<double>(of.counts.b + of.counts.c) / n;
      }
      result.tasks.push_back(std::move(of));
    }
    if (passes > 0) result.tokens_per_pass = tokens / passes;
    if (requests > 0) {
      result.exceptions_per_request = exceptions / requests;
      result.regret_per_request = regret / requests;
    }
  }

  void halve(const std::vector<std::size_t>& indices, std::int64_t prompts) {
    const std::vector<std::size_t> kept = better_half(results_, indices);
    for (const std::size_t i : indices) {
      if (std::find(kept.begin(), kept.end(), i) != kept.end()) continue;
      results_[i].pruned = fmt::format("narrowed after {} prompts", prompts);
    }
  }

  /// Fixed work of strict and all that is left, in one palindrome.
  bool timed() {
    const std::vector<std::size_t> indices = alive();
    if (indices.empty()) return true;
    std::vector<Choice> rules;
    for (const std::size_t i : indices) rules.push_back(results_[i].setting.verifier);
    RunConfig config = calibration_config(context_.config, {drafter_}, rules);
    config.quality = false;
    config.speed = true;
    Experiment experiment = make_experiment(std::move(config), context_.options);
    if (!session(experiment, context_.options)) return false;
    AuditStore store(context_.store);
    const std::size_t arms = indices.size() + 1;
    for (std::size_t k = 0; k < indices.size(); ++k) {
      SettingResult& result = results_[indices[k]];
      Interval sum;
      double centre = 0;
      std::size_t timed = 0;
      for (std::size_t task = 0; task < last_.speed_sets.size(); ++task) {
        TimedSet set{.task = experiment.tasks[task].info.name,
                     .strict_cell = store.cell(last_.cells[task * arms])->id,
                     .asd_cell = store.cell(last_.cells[task * arms + k + 1])->id,
                     .slots = store.slots(last_.speed_sets[task])};
        const auto estimate = log_ratio_t(group_log_speedups(set));
        if (!estimate || !estimate->interval_pct) continue;
        sum.lo += std::log1p(estimate->interval_pct->lo / 100);
        sum.hi += std::log1p(estimate->interval_pct->hi / 100);
        centre += estimate->mean;
        ++timed;
      }
      if (timed == 0 || timed < task_count_) continue;
      const auto pct = [&](double value) {
        return 100 * std::expm1(value / static_cast<double>(timed));
      };
      result.gain_pct = pct(centre);
      result.speed_pct = Interval{pct(sum.lo), pct(sum.hi)};
    }
    return true;
  }

  AuditContext& context_;
  Choice drafter_;
  std::vector<SettingResult> results_;
  std::size_t task_count_ = 0;
  SessionResult last_;
  std::vector<double> ratios_;
  std::vector<std::string> strict_keys_;           // task by task
  std::vector<std::vector<std::string>> keys_;     // setting, task
  std::vector<std::vector<std::string>> samples_;  // of the latest round, by task
  std::vector<std::int64_t> prompts_of_a_;         // by task
  std::vector<std::tuple<std::string, std::int32_t, std::string>> graders_;
};

bool meets_constraint(const SettingResult& result, const DeploySettings& settings) {
  if (!result.pruned.empty() || result.tasks.empty() || !result.speed_pct) return false;
  return std::all_of(
      result.tasks.begin(), result.tasks.end(), [&](const SettingResult::OfTask& task) {
        const double change = task.length ? 100 * (task.length->point - 1) : HUGE_VAL;
        return task.loss && task.loss->verdict == GateVerdict::kPass &&
               std::abs(change) <= settings.length_limit_pct;
      });
}

Json result_json(const SettingResult& result) {
  Json tasks = Json::array();
  for (const SettingResult::OfTask& task : result.tasks) {
    tasks.push_back({{"task", task.task},
                     {"n", task.counts.n},
                     {"b", task.counts.b},
                     {"c", task.counts.c},
                     {"lower", task.loss ? figure(task.loss->bounds.lo) : Json(nullptr)},
                     {"length_ratio", task.length ? figure(task.length->point) : Json(nullptr)}});
  }
  return {{"setting", setting_json(result.setting)},
          {"pruned", result.pruned},
          {"tasks", tasks},
          {"tokens_per_pass", figure(result.tokens_per_pass)},
          {"exceptions_per_request", figure(result.exceptions_per_request)},
          {"regret_per_request", figure(result.regret_per_request)},
          {"gain_pct", figure(result.gain_pct)},
          {"speed_pct", figure(result.speed_pct)},
          {"meets_constraint", result.meets_constraint}};
}

Table frontier_table(const std::vector<SettingResult>& results, std::optional<std::size_t> chosen) {
  Table table{.title = "settings on split A (* on the frontier, > selected)",
              .columns = {{""},
                          {"setting"},
                          {"accuracy strict, ASD"},
                          {"loss [one-sided bounds]"},
                          {"speed vs strict [95 % CI]"},
                          {"length"},
                          {"accept length", Align::kRight},
                          {"exceptions", Align::kRight},
                          {"regret", Align::kRight},
                          {"constraint"}},
              .rows = {}};
  for (std::size_t i = 0; i < results.size(); ++i) {
    const SettingResult& result = results[i];
    std::string accuracy, loss, length;
    for (const SettingResult::OfTask& task : result.tasks) {
      const std::string join = accuracy.empty() ? "" : "; ";
      accuracy += join + percent(task.strict_accuracy) + ", " + percent(task.accuracy);
      loss += join;
      if (task.loss) {
        loss += percent_interval(task.loss->lambda, task.loss->bounds.lo, task.loss->bounds.hi, 2);
      }
      length += join + (task.length ? fmt::format("{:+.2f} %", 100 * (task.length->point - 1))
                                    : std::string(kUndefined));
    }
    const std::string mark = std::string(chosen == i ? ">" : "") + (result.on_frontier ? "*" : "");
    const std::string speed = result.gain_pct
                                  ? fmt::format("{:+.2f} % [{:+.2f}, {:+.2f}]", *result.gain_pct,
                                                result.speed_pct->lo, result.speed_pct->hi)
                                  : std::string(kUndefined);
    table.rows.push_back({mark, result.setting.label(), accuracy, loss, speed, length,
                          decimal(result.tokens_per_pass, 3),
                          decimal(result.exceptions_per_request, 2),
                          decimal(result.regret_per_request, 3),
                          !result.pruned.empty()    ? result.pruned
                          : result.meets_constraint ? "met"
                                                    : "not met"});
  }
  return table;
}

/// Where the chosen setting's exceptions stand, and what they cost.
std::vector<Table> exception_tables(const std::vector<std::vector<AuditedPair>>& tasks,
                                    const SettingResult& result) {
  std::map<std::int64_t, std::int64_t> in_block, in_output;
  std::int64_t total = 0;
  for (const auto& pairs : tasks) {
    for (const AuditedPair& pair : pairs) {
      for (const std::int64_t position : pair.asd.block_positions) ++in_block[position], ++total;
      for (const std::int64_t position : pair.asd.positions) ++in_output[position / 32];
    }
  }
  const auto share = [&](std::int64_t count) {
    return percent(static_cast<double>(count) / static_cast<double>(total));
  };
  const std::vector<Column> columns = {
      {"position"}, {"exceptions", Align::kRight}, {"share", Align::kRight}};
  Table block{.title = "exceptions by position in block (from 0)", .columns = columns, .rows = {}};
  for (const auto& [position, count] : in_block) {
    block.rows.push_back({std::to_string(position), std::to_string(count), share(count)});
  }
  Table output{.title = "exceptions by position in output", .columns = columns, .rows = {}};
  for (const auto& [bin, count] : in_output) {
    output.rows.push_back(
        {fmt::format("{} to {}", 32 * bin, 32 * bin + 31), std::to_string(count), share(count)});
  }
  Table cost{.title = "quality among prompts whose output differs from strict",
             .columns = {{"task"},
                         {"diverged", Align::kRight},
                         {"only ASD right", Align::kRight},
                         {"only strict right", Align::kRight}},
             .rows = {}};
  for (const SettingResult::OfTask& task : result.tasks) {
    cost.rows.push_back({task.task, fmt::format("{} of {}", task.among_diverged.n, task.counts.n),
                         std::to_string(task.among_diverged.b),
                         std::to_string(task.among_diverged.c)});
  }
  return {block, output, cost};
}

/// What split B can certify at the discordance of the chosen setting on A.
Table power_table(const AuditContext& context, const SettingResult& result,
                  const std::vector<std::int64_t>& available) {
  const DeploySettings& s = context.settings;
  Table table{
      .title = fmt::format("what split B can certify (alpha {}, power {})", s.alpha, s.power),
      .columns = {{"task"},
                  {"discordance on A", Align::kRight},
                  {"margin", Align::kRight},
                  {"prompts needed", Align::kRight},
                  {"prompts of B", Align::kRight},
                  {"certifiable margin", Align::kRight}},
      .rows = {}};
  for (std::size_t i = 0; i < result.tasks.size(); ++i) {
    const SettingResult::OfTask& task = result.tasks[i];
    const double margin = margin_of(context, task.task);
    const auto needed =
        certifiable_sample_size(task.psi, 0, std::min(margin, 1.0), s.alpha, s.power);
    const std::int64_t prompts = s.size > 0 ? std::min(available[i], s.size) : available[i];
    table.rows.push_back({task.task, decimal(task.psi, 4), percent(margin, 2),
                          needed ? std::to_string(*needed) : std::string(kUndefined),
                          std::to_string(prompts),
                          percent(certifiable_margin(task.psi, prompts, s.alpha, s.power), 2)});
  }
  return table;
}

void write_markdown(const std::filesystem::path& path, const std::string& title,
                    const std::vector<Table>& tables, const std::string& closing) {
  std::string text = "# " + title + "\n\n";
  for (const Table& table : tables) text += to_markdown(table) + "\n";
  write_output_file(path, text + closing);
}

/// Draft and calibrating go on; a selected campaign calibrates again; nothing later does.
void open_calibration(Campaign& campaign) {
  if (campaign.state() == AuditState::kSelected) {
    campaign.append({{"type", record_type::kChange}, {"what", "calibrated again"}}, "");
  }
  if (campaign.state() != AuditState::kDraft && campaign.state() != AuditState::kCalibrating) {
    throw Refused("not_allowed", fmt::format("campaign {} is {}: its setting can no longer be tuned"
                                             "\n  a new attempt needs a new run.name and split B",
                                             shown(campaign.name()), name_of(campaign.state())));
  }
}

std::vector<Choice> lossy_rules(const RunConfig& config) {
  std::vector<Choice> rules;
  for (const Choice& choice : config.verifiers) {
    if (choice.name != "strict") rules.push_back(fresh_choice(choice));
  }
  return rules;
}

void check_tunable(const AuditContext& context, const std::vector<Choice>& rules) {
  const std::string file = context.config.file.string();
  if (rules.empty()) {
    throw ConfigError(file +
                      ": there is no setting to tune: expected rules beside strict in "
                      "matrix.verifier, or deploy.grid");
  }
  for (const Choice& drafter : context.config.drafters) {
    if (drafter.name == "none") {
      throw ConfigError(file +
                        ": matrix.drafter: plain decoding has nothing to verify; leave none "
                        "out of a deploy configuration");
    }
  }
  for (const Choice& rule : rules)
    with_zero_budget(rule);  // a rule without a budget cannot be frozen
  if (context.config.targets.size() != 1 || context.config.decodings.size() != 1) {
    throw ConfigError(file + ": expected one target and one decoding; a certificate holds for one");
  }
  if (context.settings.select == SelectionRule::kGiven &&
      rules.size() * context.config.drafters.size() != 1) {
    throw ConfigError(file + ": deploy.select: given takes the only setting there is; found " +
                      std::to_string(rules.size() * context.config.drafters.size()));
  }
  for (const Choice& task : context.config.tasks) margin_of(context, task.name);
}

std::vector<std::int64_t> available_in_b(const AuditContext& context) {
  RunConfig config = context.config;
  config.tasks = config.deploy->audit;
  std::vector<std::int64_t> available;
  for (const TaskSet& task : make_experiment(std::move(config), context.options).tasks) {
    available.push_back(std::ssize(task.samples));
  }
  return available;
}

}  // namespace

std::vector<std::size_t> better_half(const std::vector<SettingResult>& results,
                                     std::vector<std::size_t> indices) {
  // How far the worst task's lower bound will be above -margin if all of A goes on like this.
  const auto room = [&](std::size_t i) {
    double least = HUGE_VAL;
    for (const SettingResult::OfTask& task : results[i].tasks) {
      if (!task.loss || task.counts.n == 0) return -HUGE_VAL;
      const double share = static_cast<double>(task.counts.n) / static_cast<double>(task.prompts);
      const double half = (task.loss->lambda - task.loss->bounds.lo) * std::sqrt(share);
      least = std::min(least, task.loss->lambda - half + task.margin);
    }
    return least;
  };
  std::stable_sort(indices.begin(), indices.end(), [&](std::size_t i, std::size_t j) {
    const double mine = room(i), other = room(j);
    if ((mine > 0) != (other > 0)) return mine > 0;
    return mine > 0 ? results[i].tokens_per_pass > results[j].tokens_per_pass : mine > other;
  });
  indices.resize((indices.size() + 1) / 2);
  return indices;
}

std::optional<std::size_t> pick(const std::vector<SettingResult>& results, SelectionRule rule) {
  if (rule == SelectionRule::kGiven) {
    return results.size() == 1 ? std::optional<std::size_t>(0) : std::nullopt;
  }
  const auto order = [&](std::size_t i) {
    const Setting& setting = results[i].setting;
    return std::tuple(-results[i].speed_pct->lo, control(setting, "B"), control(setting, "g"),
                      control(setting, "M"));
  };
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!results[i].meets_constraint || !results[i].speed_pct) continue;
    if (!best || order(i) < order(*best)) best = i;
  }
  return best;
}

void mark_frontier(std::vector<SettingResult>& results) {
  // Larger is better in each: accuracy summed over tasks, gain, nearness of the length to strict.
  const auto values = [](const SettingResult& result) {
    double accuracy = 0, length = 0;
    for (const SettingResult::OfTask& task : result.tasks) {
      accuracy += task.accuracy.value_or(0);
      length -= task.length ? std::abs(task.length->point - 1) : 0;
    }
    return std::array<double, 3>{accuracy, result.gain_pct.value_or(-HUGE_VAL), length};
  };
  const auto beats = [](const std::array<double, 3>& x, const std::array<double, 3>& y) {
    bool better = false;
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (x[i] < y[i]) return false;
      better = better || x[i] > y[i];
    }
    return better;
  };
  for (SettingResult& result : results) {
    result.on_frontier =
        result.pruned.empty() && result.gain_pct.has_value() &&
        std::none_of(results.begin(), results.end(), [&](const SettingResult& other) {
          return other.pruned.empty() && beats(values(other), values(result));
        });
  }
}

StepResult tune(AuditContext& context, const std::filesystem::path& markdown) {
  Campaign campaign(AuditStore(context.store), context.config.name);
  open_calibration(campaign);
  const std::vector<Choice> rules = lossy_rules(context.config);
  check_tunable(context, rules);
  std::vector<SettingResult> results;
  std::vector<std::pair<Sweep*, std::size_t>> origin;
  std::vector<std::unique_ptr<Sweep>> sweeps;
  std::vector<double> ratios;
  for (const Choice& drafter : context.config.drafters) {
    sweeps.push_back(std::make_unique<Sweep>(context, drafter, rules));
    Sweep& sweep = *sweeps.back();
    if (!sweep.run()) {
      const bool stopped = sweep.last().interrupted;
      return {.code = stopped ? ExitCode::kInterrupted : ExitCode::kFail,
              .text = stopped ? "interrupted; run the same command again to go on\n"
                              : "stopped: too many samples failed\n",
              .json = nullptr};
    }
    ratios.insert(ratios.end(), sweep.mismatch_ratios().begin(), sweep.mismatch_ratios().end());
    std::vector<SettingResult> found = sweep.take();
    for (std::size_t i = 0; i < found.size(); ++i) {
      found[i].meets_constraint = meets_constraint(found[i], context.settings);
      origin.emplace_back(&sweep, i);
      results.push_back(std::move(found[i]));
    }
  }
  mark_frontier(results);
  Json settings = Json::array();
  for (const SettingResult& result : results) settings.push_back(result_json(result));
  campaign.append({{"type", record_type::kCalibrate},
                   {"rule", std::string(name_of(context.settings.select))},
                   {"settings", settings}},
                  "");
  const auto chosen = pick(results, context.settings.select);
  std::vector<Table> tables = {frontier_table(results, chosen)};
  std::string closing;
  if (const auto quartile = quantile_linear(ratios, 0.25)) {
    closing += fmt::format(
        "first rejected drafts: a quarter of the positive regrets per remaining "
        "position are below {:.4f} nats, a scale for g\n",
        *quartile);
  }
  ExitCode code = ExitCode::kPass;
  if (chosen) {
    const SettingResult& best = results[*chosen];
    const auto& [sweep, index] = origin[*chosen];
    for (Table& table : exception_tables(sweep->pairs_of(index), best)) {
      tables.push_back(std::move(table));
    }
    tables.push_back(power_table(context, best, available_in_b(context)));
    Json psi = Json::object();
    for (const SettingResult::OfTask& task : best.tasks) psi[task.task] = shortest_real(task.psi);
    campaign.append({{"type", record_type::kSelect},
                     {"rule", std::string(name_of(context.settings.select))},
                     {"setting", setting_json(best.setting)},
                     {"constraint_met", true},
                     {"meets_constraint_on_a", best.meets_constraint},
                     {"psi", psi}},
                    "");
    write_lock(context.config, best.setting, campaign.head());
    closing += fmt::format("selected by {}: {}{}; written to {}\nchain head {}\n",
                           name_of(context.settings.select), best.setting.label(),
                           best.meets_constraint ? "" : " (does not meet the constraint on A)",
                           lock_file(context.config).string(), campaign.head());
  } else {
    closing +=
        "constraint_not_met: no setting keeps its lower quality bound above -margin and its "
        "length inside the limit on split A\n  add smaller settings, prompts of A, or a "
        "wider margin that can be defended\n";
    code = ExitCode::kRefused;
  }
  std::string text;
  for (const Table& table : tables) text += to_terminal(table) + "\n";
  if (!markdown.empty()) {
    write_markdown(markdown, "Tuning report: " + context.config.name, tables, closing);
  }
  return {.code = code,
          .text = text + closing,
          .json = {{"settings", settings},
                   {"selected", chosen ? setting_json(results[*chosen].setting) : Json(nullptr)},
                   {"chain_head", campaign.head()}}};
}

}  // namespace asdbench
