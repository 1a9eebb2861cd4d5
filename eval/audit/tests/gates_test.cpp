// Each gate at its edges; what is undefined never passes.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "eval/audit/gate.h"

namespace asdbench {
namespace {

AuditEvidence good() {
  AuditEvidence evidence;
  evidence.max_spent = 7.5;
  evidence.regret_budget = 8;
  evidence.drift_pct = {0.5, -2.9};
  evidence.speed_pct = Interval{4, 5};
  evidence.quality = {{.task = "gsm8k",
                       .counts = {1319, 22, 25},
                       .margin = 0.02,
                       .strict_accuracy = 0.5,
                       .graded = std::nullopt,
                       .sequential = std::nullopt}};
  evidence.length = {{.task = "gsm8k", .change_pct = Interval{-0.5, 1}}};
  evidence.caps = {{.task = "gsm8k", .counts = {1319, 1, 2}}};
  evidence.accuracy_floor = 0.05;
  return evidence;
}

GateVerdict word(const std::string& gate, const std::function<void(AuditEvidence&)>& change) {
  AuditEvidence evidence = good();
  change(evidence);
  for (const GateResult& result : judge(evidence).gates) {
    if (result.name == gate) return result.verdict;
  }
  ADD_FAILURE() << "no gate " << gate;
  return GateVerdict::kPass;
}

constexpr auto kPass = GateVerdict::kPass;
constexpr auto kFail = GateVerdict::kFail;
constexpr auto kInconclusive = GateVerdict::kInconclusive;

TEST(Gates, StandInTheOrderOfTheSpecAndPassGoodEvidence) {
  const AuditVerdict verdict = judge(good());
  EXPECT_EQ(verdict.verdict, kPass);
  EXPECT_EQ(verdict.names(kPass),
            (std::vector<std::string>{"integrity", "b0_identity", "ledger", "fixed_work_tokens",
                                      "drift", "speed", "quality:gsm8k", "length", "cap_hits"}));
}

TEST(Gates, IntegrityIdentityAndLedgerPassOrFail) {
  EXPECT_EQ(word("integrity", [](auto& e) { e.integrity_faults = {"row 3"}; }), kFail);
  EXPECT_EQ(word("b0_identity", [](auto& e) { e.b0_mismatches = 1; }), kFail);
  EXPECT_EQ(word("ledger", [](auto& e) { e.max_spent = 8; }), kPass);
  EXPECT_EQ(word("ledger", [](auto& e) { e.max_spent = std::nextafter(8.0, 9.0); }), kFail);
  EXPECT_EQ(word("ledger", [](auto& e) { e.state_leaks = 1; }), kFail);
  EXPECT_EQ(word("ledger", [](auto& e) { e.max_spent = std::nan(""); }), kFail);
}

TEST(Gates, TimingGatesNeverFailOnTokensAndDrift) {
  EXPECT_EQ(word("fixed_work_tokens", [](auto& e) { e.tokens_equal = false; }), kInconclusive);
  EXPECT_EQ(word("drift", [](auto& e) { e.drift_pct = {3, -3}; }), kPass);
  EXPECT_EQ(word("drift", [](auto& e) { e.drift_pct = {0, -3.01}; }), kInconclusive);
  EXPECT_EQ(word("drift", [](auto& e) { e.drift_pct = {std::nan("")}; }), kInconclusive);
  EXPECT_EQ(word("drift", [](auto& e) { e.drift_pct = {}; }), kInconclusive);
}

TEST(Gates, SpeedIsJudgedByItsInterval) {
  EXPECT_EQ(word("speed", [](auto& e) { e.speed_pct = Interval{-1, 0}; }), kFail);
  EXPECT_EQ(word("speed", [](auto& e) { e.speed_pct = Interval{0, 1}; }), kInconclusive);
  EXPECT_EQ(word("speed", [](auto& e) { e.speed_pct = std::nullopt; }), kInconclusive);
  EXPECT_EQ(word("speed", [](auto& e) { e.speed_fault = "too short"; }), kInconclusive);
}

TEST(Gates, QualityKnowsFloorsGradesAndTheEProcess) {
  const char* gate = "quality:gsm8k";
  EXPECT_EQ(word(gate, [](auto& e) { e.quality[0].margin = 0.01; }), kInconclusive);
  EXPECT_EQ(word(gate, [](auto& e) { e.quality[0].counts = {1000, 5, 60}; }), kFail);
  EXPECT_EQ(word(gate, [](auto& e) { e.quality[0].counts = {0, 0, 0}; }), kInconclusive);
  EXPECT_EQ(word(gate, [](auto& e) { e.quality[0].strict_accuracy = 0.04; }), kInconclusive);
  // A floor excuses nothing: harm that is seen fails.
  EXPECT_EQ(word(gate,
                 [](auto& e) {
                   e.quality[0].strict_accuracy = 0.04;
                   e.quality[0].counts = {1000, 5, 60};
                 }),
            kFail);
  EXPECT_EQ(word(gate, [](auto& e) { e.quality[0].sequential = kInconclusive; }), kInconclusive);
  const auto graded = [](double lo, double hi) {
    return [=](AuditEvidence& e) {
      e.quality[0].margin = 0.1;
      e.quality[0].graded = BootstrapEstimate{.point = 0, .interval = {lo, hi}, .resamples = 1};
    };
  };
  EXPECT_EQ(word(gate, graded(-0.09, 0.2)), kPass);
  EXPECT_EQ(word(gate, graded(-0.3, -0.11)), kFail);
  EXPECT_EQ(word(gate, graded(-0.3, 0)), kInconclusive);
}

TEST(Gates, TheWorstTaskDecidesLengthAndCaps) {
  const auto second = [](double lo, double hi) {
    return [=](AuditEvidence& e) {
      e.length.push_back({.task = "math", .change_pct = Interval{lo, hi}});
    };
  };
  EXPECT_EQ(word("length", second(-3, 3)), kPass);
  EXPECT_EQ(word("length", second(-3.5, 1)), kInconclusive);
  EXPECT_EQ(word("length", second(3.1, 4)), kFail);
  EXPECT_EQ(word("length", second(-9, -3.1)), kFail);
  EXPECT_EQ(word("length", [](auto& e) { e.length[0].change_pct = std::nullopt; }), kInconclusive);
  EXPECT_EQ(word("length", [](auto& e) { e.length.clear(); }), kInconclusive);
  EXPECT_EQ(word("cap_hits",
                 [](auto& e) {
                   e.caps.push_back({.task = "m", .counts = {300, 0, 30}});
                 }),
            kFail);
  EXPECT_EQ(word("cap_hits", [](auto& e) { e.caps.clear(); }), kInconclusive);
}

TEST(Gates, OneFailOutweighsEverything) {
  AuditEvidence evidence = good();
  evidence.b0_mismatches = 3;
  evidence.speed_pct = Interval{-0.4, 2};
  const AuditVerdict verdict = judge(evidence);
  EXPECT_EQ(verdict.verdict, kFail);
  EXPECT_EQ(verdict.names(kFail), (std::vector<std::string>{"b0_identity"}));
  EXPECT_EQ(verdict.names(kInconclusive), (std::vector<std::string>{"speed"}));
}

}  // namespace
}  // namespace asdbench
