// asdbench sandbox: whether the programs of coding tasks can be run contained on this machine.
#include "tasks/common/sandbox.h"

#include <fmt/format.h>

#include "eval/cli/commands_internal.h"

namespace asdbench::cli {
namespace {

ExitCode check() {
  const SandboxState state = check_sandbox();
  if (!state.fault.empty()) throw DataError(state.fault);
  print(fmt::format("the sandbox works: bubblewrap, python {}\neach program gets {}\n",
                    state.python, describe(SandboxLimits{})));
  return ExitCode::kPass;
}

}  // namespace

void add_sandbox(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("sandbox", "Where the programs of coding tasks run");
  command->require_subcommand(1);
  command->footer("Example:\n  asdbench sandbox check");
  command->add_subcommand("check", "Run one line contained, or say what is missing")
      ->callback([&action] { action = check; });
}

}  // namespace asdbench::cli
