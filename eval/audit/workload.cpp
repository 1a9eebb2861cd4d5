// Configurations and experiments of the steps.
#include "eval/audit/workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "eval/core/error.h"
#include "eval/core/json.h"
#include "eval/core/prompt_identity.h"

namespace asdbench {
namespace {

Json choice_json(const Choice& choice) {
  return {{"name", choice.name}, {"options", choice.params.given()}};
}

/// Options as `Params::given` writes them: "B=8 g=0.25 M=2". A word without a sign belongs to the
/// value before it, such as the rest of a path.
Choice choice_of(const std::string& name, const std::string& given, const SourceLocation& where) {
  std::vector<std::pair<std::string, std::string>> options;
  std::istringstream words(given);
  std::string word;
  while (words >> word) {
    const std::size_t equals = word.find('=');
    if (equals != std::string::npos) {
      options.emplace_back(word.substr(0, equals), word.substr(equals + 1));
    } else if (!options.empty()) {
      options.back().second += " " + word;
    } else {
      throw ConfigError(
          fmt::format("{}: found option {}; expected key=value", where.text(), shown(word)));
    }
  }
  Choice choice{name, Params(name, where)};
  for (auto& [key, value] : options) choice.params.set(key, std::move(value), where);
  return choice;
}

Choice choice_of(const Json& json, const std::string& where) {
  return choice_of(json.at("name").get<std::string>(), json.at("options").get<std::string>(),
                   {.file = where});
}

constexpr std::size_t kLargestLockBytes = std::size_t{1} << 16;

}  // namespace

std::string Setting::label() const {
  const auto text = [](const Choice& choice) {
    const std::string given = choice.params.given();
    return choice.name + (given.empty() ? "" : " " + given);
  };
  return text(verifier) + " · " + text(drafter);
}

Json setting_json(const Setting& setting) {
  return {{"drafter", choice_json(setting.drafter)}, {"verifier", choice_json(setting.verifier)}};
}

Setting setting_of(const Json& json, const std::string& where) {
  return {.drafter = choice_of(json.at("drafter"), where),
          .verifier = choice_of(json.at("verifier"), where)};
}

std::filesystem::path lock_file(const RunConfig& config) {
  std::filesystem::path path = config.file;
  return path.replace_extension(".lock.json");
}

void write_lock(const RunConfig& config, const Setting& setting, const std::string& record) {
  Json json = setting_json(setting);
  json["note"] = "written by asdbench tune; freeze and audit read it, and refuse an edited one";
  json["campaign"] = config.name;
  json["selected_by"] = record;
  const std::filesystem::path path = lock_file(config);
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << json.dump(2) << '\n';
  out.close();
  if (!out) {
    throw StoreError(fmt::format("{}: writing failed; is the folder read-only?", path.string()));
  }
}

Setting read_lock(const RunConfig& config) {
  const std::filesystem::path path = lock_file(config);
  std::ifstream in(path, std::ios::binary);
  std::string text(kLargestLockBytes, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  if (text.empty()) {
    throw ConfigError(fmt::format("{}: there is no selected setting\n  run: asdbench tune {}",
                                  path.string(), config.file.string()));
  }
  try {
    const Json json = parse_json(text);
    if (json.at("campaign") != config.name) {
      throw ConfigError(fmt::format(
          "{}: belongs to campaign {}; expected {}\n  run: asdbench tune {}", path.string(),
          json.at("campaign").dump(), config.name, config.file.string()));
    }
    return setting_of(json, path.string());
  } catch (const Json::exception& error) {
    throw ConfigError(fmt::format("{}: {}\n  run tune again", path.string(), error.what()));
  } catch (const DataError& error) {
    throw ConfigError(fmt::format("{}: {}\n  run tune again", path.string(), error.what()));
  }
}

RunConfig calibration_config(const RunConfig& config, const std::vector<Choice>& drafters,
                             const std::vector<Choice>& verifiers) {
  RunConfig calibration = config;
  calibration.drafters = drafters;
  calibration.verifiers = {{"strict", Params("strict", {.file = config.file.string()})}};
  calibration.verifiers.insert(calibration.verifiers.end(), verifiers.begin(), verifiers.end());
  calibration.skip.clear();
  calibration.quality = true;
  calibration.speed = false;
  calibration.replay = false;
  return calibration;
}

RunConfig audit_config(const RunConfig& config, const Setting& setting) {
  RunConfig audit = calibration_config(config, {setting.drafter}, {setting.verifier});
  audit.tasks = config.deploy->audit;
  audit.speed = true;
  audit.max_failed_samples = 0;
  // For a certificate: specs/measurement.md, section 2.
  constexpr std::int32_t kLeastWarmUp = 10, kMostWarmUp = 30;
  audit.speed_config.warmup = std::max(audit.speed_config.warmup, kLeastWarmUp);
  audit.speed_config.warmup_most = std::max(audit.speed_config.warmup, kMostWarmUp);
  return audit;
}

Choice fresh_choice(const Choice& choice) {
  return choice_of(choice.name, choice.params.given(), choice.params.where());
}

Choice with_zero_budget(const Choice& verifier) {
  if (!verifier.params.has("B")) {
    verifier.params.fail("B", fmt::format("the rule {} has no budget B; only rules with one can be "
                                          "frozen, since B = 0 must give strict output",
                                          verifier.name));
  }
  Choice zero = fresh_choice(verifier);
  zero.params.replace("B", "0", {.file = "the check of B = 0"});
  return zero;
}

SessionResult run_session(AuditContext& context, Experiment& experiment,
                          const ExperimentOptions& options, const SessionCallbacks& callbacks) {
  Session session(experiment, options, context.store, callbacks);
  RunRow run = context.run;
  run.seed = experiment.config.seed;
  return session.run(run, context.environment);
}

std::vector<SplitRow> split_rows(const Experiment& experiment) {
  std::vector<SplitRow> rows;
  for (const TaskSet& task : experiment.tasks) {
    for (const Sample& sample : task.samples) {
      Json body = {{"id", sample.id},
                   {"targets", sample.targets},
                   {"cluster", sample.cluster},
                   {"category", sample.category},
                   {"fields", Json::object()}};
      for (const auto& [name, value] : sample.fields) body["fields"][name] = value;
      std::string text;
      for (const std::string& question : task.task->questions(sample)) {
        text += (text.empty() ? "" : "\n") + question;
      }
      rows.push_back({.task = task.info.name,
                      .sample_id = sample.id,
                      .identity_sha256 = prompt_hash(text),
                      .prompt = text,
                      .sample = canonical_json(body)});
    }
  }
  return rows;
}

Sample sample_of(const SplitRow& row) {
  try {
    const Json body = parse_json(row.sample);
    Sample sample;
    sample.id = body.at("id").get<std::string>();
    sample.targets = body.at("targets").get<std::vector<std::string>>();
    sample.cluster = body.at("cluster").get<std::string>();
    sample.category = body.at("category").get<std::string>();
    for (const auto& [name, value] : body.at("fields").items()) {
      sample.fields[name] = value.get<std::string>();
    }
    return sample;
  } catch (const Json::exception& error) {
    throw DataError(fmt::format("sample {} of the split: {}", shown(row.sample_id), error.what()));
  }
}

}  // namespace asdbench
