// Options of a task are stored as they were given: "subset=deepspec shots=5".
#include "eval/run/stored_task.h"

#include <fmt/format.h>

#include <algorithm>

#include "eval/core/digest.h"
#include "eval/core/error.h"
#include "eval/core/json.h"

namespace asdbench {
namespace {

Params options_of(const StoredCell& cell, const std::string& grader) {
  const SourceLocation where{.file = fmt::format("cell {}", cell.id), .line = 0, .path = cell.task};
  Params params(cell.task, where);
  params.set("split", cell.split, where);
  if (!grader.empty()) params.set("grader", grader, {.file = "--grader"});
  for (std::size_t at = 0; at < cell.task_options.size();) {
    const std::size_t end = std::min(cell.task_options.find(' ', at), cell.task_options.size());
    const std::string option = cell.task_options.substr(at, end - at);
    const std::size_t equals = option.find('=');
    if (equals == std::string::npos) {
      throw StoreError(fmt::format("cell {}: task options are {}, expected key=value", cell.id,
                                   shown(cell.task_options)));
    }
    params.set(option.substr(0, equals), option.substr(equals + 1), where);
    at = end + 1;
  }
  return params;
}

}  // namespace

std::string StoredCell::label() const {
  std::string text = target + " | " + drafter;
  if (!drafter_options.empty()) text += " " + drafter_options;
  text += " | " + verifier;
  return verifier_options.empty() ? text : text + " " + verifier_options;
}

std::vector<StoredCell> stored_cells(const ResultStore& store) {
  std::vector<StoredCell> cells;
  store.query(
      "SELECT id, task, split, task_options, data_sha256, task_version, target, drafter, "
      "drafter_options, verifier, verifier_options, grader FROM cell ORDER BY id",
      [&](const auto&, const auto& row) {
        const auto text = [&](std::size_t column) { return row[column].value_or(""); };
        cells.push_back({.id = std::stoll(text(0)),
                         .task = text(1),
                         .split = text(2),
                         .task_options = text(3),
                         .data_sha256 = text(4),
                         .task_version = std::stoll(text(5)),
                         .grader = text(11),
                         .target = text(6),
                         .drafter = text(7),
                         .drafter_options = text(8),
                         .verifier = text(9),
                         .verifier_options = text(10)});
      });
  return cells;
}

std::optional<TaskInfo> stored_task_info(const StoredCell& cell) {
  for (const TaskFactory& factory : task_factories()) {
    if (factory.name != cell.task) continue;
    const Params params = options_of(cell, "");
    const TaskInfo info = factory.make(params)->info();
    params.refuse_unread();
    return info;
  }
  return std::nullopt;
}

StoredTask stored_task(const StoredCell& cell, const std::string& grader, const DataDir& dir) {
  std::vector<std::string> names;
  for (const TaskFactory& factory : task_factories()) names.push_back(factory.name);
  const auto factory =
      std::find_if(task_factories().begin(), task_factories().end(),
                   [&](const TaskFactory& entry) { return entry.name == cell.task; });
  if (factory == task_factories().end()) {
    throw ConfigError(fmt::format("cell {}: unknown task {}{}", cell.id, shown(cell.task),
                                  known_names(cell.task, names)));
  }
  const Params params = options_of(cell, grader);
  StoredTask stored;
  stored.task = factory->make(params);
  if (!grader.empty()) params.choice("grader", "", stored.task->info().graders);
  params.refuse_unread();
  stored.info = stored.task->info();
  Samples samples = stored.task->load(dir);
  const std::string digest = data_digest(samples);
  if (digest != cell.data_sha256) {
    throw DataError(fmt::format(
        "cell {}: its replies answer other data than those here\n  found {} {} with SHA-256 {}, "
        "expected {}\n  use the build and the data that decoded them",
        cell.id, cell.task, cell.split, digest, cell.data_sha256));
  }
  for (Sample& sample : samples) {
    std::string id = sample.id;
    stored.samples.emplace(std::move(id), std::move(sample));
  }
  return stored;
}

std::string data_digest(const Samples& samples) {
  Sha256 digest;
  for (const Sample& sample : samples) {
    Json body = {{"id", sample.id}, {"targets", sample.targets}, {"cluster", sample.cluster}};
    for (const auto& [name, value] : sample.fields) body["fields"][name] = value;
    digest.update(canonical_json(body)).update("\n");
  }
  return digest.finish_hex();
}

}  // namespace asdbench
