// Attacks on an audit, each carried out on a small real one over the planted target: what an
// adversary would do, and what this build makes of it.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "eval/audit/steps.h"

namespace asdbench {

/// How an attack ended.
struct AttackOutcome {
  std::string refused;                          // the refusal's name; "" when a verdict was reached
  std::vector<std::string> fail, inconclusive;  // gates of the verdict that was reached
};

/// A folder with one audit at each of its stages, and attacks on copies of them.
class AttackRange {
 public:
  /// Runs the audit: tune, freeze, audit, certify. The folder must be empty.
  explicit AttackRange(std::filesystem::path folder);
  ~AttackRange();

  /// Names of all attacks.
  static std::vector<std::string> names();
  /// ConfigError for a name that is not known.
  AttackOutcome run(const std::string& name);

  /// The certificate of the untouched audit.
  const Json& certificate() const { return certificate_; }

 private:
  std::filesystem::path folder_;
  Json certificate_;
};

}  // namespace asdbench
