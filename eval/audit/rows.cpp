// Every row against its record.
#include "eval/audit/rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "eval/audit/manifest.h"
#include "eval/audit/splits.h"
#include "eval/audit/workload.h"
#include "eval/core/digest.h"
#include "eval/core/error.h"
#include "eval/core/prompt_identity.h"

namespace asdbench {
namespace {

using Outputs = std::map<std::string, OutputFacts>;  // by sample

/// The outputs of a cell, read once however many records name it.
class CellCache {
 public:
  CellCache(Campaign& campaign, const Json& manifest)
      : campaign_(campaign), gate_(control_of(manifest, "g")) {}

  /// nullptr when there is no such cell.
  const Outputs* outputs(const std::string& key, const Json& entry) {
    auto found = cells_.find(key);
    if (found == cells_.end()) {
      const auto cell = campaign_.store().cell(key);
      if (!cell) return nullptr;
      Outputs outputs;
      for (OutputFacts& facts :
           campaign_.store().outputs(cell->id, entry.at("grader").get<std::string>(),
                                     entry.at("version").get<std::int64_t>(), gate_)) {
        const std::string sample = facts.sample_id;
        outputs.emplace(sample, std::move(facts));
      }
      found = cells_.emplace(key, std::move(outputs)).first;
    }
    return &found->second;
  }
  const std::map<std::string, Outputs>& all() const { return cells_; }

 private:
  Campaign& campaign_;
  double gate_;
  std::map<std::string, Outputs> cells_;
};

/// What an honest program cannot have written into a row, "" when all is well.
std::string row_fault(const OutputFacts& facts, const Json& manifest) {
  if (facts.status != "done") return "the output failed: " + facts.error;
  if (facts.stored_tokens_sha256 != facts.tokens_sha256) return "its tokens are not those it names";
  if (facts.output_tokens != std::ssize(facts.tokens)) return "its count of tokens is another";
  if (facts.committed != std::ssize(facts.tokens) - 1) return "its passes commit other tokens";
  // The product of a gate of the normalised scheme may round; nothing more is granted.
  constexpr double kRounding = 1e-9;
  if (facts.largest_excess > kRounding) return "an exception is above the gate g";
  if (static_cast<double>(facts.most_in_pass) > control_of(manifest, "M")) {
    return "a pass has more exceptions than M";
  }
  return "";
}

/// The first field in which a row differs from its record, "" when none does.
std::string difference(const Json& recorded, const Json& found) {
  for (const auto& [key, value] : found.items()) {
    const auto was = recorded.find(key);
    if (was == recorded.end() || *was != value) return key;
  }
  return recorded.size() == found.size() ? "" : "a field that is not known";
}

class Gatherer {
 public:
  Gatherer(Campaign& campaign, const Json& manifest)
      : campaign_(campaign), manifest_(manifest), cells_(campaign, manifest) {}

  AuditedRows gather() {
    for (const Json& entry : manifest_.at("tasks")) {
      AuditedTask task;
      task.name = entry.at("name").get<std::string>();
      task.entry = entry;
      task.task = task_of(entry);
      if (grader_fingerprint(*task.task) != entry.at("grader_sha256")) {
        fault("task " + task.name + ": the grader of this build is not the frozen one");
      }
      rows_.tasks.push_back(std::move(task));
    }
    check_splits();
    for (const ChainRecord& record : campaign_.chain()) {
      const std::string type = record.body.at("type").get<std::string>();
      if (type == record_type::kAuditRecord) add_record(record.body);
      if (type == record_type::kSpeedGroup) add_group(record.body);
    }
    check_unrecorded();
    check_b0();
    return std::move(rows_);
  }

 private:
  void fault(std::string text) { rows_.faults.push_back(std::move(text)); }

  AuditedTask* task_named(const std::string& name) {
    const auto found = std::find_if(rows_.tasks.begin(), rows_.tasks.end(),
                                    [&](const AuditedTask& task) { return task.name == name; });
    return found == rows_.tasks.end() ? nullptr : &*found;
  }

  /// Both splits as stored against the manifest's roots, and against each other.
  void check_splits() {
    std::map<std::string, std::vector<std::string>> texts;
    for (const char* part : {"A", "B"}) {
      const std::string name = part == std::string("A") ? "a" : "b";
      std::map<std::string, Sha256> items;
      std::map<std::string, std::vector<std::string>> hashes;
      for (SplitRow& row : campaign_.store().split(campaign_.name(), part)) {
        if (prompt_hash(row.prompt) != row.identity_sha256) {
          fault(fmt::format("split {}: prompt {} has another text than its hash says", part,
                            row.sample_id));
        }
        items[row.task].update(row.identity_sha256).update(sha256_hex(row.sample));
        hashes[row.task].push_back(row.identity_sha256);
        texts[name].push_back(row.prompt);
        AuditedTask* task = task_named(row.task);
        if (task != nullptr && name == "b") task->split.push_back(std::move(row));
      }
      for (const AuditedTask& task : rows_.tasks) {
        const Json& frozen = task.entry.at(name);
        if (split_root(hashes[task.name]) != frozen.at("root") ||
            items[task.name].finish_hex() != frozen.at("items_sha256")) {
          fault(fmt::format("split {} of task {} is not the frozen one", part, task.name));
        }
      }
    }
    if (!compare_splits(texts["a"], texts["b"]).disjoint()) fault("splits A and B overlap");
  }

  /// The output that a record speaks of, checked; nullptr when it is not there.
  const OutputFacts* arm(const AuditedTask& task, const Json& body, const char* name) {
    const Json& recorded = body.at(name);
    const std::string sample = body.at("sample").get<std::string>();
    const std::string key = recorded.at("cell").get<std::string>();
    const std::string where = fmt::format("{} {} {}", task.name, sample, name);
    const Outputs* outputs = cells_.outputs(key, task.entry);
    const auto found = outputs == nullptr ? Outputs::const_iterator{} : outputs->find(sample);
    if (outputs == nullptr || found == outputs->end()) {
      fault(where + ": the recorded row is missing");
      return nullptr;
    }
    const OutputFacts& facts = found->second;
    named_[key].insert(sample);
    check_cell(key, task, name);
    if (const std::string what = row_fault(facts, manifest_); !what.empty()) {
      fault(where + ": " + what);
    }
    if (const std::string what = difference(recorded, arm_record(key, facts)); !what.empty()) {
      fault(fmt::format("{}: {} is not what was recorded", where, what));
    }
    if (facts.identity_sha256 != body.at("identity") || facts.prompt_sha256 != body.at("prompt")) {
      fault(where + ": another prompt than the recorded one");
    }
    return &facts;
  }

  /// A cell is what the manifest froze: target, drafter, rule, data.
  void check_cell(const std::string& key, const AuditedTask& task, const std::string& arm) {
    if (!checked_.insert(key + arm).second) return;
    const auto cell = campaign_.store().cell(key);
    const std::string where = fmt::format("cell of {} {}", task.name, arm);
    if (!cell || sha256_hex(cell->identity) != key) {
      fault(where + ": its identity is not that of its key");
      return;
    }
    const Json identity = parse_json(cell->identity);
    Json rule = manifest_.at("rule");
    if (arm == "b0") rule["options"]["B"] = "0";
    if (arm == "strict") rule = {{"name", "strict"}};
    const Json& target = manifest_.at("target");
    const std::vector<std::pair<Json, Json>> same = {
        {identity.value("verifier", Json()), rule},
        {identity.value("task", Json()), task.entry.at("name")},
        {identity.value("data", Json()), task.entry.at("b").at("data_sha256")},
        {identity.value("max_tokens", Json()), task.entry.at("max_tokens")},
        {identity.value("drafts", Json()), manifest_.at("drafter").at("drafts")},
        {identity.value("batch", Json()), manifest_.at("decoding").at("batch")},
        {identity.value("seed", Json()), manifest_.at("seed")},
        {identity.at("drafter").value("sha256", Json()), manifest_.at("drafter").at("sha256")},
        {identity.at("target").value("sha256", Json()), target.at("sha256")},
        {identity.at("target").value("device", Json()), target.at("device")},
        {identity.at("target").value("engine", Json()), target.at("engine")}};
    for (const auto& [found, expected] : same) {
      if (found != expected) {
        fault(fmt::format("{}: found {}, frozen {}", where, found.dump(), expected.dump()));
      }
    }
  }

  void add_record(const Json& body) {
    const std::string name = body.at("task").get<std::string>();
    AuditedTask* task = task_named(name);
    if (task == nullptr) {
      fault("a record of task " + name + ", which was not frozen");
      return;
    }
    const std::size_t place = task->pairs.size();
    const bool expected = place < task->split.size() &&
                          task->split[place].identity_sha256 == body.at("identity") &&
                          task->split[place].sample_id == body.at("sample");
    if (!expected) {
      fault(fmt::format("{} record {}: prompt {} is not the next of split B", name, place,
                        body.at("sample").dump()));
    }
    const OutputFacts* strict = arm(*task, body, "strict");
    const OutputFacts* asd = arm(*task, body, "asd");
    if (body.contains("b0")) {
      const OutputFacts* zero = arm(*task, body, "b0");
      ++task->b0_prompts;
      if (zero == nullptr || strict == nullptr || zero->tokens != strict->tokens) {
        ++task->b0_mismatches;
      }
    }
    task->pairs.push_back({.strict = strict == nullptr ? OutputFacts{} : *strict,
                           .asd = asd == nullptr ? OutputFacts{} : *asd});
    if (!expected) return;
    const Sample sample = sample_of(task->split[place]);
    for (const OutputFacts* facts : {strict, asd}) {
      if (facts == nullptr || task->entry.at("metric") != "accuracy") continue;
      if (facts->verdict != verdict_again(*task->task, sample, *facts)) {
        fault(fmt::format("{} {}: the stored score is not that of its text", name, sample.id));
      }
    }
  }

  void add_group(const Json& body) {
    const std::string key = body.at("set").at("key").get<std::string>();
    const std::int64_t group = body.at("group").get<std::int64_t>();
    auto set = sets_.find(key);
    if (set == sets_.end()) {
      TimedSet timed{.task = body.at("set").at("task").get<std::string>(),
                     .reference_lengths = body.at("set").at("reference_lengths").get<bool>(),
                     .unstable = body.at("set").at("unstable").get<bool>(),
                     .slots = {}};
      for (const char* arm : {"strict", "asd"}) {
        const auto cell = campaign_.store().cell(body.at("set").at(arm).get<std::string>());
        if (!cell) fault(fmt::format("group {}: its cell is missing", group));
        (arm == std::string("strict") ? timed.strict_cell : timed.asd_cell) = cell ? cell->id : 0;
      }
      set = sets_.emplace(key, rows_.sets.size()).first;
      rows_.sets.push_back(std::move(timed));
      stored_[key] = campaign_.store().slots(key);
    }
    TimedSet& timed = rows_.sets[set->second];
    std::vector<SlotFacts> slots;
    for (const SlotFacts& slot : stored_[key]) {
      if (slot.group == group) slots.push_back(slot);
    }
    const std::map<std::int64_t, std::string> arms = {{timed.strict_cell, "strict"},
                                                      {timed.asd_cell, "asd"}};
    const std::string what = difference(body, [&] {
      Json again = speed_record(body.at("set"), group, arms, slots);
      again["seq"] = body.at("seq");
      return again;
    }());
    if (!what.empty()) {
      fault(fmt::format("speed group {} of {}: {} is not what was recorded", group, timed.task,
                        what));
    }
    recorded_slots_[key] += slots.size();
    if (!slots.empty() && !slots.front().void_reason.empty()) {
      timed.voids.push_back(
          fmt::format("{} group {}: {}", timed.task, group, slots.front().void_reason));
      return;
    }
    timed.slots.insert(timed.slots.end(), slots.begin(), slots.end());
  }

  void check_unrecorded() {
    for (const auto& [key, outputs] : cells_.all()) {
      for (const auto& [sample, facts] : outputs) {
        if (!named_[key].contains(sample)) fault(sample + ": a row without a record");
      }
    }
    for (const auto& [key, index] : sets_) {
      if (stored_[key].size() != recorded_slots_[key]) {
        fault(rows_.sets[index].task + ": timed groups without a record");
      }
    }
  }

  void check_b0() {
    for (const AuditedTask& task : rows_.tasks) {
      const std::int64_t expected = std::min<std::int64_t>(kB0Prompts, std::ssize(task.pairs));
      if (task.b0_prompts < expected) {
        fault(fmt::format("{}: B = 0 was checked on {} prompts, expected {}", task.name,
                          task.b0_prompts, expected));
      }
    }
  }

  Campaign& campaign_;
  const Json& manifest_;
  CellCache cells_;
  AuditedRows rows_;
  std::map<std::string, std::set<std::string>> named_;  // cell -> samples with a record
  std::set<std::string> checked_;
  std::map<std::string, std::size_t> sets_;  // key -> index into rows_.sets
  std::map<std::string, std::vector<SlotFacts>> stored_;
  std::map<std::string, std::size_t> recorded_slots_;  // of each set, void groups included
};

}  // namespace

AuditedRows gather_rows(Campaign& campaign, const Json& manifest) {
  if (campaign.latest(record_type::kAuditRecord) == nullptr) {
    throw Refused("incomplete", fmt::format("campaign {} has recorded no prompt of split B",
                                            shown(campaign.name())));
  }
  return Gatherer(campaign, manifest).gather();
}

Json arm_record(const std::string& cell_key, const OutputFacts& facts) {
  return {{"cell", cell_key},
          {"tokens", facts.tokens_sha256},
          {"count", facts.tokens.size()},
          {"text", sha256_hex(facts.text)},
          {"trace", facts.trace_sha256},
          {"finish", facts.finish_reason},
          {"regret", shortest_real(facts.regret)},
          {"verdict", facts.verdict ? std::string(name_of(*facts.verdict)) : "none"},
          {"value", facts.value ? shortest_real(*facts.value) : "none"}};
}

Json speed_record(const Json& set, std::int64_t group,
                  const std::map<std::int64_t, std::string>& arms,
                  const std::vector<SlotFacts>& slots) {
  Json body = {
      {"type", record_type::kSpeedGroup}, {"set", set}, {"group", group}, {"slots", Json::array()}};
  for (const SlotFacts& slot : slots) {
    const auto arm = arms.find(slot.cell_id);
    Sha256 prompts;
    for (const SlotFacts::Prompt& prompt : slot.prompts) {
      prompts.update(fmt::format("{} {} {}\n", prompt.sample_id, prompt.tokens, prompt.decode_ns));
    }
    Sha256 environment;
    for (const SlotEnvironmentRow& item : slot.environment) {
      environment.update(fmt::format("{} {} {} {} {}\n", item.name, item.samples,
                                     shortest_real(item.mean), shortest_real(item.least),
                                     shortest_real(item.most)));
    }
    body["slots"].push_back({{"slot", slot.slot},
                             {"arm", arm == arms.end() ? "unknown" : arm->second},
                             {"tokens", slot.tokens},
                             {"passes", slot.passes},
                             {"post_end", slot.post_end_tokens},
                             {"decode_ns", slot.decode_ns},
                             {"outputs", slot.tokens_sha256},
                             {"prompts", prompts.finish_hex()},
                             {"environment", environment.finish_hex()}});
  }
  return body;
}

Verdict verdict_again(const Task& task, const Sample& sample, const OutputFacts& facts) {
  return task.score(sample, task.extract(sample, facts.text)).verdict;
}

std::unique_ptr<Task> task_of(const Json& entry) {
  const std::string name = entry.at("name").get<std::string>();
  Params params(name, {.file = "the manifest"});
  for (const auto& [key, value] : entry.at("options").items()) {
    params.set(key, value.get<std::string>(), {.file = "the manifest"});
  }
  std::vector<std::string> known;
  for (const TaskFactory& factory : task_factories()) {
    known.push_back(factory.name);
    if (factory.name == name) return factory.make(params);
  }
  throw ConfigError(
      fmt::format("the manifest: unknown task {}{}", shown(name), known_names(name, known)));
}

double control_of(const Json& manifest, const char* name) {
  const std::string text = manifest.at("rule").at("options").at(name).get<std::string>();
  const auto value = parse_number(text);
  if (!value) throw DataError(fmt::format("the manifest: {} = {} is no number", name, shown(text)));
  return *value;
}

}  // namespace asdbench
