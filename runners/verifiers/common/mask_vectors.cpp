// Replay of published mask cases.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "eval/core/error.h"
#include "runners/cut.h"
#include "runners/verifiers/common/score_block.h"
#include "runners/verifiers/common/vectors.h"

namespace asdbench {
namespace {

// Draft, target rows [K + 1, vocab] and draft rows [K, vocab] of a case.
struct MaskBlock {
  explicit MaskBlock(const Json& row)
      : vocab(row.at("V")), draft(row.at("draft").get<std::vector<TokenId>>()) {
    logits = read_rows(row.at("logits"), draft.size() + 1);
    draft_logits = read_rows(row.at("draft_logits"), draft.size());
    if (row.at("K") != draft.size() || draft.size() > kMaxDraft) {
      throw DataError("K is not the number of drafts, or more than a block can have");
    }
    const LogitsView all{logits.data(), static_cast<std::int64_t>(draft.size()) + 1, vocab};
    scores.emplace(all, draft, Masked::kNo);
  }

  // The block that begins with draft `first`: what a rule says of it shows its mask there.
  Block suffix(std::size_t first, const StopRule& stop) const {
    const std::size_t drafts = draft.size() - first;
    const auto offset = static_cast<std::ptrdiff_t>(first) * vocab;
    const auto rows = static_cast<std::int64_t>(drafts);
    return {.draft = std::span(draft).subspan(first),
            .scores = scores->view().slice(first, drafts + 1),
            .target = {logits.data() + offset, rows + 1, vocab},
            .draft_logits = LogitsView{draft_logits.data() + offset, rows, vocab},
            .stop = stop};
  }

  std::int64_t vocab;
  std::vector<TokenId> draft;
  std::vector<float> logits, draft_logits;
  std::optional<BlockScores> scores;

 private:
  std::vector<float> read_rows(const Json& rows, std::size_t count) const {
    if (rows.size() != count)
      throw DataError("a block of K drafts has K + 1 rows, and K of drafts");
    std::vector<float> values;
    for (const Json& row : rows) {
      if (static_cast<std::int64_t>(row.size()) != vocab) throw DataError("a row is not V long");
      for (const Json& value : row) values.push_back(value.get<float>());
    }
    return values;
  }
};

void require_fields(const Json& object, const std::vector<std::string>& known) {
  for (const auto& [key, value] : object.items()) {
    if (std::find(known.begin(), known.end(), key) == known.end())
      throw DataError(fmt::format("unknown field \"{}\"", key));
  }
}

std::unique_ptr<Verifier> make_rule(const Json& rule) {
  const std::string name = rule.at("rule");
  Params params(name, {});
  for (const auto& [key, value] : rule.at("controls").items()) params.set(key, value.dump(), {});
  for (const VerifierFactory& factory : verifier_factories()) {
    if (factory.name != name) continue;
    auto verifier = factory.make(params);
    params.refuse_unread();
    return verifier;
  }
  throw DataError(fmt::format("unknown rule \"{}\"", name));
}

Json run_rule(const Verifier& verifier, const MaskBlock& blocks) {
  const StopRule stop;
  const Ledger ledger;
  const Rng rng;
  Json mask = Json::array();
  for (std::size_t i = 0; i < blocks.draft.size(); ++i) {
    mask.push_back(verifier.decide(blocks.suffix(i, stop), ledger, rng).accepted > 0 ? 1 : 0);
  }
  const Block block = blocks.suffix(0, stop);
  const Decision decision = verifier.decide(block, ledger, rng);
  const Kept kept = cut(block, decision);
  const auto committed = kept.committed_tokens();
  Json exceptions = Json::array();
  for (const Exception& exception : decision.exceptions) {
    exceptions.push_back(exception.position + 1);
  }
  return {{"mask", mask},
          {"accepted", decision.accepted},
          {"committed", std::vector<TokenId>(committed.begin(), committed.end())},
          {"exceptions", exceptions},
          {"regret", kept.block_regret}};
}

}  // namespace

std::vector<MaskOutcome> check_mask_vector(const Json& row) {
  const char* form = "a case in the form of specs/verifiers.md section 3";
  const std::string id = row.is_object() ? row.value("id", "without id") : "not an object";
  std::vector<MaskOutcome> outcomes;
  std::optional<MaskBlock> block;
  try {
    require_fields(row, {"id", "V", "K", "logits", "draft", "draft_logits", "rules"});
    block.emplace(row);
    if (row.at("rules").empty()) throw DataError("no rules");
  } catch (const Json::exception& error) {
    return {{id, VectorMismatch{form, error.what()}}};
  } catch (const Error& error) {
    return {{id, VectorMismatch{form, error.what()}}};
  }
  for (const Json& rule : row.at("rules")) {
    MaskOutcome outcome{id, std::nullopt};
    try {
      outcome.id = fmt::format("{}/{}{}", id, rule.at("rule").get<std::string>(),
                               rule.at("controls").dump());
      require_fields(rule,
                     {"rule", "controls", "mask", "accepted", "committed", "exceptions", "regret"});
      Json expected = rule;
      expected.erase("rule");
      expected.erase("controls");
      const Json got = run_rule(*make_rule(rule), *block);
      if (expected != got) outcome.mismatch = VectorMismatch{expected.dump(), got.dump()};
    } catch (const Json::exception& error) {
      outcome.mismatch = VectorMismatch{form, error.what()};
    } catch (const Error& error) {
      outcome.mismatch = VectorMismatch{form, error.what()};
    }
    outcomes.push_back(std::move(outcome));
  }
  return outcomes;
}

}  // namespace asdbench
