// The table of section 8, one function a row.
#include "eval/audit/protocol.h"

#include <array>

namespace asdbench {

std::string_view name_of(AuditState state) {
  static constexpr std::array<std::string_view, 8> kNames = {
      "draft", "calibrating", "selected", "frozen", "auditing", "decided", "certified", "void"};
  return kNames.at(static_cast<std::size_t>(state));
}

std::string_view name_of(Refusal refusal) {
  static constexpr std::array<std::string_view, 10> kNames = {
      "not_allowed", "constraint_not_met", "split_overlap",       "b0_identity",
      "wrong_split", "split_consumed",     "prompt_not_in_split", "duplicate_prompt",
      "incomplete",  "verdict_not_pass"};
  return kNames.at(static_cast<std::size_t>(refusal));
}

Protocol::Outcome Protocol::calibrate() {
  if (state_ != AuditState::kDraft && state_ != AuditState::kCalibrating) {
    return Refusal::kNotAllowed;
  }
  state_ = AuditState::kCalibrating;
  return std::nullopt;
}

Protocol::Outcome Protocol::select(bool constraint_met) {
  if (state_ != AuditState::kCalibrating) return Refusal::kNotAllowed;
  if (!constraint_met) return Refusal::kConstraintNotMet;
  state_ = AuditState::kSelected;
  return std::nullopt;
}

Protocol::Outcome Protocol::freeze(const FreezeStep& step) {
  if (state_ != AuditState::kSelected) return Refusal::kNotAllowed;
  if (!step.disjoint) return Refusal::kSplitOverlap;
  if (!step.b0_identity) return Refusal::kB0Identity;
  frozen_ = step;
  state_ = AuditState::kFrozen;
  return std::nullopt;
}

Protocol::Outcome Protocol::audit_start(std::string_view manifest, std::string_view split,
                                        bool consumed) {
  if (state_ != AuditState::kFrozen) return Refusal::kNotAllowed;
  if (manifest != frozen_.manifest) {
    state_ = AuditState::kVoid;
    return std::nullopt;
  }
  if (split != frozen_.split) return Refusal::kWrongSplit;
  if (consumed) return Refusal::kSplitConsumed;
  state_ = AuditState::kAuditing;
  return std::nullopt;
}

Protocol::Outcome Protocol::audit_record(std::string_view manifest, const std::string& prompt,
                                         bool in_split) {
  if (state_ != AuditState::kAuditing) return Refusal::kNotAllowed;
  if (manifest != frozen_.manifest) {
    state_ = AuditState::kVoid;
    return std::nullopt;
  }
  if (!in_split) return Refusal::kPromptNotInSplit;
  if (!recorded_.insert(prompt).second) return Refusal::kDuplicatePrompt;
  return std::nullopt;
}

Protocol::Outcome Protocol::audit_close(GateVerdict verdict, bool early_stop) {
  if (state_ != AuditState::kAuditing) return Refusal::kNotAllowed;
  if (!early_stop && recorded() < frozen_.audit_size) return Refusal::kIncomplete;
  verdict_ = verdict;
  state_ = AuditState::kDecided;
  return std::nullopt;
}

Protocol::Outcome Protocol::certify() {
  if (state_ != AuditState::kDecided) return Refusal::kNotAllowed;
  if (verdict_ != GateVerdict::kPass) return Refusal::kVerdictNotPass;
  state_ = AuditState::kCertified;
  return std::nullopt;
}

Protocol::Outcome Protocol::change() {
  switch (state_) {
    case AuditState::kVoid:
      return Refusal::kNotAllowed;
    case AuditState::kDraft:
      return std::nullopt;
    case AuditState::kCalibrating:
    case AuditState::kSelected:
      state_ = AuditState::kCalibrating;
      return std::nullopt;
    default:
      state_ = AuditState::kVoid;
      return std::nullopt;
  }
}

}  // namespace asdbench
