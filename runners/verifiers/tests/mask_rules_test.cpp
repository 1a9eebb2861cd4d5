// Every published mask case, and rules whose limits are known.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "eval/core/error.h"
#include "runners/verifiers/common/score_block.h"
#include "runners/verifiers/common/vectors.h"

namespace asdbench {
namespace {

using testing::HasSubstr;

TEST(MaskRulesTest, AllPublishedCasesHold) {
  std::size_t checked = 0;
  for (const Json& row : read_vectors(ASDBENCH_TEST_DATA "/masks.jsonl")) {
    for (const MaskOutcome& outcome : check_mask_vector(row)) {
      EXPECT_FALSE(outcome.mismatch) << outcome.id << "\nexpected " << outcome.mismatch->expected
                                     << "\ngot      " << outcome.mismatch->got;
      ++checked;
    }
  }
  EXPECT_EQ(checked, 1499U);
}

TEST(MaskRulesTest, DamagedCasesAreMismatches) {
  const Json good = read_vectors(ASDBENCH_TEST_DATA "/masks.jsonl").front();
  const auto first_mismatch = [](const Json& row) {
    const MaskOutcome outcome = check_mask_vector(row).front();
    return outcome.mismatch ? outcome.mismatch->got : std::string();
  };
  EXPECT_EQ(first_mismatch(good), "");
  Json row = good;
  row["rules"][0]["regret"] = 1;
  EXPECT_NE(first_mismatch(row), "");
  row = good;
  row["rules"][0]["mask"][0] = 1;
  EXPECT_NE(first_mismatch(row), "");
  row = good;
  row["rules"][0]["rule"] = "oracle";
  EXPECT_THAT(first_mismatch(row), HasSubstr("unknown rule \"oracle\""));
  row = good;
  row["rules"][0]["controls"]["k"] = 2;
  EXPECT_THAT(first_mismatch(row), HasSubstr("no option \"k\""));
  row = good;
  row["rules"][0]["speed"] = 2;
  EXPECT_THAT(first_mismatch(row), HasSubstr("unknown field"));
  row = good;
  row["temperature"] = 0;
  EXPECT_THAT(first_mismatch(row), HasSubstr("unknown field"));
  row = good;
  row["draft_logits"][0].erase(0);
  EXPECT_THAT(first_mismatch(row), HasSubstr("V long"));
  row = good;
  row["rules"] = Json::array();
  EXPECT_THAT(first_mismatch(row), HasSubstr("no rules"));
  EXPECT_NE(first_mismatch(Json(3)), "");
}

std::unique_ptr<Verifier> make(const std::string& name,
                               const std::vector<std::pair<std::string, std::string>>& options) {
  Params params(name, {});
  for (const auto& [key, value] : options) params.set(key, value, {});
  for (const VerifierFactory& factory : verifier_factories()) {
    if (factory.name == name) return factory.make(params);
  }
  throw InternalError("no verifier " + name);
}

// Random blocks with a drafter's law; `accepted` by the rule.
template <typename Check>
void for_blocks(const Check& check) {
  constexpr std::int64_t kVocab = 6;
  SplitMix64 random(99);
  for (int i = 0; i < 3000; ++i) {
    const std::size_t drafts = 1 + random.index(6);
    std::vector<float> logits, draft_logits;
    for (std::size_t j = 0; j < (drafts + 1) * kVocab; ++j)
      logits.push_back(static_cast<float>(random.index(96)) / 16);
    for (std::size_t j = 0; j < drafts * kVocab; ++j)
      draft_logits.push_back(static_cast<float>(random.index(96)) / 16);
    std::vector<TokenId> draft;
    while (draft.size() < drafts) draft.push_back(static_cast<TokenId>(random.index(kVocab)));
    const auto rows = static_cast<std::int64_t>(drafts);
    const LogitsView target{logits.data(), rows + 1, kVocab};
    // Half the drafts are the choice, so that masks are seen beyond the first position.
    const BlockScores plain(target, draft, Masked::kNo);
    for (std::size_t j = 0; j < drafts; ++j) {
      if (random.uniform() < 0.5) draft[j] = plain.view().choice[j];
    }
    const BlockScores scores(target, draft, Masked::kNo);
    const StopRule stop;
    check(Block{.draft = draft,
                .scores = scores.view(),
                .target = target,
                .draft_logits = LogitsView{draft_logits.data(), rows, kVocab},
                .stop = stop});
    if (testing::Test::HasFailure()) return;
  }
}

TEST(MaskRulesTest, LimitsOfTheControlsAreStrictOrAcceptAll) {
  struct Limit {
    const char* rule;
    std::vector<std::pair<std::string, std::string>> strict, all;
  };
  const std::vector<Limit> limits{
      {"top_k", {{"k", "1"}}, {{"k", "6"}}},
      {"top_k_delta", {{"k", "1"}, {"delta", "1"}}, {{"k", "6"}, {"delta", "1"}}},
      {"margin_ratio", {}, {{"kappa", "0"}}},
      {"lenience", {}, {{"l", "0"}}},
      {"cascade_tok3", {}, {{"alpha", "1"}}},
      {"cascade_tok2", {}, {{"alpha", "1"}}},
      {"regret_gate", {}, {{"tau", "inf"}}},
      {"mars", {{"theta", "1"}}, {}},
      {"typical", {}, {{"epsilon", "0"}, {"delta", "0"}}},
      {"prob_floor", {{"tau", "1"}}, {{"tau", "0"}}},
      {"nucleus", {{"top_p", "0"}}, {{"top_p", "1"}}},
      {"entropy_gate", {{"h", "inf"}}, {{"h", "0"}}},
      {"fly", {{"h", "inf"}}, {}},
      {"fuzzy_js", {}, {{"tau", "1"}}},
      {"cascade_diff", {}, {{"alpha", "1"}}},
      {"cascade_opt", {}, {{"alpha", "inf"}}},
  };
  const auto strict = make("strict", {});
  for (const Limit& limit : limits) {
    SCOPED_TRACE(limit.rule);
    if (!limit.strict.empty()) {
      const auto rule = make(limit.rule, limit.strict);
      for_blocks([&](const Block& block) {
        const Decision expected = strict->decide(block, Ledger(), Rng());
        const Decision got = rule->decide(block, Ledger(), Rng());
        EXPECT_EQ(got.accepted, expected.accepted);
        EXPECT_EQ(got.target_token, expected.target_token);
      });
    }
    if (!limit.all.empty()) {
      const auto rule = make(limit.rule, limit.all);
      for_blocks([&](const Block& block) {
        EXPECT_EQ(rule->decide(block, Ledger(), Rng()).accepted,
                  static_cast<std::int32_t>(block.draft.size()));
      });
    }
  }
}

TEST(MaskRulesTest, AsdWithOneControlLeftIsTheRegretGate) {
  // With K = 1 the weight is 1 everywhere.
  const auto gate = make("regret_gate", {{"tau", "0.5"}});
  const auto asd = make("asd", {{"B", "inf"}, {"g", "0.5"}, {"M", "inf"}});
  std::size_t exceptions = 0;
  for_blocks([&](Block block) {
    block.scores = block.scores.slice(0, 2);
    block.draft = block.draft.first(1);
    block.target.rows = 2;
    const Decision left = gate->decide(block, Ledger(), Rng());
    const Decision right = asd->decide(block, Ledger(), Rng());
    EXPECT_EQ(left.accepted, right.accepted);
    EXPECT_EQ(left.exceptions.size(), right.exceptions.size());
    exceptions += static_cast<std::size_t>(left.exceptions.size());
  });
  EXPECT_GT(exceptions, 50U);
}

// A mask that accepts everything leaves ASD without its gate.
TEST(MaskRulesTest, BudgetedIsAsdWithAnotherGate) {
  using Options = std::vector<std::pair<std::string, std::string>>;
  for (const Options& controls :
       {Options{{"B", "2"}, {"M", "1"}}, Options{{"B", "4"}, {"M", "inf"}},
        Options{{"B", "inf"}, {"M", "2"}}, Options{{"B", "0"}, {"M", "3"}},
        Options{{"B", "0"}, {"M", "0"}, {"tie_policy", "literal"}},
        Options{{"B", "3"}, {"M", "2"}, {"strict_head", "2"}}}) {
    Options asd = controls, budgeted = controls;
    asd.insert(asd.end(), {{"g", "inf"}});
    budgeted.insert(budgeted.end(), {{"mask", "entropy_gate"}, {"h", "0"}});
    const auto left = make("asd", asd), right = make("budgeted", budgeted);
    const double budget = left->info().regret_budget.value();
    SplitMix64 random(7);
    for_blocks([&](const Block& block) {
      const Ledger ledger(budget == 0 ? 0 : std::min(budget, 4.0) * random.uniform());
      const Decision expected = left->decide(block, ledger, Rng());
      const Decision got = right->decide(block, ledger, Rng());
      EXPECT_EQ(got.accepted, expected.accepted);
      EXPECT_EQ(got.target_token, expected.target_token);
      EXPECT_EQ(got.blocked_by, expected.blocked_by);
      EXPECT_EQ(got.strict_length, expected.strict_length);
      ASSERT_EQ(got.exceptions.size(), expected.exceptions.size());
      for (std::int32_t i = 0; i < got.exceptions.size(); ++i) {
        EXPECT_EQ(got.exceptions[i].position, expected.exceptions[i].position);
        EXPECT_EQ(got.exceptions[i].block_regret, expected.exceptions[i].block_regret);
      }
    });
  }
}

TEST(MaskRulesTest, BudgetedWithoutLimitsIsTheMaskAndNeverAcceptsMore) {
  const std::vector<std::pair<std::string, std::string>> masks{
      {"top_k", "k"}, {"regret_gate", "tau"}, {"mars", ""}, {"ensemble", "w"}, {"typical", ""}};
  for (const auto& [mask, key] : masks) {
    SCOPED_TRACE(mask);
    std::vector<std::pair<std::string, std::string>> own;
    if (!key.empty()) own.emplace_back(key, key == "k" ? "3" : "0.7");
    auto free = own, tight = own;
    free.insert(free.end(), {{"mask", mask}, {"B", "inf"}, {"M", "inf"}});
    tight.insert(tight.end(), {{"mask", mask}, {"B", "1"}, {"M", "1"}});
    const auto alone = make(mask, own), unlimited = make("budgeted", free),
               limited = make("budgeted", tight);
    EXPECT_EQ(limited->info().needs_draft_logits, alone->info().needs_draft_logits);
    EXPECT_EQ(limited->info().keeps, Keeps::kNothing);
    EXPECT_EQ(limited->info().regret_budget, 1);
    std::size_t cut = 0;
    for_blocks([&](const Block& block) {
      const Decision expected = alone->decide(block, Ledger(), Rng());
      const Decision got = unlimited->decide(block, Ledger(), Rng());
      EXPECT_EQ(got.accepted, expected.accepted);
      EXPECT_EQ(got.target_token, expected.target_token);
      const Decision less = limited->decide(block, Ledger(0.5), Rng());
      EXPECT_LE(less.accepted, expected.accepted);
      EXPECT_LE(less.exceptions.size(), 1);
      for (const Exception& exception : less.exceptions) EXPECT_LE(0.5 + exception.block_regret, 1);
      cut += less.accepted < expected.accepted ? 1 : 0;
    });
    EXPECT_GT(cut, 0U);
  }
  EXPECT_THROW(make("budgeted", {{"mask", "mars"}, {"B", "1"}, {"M", "1"}})
                   ->decide({.stop = StopRule()}, Ledger(2), Rng()),
               BlockError);
}

TEST(MaskRulesTest, RulesSayWhatTheyNeedAndKeep) {
  const std::set<std::string> need_draft{"cascade_diff", "cascade_opt", "ensemble", "fuzzy_js"};
  const std::set<std::string> need_scores_only{
      "asd", "budgeted", "cascade_tok3", "lenience", "margin_ratio", "regret_gate", "strict"};
  for (const VerifierFactory& factory : verifier_factories()) {
    Params params(factory.name, {});
    for (const char* key : {"tau", "kappa", "l", "alpha", "theta", "epsilon", "top_p", "h", "w",
                            "B", "g", "M", "k"}) {
      params.set(key, "1", {});
    }
    params.set("mask", "regret_gate", {});
    const VerifierInfo info = factory.make(params)->info();
    EXPECT_EQ(info.name, factory.name);
    EXPECT_EQ(info.needs_draft_logits, need_draft.count(info.name) > 0) << info.name;
    EXPECT_EQ(info.needs_target_logits, need_scores_only.count(info.name) == 0) << info.name;
    const bool greedy = info.name == "strict" || info.name == "top_k";  // k = 1
    EXPECT_EQ(info.keeps, greedy ? Keeps::kGreedyOutput : Keeps::kNothing) << info.name;
  }
}

TEST(MaskRulesTest, ControlsOutsideTheirRangeAreRefused) {
  for (const auto& [rule, key, value] :
       std::vector<std::array<const char*, 3>>{{"top_k", "k", "0"},
                                               {"top_k", "k", "2.5"},
                                               {"margin_ratio", "kappa", "1.5"},
                                               {"lenience", "l", "-0.1"},
                                               {"regret_gate", "tau", "-1"},
                                               {"nucleus", "top_p", "nan"},
                                               {"fly", "window", "0"},
                                               {"ensemble", "w", "2"}}) {
    EXPECT_THROW(make(rule, {{key, value}}), ConfigError) << rule;
  }
  for (const char* mask : {"asd", "strict", "budgeted", "oracle"}) {
    EXPECT_THROW(make("budgeted", {{"mask", mask}, {"B", "1"}, {"M", "1"}, {"g", "1"}}),
                 ConfigError);
  }
  EXPECT_THROW(make("budgeted", {{"mask", "top_k"}, {"k", "2"}, {"B", "1"}}), ConfigError);
  EXPECT_THROW(make("budgeted", {{"mask", "top_k"}, {"B", "1"}, {"M", "1"}}), ConfigError);
  for (const char* rule : {"budgeted", "top_k", "margin_ratio", "lenience", "regret_gate",
                           "ensemble", "asd", "prob_floor", "nucleus", "entropy_gate"}) {
    EXPECT_THROW(make(rule, {}), ConfigError) << rule;
  }
  EXPECT_THROW(make("asd", {{"B", "8"}, {"g", "0.25"}, {"M", "1.5"}}), ConfigError);
  EXPECT_THROW(make("asd", {{"B", "-8"}, {"g", "0.25"}, {"M", "1"}}), ConfigError);
  EXPECT_THROW(make("asd", {{"B", "8"}, {"g", "0.25"}, {"M", "1"}, {"tie_policy", "lazy"}}),
               ConfigError);
}

}  // namespace
}  // namespace asdbench
