// The context of a step: configuration, database, machine, callbacks.
#include <fmt/format.h>
#include <sys/utsname.h>

#include "eval/cli/commands_internal.h"
#include "eval/cli/deploy_internal.h"
#include "eval/core/digest.h"

namespace asdbench::cli {
namespace {

RunRow run_row(const DeployOptions& options, const RunConfig& config, const char* name) {
  const BuildInfo build = build_info();
  RunRow row;
  row.name = config.name + " " + name;
  row.config_file = config.file.string();
  row.config_text = config.text;
  row.config_sha256 = sha256_hex(config.text);
  row.command = name;
  for (const std::string& text : options.overrides) row.command += " --set " + text;
  row.version = build.version;
  row.commit = build.commit;
  row.dirty = build.dirty;
  utsname machine{};
  row.host = uname(&machine) == 0 ? machine.nodename : "";
  row.seed = config.seed;
  return row;
}

}  // namespace

void add_deploy_options(CLI::App& command, DeployOptions& options) {
  command.add_option("config", options.config, "Deploy configuration (YAML)")->required();
  command.add_option("--db", options.database, "Results database")->capture_default_str();
  command.add_option("--device", options.device, "cpu, cuda or auto")
      ->check(CLI::IsMember({"cpu", "cuda", "auto"}));
  command
      .add_option("--set", options.overrides,
                  "Override a value by its path, such as speed.groups=2; may be repeated")
      ->take_all();
  command.add_flag("--json", options.json, "Machine-readable output on stdout");
}

ExitCode print_result(const StepResult& result, bool json) {
  if (json && !result.json.is_null()) {
    print(result.json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
  } else {
    print(result.text);
  }
  return result.code;
}

ExitCode run_step(const DeployOptions& options, const char* name,
                  const std::function<StepResult(AuditContext&)>& step) {
  RunConfig config =
      read_config(options.config, known_names_of_build(), parse_overrides(options.overrides));
  const DeploySettings settings = read_deploy_settings(config);
  ResultStore store(options.database, OpenMode::kReadWrite);
  ProgressLine progress;
  const Facts facts = machine_facts();
  RunRow row = run_row(options, config, name);
  ExperimentOptions experiment{.paths = default_paths()};
  experiment.device = options.device;
  AuditContext context{.config = std::move(config),
                       .settings = settings,
                       .options = std::move(experiment),
                       .store = store,
                       .database = options.database,
                       .run = std::move(row),
                       .environment = {facts.begin(), facts.end()},
                       .program_sha256 = sha256_file("/proc/self/exe"),
                       .callbacks = {}};
  context.callbacks.progress = [&](const ProgressEvent& event) { progress.show(event); };
  context.callbacks.warning = [](const std::string& text) { note("warning: " + text); };
  context.callbacks.interrupted = interrupted;
  context.say = [](const std::string& text) { note(text); };
  const StepResult result = step(context);
  progress.clear();
  return print_result(result, options.json);
}

}  // namespace asdbench::cli
