// The life of one deployment setting, from calibration to certificate, as a state machine that
// refuses by name what is out of order. Source: specs/measurement.md, section 8.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "eval/stats/paired.h"

namespace asdbench {

enum class AuditState : std::uint8_t {
  kDraft,
  kCalibrating,
  kSelected,
  kFrozen,
  kAuditing,
  kDecided,
  kCertified,
  kVoid,
};
/// "draft", "calibrating", ...
std::string_view name_of(AuditState state);

/// Why a step was refused; a refused step changes nothing.
enum class Refusal : std::uint8_t {
  kNotAllowed,
  kConstraintNotMet,
  kSplitOverlap,
  kB0Identity,
  kWrongSplit,
  kSplitConsumed,
  kPromptNotInSplit,
  kDuplicatePrompt,
  kIncomplete,
  kVerdictNotPass,
};
/// "not_allowed", "constraint_not_met", ...
std::string_view name_of(Refusal refusal);

/// What `freeze` fixes, and what it needs.
struct FreezeStep {
  bool disjoint = false;     // splits A and B share no prompt and no near-duplicate
  bool b0_identity = false;  // no prompt of A differs between B = 0 and strict
  std::string manifest;      // its hash
  std::string split;         // name of split B
  std::int64_t audit_size = 0;
};

/// Every step returns why it was refused, or nothing. Needs are checked in the order of the table
/// of section 8. A manifest other than the frozen one voids, which is a state and not a refusal.
class Protocol {
 public:
  using Outcome = std::optional<Refusal>;

  Outcome calibrate();
  Outcome select(bool constraint_met);
  Outcome freeze(const FreezeStep& step);
  Outcome audit_start(std::string_view manifest, std::string_view split, bool consumed);
  Outcome audit_record(std::string_view manifest, const std::string& prompt, bool in_split);
  Outcome audit_close(GateVerdict verdict, bool early_stop);
  Outcome certify();
  /// Controls, engine or split are no longer those of before.
  Outcome change();

  AuditState state() const { return state_; }
  const std::string& manifest() const { return frozen_.manifest; }  // "" before freeze
  const std::string& split() const { return frozen_.split; }
  std::int64_t audit_size() const { return frozen_.audit_size; }
  std::int64_t recorded() const { return static_cast<std::int64_t>(recorded_.size()); }
  bool has_recorded(const std::string& prompt) const { return recorded_.contains(prompt); }
  std::optional<GateVerdict> verdict() const { return verdict_; }

 private:
  AuditState state_ = AuditState::kDraft;
  FreezeStep frozen_;
  std::set<std::string> recorded_;
  std::optional<GateVerdict> verdict_;
};

}  // namespace asdbench
