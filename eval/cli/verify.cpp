// asdbench verify: derives a certificate or decision record again, without a model.
#include <memory>

#include "eval/cli/commands_internal.h"
#include "eval/cli/deploy_internal.h"

namespace asdbench::cli {
namespace {

struct VerifyOptions {
  std::string file;
  std::string database = "results/asdbench.db";
  bool here = false;
  bool json = false;
};

ExitCode verify_file(const VerifyOptions& options) {
  const std::string text = read_decision_text(options.file);
  const ResultStore store(options.database, OpenMode::kReadOnly);
  std::string device;
  if (options.here) {
    for (const auto& [name, value] : machine_facts()) {
      if (name == "cpu") device = value;
    }
  }
  return print_result(verify(text, options.file, store, device), options.json);
}

}  // namespace

void add_verify(CLI::App& app, Action& action) {
  auto options = std::make_shared<VerifyOptions>();
  CLI::App* command = app.add_subcommand(
      "verify", "Derive a certificate or decision record again from its database, without a model");
  command->add_option("file", options->file, "Certificate or decision record")->required();
  command->add_option("--db", options->database, "Results database")->capture_default_str();
  command->add_flag("--here", options->here, "Also ask that it holds for this machine's device");
  command->add_flag("--json", options->json, "Machine-readable output on stdout");
  command->footer(
      "Example:\n  asdbench verify gsm8k.certificate.json --db results/asdbench.db\n"
      "Exit code: 0 pass, 1 fail, 5 inconclusive, 6 tampered or refused");
  command->callback([options, &action] { action = [options] { return verify_file(*options); }; });
}

}  // namespace asdbench::cli
