// asdbench audit: audits the frozen setting on split B, prompt by prompt, and decides.
#include <memory>

#include "eval/cli/commands_internal.h"
#include "eval/cli/deploy_internal.h"

namespace asdbench::cli {

void add_audit(CLI::App& app, Action& action) {
  auto options = std::make_shared<DeployOptions>();
  CLI::App* command =
      app.add_subcommand("audit", "Audit the frozen setting on split B; again: resume");
  add_deploy_options(*command, *options);
  command->footer("Example:\n  asdbench audit configs/deploy/gsm8k.yaml");
  command->callback([options, &action] {
    action = [options] {
      return run_step(*options, "audit", [&](AuditContext& context) { return audit(context); });
    };
  });
}

}  // namespace asdbench::cli
