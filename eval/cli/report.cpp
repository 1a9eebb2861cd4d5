// asdbench report: the matrix, or the stored outputs, in several formats.
#include <fmt/format.h>

#include <memory>
#include <sstream>

#include "eval/cli/commands_internal.h"
#include "eval/core/json.h"
#include "eval/core/output_file.h"
#include "eval/report/facts.h"
#include "eval/report/matrix.h"
#include "eval/report/reporter.h"

namespace asdbench::cli {
namespace {

struct Options {
  std::string database = "results/asdbench.db";
  std::string format = "terminal";
  std::string output;
  bool outputs = false;
  std::string capped;
  std::vector<std::string> compare;
  std::string view;
  bool schema = false;
};

/// The matrix and the views behind the sections, for machines: numbers keep their types.
std::string report_json(const ResultStore& store) {
  Json out = {{"matrix", parse_json(matrix_json(store.matrix()))}};
  for (const char* view : {"accuracy",
                           "acceptance",
                           "paired",
                           "ledger",
                           "length",
                           "breakdown",
                           "outcome",
                           "judged",
                           "preference",
                           "speed",
                           "speed_bound",
                           "group_speed",
                           "speed_interval",
                           "bracketed",
                           "concurrency",
                           "time_to_answer",
                           "replayed",
                           "noise_floor",
                           "accept_histogram",
                           "block_position",
                           "blocked",
                           "regret_histogram",
                           "exception_position"}) {
    out[view] = rows_json(store, view);
  }
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string report_text(const ResultStore& store, const Options& options) {
  if (options.schema) return schema_text(store);
  if (!options.view.empty()) {
    if (options.format != "csv") {
      throw ConfigError("--view: found --format " + options.format + "; expected --format csv");
    }
    return view_csv(store, options.view);
  }
  ReportOptions content;
  content.capped = options.capped == "wrong"       ? Capped::kWrong
                   : options.capped == "as_scored" ? Capped::kAsScored
                                                   : Capped::kByGrader;
  for (const std::string& file : options.compare) content.published.push_back(read_published(file));
  if (options.format == "csv") return matrix_csv(store.matrix());
  if (options.format == "json") return report_json(store);
  return make_reporter(options.format)->render(make_report(store, content));
}

ExitCode report(const Options& options) {
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
    text = report_text(store, options);
  }
  if (options.output.empty()) {
    print(text);
  } else {
    write_output_file(options.output, text);
  }
  return ExitCode::kPass;
}

}  // namespace

void add_report(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "report", "Print the matrix of accuracy versus speedup and everything behind it");
  command->add_option("db", options->database, "Results database")->capture_default_str();
  command
      ->add_option("--format", options->format,
                   "terminal, md, html, latex, csv, json; jsonl with --outputs")
      ->check(CLI::IsMember({"terminal", "md", "html", "latex", "csv", "json", "jsonl"}))
      ->capture_default_str();
  command
      ->add_option("--capped", options->capped,
                   "How a reply that hit its limit counts: wrong (what our grader takes when this "
                   "is not given) or as_scored (what graders that reproduce others take)")
      ->check(CLI::IsMember({"wrong", "as_scored"}));
  command->add_flag("--outputs", options->outputs,
                    "Dump outputs and scores, one a line, without ids and times");
  command->add_option("--compare", options->compare,
                      "Set the published figures of this YAML file beside ours; may be repeated");
  command->add_option("--view", options->view, "With --format csv: all rows of one table or view");
  command->add_flag("--schema", options->schema,
                    "Describe tables, views and columns, from the database itself");
  command->add_option("-o,--output", options->output, "Write to a file instead of stdout");
  command->footer(
      "Example:\n  asdbench report results/asdbench.db --format html -o report.html\n"
      "  asdbench report results/asdbench.db --compare configs/paper/published/asd-main.yaml\n"
      "  asdbench report results/asdbench.db --format csv --view paired\n"
      "  asdbench report results/asdbench.db --outputs --format jsonl -o outputs.jsonl");
  command->callback([options, &action] { action = [options] { return report(*options); }; });
}

}  // namespace asdbench::cli
