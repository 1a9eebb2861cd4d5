// Speed figures of fixed and natural work, and the bounds they must keep. Source:
// specs/measurement.md, sections 1 to 3.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace asdbench {

/// Tokens and seconds of one arm; tokens after the one that prefill yields.
struct Work {
  double tokens = 0;
  double seconds = 0;
};

struct SpeedComparison {
  double strict_tokens_per_second = 0;
  double asd_tokens_per_second = 0;
  double ratio = 0;  // of tokens a second, ASD over strict
  double pct = 0;    // 100 (ratio - 1)
  double log_ratio = 0;
  double time_pct = 0;    // change of the seconds
  double tokens_pct = 0;  // change of the tokens; 0 for fixed work
};
/// Undefined unless all four figures are positive and finite.
std::optional<SpeedComparison> compare_speed(const Work& strict, const Work& asd);

/// Baseline, candidate, baseline: three throughputs in the order in which they were measured.
struct Bracketed {
  double baseline = 0;    // mean of the outer two
  double delta_pct = 0;   // of the candidate over it
  double drift_pct = 0;   // last over first
  bool eligible = false;  // |drift| within the limit
};
/// Undefined unless the throughputs are positive and finite and the limit is not negative.
std::optional<Bracketed> bracketed_gain(double pre, double candidate, double post,
                                        double drift_limit_pct = 3);

/// Log speedup of one group from the seconds of the slots S A A S; a drift that is linear in the
/// slot on the log scale cancels. Undefined unless all are positive and finite.
std::optional<double> abba_log_speedup(std::span<const double, 4> seconds);

struct PassSaving {
  double passes_saved = 0;     // share of the passes, at equal tokens
  double speed_bound_pct = 0;  // largest possible gain when a pass costs the same in both arms
};
/// Undefined unless both accept lengths are positive and finite.
std::optional<PassSaving> passes_saved(double strict_tokens_per_pass, double asd_tokens_per_pass);

struct AnswerTime {
  double time_change_pct = 0;  // of the seconds to an answer
  double requests_per_second_gain_pct = 0;
};
/// What a gain in tokens a second is worth when answers change their length; undefined at or below
/// -100 %.
std::optional<AnswerTime> time_to_answer(double throughput_gain_pct, double length_change_pct);

}  // namespace asdbench
