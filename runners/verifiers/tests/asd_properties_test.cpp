// Properties P1-P8, P10-P14, P16-P18 and P21 of the rule on random blocks that are rich in ties.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "runners/cut.h"
#include "runners/verifiers/asd.h"
#include "runners/verifiers/common/score_block.h"
#include "runners/verifiers/tests/asd_reference.h"

namespace asdbench {
namespace {

using reference::RawBlock;

constexpr std::uint64_t kSeed = 20260311;
constexpr int kBlocks = 20'000;
constexpr double kInfinity = HUGE_VAL;

struct Scenario {
  RawBlock block;
  AsdControls controls;
  double spent = 0;
  StopRule stop;
};

template <std::size_t N>
double pick(SplitMix64& random, const double (&values)[N]) {
  return values[random.index(N)];
}

// Logits are few multiples of one step, so that maxima tie and gates and budgets are met exactly.
RawBlock random_block(SplitMix64& random) {
  RawBlock block;
  block.vocab = static_cast<std::int64_t>(2 + random.index(6));
  const auto drafts = static_cast<std::int32_t>(random.index(10));
  const double step = pick(random, {1.0 / 64, 1.0 / 16, 1.0 / 8, 0.25});
  for (std::int32_t row = 0; row <= drafts; ++row) {
    for (TokenId id = 0; id < block.vocab; ++id) {
      block.logits.push_back(
          static_cast<float>(step * static_cast<double>(random.index(6)) - 0.25));
    }
    if (row == drafts) break;
    const auto any = static_cast<TokenId>(random.index(static_cast<std::uint64_t>(block.vocab)));
    block.draft.push_back(random.uniform() < 0.55 ? block.choice(row) : any);
  }
  for (TokenId id = 0; id < block.vocab; ++id) {
    if (random.uniform() < 0.1) block.end_ids.push_back(id);
  }
  block.output_position = static_cast<std::int32_t>(random.index(20));
  return block;
}

Scenario random_scenario(SplitMix64& random) {
  Scenario scenario;
  scenario.block = random_block(random);
  AsdControls& controls = scenario.controls;
  controls.regret_budget = pick(random, {0, 1.0 / 64, 0.125, 0.25, 0.5, 1, 8, kInfinity});
  controls.gate = pick(random, {0, 1.0 / 64, 1.0 / 16, 0.125, 0.25, 1, kInfinity});
  controls.max_exceptions = pick(random, {0, 1, 2, 3, kInfinity});
  controls.tie_policy = random.uniform() < 0.3 ? TiePolicy::kLiteral : TiePolicy::kHeadroom;
  controls.value_scheme =
      random.uniform() < 0.3 ? ValueScheme::kNormalisedSuffix : ValueScheme::kSuffixLength;
  controls.allow_early_eos = random.uniform() < 0.3;
  controls.allow_skip_eos = random.uniform() < 0.3;
  controls.strict_head = random.uniform() < 0.2 ? static_cast<std::int32_t>(random.index(24)) : 0;
  if (std::isfinite(controls.regret_budget)) {
    scenario.spent = controls.regret_budget * pick(random, {0, 0, 0.25, 0.5, 0.75, 1});
  }
  scenario.stop.ignore_end_ids = random.uniform() < 0.3;
  if (random.uniform() < 0.4) {
    scenario.stop.remaining = static_cast<std::int32_t>(1 + random.index(10));
  }
  return scenario;
}

StopRule stop_of(const Scenario& scenario) {
  StopRule stop = scenario.stop;
  stop.end_ids = scenario.block.end_ids;
  return stop;
}

struct Outcome {
  Decision decision;
  Kept kept;
  double spent_after = 0;

  std::vector<TokenId> committed() const {
    const auto tokens = kept.committed_tokens();
    return {tokens.begin(), tokens.end()};
  }
  bool operator==(const Outcome& other) const {
    return decision.accepted == other.decision.accepted && committed() == other.committed() &&
           decision.blocked_by == other.decision.blocked_by &&
           decision.strict_length == other.decision.strict_length &&
           kept.drafts == other.kept.drafts && kept.exceptions == other.kept.exceptions &&
           kept.finish == other.kept.finish;
  }
};

Outcome decide(const Scenario& scenario) {
  const RawBlock& raw = scenario.block;
  const LogitsView logits{raw.logits.data(), raw.drafts() + 1, raw.vocab};
  const BlockScores scores(logits, raw.draft,
                           scenario.controls.masked_vocab ? Masked::kYes : Masked::kNo);
  const StopRule stop = stop_of(scenario);
  const Block block{.draft = raw.draft,
                    .scores = scores.view(),
                    .target = logits,
                    .draft_logits = std::nullopt,
                    .stop = stop,
                    .output_position = raw.output_position};
  Outcome outcome;
  outcome.decision = decide_asd(scenario.controls, block, scenario.spent);
  outcome.kept = cut(block, outcome.decision);
  Ledger ledger(scenario.spent);
  ledger.charge(outcome.kept.block_regret);
  outcome.spent_after = ledger.spent();
  return outcome;
}

// Strict verification written a second time, without any of our types.
std::vector<TokenId> strict_tokens(const Scenario& scenario) {
  const RawBlock& block = scenario.block;
  std::vector<TokenId> tokens;
  for (std::int32_t i = 0;; ++i) {
    const TokenId wanted = block.choice(i);
    const bool match = i < block.drafts() && block.draft[static_cast<std::size_t>(i)] == wanted;
    tokens.push_back(wanted);
    const bool end = !scenario.stop.ignore_end_ids && block.is_end(wanted);
    const bool full = scenario.stop.remaining &&
                      static_cast<std::int32_t>(tokens.size()) == *scenario.stop.remaining;
    if (!match || end || full) return tokens;
  }
}

class AsdProperties : public testing::Test {
 protected:
  // Runs `check` on random scenarios; it says whether a scenario put the property to the test.
  template <typename Check>
  void for_all(const Check& check) {
    SplitMix64 random(kSeed);
    int checked = 0;
    for (int i = 0; i < kBlocks; ++i) {
      Scenario scenario = random_scenario(random);
      SCOPED_TRACE(testing::Message() << "block " << i);
      checked += check(scenario, random) ? 1 : 0;
      if (HasFailure()) return;
    }
    EXPECT_GT(checked, kBlocks / 20) << "the property was hardly exercised";
  }
};

TEST_F(AsdProperties, P1ZeroControlsAreStrict) {
  for_all([](Scenario& scenario, SplitMix64& random) {
    switch (random.index(3)) {
      case 0:
        scenario.controls.regret_budget = scenario.spent = 0;
        break;
      case 1:
        scenario.controls.gate = 0;
        break;
      default:
        scenario.controls.max_exceptions = 0;
    }
    const Outcome outcome = decide(scenario);
    EXPECT_EQ(outcome.committed(), strict_tokens(scenario));
    EXPECT_EQ(outcome.kept.exceptions, 0);
    EXPECT_EQ(outcome.spent_after, scenario.spent);
    return outcome.decision.accepted < scenario.block.drafts();
  });
}

TEST_F(AsdProperties, P2NeverShorterThanStrict) {
  for_all([](Scenario& scenario, SplitMix64&) {
    const Decision decision = decide(scenario).decision;
    EXPECT_GE(decision.accepted, decision.strict_length);
    return decision.accepted > decision.strict_length;
  });
}

TEST_F(AsdProperties, P3LedgerStaysWithinTheBudgetAndIsTheSumOfRegrets) {
  for_all([](Scenario& scenario, SplitMix64&) {
    const Outcome outcome = decide(scenario);
    double sum = 0;
    for (std::int32_t i = 0; i < outcome.kept.exceptions; ++i) {
      sum += outcome.decision.exceptions[i].regret;
    }
    EXPECT_LE(scenario.spent, outcome.spent_after);
    EXPECT_LE(outcome.spent_after, scenario.controls.regret_budget);
    EXPECT_EQ(outcome.spent_after, scenario.spent + sum);
    return outcome.kept.exceptions > 0;
  });
}

TEST_F(AsdProperties, P4CapAndGateHold) {
  for_all([](Scenario& scenario, SplitMix64&) {
    const Decision decision = decide(scenario).decision;
    EXPECT_LE(decision.exceptions.size(), scenario.controls.max_exceptions);
    const double drafts = scenario.block.drafts();
    for (const Exception& exception : decision.exceptions) {
      const bool normalised = scenario.controls.value_scheme == ValueScheme::kNormalisedSuffix;
      const double remaining = drafts - exception.position;
      EXPECT_LE(exception.regret * (normalised ? drafts : 1), scenario.controls.gate * remaining);
      EXPECT_EQ(exception.weight, normalised ? remaining / drafts : remaining);
      EXPECT_EQ(exception.regret, scenario.block.regret(exception.position));
    }
    return !decision.exceptions.empty();
  });
}

TEST_F(AsdProperties, P5MonotoneInControls) {
  for_all([](Scenario& scenario, SplitMix64& random) {
    // The literal policy's switch at zero is monotone too.
    const std::int32_t before = decide(scenario).decision.accepted;
    AsdControls& controls = scenario.controls;
    switch (random.index(4)) {
      case 0:
        controls.regret_budget += pick(random, {1.0 / 64, 0.125, 1, kInfinity});
        break;
      case 1:
        controls.gate += pick(random, {1.0 / 64, 0.125, 1, kInfinity});
        break;
      case 2:
        controls.max_exceptions += static_cast<double>(1 + random.index(3));
        break;
      default:
        scenario.spent *= 0.5;
    }
    const std::int32_t after = decide(scenario).decision.accepted;
    EXPECT_GE(after, before);
    return after > before;
  });
}

TEST_F(AsdProperties, P6And8LongestPrefixAndWhatBlocksIt) {
  for_all([](Scenario& scenario, SplitMix64&) {
    const Decision decision = decide(scenario).decision;
    const RawBlock& block = scenario.block;
    for (std::int32_t length = 0; length <= block.drafts(); ++length) {
      EXPECT_EQ(reference::broken_by(scenario.controls, block, scenario.spent, length) == 0,
                length <= decision.accepted);
    }
    if (decision.accepted == block.drafts()) {
      EXPECT_EQ(decision.blocked_by, kBlockedByNothing);
      return false;
    }
    EXPECT_NE(decision.blocked_by, kBlockedByNothing);
    EXPECT_EQ(decision.blocked_by, reference::broken_by(scenario.controls, block, scenario.spent,
                                                        decision.accepted + 1));
    EXPECT_TRUE(block.mismatch(decision.accepted));
    EXPECT_NE(decision.target_token, block.draft[static_cast<std::size_t>(decision.accepted)]);
    return true;
  });
}

TEST_F(AsdProperties, P7ThreeFormulationsAgree) {
  for_all([](Scenario& scenario, SplitMix64&) {
    scenario.controls = {.regret_budget = scenario.controls.regret_budget,
                         .gate = scenario.controls.gate,
                         .max_exceptions = scenario.controls.max_exceptions};
    const std::int32_t scanned = decide(scenario).decision.accepted;
    EXPECT_EQ(scanned, reference::accepted_by_enumeration(scenario.controls, scenario.block,
                                                          scenario.spent));
    EXPECT_EQ(scanned,
              reference::accepted_by_product(scenario.controls, scenario.block, scenario.spent));
    return scanned > 0;
  });
}

TEST_F(AsdProperties, P10RowShiftChangesNothing) {
  for_all([](Scenario& scenario, SplitMix64& random) {
    const Outcome before = decide(scenario);
    for (std::int32_t row = 0; row <= scenario.block.drafts(); ++row) {
      const auto shift = static_cast<float>(static_cast<double>(random.index(4096)) / 64 - 32);
      for (TokenId id = 0; id < scenario.block.vocab; ++id) {
        scenario.block.logits[static_cast<std::size_t>(row * scenario.block.vocab + id)] += shift;
      }
    }
    const Outcome after = decide(scenario);
    EXPECT_EQ(before, after);
    EXPECT_EQ(before.spent_after, after.spent_after);
    return before.kept.exceptions > 0;
  });
}

TEST_F(AsdProperties, P11ScaleChangesNoDecision) {
  for_all([](Scenario& scenario, SplitMix64&) {
    const Outcome before = decide(scenario);
    for (float& logit : scenario.block.logits) logit *= 2;
    scenario.controls.regret_budget *= 2;
    scenario.controls.gate *= 2;
    scenario.spent *= 2;
    const Outcome after = decide(scenario);
    EXPECT_EQ(before, after);
    EXPECT_EQ(2 * before.spent_after, after.spent_after);
    return before.kept.exceptions > 0;
  });
}

TEST_F(AsdProperties, P12RelabellingPermutesTheResult) {
  for_all([](Scenario& scenario, SplitMix64& random) {
    const Outcome before = decide(scenario);
    RawBlock& block = scenario.block;
    const RawBlock original = block;
    const auto vocab = static_cast<std::size_t>(block.vocab);
    std::vector<TokenId> renamed(vocab);
    std::iota(renamed.begin(), renamed.end(), 0);
    for (std::size_t i = vocab - 1; i > 0; --i) std::swap(renamed[i], renamed[random.index(i + 1)]);
    // Any permutation keeps the order of tied ids where none tie; other blocks are left out.
    for (std::size_t row = 0; row <= block.draft.size(); ++row) {
      std::vector<float> values(
          original.logits.begin() + static_cast<std::ptrdiff_t>(row * vocab),
          original.logits.begin() + static_cast<std::ptrdiff_t>((row + 1) * vocab));
      for (std::size_t id = 0; id < vocab; ++id) {
        block.logits[row * vocab + static_cast<std::size_t>(renamed[id])] = values[id];
      }
      std::sort(values.begin(), values.end());
      if (std::adjacent_find(values.begin(), values.end()) != values.end()) return false;
    }
    for (TokenId& id : block.draft) id = renamed[static_cast<std::size_t>(id)];
    for (TokenId& id : block.end_ids) id = renamed[static_cast<std::size_t>(id)];
    std::sort(block.end_ids.begin(), block.end_ids.end());
    const Outcome after = decide(scenario);
    EXPECT_EQ(before.decision.accepted, after.decision.accepted);
    EXPECT_EQ(before.spent_after, after.spent_after);
    std::vector<TokenId> expected = before.committed();
    for (TokenId& id : expected) id = renamed[static_cast<std::size_t>(id)];
    EXPECT_EQ(expected, after.committed());
    return true;
  });
}

TEST_F(AsdProperties, P13TailBlindness) {
  for_all([](Scenario& scenario, SplitMix64& random) {
    const Outcome before = decide(scenario);
    RawBlock& block = scenario.block;
    const std::int32_t accepted = before.decision.accepted;
    for (std::int32_t row = accepted + 1; row <= block.drafts(); ++row) {
      for (TokenId id = 0; id < block.vocab; ++id) {
        block.logits[static_cast<std::size_t>(row * block.vocab + id)] =
            static_cast<float>(random.index(64)) / 64;
      }
      if (row < block.drafts()) {
        block.draft[static_cast<std::size_t>(row)] =
            static_cast<TokenId>(random.index(static_cast<std::uint64_t>(block.vocab)));
      }
    }
    const Outcome after = decide(scenario);
    EXPECT_EQ(before.decision.accepted, after.decision.accepted);
    EXPECT_EQ(before.decision.blocked_by, after.decision.blocked_by);
    EXPECT_EQ(before.committed(), after.committed());
    EXPECT_EQ(before.spent_after, after.spent_after);
    return accepted + 1 < block.drafts();
  });
}

TEST_F(AsdProperties, P14RowsOfABatchDoNotSeeEachOther) {
  SplitMix64 random(kSeed + 14);
  for (int round = 0; round < 500; ++round) {
    // Blocks of one vocabulary scored in one tensor, in two orders.
    std::vector<Scenario> batch;
    while (batch.size() < 4) {
      Scenario scenario = random_scenario(random);
      if (scenario.block.vocab == 5) batch.push_back(scenario);
    }
    std::vector<Outcome> alone;
    for (const Scenario& scenario : batch) alone.push_back(decide(scenario));
    for (const std::vector<std::size_t>& order :
         {std::vector<std::size_t>{0, 1, 2, 3}, std::vector<std::size_t>{2, 0, 3, 1}}) {
      std::vector<float> logits;
      std::vector<TokenId> row_draft;
      for (const std::size_t i : order) {
        const RawBlock& block = batch[i].block;
        logits.insert(logits.end(), block.logits.begin(), block.logits.end());
        row_draft.insert(row_draft.end(), block.draft.begin(), block.draft.end());
        row_draft.push_back(kNoToken);
      }
      const auto rows = static_cast<std::int64_t>(row_draft.size());
      row_draft.pop_back();  // the helper adds the last row's padding itself
      const BlockScores scores({logits.data(), rows, 5}, row_draft, Masked::kNo);
      std::size_t row = 0;
      for (const std::size_t i : order) {
        const RawBlock& raw = batch[i].block;
        const StopRule stop = stop_of(batch[i]);
        const Block block{.draft = raw.draft,
                          .scores = scores.view().slice(row, raw.draft.size() + 1),
                          .target = {nullptr, raw.drafts() + 1, 5},
                          .draft_logits = std::nullopt,
                          .stop = stop,
                          .output_position = raw.output_position};
        Outcome outcome;
        outcome.decision = decide_asd(batch[i].controls, block, batch[i].spent);
        outcome.kept = cut(block, outcome.decision);
        EXPECT_EQ(outcome, alone[i]);
        row += raw.draft.size() + 1;
      }
    }
  }
}

TEST_F(AsdProperties, P16AnExhaustedLedgerIsStrict) {
  for_all([](Scenario& scenario, SplitMix64&) {
    scenario.controls.tie_policy = TiePolicy::kHeadroom;
    if (std::isinf(scenario.controls.regret_budget)) scenario.controls.regret_budget = 2;
    scenario.spent = scenario.controls.regret_budget;
    const Outcome outcome = decide(scenario);
    EXPECT_EQ(outcome.committed(), strict_tokens(scenario));
    return outcome.decision.accepted < scenario.block.drafts();
  });
}

TEST_F(AsdProperties, P17ErrorsComeInTheirOrder) {
  for_all([](Scenario& scenario, SplitMix64& random) {
    constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
    RawBlock& block = scenario.block;
    scenario.controls.masked_vocab = random.uniform() < 0.5;
    if (random.uniform() < 0.1) scenario.controls.regret_budget = pick(random, {kNan, -1.0 / 64});
    if (random.uniform() < 0.1) scenario.controls.gate = pick(random, {kNan, -1.0 / 64});
    if (random.uniform() < 0.1)
      scenario.controls.max_exceptions = pick(random, {kNan, -1.0, 0.5, -kInfinity});
    if (random.uniform() < 0.1) scenario.spent = pick(random, {kNan, -1.0 / 64, 8.5, 100});
    if (!block.draft.empty() && random.uniform() < 0.3) {
      block.draft[random.index(block.draft.size())] =
          static_cast<TokenId>(pick(random, {-1, -7, static_cast<double>(block.vocab), 1e6}));
    }
    if (random.uniform() < 0.5) {
      block.logits[random.index(block.logits.size())] =
          static_cast<float>(pick(random, {kNan, kInfinity, -kInfinity, -kInfinity}));
    }
    const auto fault = reference::fault_of(scenario.controls, block, scenario.spent);
    if (!fault) {
      EXPECT_EQ(decide(scenario).decision.accepted,
                reference::accepted_by_enumeration(scenario.controls, block, scenario.spent));
      return false;
    }
    try {
      decide(scenario);
      ADD_FAILURE() << "accepted " << name_of(*fault);
    } catch (const BlockError& error) {
      EXPECT_EQ(name_of(error.fault()), name_of(*fault)) << error.what();
    }
    return true;
  });
}

TEST_F(AsdProperties, P18AccountingOfReuse) {
  for_all([](Scenario& scenario, SplitMix64&) {
    const Outcome outcome = decide(scenario);
    const Kept& kept = outcome.kept;
    if (kept.exceptions == 0) return false;
    // Matches after the first exception, counted run by run.
    std::int32_t reused = 0;
    for (std::int32_t i = 0; i < kept.exceptions; ++i) {
      const std::int32_t next =
          i + 1 < kept.exceptions ? outcome.decision.exceptions[i + 1].position : kept.drafts;
      reused += next - outcome.decision.exceptions[i].position - 1;
    }
    EXPECT_EQ(outcome.decision.strict_length, outcome.decision.exceptions[0].position);
    EXPECT_EQ(kept.drafts - outcome.decision.strict_length, kept.exceptions + reused);
    return true;
  });
}

TEST_F(AsdProperties, P19CommitsBetweenOneAndTheLimit) {
  for_all([](Scenario& scenario, SplitMix64&) {
    const Outcome outcome = decide(scenario);
    const std::int32_t most = scenario.block.drafts() + 1;
    EXPECT_GE(outcome.kept.committed(), 1);
    EXPECT_LE(outcome.kept.committed(), std::min(most, scenario.stop.remaining.value_or(most)));
    return scenario.stop.remaining.has_value();
  });
}

TEST_F(AsdProperties, P20NoExceptionTouchesAnEnd) {
  for_all([](Scenario& scenario, SplitMix64&) {
    scenario.controls.allow_early_eos = scenario.controls.allow_skip_eos = false;
    const Outcome outcome = decide(scenario);
    for (const Exception& exception : outcome.decision.exceptions) {
      EXPECT_FALSE(scenario.block.is_end(exception.draft));
      EXPECT_FALSE(scenario.block.is_end(exception.choice));
    }
    if (!scenario.stop.ignore_end_ids) {
      const std::vector<TokenId> tokens = outcome.committed();
      for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
        EXPECT_FALSE(scenario.block.is_end(tokens[i]));
      }
      EXPECT_EQ(outcome.kept.finish == FinishReason::kEos, scenario.block.is_end(tokens.back()));
    }
    return !outcome.decision.exceptions.empty();
  });
}

TEST_F(AsdProperties, P21ReplayIsEqual) {
  for_all([](Scenario& scenario, SplitMix64&) {
    const Outcome first = decide(scenario), second = decide(scenario);
    EXPECT_EQ(first, second);
    EXPECT_EQ(first.spent_after, second.spent_after);
    return first.kept.exceptions > 0;
  });
}

}  // namespace
}  // namespace asdbench
