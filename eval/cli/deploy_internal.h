// What the commands of a deployment share: their options, and the context of a step.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "eval/audit/steps.h"
#include "eval/cli/terminal_internal.h"

namespace asdbench::cli {

struct DeployOptions {
  std::string config;
  std::string database = "results/asdbench.db";
  std::string device;
  std::string output;
  std::vector<std::string> overrides;
  bool json = false;
};

void add_deploy_options(CLI::App& command, DeployOptions& options);

/// Opens everything, takes the step and prints what it says.
ExitCode run_step(const DeployOptions& options, const char* name,
                  const std::function<StepResult(AuditContext&)>& step);

/// Prints text, or JSON where that was asked for.
ExitCode print_result(const StepResult& result, bool json);

}  // namespace asdbench::cli
