// The steps of a deployment as a user takes them: freeze, audit, certify, verify. Tuning has a
// file of its own.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "eval/audit/campaign.h"
#include "eval/audit/decision.h"
#include "eval/audit/workload.h"
#include "eval/core/error.h"

namespace asdbench {

/// What a command prints and ends with.
struct StepResult {
  ExitCode code = ExitCode::kPass;
  std::string text;
  Json json;
};

/// Checks the splits and B = 0 on all of A, plans the size, writes manifest and record. Refused by
/// name; ConfigError without a margin or with an infinite control.
StepResult freeze(AuditContext& context);

/// Starts or resumes the audit of the frozen setting; at its end the decision record is written
/// beside the database. Voids, and says what differs, when the manifest is no longer the frozen
/// one.
StepResult audit(AuditContext& context);

/// Issues the certificate of a passed audit to `output`. Voids as `audit` does.
StepResult certify(AuditContext& context, const std::filesystem::path& output);

/// The text of a file of at most some 64 MiB. DataError.
std::string read_decision_text(const std::filesystem::path& file);

/// Derives a certificate or decision record again from a database, without a model. Exit code: that
/// of the verdict, or kRefused with a named reason. `device` is this machine's own, asked to be the
/// manifest's; "" asks for none.
StepResult verify(const std::string& text, const std::string& where, const ResultStore& store,
                  const std::string& device);

/// 0, 1 or 5.
ExitCode exit_code_of(GateVerdict verdict);

/// Splits A and B of a context, loaded.
struct LoadedWork {
  Experiment a, b;
};
/// B keeps the first `sizes[i]` prompts of its task i; all of them when `sizes` is empty.
LoadedWork load_work(const AuditContext& context, const Setting& setting,
                     const std::vector<std::int64_t>& sizes);

/// Keys of the cells of strict and of the other rule, task by task, of a session over two rules and
/// one drafter.
struct ArmKeys {
  std::string strict, other;
};
std::vector<ArmKeys> arm_keys(const SessionResult& result, std::size_t tasks);

}  // namespace asdbench
