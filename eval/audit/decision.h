// The decision record of an audit and the certificate: one JSON form, derived from the database
// alone, so that anyone can derive it again.
#pragma once

#include <string>

#include "eval/audit/campaign.h"
#include "eval/audit/gate.h"
#include "eval/core/json.h"

namespace asdbench {

/// What was decided, and the record of it without its place in the chain.
// NOLINTNEXTLINE(bugprone-exception-escape): moving a Json never fails
struct AuditDecision {
  AuditVerdict verdict;
  bool early_stop = false;
  Json body;  // manifest, verdict, gates, figures, statements
};

/// Re-derives the decision from the rows. Refused "incomplete", "integrity"; ConfigError when this
/// build lacks what the manifest names.
AuditDecision derive_decision(Campaign& campaign);

/// The file that is written: `body`, the chain's head and length, and what kind it is
/// ("decision", "certificate").
Json decision_file(const AuditDecision& decision, const Campaign& campaign,
                   const std::string& kind);

/// The manifest of a campaign, parsed; its hash is that of the frozen record. Refused "integrity".
Json frozen_manifest(Campaign& campaign);

/// A page for people: verdict, gates, figures, statement.
std::string decision_text(const Json& file);

}  // namespace asdbench
