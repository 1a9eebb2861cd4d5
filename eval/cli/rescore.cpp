// asdbench rescore: stored replies graded again, by another grader or a newer version; no model.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <tuple>

#include "eval/cli/commands_internal.h"
#include "eval/core/json.h"
#include "eval/report/facts.h"
#include "eval/report/reporter.h"
#include "eval/run/grade.h"
#include "eval/run/stored_task.h"
#include "tasks/common/sandbox.h"

namespace asdbench::cli {
namespace {

struct Arguments {
  std::string database = "results/asdbench.db";
  std::string grader;
  std::vector<std::string> tasks;
  bool allow_code_execution = false, json = false;
};

struct Summary {
  std::int64_t graded = 0, left_out = 0;
  bool interrupted = false;
};

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

/// The stored cells of the wanted tasks that the grader can score. ConfigError when there is none.
std::vector<StoredCell> cells_to_grade(const ResultStore& store, const Arguments& arguments) {
  std::vector<StoredCell> cells;
  std::map<std::string, std::string> others;  // task -> its graders
  std::vector<std::string> tasks;
  for (StoredCell& cell : stored_cells(store)) {
    if (std::find(tasks.begin(), tasks.end(), cell.task) == tasks.end()) tasks.push_back(cell.task);
    const auto wanted = std::find(arguments.tasks.begin(), arguments.tasks.end(), cell.task);
    if (!arguments.tasks.empty() && wanted == arguments.tasks.end()) continue;
    const std::optional<TaskInfo> info = stored_task_info(cell);
    const std::vector<std::string> graders = info ? info->graders : std::vector<std::string>();
    if (std::find(graders.begin(), graders.end(), arguments.grader) != graders.end()) {
      cells.push_back(std::move(cell));
    } else {
      others[cell.task] = info ? listed(graders) : "of another build";
    }
  }
  for (const std::string& task : arguments.tasks) {
    if (std::find(tasks.begin(), tasks.end(), task) == tasks.end()) {
      throw ConfigError(fmt::format("--task: {} holds no replies to {}{}", arguments.database,
                                    shown(task), known_names(task, tasks)));
    }
  }
  if (cells.empty() && !others.empty()) {
    std::string known;
    for (const auto& [task, graders] : others) known += fmt::format("\n  {}: {}", task, graders);
    throw ConfigError(fmt::format("--grader: no task of {} has the grader {}; there are{}",
                                  arguments.database, shown(arguments.grader), known));
  }
  for (const auto& [task, graders] : others) {
    note(fmt::format("note: {} is left out, its graders are {}", task, graders));
  }
  return cells;
}

/// Programs are run with consent only, and not where they would not be contained.
void check_code_execution(const ResultStore& store, const std::vector<StoredCell>& cells,
                          const Arguments& arguments) {
  std::map<std::string, std::string> limits;  // task -> of its programs
  for (const StoredCell& cell : cells) {
    const TaskInfo info = stored_task_info(cell).value();
    if (info.code_limits.empty() ||
        store.completions_without_score(cell.id, arguments.grader, info.version).empty()) {
      continue;
    }
    if (!arguments.allow_code_execution) {
      throw ConfigError(fmt::format(
          "grading {} runs programs that a model wrote\n  add --allow-code-execution to let them "
          "run contained, or name other tasks with --task",
          info.name));
    }
    limits[info.name] = info.code_limits;
  }
  if (limits.empty()) return;
  const SandboxState state = check_sandbox();
  if (!state.fault.empty()) throw DataError(state.fault);
  for (const auto& [task, text] : limits) {
    note(fmt::format("{}: runs each program with {}", task, text));
  }
}

Summary grade_cells(ResultStore& store, const std::vector<StoredCell>& cells,
                    const Arguments& arguments) {
  const Paths paths = default_paths();
  std::map<std::tuple<std::string, std::string, std::string, std::string>, StoredTask> tasks;
  Summary summary;
  ProgressLine line;
  for (const StoredCell& cell : cells) {
    const auto key = std::tie(cell.task, cell.split, cell.task_options, cell.data_sha256);
    if (!tasks.contains(key)) {
      line.show({.phase = "load", .what = cell.task});
      tasks.emplace(
          key, stored_task(cell, arguments.grader, {.data = paths.data, .samples = paths.samples}));
    }
    const StoredTask& task = tasks.at(key);
    const auto sample_of = [&](const std::string& id) -> const Sample* {
      const auto sample = task.samples.find(id);
      return sample == task.samples.end() ? nullptr : &sample->second;
    };
    const auto progress = [&](std::int64_t done, std::int64_t total) {
      line.show({.phase = "grade", .what = cell.label(), .done = done, .total = total});
    };
    const GradeResult result =
        grade_stored(store, cell.id,
                     {.task = *task.task, .name = arguments.grader, .version = task.info.version},
                     sample_of, {.progress = progress, .interrupted = interrupted});
    summary.graded += result.graded;
    summary.left_out += result.left_out;
    summary.interrupted = result.interrupted;
    if (result.interrupted) break;
  }
  line.clear();
  return summary;
}

ExitCode rescore(const Arguments& arguments) {
  require_database(arguments.database);
  ResultStore store(arguments.database, OpenMode::kReadWrite);
  const std::vector<StoredCell> cells = cells_to_grade(store, arguments);
  check_code_execution(store, cells, arguments);
  const Summary summary = grade_cells(store, cells, arguments);
  if (arguments.json) {
    const Json out = {{"graded", summary.graded},
                      {"left_out", summary.left_out},
                      {"interrupted", summary.interrupted},
                      {"accuracy", rows_json(store, "accuracy")}};
    print(out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
  } else {
    for (const Table& table : grader_tables(store)) print(to_terminal(table) + "\n");
    print(fmt::format("graded {} replies by {}; database {}\n", summary.graded, arguments.grader,
                      arguments.database));
  }
  if (summary.left_out > 0) {
    note(
        fmt::format("warning: {} replies are left out: the data have no such samples; the file "
                    "was edited",
                    summary.left_out));
  }
  if (summary.interrupted) {
    note("interrupted; every verdict so far is stored\n  run the same command again to go on");
    return ExitCode::kInterrupted;
  }
  return ExitCode::kPass;
}

}  // namespace

void add_rescore(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand(
      "rescore", "Grade stored replies with another grader, without a model; again: go on");
  command->add_option("db", arguments->database, "Results database")->capture_default_str();
  command
      ->add_option(
          "--grader", arguments->grader,
          "The profile that extracts and compares answers; `asdbench list` has their names")
      ->required();
  command->add_option("--task", arguments->tasks, "Only replies to this task; may be repeated")
      ->take_all();
  command->add_flag("--allow-code-execution", arguments->allow_code_execution,
                    "Let coding tasks run, contained, what the model wrote");
  command->add_flag("--json", arguments->json, "Machine-readable output");
  command->footer(
      "Example:\n  asdbench rescore results/asdbench.db --grader lm-eval-flexible\n"
      "Verdicts of other graders stay; `asdbench report` shows all of them side by side. Needs the "
      "data that were asked, and no model.");
  command->callback([arguments, &action] { action = [arguments] { return rescore(*arguments); }; });
}

}  // namespace asdbench::cli
