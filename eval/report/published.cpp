// Reads published figures and translates ours into their conventions.
#include "eval/report/published.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

#include "eval/config/yaml_tree.h"
#include "eval/report/sections.h"
#include "eval/stats/paired.h"
#include "eval/stats/stats.h"

namespace asdbench {
namespace {

const std::vector<std::string> kMetrics = {
    "accept_length",  "accept_length_change", "accuracy_change_points",
    "diverged_share", "draft_acceptance",     "exceptions_per_request",
    "speed_gain_pct", "speedup_over_plain",   "tokens_change_pct"};

/// Reads one file's tree; every message names the file, the line and the key path.
class PublishedReader {
 public:
  explicit PublishedReader(std::string file) : file_(std::move(file)) {}

  Published read(const YamlNode& root) const {
    expect(root, "", YamlKind::kMap, "a map with source and rows");
    known_keys(root, "", {"source", "reference", "date", "setting", "convention", "notes", "rows"});
    Published out;
    out.file = file_;
    out.source = required_text(root, "", "source");
    out.reference = required_text(root, "", "reference");
    out.date = required_text(root, "", "date");
    out.setting = text_of(root, "", "setting");
    if (const YamlEntry* entry = root.find("convention")) out.convention = convention(entry->value);
    if (const YamlEntry* entry = root.find("notes")) {
      expect(entry->value, "notes", YamlKind::kList, "a list of texts");
      for (std::size_t i = 0; i < entry->value.items.size(); ++i) {
        const std::string path = fmt::format("notes[{}]", i);
        expect(entry->value.items[i], path, YamlKind::kScalar, "a text");
        out.notes.push_back(entry->value.items[i].text);
      }
    }
    const YamlEntry* rows = root.find("rows");
    if (rows == nullptr) fail(root.line, "", "the key \"rows\" is missing");
    expect(rows->value, "rows", YamlKind::kList, "a list of figures");
    for (std::size_t i = 0; i < rows->value.items.size(); ++i) {
      out.rows.push_back(row(rows->value.items[i], fmt::format("rows[{}]", i)));
    }
    return out;
  }

 private:
  [[noreturn]] void fail(int line, const std::string& path, const std::string& message) const {
    const SourceLocation where{.file = file_, .line = line, .path = path};
    throw ConfigError(fmt::format("{}: {}", where.text(), message));
  }

  void expect(const YamlNode& node, const std::string& path, YamlKind kind,
              std::string_view expected) const {
    if (node.kind != kind) {
      fail(node.line, path, fmt::format("found {}; expected {}", describe(node), expected));
    }
  }

  void known_keys(const YamlNode& map, const std::string& path,
                  const std::vector<std::string>& keys) const {
    for (const YamlEntry& entry : map.entries) {
      if (std::find(keys.begin(), keys.end(), entry.key) == keys.end()) {
        fail(entry.line, path,
             fmt::format("unknown key {}{}", shown(entry.key), known_names(entry.key, keys)));
      }
    }
  }

  std::string text_of(const YamlNode& map, const std::string& path, std::string_view key) const {
    const YamlEntry* entry = map.find(key);
    if (entry == nullptr) return "";
    expect(entry->value, join_path(path, key), YamlKind::kScalar, "a text");
    return entry->value.text;
  }

  std::string required_text(const YamlNode& map, const std::string& path,
                            std::string_view key) const {
    std::string text = text_of(map, path, key);
    if (text.empty()) fail(map.line, path, fmt::format("the key \"{}\" is missing or empty", key));
    return text;
  }

  std::string choice(const YamlNode& map, const std::string& path, std::string_view key,
                     const std::vector<std::string>& values) const {
    const YamlEntry* entry = map.find(key);
    if (entry == nullptr) return values.front();
    std::string text = text_of(map, path, key);
    if (std::find(values.begin(), values.end(), text) == values.end()) {
      fail(entry->line, join_path(path, key),
           fmt::format("unknown value {}{}", shown(text), known_names(text, values)));
    }
    return text;
  }

  std::optional<double> number(const YamlNode& map, const std::string& path, std::string_view key,
                               bool finite) const {
    const YamlEntry* entry = map.find(key);
    if (entry == nullptr) return std::nullopt;
    const auto value = entry->value.kind == YamlKind::kScalar && !entry->value.quoted
                           ? parse_number(entry->value.text)
                           : std::nullopt;
    if (!value || (finite && !std::isfinite(*value))) {
      fail(entry->value.line, join_path(path, key),
           fmt::format("found {}; expected a number", describe(entry->value)));
    }
    return value;
  }

  PublishedConvention convention(const YamlNode& node) const {
    const std::string path = "convention";
    expect(node, path, YamlKind::kMap, "a map");
    known_keys(node, path, {"accept_length", "mean", "first_token", "truncated_tokens"});
    return {.target_token = choice(node, path, "accept_length",
                                   {"with_target_token", "drafts_only"}) == "with_target_token",
            .pooled = choice(node, path, "mean", {"pooled", "per_request"}) == "pooled",
            .first_token = choice(node, path, "first_token", {"excluded", "counted"}) == "counted",
            .truncated_tokens =
                choice(node, path, "truncated_tokens", {"unknown", "counted", "dropped"})};
  }

  PublishedRow row(const YamlNode& node, const std::string& path) const {
    expect(node, path, YamlKind::kMap, "a map with metric and value");
    known_keys(node, path,
               {"task", "target", "drafter", "drafter_options", "verifier", "B", "g", "M", "metric",
                "value", "low", "high", "note"});
    PublishedRow out;
    out.task = text_of(node, path, "task");
    out.target = text_of(node, path, "target");
    out.drafter = text_of(node, path, "drafter");
    out.drafter_options = text_of(node, path, "drafter_options");
    out.verifier = required_text(node, path, "verifier");
    out.budget = number(node, path, "B", false);
    out.gate = number(node, path, "g", false);
    out.max_exceptions = number(node, path, "M", false);
    required_text(node, path, "metric");
    out.metric = choice(node, path, "metric", kMetrics);
    const std::optional<double> value = number(node, path, "value", true);
    if (!value) fail(node.line, path, "the key \"value\" is missing");
    out.value = *value;
    out.low = number(node, path, "low", true);
    out.high = number(node, path, "high", true);
    if (out.low.has_value() != out.high.has_value()) {
      fail(node.line, path, "low and high belong together; one is missing");
    }
    out.note = text_of(node, path, "note");
    return out;
  }

  std::string file_;
};

Estimate scaled(const Estimate& value, double factor, double offset) {
  const auto map = [&](std::optional<double> x) {
    return x ? std::optional(factor * *x + offset) : std::nullopt;
  };
  return {map(value.estimate), map(value.low), map(value.high)};
}

/// Our figures of one database, by cell, in the units and conventions of a published file.
class OurFigures {
 public:
  OurFigures(const Evidence& evidence, const PublishedConvention& convention)
      : evidence_(evidence), convention_(convention) {
    for (ViewRow& row : read_rows(evidence.store, "SELECT * FROM acceptance")) {
      acceptance_.emplace(row.count("cell_id"), std::move(row));
    }
    for (const ViewRow& row : evidence.paired) {
      if (row.text("reference") == "strict") paired_.emplace(row.count("cell_id"), row);
    }
  }

  Estimate of(const MatrixRow& row, const std::string& metric) const {
    if (metric == "speed_gain_pct") return scaled(row.vs_strict, 100, -100);
    if (metric == "speedup_over_plain") return row.vs_plain;
    if (metric == "accept_length") return accept_length(row.cell_id);
    if (metric == "draft_acceptance") return number(acceptance_, row.cell_id, "draft_acceptance");
    if (metric == "exceptions_per_request") {
      return number(evidence_.ledger, row.cell_id, "exceptions_per_request");
    }
    const auto pair = paired_.find(row.cell_id);
    if (pair == paired_.end()) return {};
    if (metric == "accept_length_change") {
      return change(accept_length(row.cell_id), accept_length(pair->second.count("reference_id")));
    }
    return paired(pair->second, metric);
  }

 private:
  static Estimate number(const std::map<std::int64_t, ViewRow>& rows, std::int64_t cell,
                         const char* column) {
    const auto found = rows.find(cell);
    return {found == rows.end() ? std::nullopt : found->second.number(column), {}, {}};
  }

  static Estimate change(const Estimate& own, const Estimate& reference) {
    if (!own.estimate || !reference.estimate) return {};
    return {*own.estimate - *reference.estimate, {}, {}};
  }

  Estimate accept_length(std::int64_t cell) const {
    const auto found = acceptance_.find(cell);
    if (found == acceptance_.end()) return {};
    const ViewRow& row = found->second;
    if (!convention_.pooled) {
      // Drafts only, or with the first token, as a mean of requests: not kept by any view.
      if (!convention_.target_token || convention_.first_token) return {};
      return {row.number("accept_length_per_request"), {}, {}};
    }
    if (!convention_.target_token) return {row.number("drafts_kept_per_pass"), {}, {}};
    if (convention_.first_token) {
      const auto passes = static_cast<double>(row.count("passes"));
      if (passes == 0) return {};
      return {static_cast<double>(row.count("tokens") + row.count("requests")) / passes, {}, {}};
    }
    const auto interval = evidence_.accept_lengths.by_cell.find(cell);
    if (interval == evidence_.accept_lengths.by_cell.end())
      return {row.number("accept_length"), {}, {}};
    return {row.number("accept_length"), interval->second.interval.lo,
            interval->second.interval.hi};
  }

  Estimate paired(const ViewRow& row, const std::string& metric) const {
    if (metric == "diverged_share") {
      const std::int64_t pairs = row.count("pairs"), diverged = row.count("diverged");
      const auto interval = wilson(diverged, pairs);
      if (!interval) return {};
      return {static_cast<double>(diverged) / static_cast<double>(pairs), interval->lo,
              interval->hi};
    }
    if (metric == "tokens_change_pct") {
      const double reference = row.number("reference_tokens").value_or(0);
      if (reference <= 0) return {};
      return {100 * (row.number("output_tokens").value_or(0) / reference - 1), {}, {}};
    }
    const bool wrong = capped_is_wrong(evidence_.cells.at(row.count("cell_id")), evidence_.capped);
    const PairedCounts counts{.n = row.count("n"),
                              .b = row.count(wrong ? "b" : "b_as_scored"),
                              .c = row.count(wrong ? "c" : "c_as_scored")};
    // Two one-sided bounds at 2.5 %: together an interval of 95 %.
    const auto bounds = tango_bounds(counts, 0.025);
    if (counts.n == 0 || !bounds) return {};
    return {100 * static_cast<double>(counts.b - counts.c) / static_cast<double>(counts.n),
            100 * bounds->lo, 100 * bounds->hi};
  }

  const Evidence& evidence_;
  const PublishedConvention& convention_;
  std::map<std::int64_t, ViewRow> acceptance_, paired_;
};

struct Controls {
  std::optional<double> budget, gate, max_exceptions;
};

/// Whether every word of `wanted` is one of `options`.
bool holds_words(const std::string& options, const std::string& wanted) {
  std::istringstream words(wanted);
  for (std::string word; words >> word;) {
    if ((" " + options + " ").find(" " + word + " ") == std::string::npos) return false;
  }
  return true;
}

bool over_tasks(const PublishedRow& row) { return row.task.empty() || row.task == "all"; }

bool fits(const MatrixRow& row, const Controls& controls, const PublishedRow& published) {
  const auto equal = [](std::optional<double> wanted, std::optional<double> found) {
    return !wanted || (found && *wanted == *found);
  };
  return (over_tasks(published) || row.task == published.task) &&
         row.verifier == published.verifier && row.drafter != "none" &&
         holds_words(row.drafter_options, published.drafter_options) &&
         equal(published.budget, controls.budget) && equal(published.gate, controls.gate) &&
         equal(published.max_exceptions, controls.max_exceptions);
}

/// A figure over tasks, unweighted: of gains the mean of their logarithms, else the mean. Undefined
/// when it is for one of them.
Estimate mean_of(const std::vector<Estimate>& figures, const std::string& metric) {
  const bool gain = metric == "speed_gain_pct";
  double sum = 0;
  for (const Estimate& figure : figures) {
    if (!figure.estimate) return {};
    sum += gain ? std::log1p(*figure.estimate / 100) : *figure.estimate;
  }
  const double mean = sum / static_cast<double>(figures.size());
  return {gain ? 100 * std::expm1(mean) : mean, {}, {}};
}

std::string rule_of(const PublishedRow& row) {
  std::string rule = row.verifier;
  const auto add = [&](const char* name, std::optional<double> value) {
    if (value) rule += fmt::format(" {}={:g}", name, *value);
  };
  add("B", row.budget);
  add("M", row.max_exceptions);
  add("g", row.gate);
  return rule;
}

std::string drafter_of(const PublishedRow& row) {
  return row.drafter_options.empty() ? row.drafter : row.drafter + " " + row.drafter_options;
}

/// Whether the two agree as far as intervals are known: they overlap, or one holds the other.
std::string agreement(const PublishedRow& published, const Estimate& ours) {
  if (!ours.estimate || (!published.low && !ours.low)) return std::string(kUndefined);
  const double low = published.low.value_or(published.value);
  const double high = published.high.value_or(published.value);
  const bool meet =
      low <= ours.high.value_or(*ours.estimate) && ours.low.value_or(*ours.estimate) <= high;
  return meet ? "yes" : "no";
}

std::string setting_difference(const PublishedRow& published, const MatrixRow& row) {
  std::string out;
  if (!published.target.empty() && published.target != row.target) out = "other target";
  if (!published.drafter.empty() && published.drafter != row.drafter) {
    out += out.empty() ? "other drafter" : " and drafter";
  }
  return out.empty() ? "same" : out;
}

std::string note_of(const Published& published) {
  const PublishedConvention& convention = published.convention;
  std::string note = fmt::format(
      "{} ({}, {}). {}{}Their accept length counts {}, {}, the first token {}; tokens beyond the "
      "cut: {}. "
      "Ours is translated to that. Intervals agree when they overlap, or when the one that is "
      "known holds "
      "the other's figure; between different targets or drafters nothing is to be expected.",
      published.source, published.reference, published.date, published.setting,
      published.setting.empty() ? "" : ". ",
      convention.target_token ? "the target's token" : "drafts only",
      convention.pooled ? "pooled over passes" : "as the mean of requests",
      convention.first_token ? "counted" : "excluded", convention.truncated_tokens);
  for (const std::string& text : published.notes) note += " Known: " + text + ".";
  return note;
}

}  // namespace

Published parse_published(const std::string& text, const std::filesystem::path& file) {
  return PublishedReader(file.string()).read(parse_yaml(text, file.string()));
}

Published read_published(const std::filesystem::path& file) {
  std::error_code status;
  if (!std::filesystem::is_regular_file(file, status)) {
    throw ConfigError(
        fmt::format("{}: there is no such file; expected published figures as YAML, such as "
                    "configs/paper/published/asd-main.yaml",
                    file.string()));
  }
  std::ifstream in(file, std::ios::binary);
  std::string text(kLargestConfigBytes + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (in.bad() || !in.is_open()) {
    throw ConfigError(fmt::format("{}: cannot be read; check its permissions", file.string()));
  }
  text.resize(static_cast<std::size_t>(in.gcount()));
  return parse_published(text, file);
}

Section published_section(const Evidence& evidence, const Published& published) {
  Section section{.id = "published-" + std::filesystem::path(published.file).stem().string(),
                  .title = "Published figures beside ours: " + published.source,
                  .note = note_of(published),
                  .brief = true};
  const OurFigures ours(evidence, published.convention);
  std::map<std::int64_t, Controls> controls;
  for (const ViewRow& row :
       read_rows(evidence.store, "SELECT id, regret_budget, gate, max_exceptions FROM cell")) {
    controls[row.count("id")] = {row.number("regret_budget"), row.number("gate"),
                                 row.number("max_exceptions")};
  }
  Table table{.title = "",
              .columns = {{"task"},
                          {"published setting"},
                          {"metric"},
                          {"published"},
                          {"our cell"},
                          {"ours"},
                          {"difference", Align::kRight},
                          {"intervals agree"},
                          {"setting"},
                          {"note"}},
              .rows = {}};
  for (const PublishedRow& row : published.rows) {
    const std::vector<std::string> theirs = {
        row.task.empty() ? "all" : row.task,
        fmt::format("{} · {} · {}", row.target, drafter_of(row), rule_of(row)), row.metric,
        decimal_interval(row.value, row.low, row.high, 2)};
    // One line a cell; of a figure over tasks one line for the cells that differ in their task
    // only.
    std::map<std::string, std::vector<const MatrixRow*>> lines;
    for (const MatrixRow& cell : evidence.cells.rows()) {
      if (!fits(cell, controls[cell.cell_id], row)) continue;
      const std::string key = over_tasks(row)
                                  ? fmt::format("{}\n{}\n{}\n{}", cell.target, cell.device,
                                                cell.batch, evidence.cells.label(cell.cell_id))
                                  : fmt::format("{:020}", cell.cell_id);
      lines[key].push_back(&cell);
    }
    const bool found = !lines.empty();
    for (const auto& [unused, cells] : lines) {
      std::vector<Estimate> figures;
      for (const MatrixRow* cell : cells) figures.push_back(ours.of(*cell, row.metric));
      const MatrixRow& cell = *cells.front();
      const Estimate figure = over_tasks(row) ? mean_of(figures, row.metric) : figures.front();
      std::string name = evidence.cells.label(cell.cell_id) + " · " + cell.target;
      if (over_tasks(row)) name += fmt::format(" · mean of {} tasks", cells.size());
      std::vector<std::string> line = theirs;
      line.insert(line.end(),
                  {name, decimal_interval(figure.estimate, figure.low, figure.high, 2),
                   figure.estimate ? fmt::format("{:+.2f}", *figure.estimate - row.value)
                                   : std::string(kUndefined),
                   agreement(row, figure), setting_difference(row, cell), row.note});
      table.rows.push_back(std::move(line));
    }
    if (found) continue;
    std::vector<std::string> line = theirs;
    line.insert(line.end(), {"not run", std::string(kUndefined), std::string(kUndefined),
                             std::string(kUndefined), "", row.note});
    table.rows.push_back(std::move(line));
  }
  section.blocks.emplace_back(std::move(table));
  return section;
}

}  // namespace asdbench
