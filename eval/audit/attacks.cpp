// One function an attack.
#include "eval/audit/attacks.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "eval/audit/evidence.h"
#include "eval/audit/manifest.h"
#include "eval/audit/splits.h"
#include "eval/audit/tuning.h"
#include "eval/core/digest.h"
#include "eval/core/prompt_identity.h"

namespace asdbench {
namespace {

namespace fs = std::filesystem;

// Small and quick: no reply ends, so that lengths and cap hits are equal, and no answer is right,
// so that the floor is 0. Limits are wide where the machine's noise would decide.
constexpr const char* kConfig = R"(run: {name: range, seed: 7}
matrix:
  task: [{gsm8k: {split: synthetic, seed: 1, from: 0, count: 8, max_tokens: 16}}]
  target: [{planted: {seed: 1, step_us: 200}}]
  drafter: [{planted: {K: 4, acceptance: 0.6}}]
  verifier: [strict, {asd: {B: 8, g: 0.25, M: 2}}]
speed: {tokens: 16, prompts: 2, groups: 4, warmup: 1}
capped: as_scored
deploy:
  audit: [{gsm8k: {split: synthetic, seed: 1, from: 100, count: 24, max_tokens: 16}}]
  margins: {gsm8k: 0.2}
  cap_margin: 0.2
  drift_limit_pct: 1000000
  speed_target_pct: -100
  accuracy_floor: 0
  minimum_seconds: 0
  resamples: 200
  select: given
  size: 24
)";

struct Place {
  fs::path folder;
  fs::path database() const { return folder / "range.db"; }
  fs::path config() const { return folder / "range.yaml"; }
  fs::path ledger() const { return folder / "splits.jsonl"; }
  fs::path certificate() const { return folder / "range.certificate.json"; }
};

std::string text_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

void write(const fs::path& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << text;
  out.close();
  if (!out) throw StoreError(path.string() + ": writing failed");
}

using Step = std::function<StepResult(AuditContext&)>;

/// Takes a step in a folder as the command line would.
StepResult take(const Place& place, const Step& step, std::vector<Override> overrides = {}) {
  overrides.push_back({"deploy.ledger", place.ledger().string()});
  RunConfig config =
      parse_config(text_of(place.config()), place.config(), known_names_of_build(), overrides);
  const DeploySettings settings = read_deploy_settings(config);
  ResultStore store(place.database(), OpenMode::kReadWrite);
  AuditContext context{.config = std::move(config),
                       .settings = settings,
                       .options = {.paths = {}},
                       .store = store,
                       .database = place.database(),
                       .run = {.name = "range", .version = "range", .commit = "range"},
                       .environment = {{"cpu", "range"}, {"cores", "1"}},
                       .program_sha256 = sha256_hex("range"),
                       .callbacks = {}};
  return step(context);
}

StepResult tune_here(AuditContext& context) { return tune(context, ""); }

void sql(const Place& place, const std::string& statement) {
  ResultStore store(place.database(), OpenMode::kReadWrite);
  store.query(statement, [](const auto&, const auto&) {});
}

AttackOutcome outcome_of(const std::function<StepResult()>& step) {
  try {
    const StepResult result = step();
    AttackOutcome outcome;
    if (result.code == ExitCode::kRefused) outcome.refused = "refused";
    if (result.json.is_object() && result.json.contains("gates")) {
      for (const Json& gate : result.json.at("gates")) {
        if (gate.at("verdict") == "fail") outcome.fail.push_back(gate.at("name"));
        if (gate.at("verdict") == "inconclusive") outcome.inconclusive.push_back(gate.at("name"));
      }
    }
    return outcome;
  } catch (const Refused& refusal) {
    return {.refused = refusal.name(), .fail = {}, .inconclusive = {}};
  }
}

AttackOutcome verified(const Place& place, const std::string& text,
                       const std::string& device = "") {
  return outcome_of([&] {
    const ResultStore store(place.database(), OpenMode::kReadOnly);
    return verify(text, "certificate", store, device);
  });
}

AttackOutcome verified(const Place& place) { return verified(place, text_of(place.certificate())); }

/// The evidence of the untouched rows after `change`, as a chain that was forged throughout would
/// give it: gates must hold what hashes cannot.
AttackOutcome judged(const Place& place, const std::function<void(AuditedRows&)>& change) {
  ResultStore store(place.database(), OpenMode::kReadWrite);
  Campaign campaign(AuditStore(store), "range");
  Json manifest = frozen_manifest(campaign);
  manifest["statistics"]["drift_limit_pct"] = "3";
  AuditedRows rows = gather_rows(campaign, manifest);
  // Real times drift on a busy machine: the attack starts from times that do not.
  for (TimedSet& set : rows.sets) {
    for (SlotFacts& slot : set.slots) {
      slot.decode_ns = slot.cell_id == set.strict_cell ? 110 : 100;
      for (SlotFacts::Prompt& prompt : slot.prompts) prompt.decode_ns = slot.decode_ns / 2;
    }
  }
  change(rows);
  const AuditVerdict verdict = judge(derive_evidence(rows, manifest).evidence);
  return {.refused = "",
          .fail = verdict.names(GateVerdict::kFail),
          .inconclusive = verdict.names(GateVerdict::kInconclusive)};
}

/// Rewrites the last record and hashes it again.
void rehash_last(const Place& place) {
  ResultStore store(place.database(), OpenMode::kReadWrite);
  AuditStore audits(store);
  const RecordRow last = audits.records("range").back();
  Json body = parse_json(last.body);
  body["decision"] = sha256_hex("forged");
  store.query(fmt::format("UPDATE record SET body = '{}', hash = '{}' WHERE seq = {}",
                          canonical_json(body), chain_hash(last.prev, body), last.seq),
              [](const auto&, const auto&) {});
}

/// The first two records of prompts change places.
void swap_records(const Place& place) {
  ResultStore store(place.database(), OpenMode::kReadWrite);
  const std::vector<RecordRow> records = AuditStore(store).records("range");
  const auto first = std::find_if(records.begin(), records.end(), [](const RecordRow& record) {
    return record.body.find("\"audit_record\"") != std::string::npos;
  });
  const std::int64_t at = first->seq;
  const auto move = [&](std::int64_t from, std::int64_t to) {
    store.query(fmt::format("UPDATE record SET seq = {} WHERE seq = {}", to, from),
                [](const auto&, const auto&) {});
  };
  move(at, -1);
  move(at + 1, at);
  move(-1, at + 1);
}

std::string hash_in_b(const Place& place) {
  const ResultStore store(place.database(), OpenMode::kReadOnly);
  return AuditStore(store).split("range", "B").front().identity_sha256;
}

std::vector<std::string> prompts_of(const Place& place, const char* part) {
  const ResultStore store(place.database(), OpenMode::kReadOnly);
  std::vector<std::string> texts;
  for (const SplitRow& row : AuditStore(store).split("range", part)) texts.push_back(row.prompt);
  return texts;
}

AttackOutcome overlap(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  AttackOutcome outcome;
  if (!compare_splits(a, b).disjoint()) outcome.refused = "split_overlap";
  return outcome;
}

std::string shouted(std::string text) {
  for (char& c : text) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return "  " + text + "\r\n";
}

/// Which copy an attack starts from, and what it does there.
struct Attack {
  const char* stage;  // "selected", "frozen", "auditing", "decided", "certified"
  std::function<AttackOutcome(const Place&)> carry_out;
};

Attack on_rows(std::string statement) {
  return {"certified", [statement = std::move(statement)](const Place& place) {
            sql(place, statement);
            return verified(place);
          }};
}

Attack on_step(const char* stage, Step step, std::vector<Override> overrides) {
  return {stage, [step = std::move(step), overrides = std::move(overrides)](const Place& place) {
            return outcome_of([&] { return take(place, step, overrides); });
          }};
}

Attack on_certificate(std::function<std::string(const Json&)> edit) {
  return {"certified", [edit = std::move(edit)](const Place& place) {
            return verified(place, edit(parse_json(text_of(place.certificate()))));
          }};
}

Attack on_evidence(std::function<void(AuditedRows&)> change) {
  return {"certified",
          [change = std::move(change)](const Place& place) { return judged(place, change); }};
}

constexpr const char* kOneRow =
    "(SELECT id FROM output WHERE run_id = (SELECT max(run_id) FROM output) ORDER BY id LIMIT 1)";
constexpr const char* kFirstRecord =
    "(SELECT min(seq) FROM record WHERE body LIKE '%\"audit_record\"%')";

std::map<std::string, Attack> forged_rows() {
  const std::string row = kOneRow, first = kFirstRecord;
  return {
      {"edited_output_row", on_rows("UPDATE output SET completion = '#### 42' WHERE id = " + row)},
      {"edited_tokens", on_rows("UPDATE output SET tokens = x'00000000' WHERE id = " + row)},
      {"edited_score",
       on_rows("UPDATE score SET verdict = 'correct', value = 1 WHERE output_id = " + row)},
      {"edited_times", on_rows("UPDATE speed_slot SET decode_ns = decode_ns / 2 WHERE slot = 1")},
      {"edited_manifest",
       on_rows("UPDATE manifest SET body = replace(body, '\"0.2\"', '\"0.3\"')")},
      {"edited_split",
       on_rows("UPDATE split SET prompt = 'another' WHERE part = 'B' AND position = 0")},
      {"edited_gold",
       on_rows("UPDATE split SET sample = replace(sample, 'targets\":[\"', 'targets\":[\"1') "
               "WHERE part = 'B' AND position = 0")},
      {"deleted_row", on_rows("DELETE FROM output WHERE id = " + row)},
      {"added_row",
       on_rows("INSERT INTO output (cell_id, run_id, sample_id, repeat, turn, status, cluster, "
               "category, prompt_sha256, identity_sha256, tokens, tokens_sha256, completion, "
               "finish_reason, output_tokens, passes, regret, exceptions) SELECT cell_id, run_id, "
               "'added', repeat, turn, status, cluster, category, prompt_sha256, identity_sha256, "
               "tokens, tokens_sha256, completion, finish_reason, output_tokens, passes, regret, "
               "exceptions FROM output WHERE id = " +
               row)},
      {"deleted_record", on_rows("DELETE FROM record WHERE seq = " + first)},
      {"reordered_chain",
       {"certified",
        [](const Place& place) {
          swap_records(place);
          return verified(place);
        }}},
      {"rehashed_last_record",
       {"certified",
        [](const Place& place) {
          rehash_last(place);
          return verified(place);
        }}},
      {"forged_verdict", on_certificate([](Json file) {
         file["figures"]["quality"][0]["n"] = 4000;
         return file.dump();
       })},
      {"cut_certificate",
       on_certificate([](const Json& file) { return file.dump().substr(0, 500); })},
      {"certificate_of_another_setting", on_certificate([](Json file) {
         file["manifest"]["rule"]["options"]["B"] = "1000";
         return file.dump();
       })},
      {"certificate_of_another_device",
       {"certified",
        [](const Place& place) {
          return verified(place, text_of(place.certificate()), "another processor");
        }}},
  };
}

std::map<std::string, Attack> changed_things() {
  const auto run_audit = [](AuditContext& context) { return audit(context); };
  const auto run_freeze = [](AuditContext& context) { return freeze(context); };
  return {
      {"swapped_weights", on_step("frozen", run_audit, {{"matrix.target[0].planted.seed", "2"}})},
      {"swapped_weights_at_certify", on_step("decided",
                                             [](AuditContext& context) {
                                               return certify(context,
                                                              context.database.string() + ".c");
                                             },
                                             {{"matrix.target[0].planted.seed", "2"}})},
      {"changed_grader",
       on_step("frozen", run_audit, {{"deploy.audit[0].gsm8k.grader", "lm-eval-strict"}})},
      {"changed_margin", on_step("frozen", run_audit, {{"deploy.margins.gsm8k", "0.3"}})},
      {"changed_split", on_step("frozen", run_audit, {{"deploy.audit[0].gsm8k.from", "300"}})},
      {"changed_split_while_auditing",
       on_step("auditing", run_audit, {{"deploy.audit[0].gsm8k.from", "300"}})},
      {"changed_template",
       {"frozen",
        [](const Place& place) {
          // Built-in targets have no template: the attack is what a frozen one would see.
          ResultStore store(place.database(), OpenMode::kReadWrite);
          Campaign campaign(AuditStore(store), "range");
          const Json frozen = frozen_manifest(campaign);
          Json now = frozen;
          now["target"]["template_sha256"] = sha256_hex("another template");
          return AttackOutcome{.refused = manifest_differences(frozen, now).empty() ? "" : "void",
                               .fail = {},
                               .inconclusive = {}};
        }}},
      {"changed_controls",
       {"frozen",
        [=](const Place& place) {
          const fs::path lock = place.folder / "range.lock.json";
          std::string text = text_of(lock);
          text.replace(text.find("B=8"), 3, "B=9");
          write(lock, text);
          return outcome_of([&] { return take(place, run_audit); });
        }}},
      {"changed_controls_before_freeze",
       {"selected",
        [=](const Place& place) {
          const fs::path lock = place.folder / "range.lock.json";
          std::string text = text_of(lock);
          text.replace(text.find("B=8"), 3, "B=9");
          write(lock, text);
          return outcome_of([&] { return take(place, run_freeze); });
        }}},
      {"infinite_control",
       {"draft",
        [=](const Place& place) {
          const std::vector<Override> infinite = {{"matrix.verifier[1].asd.B", "inf"}};
          take(place, tune_here, infinite);
          return outcome_of([&] { return take(place, run_freeze, infinite); });
        }}},
  };
}

std::map<std::string, Attack> broken_conduct() {
  const auto run_audit = [](AuditContext& context) { return audit(context); };
  const auto run_freeze = [](AuditContext& context) { return freeze(context); };
  return {
      {"split_reuse",
       {"certified",
        [=](const Place& place) {
          // Another campaign in another database, with the ledger of the first.
          fs::remove(place.database());
          const std::vector<Override> again = {{"run.name", "again"}};
          take(place, tune_here, again);
          return outcome_of([&] { return take(place, run_freeze, again); });
        }}},
      {"older_copy_of_the_database",
       {"auditing",
        [=](const Place& place) {
          const std::string before = text_of(place.database());
          take(place, run_audit);
          write(place.database(), before);
          return outcome_of([&] { return take(place, run_audit); });
        }}},
      {"audit_before_freeze", on_step("selected", run_audit, {})},
      {"certify_before_audit", on_step("frozen",
                                       [](AuditContext& context) {
                                         return certify(context, context.database.string() + ".c");
                                       },
                                       {})},
      {"tune_after_freeze", on_step("frozen", tune_here, {})},
      {"two_audits_at_once",
       {"frozen",
        [=](const Place& place) {
          const std::string lock = place.database().string() + ".audit-lock";
          const int held = open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
          flock(held, LOCK_EX);
          AttackOutcome outcome = outcome_of([&] { return take(place, run_audit); });
          close(held);
          return outcome;
        }}},
      {"two_audits_of_one_split",
       {"frozen",
        [=](const Place& place) {
          const std::string before = text_of(place.database());
          take(place, run_audit);
          write(place.database(), before);
          return outcome_of([&] { return take(place, run_audit); });
        }}},
      {"split_overlap", on_step("selected", run_freeze, {{"deploy.audit[0].gsm8k.from", "4"}})},
      {"overlap_by_case_and_whitespace",
       {"frozen",
        [](const Place& place) {
          const auto a = prompts_of(place, "A");
          return overlap(a, {shouted(a.front())});
        }}},
      {"overlap_by_near_duplicate",
       {"frozen",
        [](const Place& place) {
          const auto a = prompts_of(place, "A");
          return overlap(a, {a.front() + " please"});
        }}},
      {"audit_prompts_decoded_before",
       {"selected",
        [=](const Place& place) {
          // A run over split B, as `asdbench run` would do it.
          take(place, [](AuditContext& context) {
            RunConfig config = context.config;
            config.tasks = config.deploy->audit;
            Experiment experiment = make_experiment(std::move(config), context.options);
            run_session(context, experiment, context.options, context.callbacks);
            return StepResult{};
          });
          return outcome_of([&] { return take(place, run_freeze); });
        }}},
      {"drafter_trained_on_audit_prompts",
       {"frozen",
        [=](const Place& place) {
          const fs::path list = place.folder / "trained.txt";
          write(list, hash_in_b(place) + "\n");
          fs::remove(place.database());
          const std::vector<Override> named = {{"deploy.trained_on", list.string()}};
          take(place, tune_here, named);
          return outcome_of([&] { return take(place, run_freeze, named); });
        }}},
      {"b0_identity_broken",
       {"selected",
        [=](const Place& place) {
          sql(place,
              "UPDATE output SET tokens = x'01000000', tokens_sha256 = 'x' WHERE id = "
              "(SELECT min(o.id) FROM output o JOIN cell c ON c.id = o.cell_id "
              "WHERE c.verifier = 'strict')");
          return outcome_of([&] { return take(place, run_freeze); });
        }}},
      {"b0_identity_broken_in_audit",
       on_evidence([](AuditedRows& rows) { rows.tasks[0].b0_mismatches = 1; })},
      {"ledger_above_budget",
       on_evidence([](AuditedRows& rows) { rows.tasks[0].pairs[0].asd.regret = 8.015625; })},
      {"ledger_of_another_request",
       on_evidence([](AuditedRows& rows) { rows.tasks[0].pairs[0].asd.ledger_ok = false; })},
      {"capped_outputs_graded_right",
       {"certified",
        [](const Place& place) {
          sql(place,
              "UPDATE score SET verdict = 'correct', value = 1 WHERE output_id IN (SELECT o.id "
              "FROM output o JOIN cell c ON c.id = o.cell_id WHERE c.verifier = 'asd' AND "
              "o.finish_reason = 'length')");
          return verified(place);
        }}},
      {"unequal_fixed_work",
       on_evidence([](AuditedRows& rows) { rows.sets[0].slots[1].tokens -= 1; })},
      {"clock_drift", on_evidence([](AuditedRows& rows) {
         for (SlotFacts& slot : rows.sets[0].slots) {
           if (slot.group == 0 && slot.slot == 3) slot.decode_ns = 104;
           if (slot.group == 0 && slot.slot == 0) slot.decode_ns = 110;
         }
       })},
      {"longer_answers", on_evidence([](AuditedRows& rows) {
         for (AuditedPair& pair : rows.tasks[0].pairs) pair.asd.tokens.resize(32);
       })},
      {"endless_answers", on_evidence([](AuditedRows& rows) {
         for (AuditedPair& pair : rows.tasks[0].pairs) pair.strict.finish_reason = "eos";
       })},
      {"harm", on_evidence([](AuditedRows& rows) {
         for (AuditedPair& pair : rows.tasks[0].pairs) pair.strict.verdict = Verdict::kCorrect;
       })},
  };
}

const std::map<std::string, Attack>& attacks() {
  static const std::map<std::string, Attack> kTable = [] {
    std::map<std::string, Attack> all = forged_rows();
    all.merge(changed_things());
    all.merge(broken_conduct());
    return all;
  }();
  return kTable;
}

void copy_stage(const fs::path& from, const fs::path& to) {
  fs::remove_all(to);
  fs::copy(from, to, fs::copy_options::recursive);
}

}  // namespace

AttackRange::AttackRange(fs::path folder) : folder_(std::move(folder)) {
  const Place place{folder_ / "whole"};
  fs::create_directories(place.folder);
  write(place.config(), kConfig);
  const auto keep = [&](const char* stage) { copy_stage(place.folder, folder_ / stage); };
  keep("draft");
  take(place, tune_here);
  keep("selected");
  take(place, [](AuditContext& context) { return freeze(context); });
  keep("frozen");
  // Stopped after a few rounds of work: the chain has its start, not its end.
  take(place, [](AuditContext& context) {
    int asked = 0;
    context.callbacks.interrupted = [&asked] { return ++asked > 250; };
    return audit(context);
  });
  keep("auditing");
  take(place, [](AuditContext& context) { return audit(context); });
  keep("decided");
  const StepResult issued =
      take(place, [&](AuditContext& context) { return certify(context, place.certificate()); });
  certificate_ = issued.json;
  keep("certified");
}

AttackRange::~AttackRange() = default;

std::vector<std::string> AttackRange::names() {
  std::vector<std::string> names;
  for (const auto& [name, attack] : attacks()) names.push_back(name);
  return names;
}

AttackOutcome AttackRange::run(const std::string& name) {
  const auto found = attacks().find(name);
  if (found == attacks().end()) {
    throw ConfigError(fmt::format("unknown attack {}{}", shown(name), known_names(name, names())));
  }
  // One folder for all attacks, at one path: the ledger's place is part of nothing that is hashed.
  const Place place{folder_ / "attacked"};
  copy_stage(folder_ / found->second.stage, place.folder);
  return found->second.carry_out(place);
}

}  // namespace asdbench
