// asdbench list and env: what is built in, and what this machine and build are.
#include <fmt/format.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <thread>

#include "eval/cli/commands_internal.h"
#include "eval/core/json.h"
#include "eval/report/table.h"
#include "runners/kernels/isa.h"
#include "runners/throughput/nvml.h"
#include "runners/verifier.h"

namespace asdbench::cli {
namespace {

/// What a rule promises about the output, asked with options inside everyone's range.
Keeps keeps_of(const VerifierFactory& factory) {
  Params params(factory.name, {});
  for (const char* key :
       {"B", "g", "tau", "kappa", "l", "alpha", "theta", "epsilon", "top_p", "h", "w"}) {
    params.set(key, "0.5", {});
  }
  params.set("k", "2", {});
  params.set("M", "1", {});
  params.set("mask", "regret_gate", {});
  return factory.make(params)->info().keeps;
}

ExitCode list(bool json) {
  Table tasks{.title = "tasks",
              .columns = {{"name"}, {"metric"}, {"max tokens", Align::kRight}, {"graders"}},
              .rows = {}};
  Table rules{.title = "verifiers", .columns = {{"name"}, {"keeps"}}, .rows = {}};
  const KnownNames known = known_names_of_build();
  Json out = {{"tasks", Json::array()},
              {"targets", known.targets},
              {"drafters", known.drafters},
              {"verifiers", known.verifiers}};
  for (const TaskFactory& factory : task_factories()) {
    const TaskInfo info = factory.make(Params(factory.name, {}))->info();
    std::string graders;
    for (const std::string& grader : info.graders)
      graders += (graders.empty() ? "" : ", ") + grader;
    tasks.rows.push_back({info.name, info.metric, std::to_string(info.max_tokens), graders});
    out["tasks"].push_back({{"name", info.name},
                            {"version", info.version},
                            {"metric", info.metric},
                            {"max_tokens", info.max_tokens},
                            {"graders", info.graders}});
  }
  for (const VerifierFactory& factory : verifier_factories()) {
    const Keeps keeps = keeps_of(factory);
    rules.rows.push_back(
        {factory.name, keeps == Keeps::kNothing ? "nothing (lossy)" : name_of(keeps)});
    out["keeps"][factory.name] = name_of(keeps);
  }
  if (json) {
    print(out.dump(2) + "\n");
    return ExitCode::kPass;
  }
  const auto names = [](const std::string& title, const std::vector<std::string>& values) {
    Table table{.title = title, .columns = {{"name"}}, .rows = {}};
    for (const std::string& value : values) table.rows.push_back({value});
    return to_terminal(table);
  };
  print(to_terminal(tasks) + "\n" + names("targets (or a path)", known.targets) + "\n" +
        names("drafters", known.drafters) + "\n" + to_terminal(rules));
  return ExitCode::kPass;
}

std::string cpu_model() {
  std::ifstream in("/proc/cpuinfo");
  std::string line;
  while (std::getline(in, line)) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

}  // namespace

Facts machine_facts() {
  const BuildInfo build = build_info();
  const auto pages = static_cast<double>(sysconf(_SC_PHYS_PAGES));
  const auto page = static_cast<double>(sysconf(_SC_PAGESIZE));
  const Nvml gpu;
  return {
      {"version", build.version},
      {"commit", build.commit + (build.dirty ? " (with changes)" : "")},
      {"compiler", build.compiler},
      {"build_type", build.build_type},
      {"libtorch", build.torch ? "yes" : "no"},
      {"cuda_kernels", build.cuda ? "yes" : "no"},
      {"cpu", cpu_model()},
      {"cores", std::to_string(std::thread::hardware_concurrency())},
      {"memory_gib", fmt::format("{:.1f}", pages * page / (1 << 30))},
      {"instruction_set", std::string(kernels::name_of(kernels::active_isa()))},
      {"gpu_record", gpu.why_not().empty() ? gpu.device() : "none: " + gpu.why_not()},
      {"models", default_paths().models.string()},
      {"data", default_paths().data.string()},
  };
}

namespace {

ExitCode env(bool json) {
  const Facts values = machine_facts();
  if (json) {
    Json out;
    for (const auto& [key, value] : values) out[key] = value;
    print(out.dump(2) + "\n");
    return ExitCode::kPass;
  }
  for (const auto& [key, value] : values) print(fmt::format("{:<16} {}\n", key, value));
  return ExitCode::kPass;
}

}  // namespace

void add_list(CLI::App& app, Action& action) {
  auto json = std::make_shared<bool>(false);
  CLI::App* command =
      app.add_subcommand("list", "What is built in: tasks, targets, drafters, verifiers");
  command->add_flag("--json", *json, "Machine-readable output");
  command->footer("Example:\n  asdbench list");
  command->callback([json, &action] { action = [json] { return list(*json); }; });
}

void add_env(CLI::App& app, Action& action) {
  auto json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("env", "What this machine and this build are");
  command->add_flag("--json", *json, "Machine-readable output");
  command->footer("Example:\n  asdbench env --json");
  command->callback([json, &action] { action = [json] { return env(*json); }; });
}

}  // namespace asdbench::cli
