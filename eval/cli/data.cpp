// asdbench data: list, fetch, import and verify the official data files.
#include <fmt/format.h>

#include <memory>

#include "eval/cli/commands_internal.h"
#include "eval/report/table.h"
#include "tasks/common/data_catalogue.h"

namespace asdbench::cli {
namespace {

ExitCode show_states() {
  Table table{.title = "",
              .columns = {{"task"}, {"file"}, {"state"}, {"bytes", Align::kRight}, {"licence"}},
              .rows = {}};
  bool all_good = true;
  for (const FileStatus& status : verify_data(default_paths().data)) {
    all_good = all_good && status.state != FileState::kDifferent;
    table.rows.push_back({status.file->task, status.file->path, std::string(name_of(status.state)),
                          std::to_string(status.file->bytes), status.file->licence});
  }
  print(to_terminal(table));
  return all_good ? ExitCode::kPass : ExitCode::kFail;
}

ExitCode verify() {
  bool all_good = true;
  for (const FileStatus& status : verify_data(default_paths().data)) {
    if (status.state == FileState::kMissing) continue;
    const bool good = status.state == FileState::kPresent;
    all_good = all_good && good;
    print(fmt::format("{}: {}\n", status.file->path,
                      good ? "as published"
                           : fmt::format("DIFFERENT: SHA-256 is {}, expected {}",
                                         status.found_sha256, status.file->sha256)));
  }
  return all_good ? ExitCode::kPass : ExitCode::kFail;
}

ExitCode import(const std::string& folder) {
  const ImportReport report = import_folder(folder, default_paths().data);
  for (const OfficialFile* file : report.imported) print(fmt::format("imported {}\n", file->path));
  print(fmt::format("{} imported, {} there already, {} files of no known content; data folder {}\n",
                    report.imported.size(), report.already_there.size(), report.unknown_files,
                    default_paths().data.string()));
  if (report.imported.empty() && report.already_there.empty()) {
    throw DataError(fmt::format(
        "{}: no official file found\n  `asdbench data list` names what is known", folder));
  }
  return ExitCode::kPass;
}

ExitCode fetch(const std::string& task) {
  const auto fetched = fetch_task(task, default_paths().data);
  for (const OfficialFile* file : fetched) print(fmt::format("fetched {}\n", file->path));
  if (fetched.empty()) print(fmt::format("{}: everything is there already\n", task));
  return ExitCode::kPass;
}

}  // namespace

void add_data(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("data", "Official data files: list, fetch, import, verify");
  command->require_subcommand(1);
  command->footer("Example:\n  asdbench data fetch gsm8k\n  asdbench data import ~/datasets");
  command->add_subcommand("list", "Every known file and whether it is there")->callback([&action] {
    action = show_states;
  });
  command->add_subcommand("verify", "Compare every file with its published SHA-256")
      ->callback([&action] { action = verify; });
  auto folder = std::make_shared<std::string>();
  CLI::App* import_command =
      command->add_subcommand("import", "Take official files out of a folder, by content");
  import_command->add_option("folder", *folder, "Any folder that holds them, in any layout")
      ->required();
  import_command->footer("Example:\n  asdbench data import ~/datasets");
  import_command->callback([folder, &action] { action = [folder] { return import(*folder); }; });
  auto task = std::make_shared<std::string>();
  CLI::App* fetch_command =
      command->add_subcommand("fetch", "Download a task's files from their publisher");
  fetch_command->add_option("task", *task, "Such as gsm8k")->required();
  fetch_command->footer("Example:\n  asdbench data fetch gsm8k");
  fetch_command->callback([task, &action] { action = [task] { return fetch(*task); }; });
}

}  // namespace asdbench::cli
