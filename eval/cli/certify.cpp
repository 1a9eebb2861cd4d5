// asdbench certify: issues the certificate of an audit that passed.
#include <memory>

#include "eval/cli/commands_internal.h"
#include "eval/cli/deploy_internal.h"

namespace asdbench::cli {

void add_certify(CLI::App& app, Action& action) {
  auto options = std::make_shared<DeployOptions>();
  CLI::App* command =
      app.add_subcommand("certify", "Issue the certificate of an audit that passed");
  add_deploy_options(*command, *options);
  command->add_option("-o,--output", options->output, "Certificate file")->required();
  command->footer(
      "Example:\n  asdbench certify configs/deploy/gsm8k.yaml -o gsm8k.certificate.json");
  command->callback([options, &action] {
    action = [options] {
      return run_step(*options, "certify",
                      [&](AuditContext& context) { return certify(context, options->output); });
    };
  });
}

}  // namespace asdbench::cli
