// Conformance of the verification rules with published masks.
#include "eval/cli/conformance/conformance.h"
#include "runners/verifiers/common/vectors.h"

namespace asdbench {

void conformance_verifiers(const ConformanceOptions& options, ConformanceReport& report) {
  const bool file = std::filesystem::is_regular_file(options.path);
  for (const auto& path : find_cases(options.path, file ? "" : "masks.jsonl")) {
    for (const Json& row : read_vectors(path)) {
      for (const MaskOutcome& outcome : check_mask_vector(row)) {
        const auto& mismatch = outcome.mismatch;
        mismatch ? report.fail(outcome.id, mismatch->expected, mismatch->got) : report.pass();
      }
    }
  }
}

}  // namespace asdbench
