// asdbench simulate: whole audits of a planted target, for power and error rates.
#include "eval/audit/simulate.h"

#include <memory>

#include "eval/cli/commands_internal.h"
#include "eval/cli/deploy_internal.h"

namespace asdbench::cli {

void add_simulate(CLI::App& app, Action& action) {
  auto options = std::make_shared<DeployOptions>();
  CLI::App* command = app.add_subcommand(
      "simulate", "Draw whole audits of a planted target: what an audit will detect");
  command->add_option("config", options->config, "Configuration (YAML)")->required();
  command->add_option("--set", options->overrides, "Override a value, such as simulate.audits=100")
      ->take_all();
  command->add_flag("--json", options->json, "Machine-readable output on stdout");
  command->footer("Example:\n  asdbench simulate configs/deploy/simulate.yaml");
  command->callback([options, &action] {
    action = [options] {
      const SimulateConfig config =
          read_simulate_config(options->config, parse_overrides(options->overrides));
      return print_result(simulate(config), options->json);
    };
  });
}

}  // namespace asdbench::cli
