// One deployment's history in a database: its record chain, and the protocol that the chain leads
// to.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "eval/audit/chain.h"
#include "eval/audit/protocol.h"
#include "eval/core/error.h"
#include "results/audit_store.h"

namespace asdbench {

/// The protocol refuses a step, or a record is not what it was. `name` is one word for programs:
/// "split_consumed", "integrity", ...
class Refused : public Error {
 public:
  Refused(std::string name, const std::string& message)
      : Error(ExitCode::kRefused, name + ": " + message), name_(std::move(name)) {}
  const std::string& name() const noexcept { return name_; }

 private:
  std::string name_;
};

/// The word a record's body bears under "type".
namespace record_type {
inline constexpr const char* kCalibrate = "calibrate";
inline constexpr const char* kSelect = "select";
inline constexpr const char* kFreeze = "freeze";
inline constexpr const char* kAuditStart = "audit_start";
inline constexpr const char* kAuditRecord = "audit_record";
inline constexpr const char* kSpeedGroup = "speed_group";  // only while auditing
inline constexpr const char* kAuditClose = "audit_close";
inline constexpr const char* kCertify = "certify";
inline constexpr const char* kChange = "change";
inline constexpr const char* kVoid = "void";  // another manifest was found at a step
}  // namespace record_type

/// Replays a chain through the protocol. Refused "integrity" when a link is broken or a record is
/// out of order: nothing that could have been written by this program leads there.
struct Replayed {
  Chain chain;
  Protocol protocol;
  std::map<std::string, std::size_t> last;  // type -> index of its latest record
};
Replayed replay_chain(const std::vector<RecordRow>& rows, const std::string& campaign);

class Campaign {
 public:
  Campaign(AuditStore store, std::string name);

  const std::string& name() const { return name_; }
  AuditStore& store() { return store_; }
  const Chain& chain() const { return replayed_.chain; }
  const Protocol& protocol() const { return replayed_.protocol; }
  AuditState state() const { return replayed_.protocol.state(); }
  const std::string& head() const { return head_of(replayed_.chain); }
  /// Body of the latest record of this type; nullptr when there is none.
  const Json* latest(const char* type) const;

  /// Takes the step that `body` describes and appends it. Refused, by the name of the refusal, with
  /// `advice` on what to do; nothing is appended then.
  void append(Json body, const std::string& advice);
  /// The same for freeze, whose record is stored together with what it freezes.
  void freeze(Json body, const ManifestRow& manifest, const std::vector<SplitRow>& a,
              const std::vector<SplitRow>& b, const std::string& advice);

 private:
  ChainRecord take(Json body, const std::string& advice);
  void remember(ChainRecord record);

  AuditStore store_;
  std::string name_;
  Replayed replayed_;
};

}  // namespace asdbench
