// The subcommands: each registers its options and hands back what to do.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "eval/cli/terminal_internal.h"
#include "eval/config/run_config.h"
#include "eval/core/error.h"

namespace asdbench::cli {

/// Set by the subcommand that was given; run by main after parsing.
using Action = std::function<ExitCode()>;

/// The values of --set, "key=value" each. ConfigError.
std::vector<Override> parse_overrides(const std::vector<std::string>& texts);

void add_run(CLI::App& app, Action& action);
void add_plan(CLI::App& app, Action& action);
void add_report(CLI::App& app, Action& action);
void add_list(CLI::App& app, Action& action);
void add_env(CLI::App& app, Action& action);
void add_data(CLI::App& app, Action& action);
void add_model(CLI::App& app, Action& action);
void add_sandbox(CLI::App& app, Action& action);
void add_judge(CLI::App& app, Action& action);
void add_rescore(CLI::App& app, Action& action);
void add_conformance(CLI::App& app, Action& action);
void add_bench(CLI::App& app, Action& action);
void add_train(CLI::App& app, Action& action);
void add_tune(CLI::App& app, Action& action);
void add_freeze(CLI::App& app, Action& action);
void add_audit(CLI::App& app, Action& action);
void add_certify(CLI::App& app, Action& action);
void add_verify(CLI::App& app, Action& action);
void add_simulate(CLI::App& app, Action& action);

}  // namespace asdbench::cli
