// The step `verify`: a certificate or decision record derived again from the database.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "eval/audit/manifest.h"
#include "eval/audit/steps.h"
#include "eval/core/digest.h"

namespace asdbench {
namespace {

constexpr std::size_t kLargestFileBytes = std::size_t{64} << 20;

/// The parsed file, whose own parts fit together. Refused "damaged_file", "integrity".
Json checked_file(const std::string& text, const std::string& where) {
  Json file;
  try {
    file = parse_json(text);
    const std::string format = file.at("format").get<std::string>();
    if (format != "asdbench certificate 1" && format != "asdbench decision 1") {
      throw Refused("damaged_file",
                    fmt::format("{}: format {} is not one this build knows", where, shown(format)));
    }
    for (const char* name : {"campaign", "manifest_sha256", "chain_head", "verdict"}) {
      file.at(name).get_ref<const std::string&>();
    }
    file.at("chain_records").get<std::int64_t>();
    if (manifest_hash(file.at("manifest")) != file.at("manifest_sha256")) {
      throw Refused("integrity", where + ": its manifest is not that of its hash");
    }
  } catch (const Json::exception& error) {
    throw Refused("damaged_file", fmt::format("{}: {}", where, error.what()));
  } catch (const DataError& error) {
    throw Refused("damaged_file", fmt::format("{}: {}", where, error.what()));
  } catch (const InternalError&) {
    throw Refused("damaged_file", where + ": its manifest holds a real number");
  }
  return file;
}

/// The chain leads to where the file was written: nothing before was changed, and what came after
/// did not void it.
void check_chain(const Campaign& campaign, const Json& file, const std::string& where) {
  const bool certificate = file.at("format") == "asdbench certificate 1";
  const auto records = file.at("chain_records").get<std::int64_t>();
  const Chain& chain = campaign.chain();
  if (chain.empty()) {
    throw Refused("incomplete",
                  fmt::format("the database has no campaign {}", file.at("campaign").dump()));
  }
  if (campaign.state() == AuditState::kVoid) {
    throw Refused("void",
                  fmt::format("campaign {} is void: something was changed after it was frozen",
                              shown(campaign.name())));
  }
  if (records < 1 || records > std::ssize(chain)) {
    throw Refused("integrity",
                  fmt::format("{}: {} records, the database has {}", where, records, chain.size()));
  }
  const ChainRecord& last = chain[static_cast<std::size_t>(records - 1)];
  if (last.hash != file.at("chain_head")) {
    throw Refused("integrity", where +
                                   ": the chain's head is another; a record was changed and "
                                   "hashed again, or this is the database of another audit");
  }
  const char* type = certificate ? record_type::kCertify : record_type::kAuditClose;
  if (last.body.at("type") != type) {
    throw Refused("integrity",
                  fmt::format("{}: record {} of the chain is no {}", where, records - 1, type));
  }
}

std::string first_difference(const Json& file, const Json& derived) {
  const auto differences = manifest_differences(file, derived);
  return differences.empty() ? "a field" : differences.front();
}

}  // namespace

std::string read_decision_text(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw DataError(path.string() + ": there is no such file, or it cannot be read");
  std::string text(kLargestFileBytes + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  if (text.size() > kLargestFileBytes) {
    throw DataError(path.string() + ": is too large for a certificate");
  }
  return text;
}

StepResult verify(const std::string& text, const std::string& where, const ResultStore& store,
                  const std::string& device) {
  const Json file = checked_file(text, where);
  Campaign campaign(AuditStore(store), file.at("campaign").get<std::string>());
  check_chain(campaign, file, where);
  const AuditDecision decision = derive_decision(campaign);
  for (const GateResult& gate : decision.verdict.gates) {
    const bool claimed = file.at("fail").is_array() &&
                         std::find(file.at("fail").begin(), file.at("fail").end(), "integrity") !=
                             file.at("fail").end();
    if (gate.name == "integrity" && gate.verdict == GateVerdict::kFail && !claimed) {
      throw Refused("integrity", gate.reason);
    }
  }
  Json claimed = file;
  for (const char* place : {"format", "chain_head", "chain_records"}) claimed.erase(place);
  if (claimed != decision.body) {
    throw Refused("integrity", fmt::format("{}: says other than what the rows give, first {}",
                                           where, first_difference(claimed, decision.body)));
  }
  const Json* closed = campaign.latest(record_type::kAuditClose);
  if (closed == nullptr || closed->at("decision") != sha256_hex(canonical_json(decision.body))) {
    throw Refused("integrity", "the rows give another decision than the one that was recorded");
  }
  const Json& frozen_device = file.at("manifest").at("device").at("cpu");
  if (!device.empty() && frozen_device != device) {
    throw Refused("other_device", fmt::format("{}: holds for {}, this machine is {}", where,
                                              frozen_device.dump(), shown(device)));
  }
  const bool certificate = file.at("format") == "asdbench certificate 1";
  std::string page = decision_text(file) +
                     fmt::format("verified: {} records, every row and figure derived again{}\n",
                                 campaign.chain().size(),
                                 certificate ? "" : "; a decision record, not a certificate");
  return {
      .code = exit_code_of(decision.verdict.verdict),
      .text = std::move(page),
      .json = {{"verified", true}, {"verdict", file.at("verdict")}, {"gates", file.at("gates")}}};
}

}  // namespace asdbench
