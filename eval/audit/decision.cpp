// Evidence to verdict to file and page.
#include "eval/audit/decision.h"

#include <fmt/format.h>

#include "eval/audit/evidence.h"
#include "eval/audit/manifest.h"
#include "eval/audit/rows.h"
#include "eval/core/digest.h"
#include "eval/report/table.h"

namespace asdbench {
namespace {

constexpr const char* kStatement =
    "The budget bounds the regret of a request, which is a sum of local logit gaps along the path "
    "taken; it bounds neither meaning, nor score, nor safety. Nothing is promised outside this "
    "combination of target, drafter, workload, build and device. What target and drafter were "
    "trained on is outside the reach of this audit, but for the drafter's prompts where they are "
    "named.";

/// What is not known cannot void a group (specs/measurement.md, section 2).
constexpr const char* kUnread =
    "what the machine does not let a program read (slot_environment has what was read) cannot void "
    "a timed group";

/// The e-process has spoken, or harm was seen: fewer prompts than the full size were enough.
bool stopped_early(const Json& manifest, const AuditedRows& rows) {
  std::int64_t planned = 0, recorded = 0;
  for (const Json& task : manifest.at("tasks")) planned += task.at("size").get<std::int64_t>();
  for (const AuditedTask& task : rows.tasks) recorded += std::ssize(task.pairs);
  return recorded < planned;
}

Json gates_json(const AuditVerdict& verdict) {
  Json gates = Json::array();
  for (const GateResult& gate : verdict.gates) {
    gates.push_back({{"name", gate.name},
                     {"verdict", std::string(name_of(gate.verdict))},
                     {"reason", gate.reason}});
  }
  return gates;
}

std::string text_of(const Json& value) {
  if (value.is_null()) return std::string(kUndefined);
  if (value.is_string()) return value.get<std::string>();
  if (value.is_array()) {
    std::string text;
    for (const Json& item : value) text += (text.empty() ? "" : ", ") + text_of(item);
    return "[" + text + "]";
  }
  return value.dump();
}

/// One line of named figures a task.
std::string figure_lines(const Json& figures) {
  std::string text;
  for (const Json& task : figures) {
    std::string line;
    for (const auto& [name, value] : task.items()) {
      if (name == "task" || value.is_object()) continue;
      line += fmt::format("{}{} {}", line.empty() ? "" : ", ", name, text_of(value));
    }
    text += fmt::format("  {}: {}\n", text_of(task.at("task")), line);
  }
  return text;
}

}  // namespace

Json frozen_manifest(Campaign& campaign) {
  const auto row = campaign.store().manifest(campaign.name());
  const std::string& frozen = campaign.protocol().manifest();
  if (!row || frozen.empty()) {
    throw Refused("not_allowed",
                  fmt::format("campaign {} is {}: nothing was frozen\n  run: asdbench "
                              "freeze",
                              shown(campaign.name()), name_of(campaign.state())));
  }
  if (row->sha256 != frozen || sha256_hex(row->body) != frozen) {
    throw Refused("integrity", fmt::format("the manifest of campaign {} is not the frozen one",
                                           shown(campaign.name())));
  }
  return parse_json(row->body);
}

AuditDecision derive_decision(Campaign& campaign) {
  const Json manifest = frozen_manifest(campaign);
  const AuditedRows rows = gather_rows(campaign, manifest);
  Derived derived = derive_evidence(rows, manifest);
  AuditDecision decision;
  decision.verdict = judge(derived.evidence);
  decision.early_stop = stopped_early(manifest, rows);
  Json voids = Json::array();
  for (const TimedSet& set : rows.sets) {
    for (const std::string& text : set.voids) voids.push_back(text);
  }
  decision.body = {{"campaign", campaign.name()},
                   {"manifest_sha256", campaign.protocol().manifest()},
                   {"manifest", manifest},
                   {"verdict", std::string(name_of(decision.verdict.verdict))},
                   {"fail", decision.verdict.names(GateVerdict::kFail)},
                   {"inconclusive", decision.verdict.names(GateVerdict::kInconclusive)},
                   {"gates", gates_json(decision.verdict)},
                   {"early_stop", decision.early_stop},
                   {"figures", derived.figures},
                   {"voids", voids},
                   {"unread", kUnread},
                   {"statement", kStatement}};
  return decision;
}

Json decision_file(const AuditDecision& decision, const Campaign& campaign,
                   const std::string& kind) {
  Json file = decision.body;
  file["format"] = fmt::format("asdbench {} 1", kind);
  file["chain_head"] = campaign.head();
  file["chain_records"] = campaign.chain().size();
  return file;
}

std::string decision_text(const Json& file) {
  const Json& manifest = file.at("manifest");
  const Json& target = manifest.at("target");
  std::string text = fmt::format(
      "{} of campaign {}: {}\n  rule {}\n  target {} ({}, {}), drafter {} K = {}\n  device {}\n"
      "  manifest {}\n  chain head {} ({} records)\n\n",
      text_of(file.at("format")), text_of(file.at("campaign")), text_of(file.at("verdict")),
      manifest.at("rule").dump(), text_of(target.at("name")), text_of(target.at("engine")),
      text_of(target.at("weight_dtype")), text_of(manifest.at("drafter").at("name")),
      manifest.at("drafter").at("drafts").dump(), text_of(manifest.at("device").at("cpu")),
      text_of(file.at("manifest_sha256")), text_of(file.at("chain_head")),
      file.at("chain_records").dump());
  Table gates{.title = "", .columns = {{"gate"}, {"verdict"}, {"figures"}}, .rows = {}};
  for (const Json& gate : file.at("gates")) {
    gates.rows.push_back(
        {text_of(gate.at("name")), text_of(gate.at("verdict")), text_of(gate.at("reason"))});
  }
  text += to_terminal(gates);
  const Json& figures = file.at("figures");
  text += "\nspeed\n" + figure_lines(figures.at("speed").at("tasks"));
  for (const char* name :
       {"quality", "length", "cap_hits", "divergence", "regret", "environment"}) {
    text += fmt::format("{}\n{}", name, figure_lines(figures.at(name)));
  }
  for (const Json& group : file.at("voids")) text += "void: " + text_of(group) + "\n";
  return text + "\n" + text_of(file.at("statement")) + "\nNot read: " + text_of(file.at("unread")) +
         "\n";
}

}  // namespace asdbench
