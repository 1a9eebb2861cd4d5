// asdbench conformance: published vectors against this build.
#include "eval/cli/conformance/conformance.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "eval/cli/commands_internal.h"
#include "eval/core/json.h"

namespace asdbench {

void ConformanceReport::fail(const std::string& id, const std::string& expected,
                             const std::string& got) {
  failures_.push_back(fmt::format("{}: expected {}, got {}", id, expected, got));
}

std::vector<std::filesystem::path> find_cases(const std::filesystem::path& path,
                                              const std::string& name) {
  std::vector<std::filesystem::path> found;
  std::error_code error;
  if (std::filesystem::is_regular_file(path, error)) {
    if (name.empty() || path.filename() == name) found.push_back(path);
    return found;
  }
  if (!std::filesystem::is_directory(path, error)) {
    throw DataError(fmt::format("{}: no such file or folder", path.string()));
  }
  for (auto entry = std::filesystem::recursive_directory_iterator(path, error);
       !error && entry != std::filesystem::recursive_directory_iterator(); entry.increment(error)) {
    if (entry->is_regular_file(error) && entry->path().filename() == name) {
      found.push_back(entry->path());
    }
  }
  if (error) throw DataError(fmt::format("{}: cannot be read: {}", path.string(), error.message()));
  std::sort(found.begin(), found.end());
  return found;
}

namespace cli {
namespace {

struct Kind {
  std::string name;
  ConformanceKind* run;
};

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> kTable = {{"asd", conformance_asd},
                                           {"code", conformance_code},
                                           {"verifiers", conformance_verifiers},
                                           {"scoring", conformance_scoring},
                                           {"tokenizer", conformance_tokenizer},
                                           {"gguf", conformance_gguf},
                                           {"model", conformance_model},
                                           {"drafter", conformance_drafter},
                                           {"stats", conformance_stats},
                                           {"protocol", conformance_protocol}};
  return kTable;
}

struct Arguments {
  std::string kind;
  ConformanceOptions options;
  bool json = false;
};

ExitCode conformance(const Arguments& arguments) {
  ConformanceOptions options = arguments.options;
  options.models_dir = default_paths().models;
  if (options.data_dir.empty()) options.data_dir = default_paths().data;
  std::vector<std::string> names;
  for (const Kind& kind : kinds()) names.push_back(kind.name);
  const auto kind = std::find_if(kinds().begin(), kinds().end(),
                                 [&](const Kind& k) { return k.name == arguments.kind; });
  if (kind == kinds().end()) {
    throw ConfigError(fmt::format("conformance: unknown kind \"{}\"{}", arguments.kind,
                                  known_names(arguments.kind, names)));
  }
  ConformanceReport report;
  kind->run(options, report);
  if (report.passed() + report.failures().size() == 0) {
    throw DataError(
        fmt::format("{}: no case of kind {} found", options.path.string(), arguments.kind));
  }
  if (arguments.json) {
    const Json out = {{"kind", arguments.kind},
                      {"passed", report.passed()},
                      {"failed", report.failures().size()},
                      {"failures", report.failures()},
                      {"notes", report.notes()}};
    print(out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
  } else {
    for (const std::string& text : report.notes()) print("note: " + text + "\n");
    for (const std::string& text : report.failures()) print(text + "\n");
    print(fmt::format("{} passed, {} failed\n", report.passed(), report.failures().size()));
  }
  return report.failures().empty() ? ExitCode::kPass : ExitCode::kFail;
}

}  // namespace

void add_conformance(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("conformance", "Run published vectors against this build");
  command
      ->add_option(
          "kind", arguments->kind,
          "asd, verifiers, scoring, code, tokenizer, gguf, model, drafter, stats, protocol")
      ->required();
  command
      ->add_option(
          "path", arguments->options.path,
          "A file, or any folder above the cases; for kind code a task such as humaneval or "
          "mbpp/plus")
      ->required();
  command
      ->add_option("--engine", arguments->options.engine,
                   "torch or native, for kinds model and drafter")
      ->check(CLI::IsMember({"torch", "native"}));
  command->add_option("--device", arguments->options.device, "cpu, cuda or auto, for the same")
      ->check(CLI::IsMember({"cpu", "cuda", "auto"}))
      ->capture_default_str();
  command->add_option("--vocabularies", arguments->options.vocabularies,
                      "Folder of real vocabularies, for kind tokenizer");
  command->add_option("--data", arguments->options.data_dir, "Folder of official data");
  command->add_flag("--allow-code-execution", arguments->options.allow_code_execution,
                    "Let cases that are programs run contained, for kinds scoring and code");
  command->add_flag("--json", arguments->json, "Machine-readable output");
  command->footer(
      "Example:\n  asdbench conformance asd runners/verifiers/tests/data/asd_vectors.jsonl");
  command->callback(
      [arguments, &action] { action = [arguments] { return conformance(*arguments); }; });
}

}  // namespace cli
}  // namespace asdbench
