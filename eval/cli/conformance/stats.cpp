// conformance stats: the published cases of measurements.
#include <set>

#include "eval/audit/published_cases.h"
#include "eval/cli/conformance/conformance.h"
#include "eval/core/error.h"
#include "eval/stats/published_cases.h"
#include "tasks/common/jsonl.h"

namespace asdbench {
namespace {

const std::set<std::string> kFields = {"id", "kind", "input", "expect", "tol", "note"};

/// Kinds of plain statistics and those of the audit; nullptr for others.
const CaseFunction* function_of(const std::string& kind) {
  for (const auto* table : {&case_functions(), &audit_case_functions()}) {
    const auto found = table->find(kind);
    if (found != table->end()) return &found->second;
  }
  return nullptr;
}

void run_case(const JsonlRow& row, ConformanceReport& report) {
  const std::string& id = row.text("id");
  for (const auto& [field, value] : row.object().items()) {
    if (!kFields.contains(field)) {
      report.fail(id, "a known field", "\"" + field + "\"");
      return;
    }
  }
  const std::string& kind = row.text("kind");
  const CaseFunction* function = function_of(kind);
  if (function == nullptr) {
    report.fail(id, "a known kind", "\"" + kind + "\"");
    return;
  }
  try {
    const Json found = (*function)(row.object().at("input"));
    const auto differences =
        case_differences(row.object().at("expect"), found, row.object().value("tol", 0.0));
    if (differences.empty()) {
      report.pass();
    } else {
      report.fail(id, "the published figures", differences.front());
    }
  } catch (const Json::exception& error) {
    report.fail(id, "input of kind \"" + kind + "\"", error.what());
  } catch (const Error& error) {
    report.fail(id, "a defined figure", error.what());
  }
}

}  // namespace

void conformance_stats(const ConformanceOptions& options, ConformanceReport& report) {
  // A file is taken whatever its name; below a folder the name selects it.
  const bool is_file = std::filesystem::is_regular_file(options.path);
  const auto files = find_cases(options.path, is_file ? "" : "cases.jsonl");
  if (files.empty()) {
    throw DataError(options.path.string() + ": no cases.jsonl at or below it");
  }
  for (const auto& file : files) {
    read_jsonl(file, [&](const JsonlRow& row) { run_case(row, report); });
  }
}

}  // namespace asdbench
