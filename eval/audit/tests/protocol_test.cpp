// Every state meets every step: what is allowed does what the table says, all else is refused by
// name and changes nothing.
#include "eval/audit/protocol.h"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <map>

namespace asdbench {
namespace {

using State = AuditState;

FreezeStep good_freeze() {
  return {.disjoint = true, .b0_identity = true, .manifest = "m", .split = "b", .audit_size = 2};
}

/// A protocol that was led into `state` by allowed steps.
Protocol in_state(State state) {
  Protocol protocol;
  if (state == State::kDraft) return protocol;
  protocol.calibrate();
  if (state == State::kCalibrating) return protocol;
  protocol.select(true);
  if (state == State::kSelected) return protocol;
  protocol.freeze(good_freeze());
  if (state == State::kFrozen) return protocol;
  if (state == State::kVoid) {
    protocol.change();
    return protocol;
  }
  protocol.audit_start("m", "b", false);
  if (state == State::kAuditing) return protocol;
  protocol.audit_record("m", "p1", true);
  protocol.audit_record("m", "p2", true);
  protocol.audit_close(GateVerdict::kPass, false);
  if (state == State::kDecided) return protocol;
  protocol.certify();
  return protocol;
}

constexpr std::array<State, 8> kStates = {State::kDraft,     State::kCalibrating, State::kSelected,
                                          State::kFrozen,    State::kAuditing,    State::kDecided,
                                          State::kCertified, State::kVoid};

struct Step {
  std::function<Protocol::Outcome(Protocol&)> take;
  std::map<State, State> leads;  // allowed in these states only
};

const std::map<std::string, Step>& steps() {
  static const std::map<std::string, Step> kSteps = {
      {"calibrate",
       {[](Protocol& p) { return p.calibrate(); },
        {{State::kDraft, State::kCalibrating}, {State::kCalibrating, State::kCalibrating}}}},
      {"select",
       {[](Protocol& p) { return p.select(true); }, {{State::kCalibrating, State::kSelected}}}},
      {"freeze",
       {[](Protocol& p) { return p.freeze(good_freeze()); }, {{State::kSelected, State::kFrozen}}}},
      {"audit_start",
       {[](Protocol& p) { return p.audit_start("m", "b", false); },
        {{State::kFrozen, State::kAuditing}}}},
      {"audit_record",
       {[](Protocol& p) { return p.audit_record("m", "p3", true); },
        {{State::kAuditing, State::kAuditing}}}},
      {"audit_close",
       {[](Protocol& p) { return p.audit_close(GateVerdict::kFail, true); },
        {{State::kAuditing, State::kDecided}}}},
      {"certify",
       {[](Protocol& p) { return p.certify(); }, {{State::kDecided, State::kCertified}}}},
      {"change",
       {[](Protocol& p) { return p.change(); },
        {{State::kDraft, State::kDraft},
         {State::kCalibrating, State::kCalibrating},
         {State::kSelected, State::kCalibrating},
         {State::kFrozen, State::kVoid},
         {State::kAuditing, State::kVoid},
         {State::kDecided, State::kVoid},
         {State::kCertified, State::kVoid}}}}};
  return kSteps;
}

TEST(Protocol, EveryStateMeetsEveryStep) {
  int pairs = 0;
  for (const State state : kStates) {
    for (const auto& [name, step] : steps()) {
      Protocol protocol = in_state(state);
      ASSERT_EQ(protocol.state(), state);
      const Protocol::Outcome outcome = step.take(protocol);
      const auto next = step.leads.find(state);
      if (next == step.leads.end()) {
        EXPECT_EQ(outcome, Refusal::kNotAllowed) << name << " in " << name_of(state);
        EXPECT_EQ(protocol.state(), state) << name;
      } else {
        EXPECT_EQ(outcome, std::nullopt) << name << " in " << name_of(state);
        EXPECT_EQ(protocol.state(), next->second) << name;
      }
      ++pairs;
    }
  }
  EXPECT_EQ(pairs, 64);
}

TEST(Protocol, NeedsAreRefusedByNameAndChangeNothing) {
  Protocol protocol = in_state(State::kCalibrating);
  EXPECT_EQ(protocol.select(false), Refusal::kConstraintNotMet);
  EXPECT_EQ(protocol.state(), State::kCalibrating);

  protocol = in_state(State::kSelected);
  FreezeStep step = good_freeze();
  step.b0_identity = false;
  EXPECT_EQ(protocol.freeze(step), Refusal::kB0Identity);
  step.disjoint = false;  // checked first
  EXPECT_EQ(protocol.freeze(step), Refusal::kSplitOverlap);
  EXPECT_EQ(protocol.manifest(), "");
  EXPECT_EQ(protocol.state(), State::kSelected);

  protocol = in_state(State::kFrozen);
  EXPECT_EQ(protocol.audit_start("m", "other", true), Refusal::kWrongSplit);
  EXPECT_EQ(protocol.audit_start("m", "b", true), Refusal::kSplitConsumed);
  EXPECT_EQ(protocol.state(), State::kFrozen);

  protocol = in_state(State::kAuditing);
  EXPECT_EQ(protocol.audit_record("m", "x", false), Refusal::kPromptNotInSplit);
  EXPECT_EQ(protocol.audit_record("m", "p1", true), std::nullopt);
  EXPECT_EQ(protocol.audit_record("m", "p1", true), Refusal::kDuplicatePrompt);
  EXPECT_EQ(protocol.recorded(), 1);
  EXPECT_EQ(protocol.audit_close(GateVerdict::kPass, false), Refusal::kIncomplete);
  EXPECT_EQ(protocol.verdict(), std::nullopt);
  EXPECT_EQ(protocol.state(), State::kAuditing);

  protocol.audit_close(GateVerdict::kInconclusive, true);
  EXPECT_EQ(protocol.certify(), Refusal::kVerdictNotPass);
  EXPECT_EQ(protocol.state(), State::kDecided);
}

TEST(Protocol, AnotherManifestVoidsBeforeAnythingElseIsLookedAt) {
  Protocol protocol = in_state(State::kFrozen);
  EXPECT_EQ(protocol.audit_start("other", "wrong", true), std::nullopt);
  EXPECT_EQ(protocol.state(), State::kVoid);
  protocol = in_state(State::kAuditing);
  EXPECT_EQ(protocol.audit_record("other", "p1", false), std::nullopt);
  EXPECT_EQ(protocol.state(), State::kVoid);
}

}  // namespace
}  // namespace asdbench
