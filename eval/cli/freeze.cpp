// asdbench freeze: writes the manifest of the selected setting and names split B.
#include <memory>

#include "eval/cli/commands_internal.h"
#include "eval/cli/deploy_internal.h"

namespace asdbench::cli {

void add_freeze(CLI::App& app, Action& action) {
  auto options = std::make_shared<DeployOptions>();
  CLI::App* command =
      app.add_subcommand("freeze", "Freeze the selected setting: manifest, digest, split B");
  add_deploy_options(*command, *options);
  command->footer("Example:\n  asdbench freeze configs/deploy/gsm8k.yaml");
  command->callback([options, &action] {
    action = [options] {
      return run_step(*options, "freeze", [&](AuditContext& context) { return freeze(context); });
    };
  });
}

}  // namespace asdbench::cli
