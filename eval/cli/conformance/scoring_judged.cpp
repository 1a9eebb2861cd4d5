// conformance scoring: what judges said, and aggregates over many scores.
#include <cmath>
#include <map>

#include "eval/cli/conformance/scoring.h"
#include "eval/stats/aggregate_cases.h"
#include "tasks/common/judge_text.h"

namespace asdbench {
namespace {

Json preference(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

Json winner(std::optional<char> mark) {
  if (!mark) return "error";
  return *mark == 'C' ? "tie" : std::string(1, *mark);
}

std::optional<Json> judge_value(const std::string& kind, const std::string& text, RatingRule rule) {
  if (kind == "judge_rating") return preference(judge_rating(text, rule).value_or(-1));
  if (kind == "judge_pairwise") return winner(judge_winner(text));
  if (kind == "judge_two_scores") return winner(judge_two_scores(text));
  if (kind == "judge_ranking") return preference(judge_ranking(text));
  if (kind == "judge_score_pair") return preference(judge_score_pair(text));
  if (kind == "judge_logprob") {
    return preference(judge_log_prob(parse_json(text).get<std::map<std::string, double>>()));
  }
  return std::nullopt;
}

/// Numbers within `tolerance`, absolute or relative; objects part by part.
bool equal_within(const Json& value, const Json& expected, double tolerance) {
  if (expected.is_object()) {
    if (!value.is_object() || value.size() != expected.size()) return false;
    for (const auto& [key, part] : expected.items()) {
      if (!value.contains(key) || !equal_within(value.at(key), part, tolerance)) return false;
    }
    return true;
  }
  if (!expected.is_number() || !value.is_number()) return value == expected;
  const double want = expected.get<double>(), have = value.get<double>();
  return std::fabs(have - want) <= tolerance * std::max(1.0, std::fabs(want));
}

}  // namespace

bool run_judged_case(const JsonlRow& row, ConformanceReport& report) {
  const std::string& kind = row.text("kind");
  const Json& input = row.object().at("prediction");
  const bool fastchat = row.object().value("profile", "default") == "fastchat";
  const std::optional<Json> value =
      input.is_string() ? judge_value(kind, input.get<std::string>(),
                                      fastchat ? RatingRule::kFastchat : RatingRule::kDefault)
                        : aggregate_value(kind, input);
  if (!value) return false;
  constexpr double kTolerance = 1e-9;
  const Json& expected = row.object().at("expected");
  const bool ok = equal_within(*value, expected, row.object().value("tolerance", kTolerance));
  if (row.text("level") != "contested") {
    report.expect(row.text("id"), ok, expected.dump(), value->dump());
  } else if (!ok) {
    report.note(row.text("id") + ": contested, recorded " + expected.dump() + ", got " +
                value->dump());
  }
  return true;
}

}  // namespace asdbench
