// The subcommands: each registers its options and hands back what to do.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "eval/cli/terminal_internal.h"
#include "eval/core/error.h"

namespace asdbench::cli {

/// Set by the subcommand that was given; run by main after parsing.
using Action = std::function<ExitCode()>;

void add_run(CLI::App& app, Action& action);
void add_plan(CLI::App& app, Action& action);
void add_report(CLI::App& app, Action& action);
void add_list(CLI::App& app, Action& action);
void add_env(CLI::App& app, Action& action);
void add_data(CLI::App& app, Action& action);
void add_model(CLI::App& app, Action& action);
void add_conformance(CLI::App& app, Action& action);

}  // namespace asdbench::cli
