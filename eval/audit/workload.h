// What the steps of the protocol work on: the setting under audit, experiments over either split,
// and the prompts of both.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "eval/audit/settings.h"
#include "eval/core/json.h"
#include "eval/run/experiment.h"
#include "eval/run/session.h"
#include "results/audit_store.h"

namespace asdbench {

/// Everything that a step is given from outside.
struct AuditContext {
  RunConfig config;  // with its deploy section
  DeploySettings settings;
  ExperimentOptions options;
  ResultStore& store;
  std::filesystem::path database;
  RunRow run;                                      // describes this invocation
  std::map<std::string, std::string> environment;  // machine and build
  std::string program_sha256;                      // of the program file
  SessionCallbacks callbacks;
  std::function<void(const std::string&)> say = [](const std::string&) {};  // one line of report
};

/// A drafter and a rule with its controls.
struct Setting {
  Choice drafter, verifier;

  /// "asd B=8 g=0.25 M=2 · ngram K=4".
  std::string label() const;
};
/// {"drafter": {"name", "options"}, "verifier": {...}} with the options as they were written.
Json setting_json(const Setting& setting);
/// Throws Json::exception for another shape.
Setting setting_of(const Json& json, const std::string& where);

/// The file beside the configuration that holds the selected setting.
std::filesystem::path lock_file(const RunConfig& config);
void write_lock(const RunConfig& config, const Setting& setting, const std::string& record);
/// ConfigError when it is absent or damaged.
Setting read_lock(const RunConfig& config);

/// The matrix of the file with these verifiers and drafters only; strict comes first.
RunConfig calibration_config(const RunConfig& config, const std::vector<Choice>& drafters,
                             const std::vector<Choice>& verifiers);
/// Split B: strict and the setting.
RunConfig audit_config(const RunConfig& config, const Setting& setting);
/// The same options, of which nothing has been read yet: copies share what is learnt of them.
Choice fresh_choice(const Choice& choice);
/// The same rule with B = 0. ConfigError when the rule has no budget B.
Choice with_zero_budget(const Choice& verifier);

/// Runs an experiment through a Session, with this invocation's description.
SessionResult run_session(AuditContext& context, Experiment& experiment,
                          const ExperimentOptions& options, const SessionCallbacks& callbacks);

/// The prompts of an experiment in its order.
std::vector<SplitRow> split_rows(const Experiment& experiment);
/// Fields, targets, cluster and id back. DataError for another shape.
Sample sample_of(const SplitRow& row);

}  // namespace asdbench
