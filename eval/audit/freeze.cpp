// The step `freeze`: splits, identity at B = 0, size, manifest.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "eval/audit/manifest.h"
#include "eval/audit/rows.h"
#include "eval/audit/split_ledger.h"
#include "eval/audit/splits.h"
#include "eval/audit/steps.h"
#include "eval/stats/stats.h"

namespace asdbench {
namespace {

void refuse_infinite_controls(const Setting& setting) {
  for (const char* control : {"B", "g", "M"}) {
    if (!setting.verifier.params.has(control)) continue;
    const auto value = parse_number(setting.verifier.params.text(control));
    if (value && std::isinf(*value)) {
      throw Refused("infinite_control",
                    fmt::format("{} is infinite in {}; a frozen setting has finite controls, since "
                                "an infinite one bounds nothing",
                                control, setting.label()));
    }
  }
}

/// An empty split, or one prompt twice: n would count what is not there.
void refuse_bad_split(const std::vector<SplitRow>& b) {
  if (b.empty()) throw Refused("split_empty", "split B holds no prompt");
  std::set<std::string> seen;
  for (const SplitRow& row : b) {
    if (!seen.insert(row.task + row.identity_sha256).second) {
      throw Refused("split_duplicates",
                    fmt::format("split B of task {} holds prompt {} twice; choose another range or "
                                "limit",
                                row.task, shown(row.sample_id)));
    }
  }
}

/// Prompts that a task needs: what the discordance on A asks for, and at the least what the gate of
/// cap hits needs when no reply of either arm is capped.
std::int64_t wanted_size(const DeploySettings& settings, double psi, double margin) {
  if (settings.size > 0) return settings.size;
  const double z = *normal_quantile(1 - settings.alpha);
  const double least = std::min(margin, settings.cap_margin);
  const auto none_discordant =
      static_cast<std::int64_t>(std::floor(z * z * (1 - least) / least)) + 1;
  const auto needed =
      certifiable_sample_size(psi, 0, std::min(margin, 1.0), settings.alpha, settings.power);
  return std::max(none_discordant, needed.value_or(0));
}

TaskPlan plan_of(const AuditContext& context, const std::string& task, double psi,
                 std::int64_t available) {
  const DeploySettings& settings = context.settings;
  const auto margin = settings.margins.find(task);
  if (margin == settings.margins.end()) {
    throw ConfigError(fmt::format(
        "{}: deploy.margins: task {} has no margin, and there is no default\n  write how much of "
        "its score may be lost, such as {{{}: 0.02}}",
        context.config.file.string(), task, task));
  }
  TaskPlan plan{.size = std::min(available, wanted_size(settings, psi, margin->second)),
                .psi = psi};
  if (settings.sampling == Sampling::kEProcess) {
    plan.size = settings.size > 0 ? std::min(available, settings.size) : available;
    const double best = psi > 0 ? margin->second / psi : 0.5;
    plan.eta = settings.eta > 0 ? settings.eta : std::min(0.5, best);
  }
  return plan;
}

/// In words; "" when nothing is shared.
std::string overlap_of(const AuditContext& context, const Setting& setting, Campaign& campaign,
                       const std::vector<SplitRow>& a, const std::vector<SplitRow>& b) {
  std::vector<std::string> texts_a, texts_b;
  for (const SplitRow& row : a) texts_a.push_back(row.prompt);
  for (const SplitRow& row : b) texts_b.push_back(row.prompt);
  const Overlap overlap = compare_splits(texts_a, texts_b);
  if (!overlap.exact_in_b.empty()) {
    return fmt::format("{} prompts of B are in A, first {}", overlap.exact_in_b.size(),
                       b[overlap.exact_in_b.front()].sample_id);
  }
  if (!overlap.near.empty()) {
    const NearPair& pair = overlap.near.front();
    return fmt::format("{} near-duplicates, first {} of B and {} of A (Jaccard {:.2f})",
                       overlap.near.size(), b[pair.in_b].sample_id, a[pair.in_a].sample_id,
                       pair.jaccard);
  }
  std::set<std::string> in_b;
  for (const SplitRow& row : b) in_b.insert(row.identity_sha256);
  if (const auto trained = training_prompts(
          training_file(context.settings, setting, context.options.paths.drafters))) {
    for (const std::string& hash : *trained) {
      if (in_b.contains(hash)) return "the drafter was trained on prompts of B, first " + hash;
    }
  }
  std::string seen;
  campaign.store().each_identity([&](const std::string& identity, std::int64_t run) {
    if (seen.empty() && in_b.contains(identity)) {
      seen = fmt::format("prompts of B were decoded in this database, first by run {}", run);
    }
  });
  return seen;
}

/// Decodes A with B = 0 and counts the prompts whose ids differ from strict ones.
std::int64_t b0_mismatches(AuditContext& context, const Setting& setting, std::int64_t& prompts) {
  Experiment experiment = make_experiment(
      calibration_config(context.config, {setting.drafter}, {with_zero_budget(setting.verifier)}),
      context.options);
  const SessionResult result = run_session(context, experiment, context.options, context.callbacks);
  if (result.interrupted) return -1;
  AuditStore store(context.store);
  std::int64_t mismatches = 0;
  const std::vector<ArmKeys> keys = arm_keys(result, experiment.tasks.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const TaskSet& task = experiment.tasks[i];
    const auto read = [&](const std::string& key) {
      std::map<std::string, std::string> tokens;
      const auto cell = store.cell(key);
      if (!cell) return tokens;
      for (const OutputFacts& facts : store.outputs(cell->id, task.grader, task.info.version, 0)) {
        tokens[facts.sample_id] = facts.tokens_sha256;
      }
      return tokens;
    };
    const auto strict = read(keys[i].strict), zero = read(keys[i].other);
    for (const Sample& sample : task.samples) {
      const auto x = strict.find(sample.id), y = zero.find(sample.id);
      ++prompts;
      if (x == strict.end() || y == zero.end() || x->second != y->second) ++mismatches;
    }
  }
  return mismatches;
}

std::string freeze_text(const Campaign& campaign, const Json& manifest, const std::string& hash,
                        const AuditContext& context) {
  std::string text = fmt::format("frozen: {}\n  manifest {}\n  chain head {}\n",
                                 manifest.at("rule").dump(), hash, campaign.head());
  for (const Json& task : manifest.at("tasks")) {
    const double psi = *parse_number(task.at("psi").get<std::string>());
    const std::int64_t size = task.at("size").get<std::int64_t>();
    const auto margin =
        certifiable_margin(psi, size, context.settings.alpha, context.settings.power);
    text += fmt::format(
        "  {}: split B is {} of {}, {} prompts, untouched; margin {} %, discordance on A {:.4f}, "
        "certifiable margin {:.3f} %\n",
        task.at("name").get<std::string>(), size, task.at("b").at("split").get<std::string>(),
        task.at("b").at("prompts").dump(),
        100 * *parse_number(task.at("margin").get<std::string>()), psi, 100 * margin.value_or(0));
  }
  return text + "  keep manifest and chain head where the database cannot reach\n";
}

}  // namespace

std::vector<ArmKeys> arm_keys(const SessionResult& result, std::size_t tasks) {
  ASDBENCH_CHECK(result.cells.size() == 2 * tasks, "two cells a task");
  std::vector<ArmKeys> keys;
  for (std::size_t i = 0; i < tasks; ++i) {
    keys.push_back({.strict = result.cells[2 * i], .other = result.cells[2 * i + 1]});
  }
  return keys;
}

LoadedWork load_work(const AuditContext& context, const Setting& setting,
                     const std::vector<std::int64_t>& sizes) {
  LoadedWork work{.a = make_experiment(
                      calibration_config(context.config, {setting.drafter}, {setting.verifier}),
                      context.options),
                  .b = make_experiment(audit_config(context.config, setting), context.options)};
  for (std::size_t i = 0; i < work.b.tasks.size(); ++i) {
    Samples& samples = work.b.tasks[i].samples;
    if (i < sizes.size() && static_cast<std::int64_t>(samples.size()) > sizes[i]) {
      samples.resize(static_cast<std::size_t>(sizes[i]));
    }
    // Warm-up prompts belong to split A (specs/measurement.md, section 9).
    const Samples& warm = work.a.tasks[i].samples;
    const auto count =
        std::min(warm.size(), static_cast<std::size_t>(work.b.config.speed_config.warmup));
    work.b.tasks[i].warm_up.assign(warm.begin(), warm.begin() + static_cast<std::ptrdiff_t>(count));
  }
  return work;
}

StepResult freeze(AuditContext& context) {
  Campaign campaign(AuditStore(context.store), context.config.name);
  if (campaign.state() != AuditState::kSelected) {
    throw Refused("not_allowed",
                  fmt::format("freeze needs a selected setting, and campaign {} is {}\n  run: "
                              "asdbench tune {}; a new attempt needs a new run.name and split B",
                              shown(campaign.name()), name_of(campaign.state()),
                              context.config.file.string()));
  }
  const Setting setting = read_lock(context.config);
  const Json& selected = *campaign.latest(record_type::kSelect);
  if (setting_json(setting) != selected.at("setting")) {
    campaign.append({{"type", record_type::kChange}, {"what", "controls"}}, "");
    throw Refused("not_allowed",
                  lock_file(context.config).string() +
                      ": is not the setting that tune selected; the campaign is calibrating again");
  }
  refuse_infinite_controls(setting);
  LoadedWork work = load_work(context, setting, {});
  std::vector<TaskPlan> plan;
  for (TaskSet& task : work.b.tasks) {
    Samples& samples = task.samples;
    const std::string& name = task.info.name;
    const double psi = *parse_number(selected.at("psi").at(name).get<std::string>());
    plan.push_back(plan_of(context, name, psi, static_cast<std::int64_t>(samples.size())));
    samples.resize(static_cast<std::size_t>(plan.back().size));
  }
  const std::vector<SplitRow> a = split_rows(work.a), b = split_rows(work.b);
  refuse_bad_split(b);
  const std::string overlap = overlap_of(context, setting, campaign, a, b);
  std::vector<std::string> prompts;
  for (const SplitRow& row : b) prompts.push_back(row.identity_sha256);
  if (overlap.empty()) {
    const SplitLedger ledger(context.settings.ledger);
    if (const SplitLedger::Entry* user = ledger.user_of(prompts)) {
      throw Refused(
          "split_consumed",
          fmt::format("split B was audited by campaign {}; a new attempt needs new prompts",
                      shown(user->campaign)));
    }
  }
  std::int64_t checked = 0;
  const std::int64_t mismatches = overlap.empty() ? b0_mismatches(context, setting, checked) : 0;
  if (mismatches < 0) return {.code = ExitCode::kInterrupted, .text = "", .json = nullptr};
  const Json manifest = build_manifest(context, setting, {.a = work.a, .b = work.b, .plan = plan});
  const std::string hash = manifest_hash(manifest);
  campaign.freeze(
      {{"type", record_type::kFreeze},
       {"manifest", hash},
       {"split_b", manifest.at("splits").at("b")},
       {"audit_size", b.size()},
       {"disjoint", overlap.empty()},
       {"b0_prompts", checked},
       {"b0_mismatches", mismatches}},
      {.campaign = campaign.name(), .sha256 = hash, .body = canonical_json(manifest)}, a, b,
      overlap.empty() ? fmt::format("{} of {} prompts of A differ between B = 0 and strict",
                                    mismatches, checked)
                      : overlap + "\n  choose splits that share no prompt");
  return {
      .code = ExitCode::kPass,
      .text = freeze_text(campaign, manifest, hash, context),
      .json = {{"manifest_sha256", hash}, {"chain_head", campaign.head()}, {"manifest", manifest}}};
}

}  // namespace asdbench
