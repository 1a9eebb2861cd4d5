// asdbench report: the matrix, or the stored outputs, in several formats.
#include <fmt/format.h>

#include <fstream>
#include <memory>
#include <sstream>

#include "eval/cli/commands_internal.h"
#include "eval/report/matrix.h"
#include "eval/run/checks.h"

namespace asdbench::cli {
namespace {

struct ReportOptions {
  std::string database = "results/asdbench.db";
  std::string format = "terminal";
  std::string output;
  bool outputs = false;
  std::string capped = "wrong";
};

std::string matrix_text(const ResultStore& store, const std::string& format, Capped capped) {
  const std::vector<MatrixRow> rows = store.matrix();
  if (format == "json") return matrix_json(rows);
  if (format == "csv") return matrix_csv(rows);
  std::string text;
  for (const Table& table : matrix_tables(rows, capped)) {
    text += (format == "md" ? to_markdown(table) : to_terminal(table)) + "\n";
  }
  if (rows.empty()) text = "the database holds no cells yet\n";
  return text;
}

void write_file(const std::string& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << text;
  out.close();
  if (!out)
    throw StoreError(
        fmt::format("{}: writing failed; is the disk full or the folder read-only?", path));
}

ExitCode report(const ReportOptions& options) {
  const ResultStore store(options.database, OpenMode::kReadOnly);
  std::string text;
  if (options.outputs) {
    if (options.format != "jsonl") {
      throw ConfigError("--outputs: found --format " + options.format +
                        "; expected --format jsonl");
    }
    std::ostringstream out;
    store.dump_outputs(out);
    text = out.str();
  } else if (options.format == "jsonl") {
    throw ConfigError("--format jsonl: expected together with --outputs");
  } else {
    text = matrix_text(store, options.format,
                       options.capped == "wrong" ? Capped::kWrong : Capped::kAsScored);
  }
  if (options.output.empty()) {
    print(text);
  } else {
    write_file(options.output, text);
  }
  return ExitCode::kPass;
}

}  // namespace

void add_report(CLI::App& app, Action& action) {
  auto options = std::make_shared<ReportOptions>();
  CLI::App* command = app.add_subcommand("report", "Print the matrix of accuracy versus speedup");
  command->add_option("db", options->database, "Results database")->capture_default_str();
  command->add_option("--format", options->format, "terminal, md, csv, json; jsonl with --outputs")
      ->check(CLI::IsMember({"terminal", "md", "csv", "json", "jsonl"}))
      ->capture_default_str();
  command
      ->add_option("--capped", options->capped,
                   "How a reply that hit its limit counts: wrong or as_scored")
      ->check(CLI::IsMember({"wrong", "as_scored"}))
      ->capture_default_str();
  command->add_flag("--outputs", options->outputs,
                    "Dump outputs and scores, one a line, without ids and times");
  command->add_option("-o,--output", options->output, "Write to a file instead of stdout");
  command->footer(
      "Example:\n  asdbench report results/asdbench.db --format md\n"
      "  asdbench report results/asdbench.db --outputs --format jsonl -o outputs.jsonl");
  command->callback([options, &action] { action = [options] { return report(*options); }; });
}

}  // namespace asdbench::cli
