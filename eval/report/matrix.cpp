// Lays the rows of the matrix view out for people and machines.
#include "eval/report/matrix.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "eval/core/json.h"

namespace asdbench {
namespace {

constexpr std::string_view kDefaultGrader = "default";

bool is_plain(const MatrixRow& row) { return row.drafter == "none"; }

/// What a table has in common, but for the drafter.
auto setting(const MatrixRow& row) {
  return std::tie(row.task, row.split, row.task_options, row.grader, row.target, row.device,
                  row.max_tokens, row.batch);
}

/// `unscored`: replies without a verdict, such as those that only a judge can rate.
std::string title_of(const MatrixRow& row, const std::string& drafter, std::int64_t n,
                     std::int64_t unscored) {
  std::string title = fmt::format("task {} · target {} · drafter {} · device {} · n = {}",
                                  task_name(row), row.target, drafter, row.device, n);
  return unscored == 0 ? title : title + fmt::format(", {} unscored", unscored);
}

std::vector<std::string> cells_of(const MatrixRow& row, Capped policy) {
  const bool wrong = capped_is_wrong(row, policy);
  const Estimate& accuracy = wrong ? row.accuracy_capped_wrong : row.accuracy_as_scored;
  const Estimate& other = wrong ? row.accuracy_as_scored : row.accuracy_capped_wrong;
  const std::string vs_strict =
      is_plain(row)
          ? std::string(kUndefined)
          : decimal_interval(row.vs_strict.estimate, row.vs_strict.low, row.vs_strict.high, 3);
  std::string capped = std::string(kUndefined);
  const std::int64_t replies = row.n + row.unscored;
  if (replies > 0) {
    capped = fmt::format("{} of {}; {}", row.capped, replies, percent(other.estimate));
  }
  std::string name = rule_name(row);
  if (row.failed > 0) name += fmt::format(" ({} failed)", row.failed);
  std::string score = percent_interval(accuracy.estimate, accuracy.low, accuracy.high);
  if (row.undecided > 0) score += fmt::format("; {} undecided", row.undecided);
  return {name,
          score,
          vs_strict,
          decimal(row.vs_plain.estimate, 3),
          decimal(row.accept_length, 2),
          decimal(row.tokens_per_s, 1),
          capped};
}

Json number(std::optional<double> value) { return value ? Json(*value) : Json(nullptr); }

Json interval(const Estimate& value) {
  return {{"estimate", number(value.estimate)},
          {"low", number(value.low)},
          {"high", number(value.high)}};
}

Json to_json(const MatrixRow& row) {
  return {{"task", row.task},
          {"split", row.split},
          {"task_options", row.task_options},
          {"grader", row.grader},
          {"target", row.target},
          {"device", row.device},
          {"drafter", row.drafter},
          {"drafter_options", row.drafter_options},
          {"verifier", row.verifier},
          {"verifier_options", row.verifier_options},
          {"keeps", row.verifier_keeps},
          {"max_tokens", row.max_tokens},
          {"batch", row.batch},
          {"n", row.n},
          {"failed", row.failed},
          {"correct", row.correct},
          {"no_answer", row.no_answer},
          {"unscored", row.unscored},
          {"undecided", row.undecided},
          {"capped", row.capped},
          {"accuracy", interval(row.accuracy_capped_wrong)},
          {"accuracy_as_scored", interval(row.accuracy_as_scored)},
          {"vs_strict", interval(row.vs_strict)},
          {"vs_plain", interval(row.vs_plain)},
          {"speed_groups", row.groups},
          {"speed_work", row.speed_work},
          {"tokens_per_s", number(row.tokens_per_s)},
          {"accept_length", number(row.accept_length)},
          {"regret_per_request", number(row.regret_per_request)},
          {"exceptions_per_request", number(row.exceptions_per_request)}};
}

}  // namespace

bool capped_is_wrong(const std::string& grader, Capped policy) {
  return policy == Capped::kWrong || (policy == Capped::kByGrader && grader == kDefaultGrader);
}

bool capped_is_wrong(const MatrixRow& row, Capped policy) {
  return capped_is_wrong(row.grader, policy);
}

bool same_setting(const MatrixRow& a, const MatrixRow& b) { return setting(a) == setting(b); }

std::string rule_name(const MatrixRow& row) {
  if (is_plain(row)) return "plain (no drafter)";
  std::string name = row.verifier;
  if (!row.verifier_options.empty()) name += " " + row.verifier_options;
  return row.verifier_keeps == "nothing" ? name + " (lossy)" : name;
}

std::string drafter_name(const MatrixRow& row) {
  return row.drafter_options.empty() ? row.drafter : row.drafter + " " + row.drafter_options;
}

std::string task_name(const MatrixRow& row) {
  std::string task = row.task;
  if (row.split == "samples") {
    task += " (our samples, not the official set)";
  } else if (row.split != "test") {
    task += " (" + row.split + ")";
  }
  if (!row.task_options.empty()) task += " " + row.task_options;
  // Figures of a profile that reproduces another harness are never taken for ours.
  return row.grader == kDefaultGrader ? task : task + " grader=" + row.grader;
}

std::vector<Table> matrix_tables(const std::vector<MatrixRow>& rows, Capped capped) {
  const std::vector<Column> columns = {{"verifier", Align::kLeft},
                                       {"accuracy [95 % CI]", Align::kLeft},
                                       {"speed vs strict [95 % CI]", Align::kLeft},
                                       {"speed vs plain", Align::kLeft},
                                       {"accept length", Align::kRight},
                                       {"tokens/s", Align::kRight},
                                       {"", Align::kLeft}};
  std::vector<Table> tables;
  std::vector<std::pair<const MatrixRow*, std::string>>
      keys;  // the setting and drafter of each table
  for (const MatrixRow& row : rows) {
    if (is_plain(row)) continue;
    const std::string drafter = drafter_name(row);
    const auto known = std::find_if(keys.begin(), keys.end(), [&](const auto& key) {
      return setting(*key.first) == setting(row) && key.second == drafter;
    });
    if (known == keys.end()) keys.emplace_back(&row, drafter);
  }
  // Plain decoding without any drafter beside it still has a table.
  for (const MatrixRow& row : rows) {
    const auto same = [&](const auto& key) { return setting(*key.first) == setting(row); };
    if (is_plain(row) && std::none_of(keys.begin(), keys.end(), same))
      keys.emplace_back(&row, "none");
  }
  for (const auto& [first, drafter] : keys) {
    Table table{.title = "", .columns = columns, .rows = {}};
    std::int64_t n = 0, unscored = 0;
    for (const bool plain : {true, false}) {
      for (const MatrixRow& row : rows) {
        if (setting(row) != setting(*first) || is_plain(row) != plain) continue;
        if (!plain && drafter_name(row) != drafter) continue;
        table.rows.push_back(cells_of(row, capped));
        n = std::max(n, row.n);
        unscored = std::max(unscored, row.unscored);
      }
    }
    table.columns.back().header = capped_is_wrong(*first, capped)
                                      ? "capped; accuracy as scored"
                                      : "capped; accuracy with capped wrong";
    table.title = title_of(*first, drafter, n, unscored);
    if (first->speed_work == "reference") table.title += " · speed at reference lengths";
    tables.push_back(std::move(table));
  }
  return tables;
}

std::string matrix_json(const std::vector<MatrixRow>& rows) {
  Json out = Json::array();
  for (const MatrixRow& row : rows) out.push_back(to_json(row));
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string matrix_csv(const std::vector<MatrixRow>& rows) {
  Table table;
  for (const MatrixRow& row : rows) {
    std::vector<std::string> cells;
    std::vector<Column> columns;
    const Json flat = to_json(row).flatten();
    for (const auto& [path, value] : flat.items()) {
      std::string name = path.substr(1);
      std::replace(name.begin(), name.end(), '/', '_');
      columns.push_back({name, Align::kLeft});
      cells.push_back(value.is_null()     ? ""
                      : value.is_string() ? value.get<std::string>()
                                          : value.dump());
    }
    table.columns = std::move(columns);
    table.rows.push_back(std::move(cells));
  }
  return to_csv(table);
}

}  // namespace asdbench
