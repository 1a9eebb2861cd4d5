// Collects, renders and hashes what a frozen setting consists of.
#include "eval/audit/manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "eval/audit/chain.h"
#include "eval/audit/splits.h"
#include "eval/core/digest.h"
#include "eval/core/error.h"

namespace asdbench {
namespace {

Json options_json(const Choice& choice, std::initializer_list<std::string_view> without) {
  Json options = Json::object();
  for (const auto& [key, value] : choice.params.resolved()) {
    if (std::find(without.begin(), without.end(), key) == without.end()) options[key] = value;
  }
  return options;
}

/// Identity, gold and order of a task's prompts.
Json part_json(const Experiment& experiment, std::size_t task) {
  const TaskSet& set = experiment.tasks[task];
  std::vector<std::string> hashes;
  Sha256 items;
  std::int64_t prompts = 0;
  for (const SplitRow& row : split_rows(experiment)) {
    if (row.task != set.info.name) continue;
    hashes.push_back(row.identity_sha256);
    items.update(row.identity_sha256).update(sha256_hex(row.sample));
    ++prompts;
  }
  return {{"split", set.info.split},
          {"data_sha256", set.data_sha256},
          {"prompts", prompts},
          {"root", split_root(hashes)},
          {"items_sha256", items.finish_hex()}};
}

Json tasks_json(const AuditContext& context, const FrozenWork& work) {
  Json tasks = Json::array();
  for (std::size_t i = 0; i < work.b.tasks.size(); ++i) {
    const TaskSet& set = work.b.tasks[i];
    const auto margin = context.settings.margins.find(set.info.name);
    if (margin == context.settings.margins.end()) {
      throw ConfigError(fmt::format(
          "{}: deploy.margins: task {} has no margin, and there is no default\n  write how much of "
          "its score may be lost, such as {{{}: 0.02}}",
          context.config.file.string(), set.info.name, set.info.name));
    }
    tasks.push_back({{"name", set.info.name},
                     {"version", set.info.version},
                     {"metric", set.info.metric},
                     {"max_tokens", set.max_tokens},
                     {"grader", set.grader},
                     {"grader_sha256", grader_fingerprint(*set.task)},
                     {"options", options_json(context.config.deploy->audit[i], {"limit"})},
                     {"margin", shortest_real(margin->second)},
                     {"size", work.plan[i].size},
                     {"psi", shortest_real(work.plan[i].psi)},
                     {"eta", shortest_real(work.plan[i].eta)},
                     {"a", part_json(work.a, i)},
                     {"b", part_json(work.b, i)}});
  }
  return tasks;
}

Json statistics_json(const AuditContext& context) {
  const DeploySettings& s = context.settings;
  return {{"alpha", shortest_real(s.alpha)},
          {"power", shortest_real(s.power)},
          {"length_limit_pct", shortest_real(s.length_limit_pct)},
          {"cap_margin", shortest_real(s.cap_margin)},
          {"drift_limit_pct", shortest_real(s.drift_limit_pct)},
          {"speed_target_pct", shortest_real(s.speed_target_pct)},
          {"accuracy_floor", shortest_real(s.accuracy_floor)},
          {"capped", context.config.capped != CappedPolicy::kAsScored ? "wrong" : "as_scored"},
          {"sampling", s.sampling == Sampling::kFixed ? "fixed" : "e_process"},
          {"selection", std::string(name_of(s.select))},
          {"size_asked", s.size},
          {"eta_asked", shortest_real(s.eta)},
          {"bootstrap_seed", s.bootstrap_seed},
          {"resamples", s.resamples}};
}

Json speed_json(const AuditContext& context, const RunConfig& audit) {
  const SpeedConfig& speed = audit.speed_config;
  return {{"tokens", speed.tokens},
          {"prompts", speed.prompts},
          {"groups", speed.groups},
          {"order", "abba"},
          {"warmup", speed.warmup},
          {"warmup_most", speed.warmup_most},
          {"minimum_seconds", shortest_real(context.settings.minimum_seconds)}};
}

Json target_json(const Choice& choice, const Model& model) {
  const TargetInfo info = model.target->info();
  return {{"name", info.name},
          {"sha256", info.sha256},
          {"tokenizer_sha256", model.tokenizer ? model.tokenizer->sha256() : ""},
          {"template_sha256", model.template_sha256},
          {"engine", info.engine},
          {"device", info.device},
          {"weight_dtype", info.weight_dtype},
          {"compute_dtype", info.compute_dtype},
          {"logit_dtype", info.logit_dtype},
          {"vocab", info.vocab},
          {"positions", info.positions},
          {"end_ids", info.end_ids},
          {"options", options_json(choice, {"path", "device"})}};
}

/// Over the rendered text and the ids of every prompt of both splits: template and tokenizer as
/// they act.
std::string rendered_digest(const FrozenWork& work, const Model& model) {
  Sha256 digest;
  for (const Experiment* experiment : {&work.a, &work.b}) {
    for (const TaskSet& task : experiment->tasks) {
      for (const Sample& sample : task.samples) {
        std::string rendered;
        const auto ids = model.prompt_ids(task.task->prompt(sample, {}), &rendered);
        digest.update(sha256_hex(rendered)).update(sha256_tokens(ids));
      }
    }
  }
  return digest.finish_hex();
}

Json drafter_json(const AuditContext& context, const Setting& setting, const Experiment& b,
                  Target& target) {
  const DrafterInfo info =
      make_drafter(b.drafters.front(),
                   {.target = target, .shipped = context.options.paths.drafters})
          ->info();
  const auto trained =
      training_prompts(training_file(context.settings, setting, context.options.paths.drafters));
  return {{"name", info.name},
          {"sha256", info.sha256},
          {"options", options_json(setting.drafter, {"path"})},
          {"drafts", info.drafts},
          {"trained_on_root", trained ? split_root(*trained) : "unknown"}};
}

}  // namespace

Json build_manifest(const AuditContext& context, const Setting& setting, const FrozenWork& work) {
  const Choice& target = work.b.config.targets.front();
  Model model = make_model(target.name, target.params, context.options.paths.models);
  std::vector<std::string> hashes_a, hashes_b;
  for (const SplitRow& row : split_rows(work.a)) hashes_a.push_back(row.identity_sha256);
  for (const SplitRow& row : split_rows(work.b)) hashes_b.push_back(row.identity_sha256);
  const auto fact = [&](const char* name) {
    const auto found = context.environment.find(name);
    return found == context.environment.end() ? "" : found->second;
  };
  return {{"format", "asdbench manifest 1"},
          {"campaign", context.config.name},
          {"rule", parse_json(work.b.rules.back().identity)},
          {"setting", setting_json(setting)},
          {"target", target_json(target, model)},
          {"drafter", drafter_json(context, setting, work.b, *model.target)},
          {"decoding", {{"batch", work.b.decodings.front().batch}, {"temperature", 0}}},
          {"tasks", tasks_json(context, work)},
          {"splits", {{"a", split_root(hashes_a)}, {"b", split_root(hashes_b)}}},
          {"rendered_sha256", rendered_digest(work, model)},
          {"statistics", statistics_json(context)},
          {"speed", speed_json(context, work.b.config)},
          {"seed", context.config.seed},
          {"build",
           {{"version", context.run.version},
            {"commit", context.run.commit},
            {"dirty", context.run.dirty},
            {"compiler", fact("compiler")},
            {"build_type", fact("build_type")},
            {"program_sha256", context.program_sha256},
            {"instruction_set", fact("instruction_set")}}},
          {"device",
           {{"cpu", fact("cpu")}, {"cores", fact("cores")}, {"memory_gib", fact("memory_gib")}}}};
}

std::string manifest_hash(const Json& manifest) { return sha256_hex(canonical_json(manifest)); }

std::vector<std::string> manifest_differences(const Json& frozen, const Json& now) {
  const Json before = frozen.flatten(), after = now.flatten();
  std::vector<std::string> differences;
  for (const auto& [path, value] : before.items()) {
    const auto other = after.find(path);
    if (other == after.end()) {
      differences.push_back(fmt::format("{}: {} -> nothing", path, value.dump()));
    } else if (*other != value) {
      differences.push_back(fmt::format("{}: {} -> {}", path, value.dump(), other->dump()));
    }
  }
  for (const auto& [path, value] : after.items()) {
    if (!before.contains(path)) {
      differences.push_back(fmt::format("{}: nothing -> {}", path, value.dump()));
    }
  }
  return differences;
}

std::string grader_fingerprint(const Task& task) {
  // Forms of an answer that graders tell apart: boxes, marks, units, fractions, nothing at all.
  static const std::vector<std::string> kReplies = {"",
                                                    "42",
                                                    "The answer is 42.",
                                                    "#### 42",
                                                    "\\boxed{42}",
                                                    "\\boxed{41} and then \\boxed{42}",
                                                    "42 or 43",
                                                    "$1,234.50",
                                                    "1234.5",
                                                    "-7",
                                                    "7/2",
                                                    "\\boxed{\\frac{7}{2}}",
                                                    "3.5",
                                                    "50%",
                                                    "0.5",
                                                    "(B)",
                                                    "B",
                                                    "Answer: C",
                                                    "So it is **42**.",
                                                    "4 2",
                                                    "forty-two",
                                                    "42\n\nThanks",
                                                    "#### 1,000 so #### 7",
                                                    "x = 42 apples",
                                                    "\\boxed{}"};
  Sample sample;
  sample.id = "probe";
  sample.targets = {"42"};
  sample.fields = {{"answer", "42"}, {"question", ""}};
  Json outcome = Json::array();
  for (const std::string& reply : kReplies) {
    std::optional<Answer> answer;
    try {
      answer = task.extract(sample, reply);
      outcome.push_back(answer ? Json({answer->text, answer->rule}) : Json(nullptr));
    } catch (const Error&) {
      outcome.push_back("not applicable");
      continue;
    }
    for (const char* gold : {"42", "3.5", "-7", "1234.5", "B"}) {
      sample.targets = {gold};
      sample.fields["answer"] = gold;
      try {
        outcome.push_back(std::string(name_of(task.score(sample, answer).verdict)));
      } catch (const Error&) {
        // A grader that needs what the probe lacks (code, a judge) is known by its extraction.
        outcome.push_back("not applicable");
      }
    }
  }
  return sha256_hex(canonical_json(outcome));
}

std::string training_file(const DeploySettings& settings, const Setting& setting,
                          const std::filesystem::path& shipped) {
  if (!settings.trained_on.empty() || !setting.drafter.params.has("path")) {
    return settings.trained_on;
  }
  std::error_code ignored;
  const std::filesystem::path folder = setting.drafter.params.text("path");
  for (const std::filesystem::path& card : {folder / "card.json", shipped / folder / "card.json"}) {
    if (std::filesystem::is_regular_file(card, ignored)) return card.string();
  }
  return "";
}

std::optional<std::vector<std::string>> training_prompts(const std::string& file) {
  if (file.empty()) return std::nullopt;
  std::ifstream in(file, std::ios::binary);
  if (!in) {
    throw DataError(
        fmt::format("{}: cannot be read\n  deploy.trained_on names the card of a "
                    "drafter, or a file of prompt hashes, one a line",
                    file));
  }
  std::vector<std::string> hashes;
  if (file.ends_with(".json")) {
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    try {
      hashes = parse_json(text).at("prompt_identities").get<std::vector<std::string>>();
    } catch (const Json::exception& error) {
      throw DataError(fmt::format("{}: {}", file, error.what()));
    }
    for (const std::string& hash : hashes) bytes_of_hash(hash, file.c_str());
    return hashes;
  }
  std::string line;
  for (std::size_t number = 1; std::getline(in, line); ++number) {
    if (line.empty()) continue;
    bytes_of_hash(line, fmt::format("{}:{}", file, number).c_str());
    hashes.push_back(line);
  }
  return hashes;
}

}  // namespace asdbench
