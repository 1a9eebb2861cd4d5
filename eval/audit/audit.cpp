// The steps `audit` and `certify`: start or resume, record prompt by prompt, time, decide, issue.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "eval/audit/evidence.h"
#include "eval/audit/manifest.h"
#include "eval/audit/rows.h"
#include "eval/audit/split_ledger.h"
#include "eval/audit/steps.h"
#include "eval/core/digest.h"
#include "eval/core/output_file.h"

namespace asdbench {
namespace {

constexpr std::int64_t kRoundSamples = 32;

/// One audit of a database at a time. Refused "audit_running" while another process has one.
class AuditLock {
 public:
  explicit AuditLock(const std::filesystem::path& database) {
    const std::string file = database.string() + ".audit-lock";
    descriptor_ = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (descriptor_ < 0) throw StoreError(file + ": cannot be opened; is the folder read-only?");
    if (flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
      ::close(descriptor_);
      throw Refused("audit_running", fmt::format("another process is auditing in {}; two at once "
                                                 "would disturb each other's times",
                                                 database.string()));
    }
  }
  ~AuditLock() { ::close(descriptor_); }
  AuditLock(const AuditLock&) = delete;
  AuditLock& operator=(const AuditLock&) = delete;

 private:
  int descriptor_ = -1;
};

std::vector<std::int64_t> sizes_of(const Json& manifest) {
  std::vector<std::int64_t> sizes;
  for (const Json& task : manifest.at("tasks"))
    sizes.push_back(task.at("size").get<std::int64_t>());
  return sizes;
}

std::vector<TaskPlan> plan_of(const Json& manifest) {
  std::vector<TaskPlan> plan;
  for (const Json& task : manifest.at("tasks")) {
    plan.push_back({.size = task.at("size").get<std::int64_t>(),
                    .psi = real_of(task.at("psi")),
                    .eta = real_of(task.at("eta"))});
  }
  return plan;
}

/// Compares what is here now with what was frozen; another manifest voids the campaign.
void void_if_changed(AuditContext& context, Campaign& campaign, const Json& manifest,
                     const Setting& setting, const LoadedWork& work) {
  const Json now =
      build_manifest(context, setting, {.a = work.a, .b = work.b, .plan = plan_of(manifest)});
  const std::vector<std::string> differences = manifest_differences(manifest, now);
  if (differences.empty()) return;
  campaign.append({{"type", record_type::kVoid}, {"differences", differences}}, "");
  std::string list;
  for (const std::string& difference : differences) list += "\n  " + difference;
  throw Refused("void", fmt::format("campaign {} is void: this is not what was frozen{}\n  a new "
                                    "attempt needs a new run.name and a new split B",
                                    shown(campaign.name()), list));
}

std::vector<std::string> identities(const std::vector<SplitRow>& rows) {
  std::vector<std::string> hashes;
  for (const SplitRow& row : rows) hashes.push_back(row.identity_sha256);
  return hashes;
}

bool decoded_before(Campaign& campaign, const std::vector<std::string>& prompts) {
  const std::set<std::string> in_b(prompts.begin(), prompts.end());
  bool found = false;
  campaign.store().each_identity(
      [&](const std::string& identity, std::int64_t) { found = found || in_b.contains(identity); });
  return found;
}

const std::string& start_hash(const Campaign& campaign) {
  for (const ChainRecord& record : campaign.chain()) {
    if (record.body.at("type") == record_type::kAuditStart) return record.hash;
  }
  throw InternalError("an audit that was started has a record of it");
}

/// Takes split B, or finds that this audit has it already. The ledger is locked between looking and
/// writing; should the program end in between, the next one finds the record without its line and
/// adds it, unless someone else took the split.
void take_split(const AuditContext& context, Campaign& campaign, const std::string& root,
                const std::vector<std::string>& prompts) {
  SplitLedger ledger(context.settings.ledger);
  const SplitLedger::Entry* user = ledger.user_of(prompts);
  const auto consumed_by = [&] {
    return user == nullptr
               ? std::string("its prompts were decoded in this database outside an audit")
               : fmt::format("campaign {} has audited it", shown(user->campaign));
  };
  if (campaign.state() == AuditState::kFrozen) {
    const bool consumed = user != nullptr || decoded_before(campaign, prompts);
    campaign.append({{"type", record_type::kAuditStart},
                     {"manifest", campaign.protocol().manifest()},
                     {"split", root},
                     {"consumed", consumed}},
                    fmt::format("split B is used up: {}", consumed_by()));
    user = nullptr;
  }
  const std::string& id = start_hash(campaign);
  if (const SplitLedger::Entry* mine = ledger.find(id)) {
    if (mine->closed.empty()) return;
    throw Refused("split_consumed",
                  fmt::format("this audit was closed with {}; the database is an older copy",
                              shown(mine->closed)));
  }
  if (user != nullptr) throw Refused("split_consumed", "split B is used up: " + consumed_by());
  ledger.begin({.audit = id,
                .campaign = campaign.name(),
                .manifest = campaign.protocol().manifest(),
                .split = root,
                .closed = ""},
               prompts);
}

/// Appends the records of an audit as its rows come in.
class Recorder {
 public:
  Recorder(Campaign& campaign, const Json& manifest, const Experiment& experiment)
      : campaign_(campaign), manifest_(manifest), experiment_(experiment) {}

  void set_b0(std::vector<std::string> keys) { b0_ = std::move(keys); }

  /// Records the prompts of a task, in order, of which both arms are there.
  void pairs(std::size_t index, const ArmKeys& keys) {
    const TaskSet& task = experiment_.tasks[index];
    const std::string& manifest = campaign_.protocol().manifest();
    const auto strict_cell = campaign_.store().cell(keys.strict);
    const auto asd_cell = campaign_.store().cell(keys.other);
    for (std::size_t i = 0; i < task.samples.size(); ++i) {
      const Sample& sample = task.samples[i];
      const std::string& identity = identity_of(index, i);
      if (campaign_.protocol().has_recorded(task.info.name + "\n" + identity)) continue;
      const auto strict = facts(strict_cell, task, sample.id);
      const auto asd = facts(asd_cell, task, sample.id);
      if (!strict || !asd) return;
      Json body = {{"type", record_type::kAuditRecord},
                   {"manifest", manifest},
                   {"task", task.info.name},
                   {"sample", sample.id},
                   {"identity", identity},
                   {"prompt", strict->prompt_sha256},
                   {"in_split", true},
                   {"strict", arm_record(keys.strict, *strict)},
                   {"asd", arm_record(keys.other, *asd)}};
      if (static_cast<std::int64_t>(i) < kB0Prompts) {
        const auto zero = facts(campaign_.store().cell(b0_.at(index)), task, sample.id);
        if (!zero) return;
        body["b0"] = arm_record(b0_.at(index), *zero);
      }
      campaign_.append(std::move(body), "");
    }
  }

  /// What the e-process of a task says of the records so far; nothing when the size is fixed.
  std::optional<GateVerdict> sequential(std::size_t index) const {
    if (manifest_.at("statistics").at("sampling") != "e_process") return std::nullopt;
    const Json& entry = manifest_.at("tasks").at(index);
    EProcess process(real_of(entry.at("margin")), real_of(entry.at("eta")),
                     real_of(manifest_.at("statistics").at("alpha")));
    const bool capped_wrong = manifest_.at("statistics").at("capped") == "wrong";
    const auto correct = [&](const Json& arm) {
      const bool capped = arm.at("finish") == "length" || arm.at("finish") == "context_limit";
      return arm.at("verdict") == "correct" && !(capped_wrong && capped) ? 1 : 0;
    };
    for (const ChainRecord& record : campaign_.chain()) {
      const Json& body = record.body;
      if (body.at("type") != record_type::kAuditRecord || body.at("task") != entry.at("name")) {
        continue;
      }
      process.observe(correct(body.at("asd")) - correct(body.at("strict")));
    }
    return process.verdict();
  }

  /// Records the groups of a set that have no record yet.
  void groups(const std::string& key, std::size_t index, const ArmKeys& keys, bool reference,
              bool unstable) {
    std::set<std::int64_t> recorded;
    for (const ChainRecord& record : campaign_.chain()) {
      if (record.body.at("type") == record_type::kSpeedGroup &&
          record.body.at("set").at("key") == key) {
        recorded.insert(record.body.at("group").get<std::int64_t>());
      }
    }
    const Json set = {{"key", key},
                      {"task", experiment_.tasks[index].info.name},
                      {"reference_lengths", reference},
                      {"unstable", unstable},
                      {"strict", keys.strict},
                      {"asd", keys.other}};
    const std::map<std::int64_t, std::string> arms = {
        {campaign_.store().cell(keys.strict)->id, "strict"},
        {campaign_.store().cell(keys.other)->id, "asd"}};
    std::map<std::int64_t, std::vector<SlotFacts>> slots;
    for (SlotFacts& slot : campaign_.store().slots(key)) {
      const std::int64_t group = slot.group;
      slots[group].push_back(std::move(slot));
    }
    for (const auto& [group, rows] : slots) {
      if (!recorded.contains(group)) campaign_.append(speed_record(set, group, arms, rows), "");
    }
  }

 private:
  const std::string& identity_of(std::size_t task, std::size_t sample) {
    if (identities_.empty()) {
      for (const SplitRow& row : split_rows(experiment_)) {
        identities_[row.task].push_back(row.identity_sha256);
      }
    }
    return identities_.at(experiment_.tasks[task].info.name).at(sample);
  }

  std::optional<OutputFacts> facts(const std::optional<AuditStore::Cell>& cell, const TaskSet& task,
                                   const std::string& sample) {
    if (!cell) return std::nullopt;
    auto found = campaign_.store().outputs(cell->id, task.grader, task.info.version,
                                           control_of(manifest_, "g"), sample);
    if (found.empty() || found.front().status != "done") return std::nullopt;
    return std::move(found.front());
  }

  Campaign& campaign_;
  const Json& manifest_;
  const Experiment& experiment_;
  std::vector<std::string> b0_;  // cell of each task
  std::map<std::string, std::vector<std::string>> identities_;
};

/// Decodes the first prompts of B with B = 0; their cells, task by task. Empty when interrupted.
std::vector<std::string> decode_b0(AuditContext& context, const Setting& setting,
                                   const std::vector<std::int64_t>& sizes) {
  RunConfig config = audit_config(context.config, setting);
  config.verifiers = {with_zero_budget(setting.verifier)};
  config.speed = false;
  Experiment experiment = make_experiment(std::move(config), context.options);
  for (std::size_t i = 0; i < experiment.tasks.size(); ++i) {
    Samples& samples = experiment.tasks[i].samples;
    const std::int64_t count = std::min({std::ssize(samples), sizes[i], kB0Prompts});
    samples.resize(static_cast<std::size_t>(count));
  }
  const SessionResult result = run_session(context, experiment, context.options, context.callbacks);
  if (result.interrupted || result.too_many_failed) return {};
  return result.cells;
}

std::filesystem::path decision_path(const AuditContext& context) {
  return context.database.string() + "." + context.config.name + ".decision.json";
}

void write_file(const std::filesystem::path& path, const Json& file) {
  write_output_file(path, file.dump(2) + "\n");
}

/// What ended before its time, as a result.
std::optional<StepResult> halted(const SessionResult& result) {
  if (result.interrupted) {
    return StepResult{.code = ExitCode::kInterrupted,
                      .text = "interrupted; run the same command again to go on\n",
                      .json = nullptr};
  }
  if (result.too_many_failed) {
    return StepResult{.code = ExitCode::kFail,
                      .text =
                          "stopped: a prompt failed in one arm; nothing is decided until all of "
                          "split B is recorded\n  run the same command again to go on\n",
                      .json = nullptr};
  }
  return std::nullopt;
}

/// Both arms on natural endings and the timed groups; a result only when it ended early.
std::optional<StepResult> record_everything(AuditContext& context, Campaign& campaign,
                                            const Json& manifest, const Setting& setting,
                                            LoadedWork& work) {
  Recorder recorder(campaign, manifest, work.b);
  std::vector<std::string> b0 = decode_b0(context, setting, sizes_of(manifest));
  if (b0.empty())
    return halted({.interrupted = context.callbacks.interrupted(),
                   .too_many_failed = !context.callbacks.interrupted()});
  recorder.set_b0(std::move(b0));
  work.b.config.round_samples = kRoundSamples;
  SessionCallbacks callbacks = context.callbacks;
  bool harm = false;
  callbacks.round = [&](std::size_t task, const SessionResult& so_far) {
    recorder.pairs(task, arm_keys(so_far, work.b.tasks.size()).at(task));
    const std::optional<GateVerdict> word = recorder.sequential(task);
    harm = harm || word == GateVerdict::kFail;
    if (word == GateVerdict::kFail) return RoundAnswer::kStop;
    return word == GateVerdict::kPass ? RoundAnswer::kEnough : RoundAnswer::kGoOn;
  };
  SessionResult result = run_session(context, work.b, context.options, callbacks);
  if (auto early = halted(result)) return early;
  if (harm) return std::nullopt;  // what follows could only cost time
  const std::vector<ArmKeys> keys = arm_keys(result, work.b.tasks.size());
  const auto record_groups = [&](const SessionResult& timed, bool reference) {
    for (std::size_t i = 0; i < timed.speed_sets.size(); ++i) {
      const std::string& key = timed.speed_sets[i];
      const bool unstable =
          std::find(timed.unstable.begin(), timed.unstable.end(), key) != timed.unstable.end();
      recorder.groups(key, i, keys.at(i), reference, unstable);
    }
  };
  record_groups(result, false);
  const AuditedRows rows = gather_rows(campaign, manifest);
  const bool overrun = std::any_of(rows.sets.begin(), rows.sets.end(), [](const TimedSet& set) {
    return !set.reference_lengths && post_end_fraction(set) > kMostPostEnd;
  });
  if (!overrun) return std::nullopt;
  context.say(
      "more than 20 % of the timed tokens came after the natural end: timing reference "
      "lengths as well");
  work.b.config.quality = false;
  work.b.config.speed_config.work = {SpeedWork::kReference};
  result = run_session(context, work.b, context.options, context.callbacks);
  if (auto early = halted(result)) return early;
  record_groups(result, true);
  return std::nullopt;
}

StepResult decided(AuditContext& context, Campaign& campaign, const AuditDecision& decision) {
  const Json file = decision_file(decision, campaign, "decision");
  write_file(decision_path(context), file);
  return {
      .code = exit_code_of(decision.verdict.verdict),
      .text = decision_text(file) + "decision record: " + decision_path(context).string() + "\n",
      .json = file};
}

}  // namespace

ExitCode exit_code_of(GateVerdict verdict) {
  if (verdict == GateVerdict::kPass) return ExitCode::kPass;
  return verdict == GateVerdict::kFail ? ExitCode::kFail : ExitCode::kInconclusive;
}

StepResult audit(AuditContext& context) {
  const AuditLock lock(context.database);
  Campaign campaign(AuditStore(context.store), context.config.name);
  if (campaign.state() == AuditState::kDecided) {
    // Closed, but perhaps the program ended before it wrote the file.
    return decided(context, campaign, derive_decision(campaign));
  }
  if (campaign.state() != AuditState::kFrozen && campaign.state() != AuditState::kAuditing) {
    throw Refused(
        "not_allowed",
        fmt::format("audit needs a frozen setting, and campaign {} is {}\n  run: asdbench "
                    "freeze {}",
                    shown(campaign.name()), name_of(campaign.state()),
                    context.config.file.string()));
  }
  const Json manifest = frozen_manifest(campaign);
  const Setting setting = read_lock(context.config);
  LoadedWork work = load_work(context, setting, sizes_of(manifest));
  void_if_changed(context, campaign, manifest, setting, work);
  const std::string root = manifest.at("splits").at("b").get<std::string>();
  take_split(context, campaign, root, identities(split_rows(work.b)));
  if (auto early = record_everything(context, campaign, manifest, setting, work)) return *early;

  const AuditDecision decision = derive_decision(campaign);
  campaign.append({{"type", record_type::kAuditClose},
                   {"verdict", std::string(name_of(decision.verdict.verdict))},
                   {"early_stop", decision.early_stop},
                   {"decision", sha256_hex(canonical_json(decision.body))}},
                  "not every prompt of split B is recorded; run audit again");
  SplitLedger ledger(context.settings.ledger);
  ledger.close(start_hash(campaign), std::string(name_of(decision.verdict.verdict)));
  return decided(context, campaign, decision);
}

StepResult certify(AuditContext& context, const std::filesystem::path& output) {
  const AuditLock lock(context.database);
  Campaign campaign(AuditStore(context.store), context.config.name);
  const bool again = campaign.state() == AuditState::kCertified;
  if (!again && campaign.state() != AuditState::kDecided) {
    throw Refused("not_allowed", fmt::format("certify needs a decided audit, and campaign {} is {}",
                                             shown(campaign.name()), name_of(campaign.state())));
  }
  const Json manifest = frozen_manifest(campaign);
  const Setting setting = read_lock(context.config);
  const LoadedWork work = load_work(context, setting, sizes_of(manifest));
  void_if_changed(context, campaign, manifest, setting, work);
  const AuditDecision decision = derive_decision(campaign);
  const std::string digest = sha256_hex(canonical_json(decision.body));
  if (campaign.latest(record_type::kAuditClose)->at("decision") != digest) {
    throw Refused("integrity", "the rows give another decision than the one that was recorded");
  }
  if (!again) {
    campaign.append({{"type", record_type::kCertify}, {"decision", digest}},
                    "only a pass is certified; a new attempt needs a new run.name and split B");
  }
  const Json file = decision_file(decision, campaign, "certificate");
  write_file(output, file);
  return {.code = ExitCode::kPass,
          .text = decision_text(file) + "certificate: " + output.string() + "\n",
          .json = file};
}

}  // namespace asdbench
