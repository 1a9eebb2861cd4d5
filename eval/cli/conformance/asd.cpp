// Conformance of the ASD rule with published cases.
#include <string>

#include "eval/cli/conformance/conformance.h"
#include "runners/verifiers/common/vectors.h"

namespace asdbench {

void conformance_asd(const ConformanceOptions& options, ConformanceReport& report) {
  const bool file = std::filesystem::is_regular_file(options.path);
  for (const auto& path : find_cases(options.path, file ? "" : "vectors.jsonl")) {
    for (const Json& row : read_vectors(path)) {
      const auto mismatch = check_asd_vector(row);
      const std::string id = row.is_object() ? row.value("id", "without id") : "not an object";
      mismatch ? report.fail(id, mismatch->expected, mismatch->got) : report.pass();
    }
  }
}

}  // namespace asdbench
