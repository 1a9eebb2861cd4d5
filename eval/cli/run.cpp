// asdbench run and plan: expand, decode, score, time, store; or only say what that would be.
#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "eval/cli/commands_internal.h"
#include "eval/config/run_config.h"
#include "eval/core/digest.h"
#include "eval/core/json.h"
#include "eval/report/matrix.h"
#include "eval/report/sections.h"
#include "eval/run/checks.h"
#include "eval/stats/stats.h"
#include "runners/checkpoint/checkpoint.h"
#include "runners/kernels/read_rate.h"
#include "tasks/common/sandbox.h"

namespace asdbench::cli {
namespace {

struct RunOptions {
  std::string config;
  std::string database = "results/asdbench.db";
  std::int64_t limit = 0;
  std::string shard;
  std::string device, split, grader;
  std::vector<std::string> overrides;
  bool json = false;
  bool allow_code_execution = false;
};

void add_common(CLI::App& command, RunOptions& options) {
  command.add_option("config", options.config, "Configuration (YAML)")->required();
  command.add_option("--db", options.database, "Results database")->capture_default_str();
  command.add_option("--limit", options.limit, "Samples of each task, in the seeded order")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1'000'000'000}, "1 to 1000000000"));
  command.add_option("--shard", options.shard, "Part i of n of the samples, from 1: 2/4");
  command.add_option("--device", options.device, "cpu, cuda or auto, for every target")
      ->check(CLI::IsMember({"cpu", "cuda", "auto"}));
  command.add_option("--split", options.split, "For every task: samples needs no data");
  command.add_option("--grader", options.grader, "For every task");
  command
      .add_option("--set", options.overrides,
                  "Override a value by its path, such as speed.groups=2; may be repeated")
      ->take_all();
  command.add_flag("--json", options.json, "Machine-readable output on stdout");
}

Shard parse_shard(const std::string& text) {
  if (text.empty()) return {};
  const auto slash = text.find('/');
  const auto index =
      slash == std::string::npos ? std::nullopt : parse_integer(text.substr(0, slash));
  const auto count =
      slash == std::string::npos ? std::nullopt : parse_integer(text.substr(slash + 1));
  if (!index || !count || *index < 1 || *count < 1 || *index > *count) {
    throw ConfigError(
        fmt::format("--shard: found \"{}\"; expected i/n with 1 <= i <= n, such as 2/4", text));
  }
  return {.index = *index - 1, .count = *count};
}

ExperimentOptions experiment_options(const RunOptions& options) {
  ExperimentOptions out{.paths = default_paths()};
  if (options.limit > 0) out.limit = options.limit;
  out.shard = parse_shard(options.shard);
  out.device = options.device;
  out.allow_code_execution = options.allow_code_execution;
  out.split = options.split;
  out.grader = options.grader;
  return out;
}

Experiment read_experiment(const RunOptions& options, const ExperimentOptions& experiment_options) {
  return make_experiment(
      read_config(options.config, known_names_of_build(), parse_overrides(options.overrides)),
      experiment_options);
}

std::string host_name() {
  utsname name{};
  return uname(&name) == 0 ? name.nodename : "";
}

void print_checks(const std::vector<Check>& checks) {
  for (const Check& check : checks) {
    if (check.status != CheckStatus::kNotApplicable) {
      print(fmt::format("check {}: {} ({})\n", check.name, name_of(check.status), check.evidence));
    }
  }
}

/// Says what will be run and where; returns the fact that is stored with the run. Without a sandbox
/// the run goes on: its replies are stored, and graded by a later run.
std::optional<std::string> prepare_code_execution(const Experiment& experiment) {
  bool any = false;
  for (const TaskSet& task : experiment.tasks) {
    if (task.info.code_limits.empty()) continue;
    any = true;
    note(fmt::format("{}: runs each program with {}", task.info.name, task.info.code_limits));
  }
  if (!any) return std::nullopt;
  const SandboxState state = check_sandbox();
  if (state.fault.empty()) return "bubblewrap, python " + state.python;
  note("warning: " + state.fault + "\n  replies will be stored unscored; run again when it works");
  return "none";
}

ExitCode run(const RunOptions& options) {
  const ExperimentOptions experiment_settings = experiment_options(options);
  Experiment experiment = read_experiment(options, experiment_settings);
  const std::optional<std::string> sandbox = prepare_code_execution(experiment);
  ResultStore store(options.database, OpenMode::kReadWrite);
  ProgressLine progress;
  SessionCallbacks callbacks;
  callbacks.progress = [&](const ProgressEvent& event) { progress.show(event); };
  callbacks.warning = [](const std::string& text) { note("warning: " + text); };
  callbacks.interrupted = interrupted;
  Session session(experiment, experiment_settings, store, callbacks);
  const BuildInfo build = build_info();
  RunRow row;
  row.name = experiment.config.name;
  row.config_file = experiment.config.file.string();
  row.config_text = experiment.config.text;
  row.config_sha256 = sha256_hex(experiment.config.text);
  for (const std::string& text : options.overrides) row.command += " --set " + text;
  row.version = build.version;
  row.commit = build.commit;
  row.dirty = build.dirty;
  row.host = host_name();
  row.seed = experiment.config.seed;
  Facts facts = machine_facts();
  if (sandbox) facts.emplace_back("sandbox", *sandbox);
  const SessionResult result = session.run(row, {facts.begin(), facts.end()});
  progress.clear();

  const std::vector<Check> checks = check_rows(store);
  const std::vector<MatrixRow> matrix = store.matrix();
  const bool checks_failed = std::any_of(checks.begin(), checks.end(), [](const Check& check) {
    return check.status == CheckStatus::kFail;
  });
  if (options.json) {
    Json out = {{"database", options.database},      {"decoded", result.decoded},
                {"reused", result.reused},           {"failed", result.failed},
                {"speed_groups", result.groups},     {"replayed", result.replayed},
                {"interrupted", result.interrupted}, {"matrix", parse_json(matrix_json(matrix))}};
    for (const Check& check : checks) {
      out["checks"].push_back(
          {{"name", check.name}, {"status", name_of(check.status)}, {"evidence", check.evidence}});
    }
    print(out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
  } else {
    const CappedPolicy policy = experiment.config.capped;
    const Capped capped = policy == CappedPolicy::kWrong      ? Capped::kWrong
                          : policy == CappedPolicy::kAsScored ? Capped::kAsScored
                                                              : Capped::kByGrader;
    for (const Table& table : matrix_tables(matrix, capped)) print(to_terminal(table) + "\n");
    if (result.groups > 0) {
      const Table prediction = prediction_table(store, Cells(store));
      if (!prediction.rows.empty()) print(to_terminal(prediction) + "\n");
    }
    print_checks(checks);
    print(fmt::format("decoded {} samples, reused {}, {}timed {} speed groups; database {}\n",
                      result.decoded, result.reused,
                      result.replayed > 0 ? fmt::format("replayed {}, ", result.replayed) : "",
                      result.groups, options.database));
  }
  if (result.interrupted) {
    note(fmt::format(
        "interrupted; everything finished is stored\n  run the same command again to go on"));
    return ExitCode::kInterrupted;
  }
  if (result.too_many_failed) {
    note(fmt::format("stopped: {} samples failed, run.max_failed_samples allows {}", result.failed,
                     experiment.config.max_failed_samples));
    return ExitCode::kFail;
  }
  return checks_failed ? ExitCode::kFail : ExitCode::kPass;
}

ExitCode plan(const RunOptions& options) {
  ExperimentOptions experiment_settings = experiment_options(options);
  experiment_settings.allow_code_execution = true;  // nothing is decoded and nothing is run
  const Experiment experiment = read_experiment(options, experiment_settings);
  const RunConfig& config = experiment.config;
  kernels::Pool one_thread(1);  // for estimates only: what a step takes on a busy machine
  const double rate = kernels::ReadRate(std::int64_t{256} << 20).measure(one_thread);
  // What is assumed where nothing was measured: one pair in twenty differs, 5 % error, 80 % power.
  constexpr double kDiscordance = 0.05, kAlpha = 0.05, kPower = 0.8;
  Table table{.title = "",
              .columns = {{"cell"},
                          {"target"},
                          {"samples", Align::kRight},
                          {"max tokens", Align::kRight},
                          {"at most", Align::kRight},
                          {"certifiable margin", Align::kRight}},
              .rows = {}};
  Json json = Json::array();
  std::vector<std::optional<std::int64_t>> step(config.targets.size());
  for (std::size_t i = 0; i < step.size(); ++i) {
    try {
      step[i] = step_bytes(config.targets[i].name, experiment_settings.paths.models);
    } catch (const ModelError& error) {
      if (error.fault() != ModelFault::kMissingFile) throw;
      note(fmt::format("warning: {}", error.what()));  // a plan may come before its model
    }
  }
  for (const CellIndex& cell : experiment.cells) {
    const TaskSet& task = experiment.tasks[cell.task];
    const Choice& target = config.targets[cell.target];
    const std::optional<std::int64_t>& bytes = step[cell.target];
    const auto samples = static_cast<std::int64_t>(task.samples.size());
    std::optional<double> seconds;
    if (bytes) {
      seconds = static_cast<double>(samples) * task.max_tokens * static_cast<double>(*bytes) / rate;
    }
    const std::optional<double> margin = certifiable_margin(kDiscordance, samples, kAlpha, kPower);
    table.rows.push_back({experiment.cell_label(cell), target.name, std::to_string(samples),
                          std::to_string(task.max_tokens),
                          seconds ? duration_text(*seconds) : std::string(kUndefined),
                          percent(margin)});
    json.push_back({{"cell", experiment.cell_label(cell)},
                    {"target", target.name},
                    {"samples", samples},
                    {"max_tokens", task.max_tokens},
                    {"seconds_at_most", seconds ? Json(*seconds) : Json(nullptr)},
                    {"certifiable_margin", margin ? Json(*margin) : Json(nullptr)}});
  }
  if (options.json) {
    print(json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
    return ExitCode::kPass;
  }
  print(to_terminal(table));
  print(fmt::format(
      "\n{} cells. `at most` is an estimate: every reply runs to its cap, one token a pass, "
      "weights "
      "read at the {:.1f} GB/s measured just now.\nThe margin holds for a discordance of {:.0f} % "
      "between strict and ASD (assumed), alpha {}, power {}.\n",
      experiment.cells.size(), rate / 1e9, 100 * kDiscordance, kAlpha, kPower));
  return ExitCode::kPass;
}

}  // namespace

std::vector<Override> parse_overrides(const std::vector<std::string>& texts) {
  std::vector<Override> overrides;
  for (const std::string& text : texts) {
    const auto equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw ConfigError(
          fmt::format("--set: found \"{}\"; expected key=value, such as speed.groups=2", text));
    }
    overrides.push_back({.key = text.substr(0, equals), .value = text.substr(equals + 1)});
  }
  return overrides;
}

void add_run(CLI::App& app, Action& action) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command =
      app.add_subcommand("run", "Decode, score, time and store every cell; again: resume");
  add_common(*command, *options);
  command->add_flag("--allow-code-execution", options->allow_code_execution,
                    "Let coding tasks run, contained, what the model wrote");
  command->footer(
      "Example:\n  asdbench run configs/smoke.yaml --db results/smoke.db\n"
      "  asdbench run configs/gsm8k-smollm2.yaml --limit 20 --set speed.groups=2");
  command->callback([options, &action] { action = [options] { return run(*options); }; });
}

void add_plan(CLI::App& app, Action& action) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command = app.add_subcommand("plan", "Say what a run would do; decodes nothing");
  add_common(*command, *options);
  command->footer("Example:\n  asdbench plan configs/smoke.yaml");
  command->callback([options, &action] { action = [options] { return plan(*options); }; });
}

}  // namespace asdbench::cli
