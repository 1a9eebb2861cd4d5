// The matrix as a list of cells.
#include <fmt/format.h>

#include <algorithm>

#include "eval/config/run_config.h"
#include "eval/core/error.h"

namespace asdbench {
namespace {

/// More cells than this are a mistake in the file, and could not be run in a lifetime.
constexpr std::size_t kMostCells = 100'000;

bool skipped(const RunConfig& config, const CellIndex& cell) {
  const std::map<std::string, std::string> names = {
      {"task", config.tasks[cell.task].name},
      {"target", config.targets[cell.target].name},
      {"drafter", config.drafters[cell.drafter].name},
      {"verifier", config.verifiers[cell.verifier].name}};
  const auto matches = [&](const std::map<std::string, std::string>& entry) {
    return std::all_of(entry.begin(), entry.end(),
                       [&](const auto& item) { return names.at(item.first) == item.second; });
  };
  return std::any_of(config.skip.begin(), config.skip.end(), matches);
}

}  // namespace

std::vector<CellIndex> expand(const RunConfig& config) {
  std::size_t total = 1;
  for (const std::vector<Choice>* axis :
       {&config.tasks, &config.targets, &config.drafters, &config.verifiers, &config.decodings}) {
    total *= axis->size();  // cannot overflow: it was at most kMostCells, and an axis fits a file
    if (total > kMostCells) {
      throw ConfigError(
          fmt::format("{}: matrix: more than {} cells", config.file.string(), kMostCells));
    }
  }
  std::vector<CellIndex> cells;
  for (std::size_t task = 0; task < config.tasks.size(); ++task) {
    for (std::size_t target = 0; target < config.targets.size(); ++target) {
      for (std::size_t decoding = 0; decoding < config.decodings.size(); ++decoding) {
        for (std::size_t drafter = 0; drafter < config.drafters.size(); ++drafter) {
          for (std::size_t verifier = 0; verifier < config.verifiers.size(); ++verifier) {
            const CellIndex cell{task, target, drafter, verifier, decoding};
            if (!skipped(config, cell)) cells.push_back(cell);
          }
        }
      }
    }
  }
  if (cells.empty()) {
    throw ConfigError(fmt::format("{}: matrix: no cell is left after skip", config.file.string()));
  }
  return cells;
}

}  // namespace asdbench
