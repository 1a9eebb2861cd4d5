// asdbench tune: sweeps settings on split A, selects one, and says what split B can certify.
#include <memory>

#include "eval/audit/tuning.h"
#include "eval/cli/commands_internal.h"
#include "eval/cli/deploy_internal.h"

namespace asdbench::cli {

void add_tune(CLI::App& app, Action& action) {
  auto options = std::make_shared<DeployOptions>();
  CLI::App* command = app.add_subcommand(
      "tune", "Sweep B, g, M on split A, print the frontier and select a setting");
  add_deploy_options(*command, *options);
  command->add_option("-o,--output", options->output, "Write the report as Markdown too");
  command->footer("Example:\n  asdbench tune configs/deploy/gsm8k.yaml -o tuning.md");
  command->callback([options, &action] {
    action = [options] {
      return run_step(*options, "tune",
                      [&](AuditContext& context) { return tune(context, options->output); });
    };
  });
}

}  // namespace asdbench::cli
