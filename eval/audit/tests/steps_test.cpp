// The parts of the steps: settings, selection, replay, the ledger of splits, manifests, simulation.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "eval/audit/manifest.h"
#include "eval/audit/replay.h"
#include "eval/audit/simulate.h"
#include "eval/audit/split_ledger.h"
#include "eval/audit/tuning.h"
#include "eval/core/digest.h"
#include "runners/drafter.h"

namespace asdbench {
namespace {

namespace fs = std::filesystem;

Choice asd(const char* budget, const char* gate, const char* cap) {
  Choice choice{"asd", Params("asd", {})};
  choice.params.set("B", budget, {});
  choice.params.set("g", gate, {});
  choice.params.set("M", cap, {});
  return choice;
}

SettingResult result(const char* budget, const char* gate, const char* cap, double lower,
                     bool meets) {
  return {
      .setting = {.drafter = {"ngram", Params("ngram", {})}, .verifier = asd(budget, gate, cap)},
      .gain_pct = lower + 1,
      .speed_pct = Interval{lower, lower + 2},
      .meets_constraint = meets};
}

TEST(Selection, NarrowingGoesOnWithTheFastestOfThoseOnCourseToMeetTheMargin) {
  const auto measured = [](double tokens_per_pass, PairedCounts counts, std::int64_t prompts) {
    SettingResult result{.setting = {.verifier = asd("1", "1", "1")}};
    result.tokens_per_pass = tokens_per_pass;
    result.tasks.push_back({.task = "gsm8k",
                            .counts = counts,
                            .margin = 0.05,
                            .loss = non_inferiority(counts, 0.05),
                            .prompts = prompts});
    return result;
  };
  // Of the first, harm is not shown after 100 prompts (-7 points, at least -1.1), yet 600 like them
  // would not pass; the second loses nothing, the third a point, the fourth is shown to be harmful.
  const std::vector<SettingResult> results = {
      measured(2.2, {100, 4, 11}, 600), measured(1.9, {100, 3, 3}, 600),
      measured(2.0, {100, 3, 4}, 600), measured(2.5, {100, 0, 30}, 600)};
  EXPECT_EQ(results[0].tasks[0].loss->verdict, GateVerdict::kInconclusive);
  EXPECT_EQ(better_half(results, {0, 1, 2, 3}), (std::vector<std::size_t>{2, 1}));
  EXPECT_EQ(better_half(results, {3, 0, 1}), (std::vector<std::size_t>{1, 0}));
  EXPECT_EQ(better_half(results, {3}), (std::vector<std::size_t>{3}));
}

TEST(Selection, TakesTheLargestLowerSpeedBoundOfThoseThatMeetTheConstraint) {
  const auto rule = SelectionRule::kLargestLowerSpeedBound;
  EXPECT_EQ(pick({}, rule), std::nullopt);
  EXPECT_EQ(pick({result("1", "1", "1", 9, false)}, rule), std::nullopt);
  EXPECT_EQ(pick({result("1", "1", "1", 2, true), result("2", "1", "1", 3, true),
                  result("4", "1", "1", 9, false)},
                 rule),
            1u);
  // Ties: smaller B, then g, then M, as numbers and not as text.
  EXPECT_EQ(pick({result("10", "1", "1", 3, true), result("9", "1", "1", 3, true)}, rule), 1u);
  EXPECT_EQ(pick({result("1", "0.5", "1", 3, true), result("1", "0.25", "2", 3, true)}, rule), 1u);
  EXPECT_EQ(pick({result("1", "1", "2", 3, true), result("1", "1", "1", 3, true)}, rule), 1u);
  EXPECT_EQ(pick({result("1", "1", "1", 3, false)}, SelectionRule::kGiven), 0u);
  EXPECT_EQ(
      pick({result("1", "1", "1", 3, true), result("2", "1", "1", 3, true)}, SelectionRule::kGiven),
      std::nullopt);
}

TEST(Setting, SurvivesItsJson) {
  const Setting setting{.drafter = {"ngram", Params("ngram", {})},
                        .verifier = asd("8", "0.25", "2")};
  const Setting back = setting_of(setting_json(setting), "test");
  EXPECT_EQ(setting_json(back), setting_json(setting));
  EXPECT_EQ(back.label(), "asd B=8 g=0.25 M=2 · ngram");
  EXPECT_EQ(with_zero_budget(back.verifier).params.given(), "B=0 g=0.25 M=2");
  EXPECT_THROW(with_zero_budget({"strict", Params("strict", {})}), ConfigError);
}

std::unique_ptr<Verifier> rule(const char* budget, const char* gate, const char* cap) {
  const Choice choice = asd(budget, gate, cap);
  for (const VerifierFactory& factory : verifier_factories()) {
    if (factory.name == "asd") return factory.make(choice.params);
  }
  return nullptr;
}

RecordedBlock block(std::int32_t position, std::vector<TokenId> draft, std::vector<float> gaps) {
  RecordedBlock record{.draft = std::move(draft), .vocab = 100, .output_position = position};
  for (std::size_t i = 0; i <= record.draft.size(); ++i) {
    record.choice.push_back(1);
    record.choice_logit.push_back(4);
    record.runner_up.push_back(0);
    record.draft_logit.push_back(i < gaps.size() ? 4 - gaps[i] : 0);
    record.bad.push_back(0);
  }
  return record;
}

TEST(Replay, KeepsALedgerForEachRequestAndCountsWhatIsKept) {
  // Each block: the second draft is a mismatch of regret 0.5.
  const RecordedRequests blocks = {
      {block(1, {1, 2, 1}, {0, 0.5, 0}), block(4, {1, 2, 1}, {0, 0.5, 0})},
      {block(1, {1, 2, 1}, {0, 0.5, 0})}};
  const ReplayTotals strict = replay_blocks(blocks, *rule("0", "1", "2"));
  EXPECT_EQ(strict.committed, 6);
  EXPECT_EQ(strict.exceptions, 0);
  const ReplayTotals once = replay_blocks(blocks, *rule("0.5", "1", "2"));
  EXPECT_EQ(once.kept,
            (std::vector<std::int8_t>{3, 1, 3}));  // spent in the first, fresh in the third
  EXPECT_EQ(once.regret, 1.0);
  EXPECT_EQ(*once.tokens_per_pass(), 10.0 / 3);
  EXPECT_EQ(replay_blocks({}, *rule("1", "1", "1")).tokens_per_pass(), std::nullopt);
  // 0.5 over the two positions that are left, itself included.
  EXPECT_EQ(first_mismatch_ratios(blocks), (std::vector<double>{0.25, 0.25, 0.25}));
}

/// Shows a block to a verifier as the decoder does.
void show(const Verifier& verifier, const Ledger& ledger, const RecordedBlock& record) {
  const StopRule stop{};
  const Block block{.draft = record.draft,
                    .scores = {record.choice, record.choice_logit, record.runner_up,
                               record.draft_logit, record.bad},
                    .target = {.data = nullptr,
                               .rows = static_cast<std::int64_t>(record.choice.size()),
                               .vocab = record.vocab},
                    .draft_logits = std::nullopt,
                    .stop = stop,
                    .output_position = record.output_position};
  verifier.decide(block, ledger, Rng());
}

TEST(Replay, TellsRequestsApartThatAreDecodedTogether) {
  RecordedRequests requests;
  const RecordingVerifier recorder(rule("0", "1", "2"), 2, requests);
  const Ledger first, second;
  show(recorder, first, block(0, {}, {}));  // prefill
  show(recorder, second, block(0, {}, {}));
  show(recorder, first, block(1, {1, 2}, {0, 0.5}));
  show(recorder, second, block(1, {3}, {0.5}));
  show(recorder, first, block(3, {1}, {0}));
  show(recorder, second, block(0, {}, {}));  // its ledger serves the next request
  show(recorder, second, block(1, {1}, {0}));
  show(recorder, first, block(5, {1}, {0}));
  ASSERT_EQ(requests.size(), 2u) << "a third request is not kept";
  ASSERT_EQ(requests[0].size(), 3u);
  EXPECT_EQ(requests[0][2].output_position, 5);
  ASSERT_EQ(requests[1].size(), 1u);
  EXPECT_EQ(requests[1][0].draft, (std::vector<TokenId>{3}));
}

TEST(SplitLedgerFile, RemembersPromptsAndSeesEdits) {
  std::string pattern = ::testing::TempDir() + "asdbench_ledger_XXXXXX";
  const fs::path folder = mkdtemp(pattern.data());
  const fs::path file = folder / "deep" / "splits.jsonl";
  {
    SplitLedger ledger(file);
    EXPECT_EQ(ledger.user_of({"p1"}), nullptr);
    ledger.begin({.audit = "a1", .campaign = "one", .manifest = "m", .split = "s", .closed = ""},
                 {"p1", "p2"});
  }
  {
    SplitLedger ledger(file);
    ASSERT_NE(ledger.user_of({"p9", "p2"}), nullptr);
    EXPECT_EQ(ledger.user_of({"p2"})->campaign, "one");
    EXPECT_EQ(ledger.user_of({"p3"}), nullptr);
    EXPECT_EQ(ledger.find("a1")->closed, "");
    ledger.close("a1", "fail");
  }
  EXPECT_EQ(SplitLedger(file).find("a1")->closed, "fail");
  std::ifstream in(file);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const std::size_t second = text.find('\n') + 1;
  std::string edited = text;
  edited.replace(edited.find("p1"), 2, "p7");
  for (const std::string& bad : {text.substr(second), text.substr(0, text.size() - 3), edited,
                                 std::string("{}\n"), std::string("\n")}) {
    std::ofstream(file, std::ios::trunc) << bad;
    EXPECT_THROW(SplitLedger{file}, DataError) << bad;
  }
  fs::remove_all(folder);
  EXPECT_THROW(SplitLedger("/proc/no/such/file"), StoreError);
}

TEST(Manifest, DifferencesNameEveryItem) {
  const Json a = {{"x", {{"y", 1}, {"z", "q"}}}, {"list", {1, 2}}};
  EXPECT_TRUE(manifest_differences(a, a).empty());
  Json b = a;
  b["x"]["y"] = 2;
  b["list"].push_back(3);
  b["x"].erase("z");
  EXPECT_EQ(manifest_differences(a, b),
            (std::vector<std::string>{"/x/y: 1 -> 2", "/x/z: \"q\" -> nothing",
                                      "/list/2: nothing -> 3"}));
  EXPECT_NE(manifest_hash(a), manifest_hash(b));
}

TEST(Manifest, GradersThatJudgeDifferentlyHaveDifferentFingerprints) {
  std::set<std::string> prints;
  for (const TaskFactory& factory : task_factories()) {
    if (factory.name != "gsm8k") continue;
    for (const char* grader : {"default", "lm-eval-strict", "openai-gsm8k"}) {
      Params params("gsm8k", {});
      params.set("grader", grader, {});
      prints.insert(grader_fingerprint(*factory.make(params)));
    }
  }
  EXPECT_EQ(prints.size(), 3u);
}

TEST(Simulation, IsReproducibleAndKnowsItsTruth) {
  SimulationOptions options;
  options.audits = 60;
  options.resamples = 50;
  options.length_sd = 0.05;
  options.cap_rate = 0;
  const SimulatedTruth safe{.prompts = 400, .discordance = 0.02, .loss = 0, .gain_pct = 5};
  const SimulatedPoint point = simulate_point(safe, options);
  EXPECT_GT(point.verdict.share(GateVerdict::kPass), 0.9);
  EXPECT_EQ(simulate_point(safe, options).verdict.pass, point.verdict.pass);
  const SimulatedPoint harmful =
      simulate_point({.prompts = 400, .discordance = 0.2, .loss = 0.15, .gain_pct = 5}, options);
  EXPECT_GT(harmful.verdict.share(GateVerdict::kFail), 0.9);
  EXPECT_LT(harmful.sequential_prompts, 400);
  const SimulatedPoint slow =
      simulate_point({.prompts = 400, .discordance = 0.02, .loss = 0, .gain_pct = -5}, options);
  EXPECT_EQ(slow.speed.fail, 60);
}

}  // namespace
}  // namespace asdbench
