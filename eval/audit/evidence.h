// From checked rows to evidence and figures: pure functions of what was recorded and the manifest.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "eval/audit/gate.h"
#include "eval/audit/rows.h"
#include "eval/core/json.h"

namespace asdbench {

struct Derived {
  AuditEvidence evidence;
  Json figures;  // section 11; real numbers as text of nine digits, null where undefined
};

Derived derive_evidence(const AuditedRows& rows, const Json& manifest);

/// Scored by a judge on a scale; the other metrics are shares of right answers.
bool is_judged(std::string_view metric);

/// Counts of right and wrong under the policy for capped replies.
PairedCounts correct_counts(const std::vector<AuditedPair>& pairs, bool capped_wrong);
bool is_capped(const OutputFacts& facts);
bool counts_as_correct(const OutputFacts& facts, bool capped_wrong);

/// Ratio of completion lengths, ASD over strict, with its two-sided 95 % interval; whole clusters
/// are drawn where samples carry one.
std::optional<BootstrapEstimate> length_ratio(const std::vector<AuditedPair>& pairs,
                                              std::uint64_t seed, std::uint64_t resamples);

/// Log speedup of each group, in order; a group that lacks a slot gives none.
std::vector<double> group_log_speedups(const TimedSet& set);

/// The set that gates: fixed work, unless more than 0.20 of an arm's counted tokens came after its
/// natural end and a set of reference lengths was timed. nullptr when nothing was timed.
const TimedSet* primary_set(const std::vector<TimedSet>& sets, const std::string& task);
/// Share of counted tokens after the first end token, of the arm that has more.
double post_end_fraction(const TimedSet& set);
inline constexpr double kMostPostEnd = 0.20;

/// Nine digits: enough to see any change, few enough that the last bits of a logarithm on another
/// machine do not show.
Json figure(double value);
Json figure(const std::optional<double>& value);
Json figure(const std::optional<Interval>& value);
/// Real numbers of the manifest, back from text. DataError.
double real_of(const Json& text);

}  // namespace asdbench
