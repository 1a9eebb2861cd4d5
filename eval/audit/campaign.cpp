// Records to steps and back.
#include "eval/audit/campaign.h"

#include <fmt/format.h>

namespace asdbench {
namespace {

GateVerdict word_of(const std::string& name) {
  for (const GateVerdict word :
       {GateVerdict::kPass, GateVerdict::kFail, GateVerdict::kInconclusive}) {
    if (name_of(word) == name) return word;
  }
  throw DataError(fmt::format("unknown verdict {}", shown(name)));
}

/// The step that a record stands for. Throws Json::exception or DataError for a body that is none.
Protocol::Outcome take_step(Protocol& protocol, const Json& body) {
  const std::string type = body.at("type").get<std::string>();
  const auto text = [&](const char* key) { return body.at(key).get<std::string>(); };
  if (type == record_type::kCalibrate) return protocol.calibrate();
  if (type == record_type::kSelect) return protocol.select(body.at("constraint_met").get<bool>());
  if (type == record_type::kFreeze) {
    return protocol.freeze({.disjoint = body.at("disjoint").get<bool>(),
                            .b0_identity = body.at("b0_mismatches").get<std::int64_t>() == 0,
                            .manifest = text("manifest"),
                            .split = text("split_b"),
                            .audit_size = body.at("audit_size").get<std::int64_t>()});
  }
  if (type == record_type::kAuditStart) {
    return protocol.audit_start(text("manifest"), text("split"), body.at("consumed").get<bool>());
  }
  if (type == record_type::kAuditRecord) {
    return protocol.audit_record(text("manifest"), text("task") + "\n" + text("identity"),
                                 body.at("in_split").get<bool>());
  }
  if (type == record_type::kSpeedGroup) {
    if (protocol.state() != AuditState::kAuditing) return Refusal::kNotAllowed;
    return std::nullopt;
  }
  if (type == record_type::kAuditClose) {
    return protocol.audit_close(word_of(text("verdict")), body.at("early_stop").get<bool>());
  }
  if (type == record_type::kCertify) return protocol.certify();
  if (type == record_type::kChange || type == record_type::kVoid) return protocol.change();
  throw DataError(fmt::format("unknown type of record {}", shown(type)));
}

}  // namespace

Replayed replay_chain(const std::vector<RecordRow>& rows, const std::string& campaign) {
  Replayed replayed;
  const auto broken = [&](std::size_t at, const std::string& what) {
    return Refused(
        "integrity",
        fmt::format("record {} of campaign {}: {}\n  the database was edited or damaged; "
                    "nothing in it can be certified",
                    at, shown(campaign), what));
  };
  for (std::size_t i = 0; i < rows.size(); ++i) {
    ChainRecord record{.body = nullptr, .prev = rows[i].prev, .hash = rows[i].hash};
    try {
      record.body = parse_json(rows[i].body);
    } catch (const DataError& error) {
      throw broken(i, error.what());
    }
    replayed.chain.push_back(std::move(record));
  }
  if (const auto bad = first_bad_record(replayed.chain)) throw broken(*bad, "its hash is wrong");
  for (std::size_t i = 0; i < replayed.chain.size(); ++i) {
    const Json& body = replayed.chain[i].body;
    try {
      const Protocol::Outcome refusal = take_step(replayed.protocol, body);
      if (refusal) throw broken(i, fmt::format("out of order ({})", name_of(*refusal)));
      replayed.last[body.at("type").get<std::string>()] = i;
    } catch (const Json::exception& error) {
      throw broken(i, error.what());
    } catch (const DataError& error) {
      throw broken(i, error.what());
    }
  }
  return replayed;
}

Campaign::Campaign(AuditStore store, std::string name)
    : store_(store),
      name_(std::move(name)),
      replayed_(replay_chain(store_.records(name_), name_)) {}

const Json* Campaign::latest(const char* type) const {
  const auto found = replayed_.last.find(type);
  return found == replayed_.last.end() ? nullptr : &replayed_.chain[found->second].body;
}

// A refused step changes nothing, so that it is taken on the protocol itself; should the database
// then refuse the record, the error ends this campaign's object.
ChainRecord Campaign::take(Json body, const std::string& advice) {
  const std::string type = body.at("type").get<std::string>();
  if (const Protocol::Outcome refusal = take_step(replayed_.protocol, body)) {
    throw Refused(std::string(name_of(*refusal)),
                  fmt::format("{} is refused: campaign {} is {}\n  {}", type, shown(name_),
                              name_of(state()), advice));
  }
  return next_record(replayed_.chain, std::move(body));
}

void Campaign::remember(ChainRecord record) {
  replayed_.last[record.body.at("type").get<std::string>()] = replayed_.chain.size();
  replayed_.chain.push_back(std::move(record));
}

namespace {

RecordRow row_of(const ChainRecord& record) {
  return {.seq = record.body.at("seq").get<std::int64_t>(),
          .body = canonical_json(record.body),
          .prev = record.prev,
          .hash = record.hash};
}

}  // namespace

void Campaign::append(Json body, const std::string& advice) {
  ChainRecord record = take(std::move(body), advice);
  store_.append(name_, row_of(record));
  remember(std::move(record));
}

void Campaign::freeze(Json body, const ManifestRow& manifest, const std::vector<SplitRow>& a,
                      const std::vector<SplitRow>& b, const std::string& advice) {
  ChainRecord record = take(std::move(body), advice);
  store_.freeze(manifest, a, b, row_of(record));
  remember(std::move(record));
}

}  // namespace asdbench
