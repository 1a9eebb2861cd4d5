// One function a kind, from published field names to ours and back.
#include "eval/audit/published_cases.h"

#include <fmt/format.h>

#include <optional>
#include <utility>
#include <vector>

#include "eval/audit/chain.h"
#include "eval/audit/gate.h"
#include "eval/audit/protocol.h"
#include "eval/audit/splits.h"
#include "eval/core/error.h"

namespace asdbench {
namespace {

Json overlap(const Json& in) {
  const auto a = in.at("a").get<std::vector<std::string>>();
  const auto b = in.at("b").get<std::vector<std::string>>();
  const Overlap found = compare_splits(a, b, in.at("jaccard").get<double>());
  Json near = Json::array();
  for (const NearPair& pair : found.near) near.push_back({pair.in_b, pair.in_a});
  return {{"exact_in_b", found.exact_in_b},
          {"near", near},
          {"root_a", found.root_a},
          {"root_b", found.root_b},
          {"disjoint", found.disjoint()}};
}

Json hash_chain(const Json& in) {
  Chain chain;
  for (const Json& record : in.at("records")) {
    chain.push_back({.body = record.at("body"),
                     .prev = record.at("prev").get<std::string>(),
                     .hash = record.at("hash").get<std::string>()});
  }
  const auto bad = first_bad_record(chain);
  return {{"first_bad", bad ? Json(*bad) : Json(nullptr)}};
}

PairedCounts counts_of(const Json& in) {
  return {in.at("n").get<std::int64_t>(), in.at("b").get<std::int64_t>(),
          in.at("c").get<std::int64_t>()};
}

Interval interval_of(const Json& in) { return {in.at(0).get<double>(), in.at(1).get<double>()}; }

Json verdict(const Json& in) {
  AuditEvidence evidence;
  if (!in.at("integrity_ok").get<bool>()) evidence.integrity_faults = {"as published"};
  evidence.b0_mismatches = in.at("b0_mismatches").get<std::int64_t>();
  evidence.max_spent = in.at("max_spent").get<double>();
  evidence.regret_budget = in.at("B").get<double>();
  evidence.state_leaks = in.at("state_leaks").get<std::int64_t>();
  evidence.tokens_equal = in.at("tokens_equal").get<bool>();
  evidence.drift_pct = in.at("drift_pct").get<std::vector<double>>();
  evidence.drift_limit_pct = in.at("drift_limit_pct").get<double>();
  evidence.speed_pct = interval_of(in.at("speed_ci_pct"));
  evidence.speed_target_pct = in.at("speed_target_pct").get<double>();
  for (const Json& task : in.at("tasks")) {
    QualityEvidence quality;
    quality.task = task.at("name").get<std::string>();
    quality.counts = counts_of(task);
    quality.margin = task.at("margin").get<double>();
    evidence.quality.push_back(std::move(quality));
  }
  evidence.length = {{.task = "", .change_pct = interval_of(in.at("length_ci_pct"))}};
  evidence.length_limit_pct = in.at("length_limit_pct").get<double>();
  evidence.caps = {{.task = "",
                    .counts = counts_of(in.at("cap")),
                    .margin = in.at("cap").at("margin").get<double>()}};
  evidence.alpha = in.at("alpha").get<double>();
  const AuditVerdict found = judge(evidence);
  return {{"verdict", std::string(name_of(found.verdict))},
          {"fail", found.names(GateVerdict::kFail)},
          {"inconclusive", found.names(GateVerdict::kInconclusive)}};
}

GateVerdict word_of(const std::string& name) {
  for (const GateVerdict word :
       {GateVerdict::kPass, GateVerdict::kFail, GateVerdict::kInconclusive}) {
    if (name_of(word) == name) return word;
  }
  throw DataError(fmt::format("unknown verdict {}{}", shown(name),
                              known_names(name, {"pass", "fail", "inconclusive"})));
}

Protocol::Outcome step(Protocol& protocol, const Json& event) {
  const auto name = event.at("event").get<std::string>();
  const auto text = [&](const char* key) { return event.at(key).get<std::string>(); };
  if (name == "calibrate") return protocol.calibrate();
  if (name == "select") return protocol.select(event.at("feasible").get<bool>());
  if (name == "freeze") {
    return protocol.freeze({.disjoint = event.at("disjoint").get<bool>(),
                            .b0_identity = event.at("b0_identity").get<bool>(),
                            .manifest = text("manifest"),
                            .split = text("split_b"),
                            .audit_size = event.at("audit_n").get<std::int64_t>()});
  }
  if (name == "audit_start") {
    return protocol.audit_start(text("manifest"), text("split"), event.value("consumed", false));
  }
  if (name == "audit_record") {
    return protocol.audit_record(text("manifest"), text("prompt"),
                                 event.at("in_split").get<bool>());
  }
  if (name == "audit_close") {
    return protocol.audit_close(word_of(text("verdict")), event.value("early_stop", false));
  }
  if (name == "certify") return protocol.certify();
  if (name == "change_controls" || name == "change_engine" || name == "change_split") {
    return protocol.change();
  }
  throw DataError(fmt::format("unknown event {}", shown(name)));
}

Json protocol(const Json& in) {
  Protocol machine;
  Json steps = Json::array();
  for (const Json& event : in.at("events")) {
    const Protocol::Outcome refusal = step(machine, event);
    steps.push_back({{"state", std::string(name_of(machine.state()))},
                     {"error", refusal ? Json(std::string(name_of(*refusal))) : Json(nullptr)}});
  }
  const auto word = machine.verdict();
  return {{"steps", steps},
          {"final", std::string(name_of(machine.state()))},
          {"verdict", word ? Json(std::string(name_of(*word))) : Json(nullptr)}};
}

}  // namespace

const std::map<std::string, std::function<Json(const Json& input)>, std::less<>>&
audit_case_functions() {
  static const std::map<std::string, std::function<Json(const Json& input)>, std::less<>> kTable = {
      {"overlap", overlap},
      {"hash_chain", hash_chain},
      {"verdict", verdict},
      {"protocol", protocol}};
  return kTable;
}

}  // namespace asdbench
