// Replay of published ASD cases.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <set>
#include <sstream>

#include "eval/core/error.h"
#include "runners/cut.h"
#include "runners/verifiers/asd.h"
#include "runners/verifiers/common/score_block.h"
#include "runners/verifiers/common/vectors.h"

namespace asdbench {
namespace {

double number(const Json& value) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (value.is_number()) return value.get<double>();
  if (value == "inf") return kInfinity;
  if (value == "-inf") return -kInfinity;
  if (value == "nan") return std::numeric_limits<double>::quiet_NaN();
  throw DataError(fmt::format("{} is not a number", value.dump()));
}

void require(bool ok, const std::string& what) {
  if (!ok) throw DataError(what);
}

void require_known(const Json& object, const std::set<std::string>& known) {
  for (const auto& [key, value] : object.items()) {
    require(known.count(key) > 0, fmt::format("unknown field \"{}\"", key));
  }
}

// Draft and [K + 1, vocab] logits of a block, with their scores.
struct ScoredBlock {
  std::vector<TokenId> draft;
  std::vector<float> logits;
  std::int64_t vocab;
  std::optional<BlockScores> scores;
};

// Cases with steps of 2^-36 have rows that float32 cannot hold. A constant added to a row changes
// nothing, so such a row is scored in binary64 and its regret is split over the two logits, whose
// difference is then exact.
void score_in_double(const std::vector<double>& row, TokenId draft, std::size_t index,
                     BlockScores& scores) {
  const auto best = std::max_element(row.begin(), row.end());  // the first among equals
  const auto choice = static_cast<TokenId>(best - row.begin());
  if (draft == kNoToken) {
    scores.set_row(index, choice, 0, 0);
    return;
  }
  const double regret = *best - row.at(static_cast<std::size_t>(draft));
  const auto high = static_cast<float>(regret);
  const auto low = static_cast<float>(regret - static_cast<double>(high));
  require(static_cast<double>(low) + static_cast<double>(high) == regret,
          "a regret has more bits than two float32 numbers");
  scores.set_row(index, choice, low, -high);
}

ScoredBlock score(const Json& block, std::int64_t vocab, bool masked) {
  ScoredBlock out;
  out.draft = block.at("draft").get<std::vector<TokenId>>();
  out.vocab = vocab;
  const Json& logits = block.at("logits");
  require(out.draft.size() <= kMaxDraft, "more drafts than a block can have");
  require(block.at("K") == out.draft.size() && logits.size() == out.draft.size() + 1,
          "K, draft and logits differ in length");
  std::vector<std::pair<std::size_t, std::vector<double>>> wide;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    require(static_cast<std::int64_t>(logits[i].size()) == vocab, "a row is not V long");
    std::vector<double> row;
    bool exact = true;
    for (const Json& value : logits[i]) {
      row.push_back(number(value));
      out.logits.push_back(static_cast<float>(row.back()));
      exact = exact && (std::isnan(row.back()) || out.logits.back() == row.back());
    }
    if (!exact) wide.emplace_back(i, std::move(row));
  }
  const LogitsView view{out.logits.data(), static_cast<std::int64_t>(logits.size()), vocab};
  out.scores.emplace(view, out.draft, masked ? Masked::kYes : Masked::kNo);
  for (const auto& [i, row] : wide) {
    if (out.scores->view().bad[i] != 0) continue;  // what is wrong with it shows in float32 too
    score_in_double(row, i < out.draft.size() ? out.draft[i] : kNoToken, i, *out.scores);
  }
  return out;
}

Json names_of_conditions(std::uint8_t blocked_by) {
  Json names = Json::array();
  std::istringstream flags(describe_blocked_by(blocked_by));
  for (std::string name; std::getline(flags, name, ',');) names.push_back(name);
  return names;
}

// One block decided, cut and charged; the form is that of `expect`.
Json outcome(const AsdControls& controls, const ScoredBlock& scored, const StopRule& stop,
             Ledger& ledger) {
  const Block block{
      .draft = scored.draft,
      .scores = scored.scores->view(),
      .target = {nullptr, static_cast<std::int64_t>(scored.draft.size()) + 1, scored.vocab},
      .draft_logits = std::nullopt,
      .stop = stop};
  try {
    const Decision decision = decide_asd(controls, block, ledger.spent());
    const Kept kept = cut(block, decision);
    ledger.charge(kept.block_regret);
    Json exceptions = Json::array();
    for (std::int32_t i = 0; i < kept.exceptions; ++i) {
      exceptions.push_back(decision.exceptions[i].position + 1);
    }
    // Matches after the first exception among the kept drafts.
    const std::int32_t reused =
        kept.exceptions == 0 ? 0 : kept.drafts - decision.exceptions[0].position - kept.exceptions;
    const auto committed = kept.committed_tokens();
    return {{"status", "ok"},
            {"mask_len", decision.accepted},
            {"accepted", kept.drafts},
            {"strict_accepted", decision.strict_length},
            {"committed", std::vector<TokenId>(committed.begin(), committed.end())},
            {"exceptions", exceptions},
            {"charged", kept.block_regret},
            {"spent_after", ledger.spent()},
            {"reused", reused},
            {"finish", kept.finish ? Json(std::string(name_of(*kept.finish))) : Json()},
            {"blocked_by", names_of_conditions(decision.blocked_by)}};
  } catch (const BlockError& error) {
    return {{"status", "error"}, {"error", std::string(name_of(error.fault()))}};
  }
}

AsdControls read_controls(const Json& row, TiePolicy policy) {
  const Json& controls = row.at("controls");
  require_known(controls, {"B", "g", "M"});
  const std::string scheme = row.at("value_scheme");
  require(scheme == "suffix_length" || scheme == "normalised_suffix",
          fmt::format("unknown value_scheme \"{}\"", scheme));
  return {.regret_budget = number(controls.at("B")),
          .gate = number(controls.at("g")),
          .max_exceptions = number(controls.at("M")),
          .tie_policy = policy,
          .value_scheme = scheme == "suffix_length" ? ValueScheme::kSuffixLength
                                                    : ValueScheme::kNormalisedSuffix,
          .allow_early_eos = row.at("allow_early_eos"),
          .allow_skip_eos = row.at("allow_skip_eos"),
          .masked_vocab = row.value("masked_vocab", false)};
}

StopRule read_stop(const Json& row, std::span<const TokenId> end_ids) {
  const std::string mode = row.at("eos_mode");
  require(mode == "natural" || mode == "ignore", fmt::format("unknown eos_mode \"{}\"", mode));
  StopRule stop{.end_ids = end_ids, .ignore_end_ids = mode == "ignore"};
  if (row.contains("max_commit") && !row["max_commit"].is_null()) {
    stop.remaining = row["max_commit"].get<std::int32_t>();
  }
  return stop;
}

std::vector<TokenId> read_end_ids(const Json& row) {
  std::vector<TokenId> ids = row.at("eos");
  std::sort(ids.begin(), ids.end());
  return ids;
}

Json run_block(const Json& row, TiePolicy policy) {
  require_known(row, {"id", "kind", "tags", "note", "V", "K", "logits", "draft", "controls",
                      "spent", "eos", "eos_mode", "allow_early_eos", "allow_skip_eos",
                      "masked_vocab", "value_scheme", "max_commit", "expect", "expect_literal"});
  const AsdControls controls = read_controls(row, policy);
  const std::vector<TokenId> end_ids = read_end_ids(row);
  Ledger ledger(number(row.at("spent")));
  const double before = ledger.spent();
  const ScoredBlock block = score(row, row.at("V"), controls.masked_vocab);
  const Json result = outcome(controls, block, read_stop(row, end_ids), ledger);
  require(result.at("status") == "ok" || ledger.spent() == before || std::isnan(before),
          "an error moved the ledger");
  return result;
}

Json run_sequence(const Json& row, TiePolicy policy) {
  require_known(row, {"id", "kind", "tags", "note", "V", "blocks", "controls", "eos", "eos_mode",
                      "allow_early_eos", "allow_skip_eos", "value_scheme", "expect",
                      "expect_tokens", "expect_spent", "expect_exceptions"});
  const AsdControls controls = read_controls(row, policy);
  const std::vector<TokenId> end_ids = read_end_ids(row);
  const StopRule stop = read_stop(row, end_ids);
  Ledger ledger;
  Json blocks = Json::array(), tokens = Json::array();
  std::size_t exceptions = 0;
  for (const Json& block : row.at("blocks")) {
    require_known(block, {"K", "logits", "draft"});
    blocks.push_back(outcome(controls, score(block, row.at("V"), false), stop, ledger));
    const Json& result = blocks.back();
    if (result.at("status") != "ok") continue;
    for (const Json& token : result.at("committed")) tokens.push_back(token);
    exceptions += result.at("exceptions").size();
  }
  return {{"expect", blocks},
          {"expect_tokens", tokens},
          {"expect_spent", ledger.spent()},
          {"expect_exceptions", exceptions}};
}

void drop_blocked_by(Json& value) {
  if (value.is_array()) {
    for (Json& block : value) block.erase("blocked_by");
  } else {
    value.erase("blocked_by");
  }
}

std::optional<VectorMismatch> check_policy(const Json& row, TiePolicy policy) {
  const bool literal = policy == TiePolicy::kLiteral;
  const bool own = literal && row.contains("expect_literal");
  const std::string kind = row.at("kind");
  Json expected, got;
  if (kind == "block") {
    expected = {{"expect", row.at(own ? "expect_literal" : "expect")}};
    got = {{"expect", run_block(row, policy)}};
  } else if (kind == "sequence") {
    for (const char* key : {"expect", "expect_tokens", "expect_spent", "expect_exceptions"}) {
      expected[key] = row.at(key);
    }
    got = run_sequence(row, policy);
  } else {
    throw DataError(fmt::format("unknown kind \"{}\"", kind));
  }
  if (literal && !own) {
    drop_blocked_by(expected.at("expect"));
    drop_blocked_by(got.at("expect"));
  }
  if (expected == got) return std::nullopt;
  const char* prefix = literal ? "literal: " : "headroom: ";
  return VectorMismatch{prefix + expected.dump(), prefix + got.dump()};
}

}  // namespace

std::vector<Json> read_vectors(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw DataError(path.string() + ": cannot be read");
  std::vector<Json> rows;
  int number_of_line = 0;
  for (std::string line; std::getline(in, line);) {
    ++number_of_line;
    if (line.empty()) continue;
    try {
      rows.push_back(parse_json(line));
    } catch (const DataError& error) {
      throw DataError(fmt::format("{}:{}: {}", path.string(), number_of_line, error.what()));
    }
  }
  return rows;
}

std::optional<VectorMismatch> check_asd_vector(const Json& row) {
  try {
    const auto headroom = check_policy(row, TiePolicy::kHeadroom);
    return headroom ? headroom : check_policy(row, TiePolicy::kLiteral);
  } catch (const Json::exception& error) {
    return VectorMismatch{"a case in the form of specs/asd.md section 11", error.what()};
  } catch (const DataError& error) {
    return VectorMismatch{"a case in the form of specs/asd.md section 11", error.what()};
  }
}

}  // namespace asdbench
