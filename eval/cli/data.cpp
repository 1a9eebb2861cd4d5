// asdbench data: list, fetch, import and verify the official data files.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <vector>

#include "eval/cli/commands_internal.h"
#include "eval/report/table.h"
#include "tasks/common/data_catalogue.h"

namespace asdbench::cli {
namespace {

namespace fs = std::filesystem;

/// Files of a folder that has many are one line: "mmlu/test/ (57 files)".
struct Line {
  const OfficialFile* first = nullptr;
  std::uint64_t bytes = 0;
  std::map<FileState, int> states;  // how many files are in each
};

std::vector<Line> lines_of(const std::vector<FileStatus>& statuses) {
  constexpr int kMany = 8;
  std::map<fs::path, int> sizes;
  for (const FileStatus& status : statuses) ++sizes[fs::path(status.file->path).parent_path()];
  std::vector<Line> lines;
  for (const FileStatus& status : statuses) {
    const fs::path folder = fs::path(status.file->path).parent_path();
    const bool same = !lines.empty() && sizes[folder] >= kMany &&
                      fs::path(lines.back().first->path).parent_path() == folder;
    if (!same) lines.push_back({.first = status.file});
    lines.back().bytes += status.file->bytes;
    ++lines.back().states[status.state];
  }
  return lines;
}

ExitCode show_states() {
  Table table{.title = "",
              .columns = {{"task"}, {"file"}, {"state"}, {"bytes", Align::kRight}, {"licence"}},
              .rows = {}};
  const std::vector<FileStatus> statuses = verify_data(default_paths().data);
  for (const Line& line : lines_of(statuses)) {
    int files = 0;
    std::string state;
    for (const auto& [kind, count] : line.states) {
      files += count;
      state += fmt::format("{}{} {}", state.empty() ? "" : ", ", count, name_of(kind));
    }
    const std::string folder = fs::path(line.first->path).parent_path().string();
    const std::string name =
        files == 1 ? line.first->path : fmt::format("{}/ ({} files)", folder, files);
    if (files == 1) state = name_of(line.states.begin()->first);
    table.rows.push_back(
        {line.first->task, name, state, std::to_string(line.bytes), line.first->licence});
  }
  print(to_terminal(table));
  const bool all_good = std::none_of(statuses.begin(), statuses.end(), [](const auto& status) {
    return status.state == FileState::kDifferent;
  });
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
