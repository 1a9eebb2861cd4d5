// conformance protocol: published cases of the audit, and attacks on a small real one.
#include <unistd.h>

#include <memory>

#include "eval/audit/attacks.h"
#include "eval/audit/published_cases.h"
#include "eval/cli/conformance/conformance.h"
#include "eval/stats/published_cases.h"
#include "tasks/common/jsonl.h"

namespace asdbench {
namespace {

/// The attacked audit, made when the first attack is found and removed at the end.
class Range {
 public:
  ~Range() {
    range_.reset();
    std::error_code ignored;
    if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
  }
  AttackRange& get() {
    if (!range_) {
      folder_ =
          std::filesystem::temp_directory_path() / ("asdbench-attacks-" + std::to_string(getpid()));
      std::filesystem::remove_all(folder_);
      range_ = std::make_unique<AttackRange>(folder_);
    }
    return *range_;
  }

 private:
  std::filesystem::path folder_;
  std::unique_ptr<AttackRange> range_;
};

Json attack(Range& range, const Json& input) {
  const AttackOutcome outcome = range.get().run(input.at("attack").get<std::string>());
  return {
      {"refused", outcome.refused}, {"fail", outcome.fail}, {"inconclusive", outcome.inconclusive}};
}

void run_case(const JsonlRow& row, Range& range, ConformanceReport& report) {
  const std::string& id = row.text("id");
  const std::string& kind = row.text("kind");
  if (case_functions().contains(kind)) return;  // of kind stats, which shares the file
  const auto published = audit_case_functions().find(kind);
  if (kind != "attack" && published == audit_case_functions().end()) {
    report.fail(id, "a known kind", "\"" + kind + "\"");
    return;
  }
  try {
    const Json& input = row.object().at("input");
    const Json found = kind == "attack" ? attack(range, input) : published->second(input);
    const auto differences =
        case_differences(row.object().at("expect"), found, row.object().value("tol", 0.0));
    differences.empty() ? report.pass() : report.fail(id, "as published", differences.front());
  } catch (const Json::exception& error) {
    report.fail(id, "input of kind \"" + kind + "\"", error.what());
  } catch (const Error& error) {
    report.fail(id, "an outcome", error.what());
  }
}

}  // namespace

void conformance_protocol(const ConformanceOptions& options, ConformanceReport& report) {
  Range range;
  const bool is_file = std::filesystem::is_regular_file(options.path);
  for (const char* name : {"cases.jsonl", "attacks.jsonl"}) {
    for (const auto& file : find_cases(options.path, is_file ? "" : name)) {
      read_jsonl(file, [&](const JsonlRow& row) { run_case(row, range, report); });
    }
    if (is_file) break;
  }
}

}  // namespace asdbench
