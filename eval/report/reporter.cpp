// Sections in order, and the formats that are text.
#include "eval/report/reporter.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>

#include "eval/core/error.h"
#include "eval/report/sections.h"

namespace asdbench {
namespace {

Table all_cells(const Cells& cells, Capped capped) {
  Table table{.title = "",
              .columns = {{"task"},
                          {"target"},
                          {"drafter"},
                          {"verifier"},
                          {"n", Align::kRight},
                          {"accuracy [95 % CI]"},
                          {"speed vs strict [95 % CI]"},
                          {"speed vs plain [95 % CI]"},
                          {"accept length", Align::kRight},
                          {"tokens/s", Align::kRight},
                          {"capped", Align::kRight},
                          {"accuracy by the other policy for capped", Align::kRight},
                          {"no answer", Align::kRight},
                          {"failed", Align::kRight}},
              .rows = {}};
  const auto ratio = [](const Estimate& value) {
    return decimal_interval(value.estimate, value.low, value.high, 3);
  };
  for (const MatrixRow& row : cells.rows()) {
    const bool wrong = capped_is_wrong(row, capped);
    const Estimate& accuracy = wrong ? row.accuracy_capped_wrong : row.accuracy_as_scored;
    const Estimate& other = wrong ? row.accuracy_as_scored : row.accuracy_capped_wrong;
    table.rows.push_back(
        {task_name(row), row.target + " · " + row.device, drafter_name(row), rule_name(row),
         std::to_string(row.n), percent_interval(accuracy.estimate, accuracy.low, accuracy.high),
         row.drafter == "none" ? std::string(kUndefined) : ratio(row.vs_strict),
         ratio(row.vs_plain), decimal(row.accept_length, 2), decimal(row.tokens_per_s, 1),
         std::to_string(row.capped), percent(other.estimate), std::to_string(row.no_answer),
         std::to_string(row.failed)});
  }
  return table;
}

/// Chart data in words of the format: only tables are text.
template <typename Each>
void each_table(const Section& section, const Each& each) {
  for (const Content& block : section.blocks) {
    if (const auto* table = std::get_if<Table>(&block)) each(*table);
  }
}

class TerminalReporter final : public Reporter {
 public:
  std::string render(const Report& report) const override {
    if (report.all_cells.rows.empty()) return "the database holds no cells yet\n";
    std::string out;
    for (const Table& table : report.matrix) out += to_terminal(table) + "\n";
    for (const Section& section : report.sections) {
      if (!section.brief || section.blocks.empty()) continue;
      out += printable(section.title) + "\n";
      each_table(section, [&](const Table& table) { out += to_terminal(table) + "\n"; });
    }
    return out + "more in --format md, html; any view with --view NAME\n";
  }
};

class MarkdownReporter final : public Reporter {
 public:
  std::string render(const Report& report) const override {
    std::string out = "# " + escape_markdown(report.title) + "\n\n";
    for (const Table& table : report.matrix) out += to_markdown(table) + "\n";
    for (const Section& section : report.sections) {
      out += "## " + escape_markdown(section.title) + "\n\n";
      if (!section.note.empty()) out += escape_markdown(section.note) + "\n\n";
      each_table(section, [&](const Table& table) { out += to_markdown(table) + "\n"; });
      for (const Content& block : section.blocks) {
        if (const auto* pair = std::get_if<TextPair>(&block)) out += pair_text(*pair);
      }
    }
    return out;
  }

 private:
  static std::string pair_text(const TextPair& pair) {
    return fmt::format("### {}\n\n{}\n\n{}\n{}\n\n{}\n\n", escape_markdown(pair.title),
                       escape_markdown(pair.left_name), quoted(pair.left),
                       escape_markdown(pair.right_name), quoted(pair.right));
  }
  /// An indented block: nothing in it is read as Markdown.
  static std::string quoted(const std::string& text) {
    std::string out = "    ";
    for (const char c : printable(text, Lines::kKept)) {
      out += c;
      if (c == '\n') out += "    ";
    }
    return out + "\n";
  }
};

class LatexReporter final : public Reporter {
 public:
  std::string render(const Report& report) const override {
    std::string out =
        "% Needs \\usepackage[T1]{fontenc}, \\usepackage{textcomp} and \\usepackage{longtable}.\n";
    for (const Table& table : report.matrix) out += to_latex(table) + "\n";
    for (const Section& section : report.sections) {
      if (section.id == "examples" || section.id == "environment") continue;
      out += "\\subsection*{" + escape_latex(section.title) + "}\n";
      if (!section.note.empty()) out += escape_latex(section.note) + "\n\n";
      each_table(section, [&](const Table& table) { out += to_latex(table) + "\n"; });
    }
    return out;
  }
};

}  // namespace

Report make_report(const ResultStore& store, const ReportOptions& options) {
  // The longest read by far goes on beside the others, on a connection of its own.
  auto differences = std::async(std::launch::async, [file = store.file()] {
    return first_differences(ResultStore(file, OpenMode::kReadOnly));
  });
  store.hold_for_report();
  const Cells cells(store);
  Evidence evidence{
      .store = store,
      .cells = cells,
      .capped = options.capped,
      .accept_lengths = accept_length_intervals(store),
      .paired = read_rows(store, "SELECT * FROM paired ORDER BY cell_id, reference DESC"),
      .ledger = {}};
  for (ViewRow& row : read_rows(store, "SELECT * FROM ledger")) {
    evidence.ledger.emplace(row.count("cell_id"), std::move(row));
  }
  Report report;
  report.title = "asdbench report";
  report.matrix = matrix_tables(cells.rows(), options.capped);
  report.all_cells = all_cells(cells, options.capped);
  report.sections = {flags_section(evidence), tradeoff_section(evidence),
                     quality_section(evidence)};
  // What only some tasks have is left out elsewhere.
  for (Section& section : std::vector<Section>{
           replies_section(evidence), categories_section(evidence), subjects_section(evidence),
           outcomes_section(evidence), judged_section(evidence), fidelity_section(evidence)}) {
    if (!section.blocks.empty() || !section.note.empty()) {
      report.sections.push_back(std::move(section));
    }
  }
  evidence.first_differences = differences.get();
  for (const auto& of : {frontier_section, acceptance_section, regret_section, divergence_section,
                         length_section, speed_section}) {
    report.sections.push_back(of(evidence));
  }
  for (const Published& published : options.published) {
    report.sections.push_back(published_section(evidence, published));
  }
  report.sections.push_back(examples_section(evidence));
  report.sections.push_back(environment_section(evidence));
  return report;
}

std::vector<Table> grader_tables(const ResultStore& store, Capped capped) {
  const Cells cells(store);
  std::vector<Table> tables;
  each_table(replies_section({.store = store,
                              .cells = cells,
                              .capped = capped,
                              .accept_lengths = {},
                              .paired = {},
                              .ledger = {}}),
             [&](const Table& table) { tables.push_back(table); });
  return tables;
}

std::vector<std::string> reporter_names() { return {"terminal", "md", "latex", "html"}; }

std::unique_ptr<Reporter> make_reporter(const std::string& format) {
  if (format == "terminal") return std::make_unique<TerminalReporter>();
  if (format == "md") return std::make_unique<MarkdownReporter>();
  if (format == "latex") return std::make_unique<LatexReporter>();
  ASDBENCH_CHECK(format == "html", "a format of reporter_names");
  return make_html_reporter();
}

}  // namespace asdbench
