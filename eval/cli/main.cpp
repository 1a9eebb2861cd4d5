// The program: parses the command line, runs one subcommand, turns errors into exit codes.
#include <fmt/format.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <cstdio>
#include <exception>
#include <new>

#include "eval/cli/commands_internal.h"
#include "runners/kernels/errors.h"

namespace asdbench::cli {
namespace {

ExitCode run_action(const Action& action) {
  try {
    return action();
  } catch (const Error& error) {
    note(fmt::format("asdbench: {}", error.what()));
    return error.code();
  } catch (const kernels::IsaError& error) {  // kernels know nothing of our errors
    note(fmt::format("asdbench: {}", error.what()));
    return ExitCode::kUsage;
  } catch (const std::bad_alloc&) {
    note("asdbench: out of memory\n  use a smaller model, batch or context");
    return ExitCode::kEnvironment;
  } catch (const std::exception& error) {
    note(fmt::format("asdbench: {}\n  this is a bug in asdbench, please report it", error.what()));
    return ExitCode::kInternal;
  }
}

}  // namespace

int run_program(int argc, char** argv) {
  install_interrupt_handler();
  spdlog::set_default_logger(spdlog::stderr_color_mt("asdbench"));
  spdlog::set_pattern("%^%l%$: %v");

  const BuildInfo build = build_info();
  CLI::App app{
      "asdbench: is approximate speculative decoding safe to deploy, for this target, drafter and "
      "workload?",
      "asdbench"};
  app.set_version_flag("--version", fmt::format("asdbench {} ({}{})", build.version, build.commit,
                                                build.dirty ? ", with changes" : ""));
  app.require_subcommand(1);
  app.footer("Example:\n  asdbench run configs/smoke.yaml --db results/smoke.db");
  Action action;
  add_run(app, action);
  add_plan(app, action);
  add_report(app, action);
  add_list(app, action);
  add_env(app, action);
  add_data(app, action);
  add_model(app, action);
  add_sandbox(app, action);
  add_judge(app, action);
  add_rescore(app, action);
  add_conformance(app, action);
  add_bench(app, action);
  add_train(app, action);
  add_tune(app, action);
  add_freeze(app, action);
  add_audit(app, action);
  add_certify(app, action);
  add_verify(app, action);
  add_simulate(app, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? static_cast<int>(ExitCode::kPass)
                                : static_cast<int>(ExitCode::kUsage);
  }
  return static_cast<int>(run_action(action));
}

}  // namespace asdbench::cli

int main(int argc, char** argv) {
  try {
    return asdbench::cli::run_program(argc, argv);
  } catch (
      const std::exception& error) {  // before or after the subcommand, whose errors have codes
    std::fprintf(stderr, "asdbench: %s\n", error.what());
    return static_cast<int>(asdbench::ExitCode::kInternal);
  }
}
