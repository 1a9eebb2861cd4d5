// The manifest: everything that a certificate holds for, as one canonical object and its hash.
// Source: specs/measurement.md, section 8.
#pragma once

#include <string>
#include <vector>

#include "eval/audit/workload.h"
#include "eval/core/json.h"

namespace asdbench {

/// How one task is sampled in the audit.
struct TaskPlan {
  std::int64_t size = 0;  // prompts of B
  double psi = 0;         // discordance on A
  double eta = 0;         // of the e-process; 0 when the size is fixed
};

/// What is frozen: both splits, loaded, and the plan of each task in order.
struct FrozenWork {
  const Experiment& a;
  const Experiment& b;
  std::vector<TaskPlan> plan;
};

/// Loads target and drafter, renders every prompt, decodes nothing. ModelError, DataError. Real
/// numbers are strings.
Json build_manifest(const AuditContext& context, const Setting& setting, const FrozenWork& work);

std::string manifest_hash(const Json& manifest);

/// "/target/sha256: ab... -> cd..." for each item that differs.
std::vector<std::string> manifest_differences(const Json& frozen, const Json& now);

/// Digest of what a task's grader makes of a fixed list of replies: a changed grader is another
/// one even when its name and version stay.
std::string grader_fingerprint(const Task& task);

/// Where the prompts of the drafter's training are listed: what `trained_on` names, else the card
/// in the drafter's folder, which may be one of `shipped`; "" when neither is there.
std::string training_file(const DeploySettings& settings, const Setting& setting,
                          const std::filesystem::path& shipped);

/// Hashes of prompts that the drafter was trained on, from its card (`prompt_identities`) or a file
/// of 64 hex digits a line; absent for "". DataError with the line.
std::optional<std::vector<std::string>> training_prompts(const std::string& file);

}  // namespace asdbench
