// Published cases of replies that hold programs: collected first, then run on all cores.
#pragma once

#include <string>
#include <vector>

#include "eval/cli/conformance/conformance.h"
#include "tasks/common/code_grader.h"
#include "tasks/common/jsonl.h"

namespace asdbench {

class CodeCases {
 public:
  /// Takes a row of kind `code` or `sandbox`. DataError for a field that is missing.
  void add(const JsonlRow& row);
  bool empty() const { return jobs_.empty(); }
  /// Runs what was taken. DataError when this machine has no sandbox.
  void run(ConformanceReport& report) const;

 private:
  struct Case {
    std::string id;
    bool passes, contested;
  };
  std::vector<Case> cases_;
  std::vector<CodeJob> jobs_;
};

/// ConfigError unless the user agreed; `what` will be run.
void require_consent(const ConformanceOptions& options, const std::string& what);

}  // namespace asdbench
