// Closed forms of specs/measurement.md, sections 1 to 3.
#include "eval/stats/speed.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>

namespace asdbench {
namespace {

bool is_positive(double value) { return value > 0 && std::isfinite(value); }

bool all_positive(std::initializer_list<double> values) {
  return std::all_of(values.begin(), values.end(), is_positive);
}

double change_pct(double from, double to) { return 100 * (to - from) / from; }

}  // namespace

std::optional<SpeedComparison> compare_speed(const Work& strict, const Work& asd) {
  if (!all_positive({strict.tokens, strict.seconds, asd.tokens, asd.seconds})) return std::nullopt;
  SpeedComparison comparison;
  comparison.strict_tokens_per_second = strict.tokens / strict.seconds;
  comparison.asd_tokens_per_second = asd.tokens / asd.seconds;
  comparison.ratio = comparison.asd_tokens_per_second / comparison.strict_tokens_per_second;
  comparison.pct = 100 * (comparison.ratio - 1);
  comparison.log_ratio = std::log(comparison.ratio);
  comparison.time_pct = change_pct(strict.seconds, asd.seconds);
  comparison.tokens_pct = change_pct(strict.tokens, asd.tokens);
  return comparison;
}

std::optional<Bracketed> bracketed_gain(double pre, double candidate, double post,
                                        double drift_limit_pct) {
  if (!all_positive({pre, candidate, post}) || !(drift_limit_pct >= 0)) return std::nullopt;
  const double baseline = (pre + post) / 2;
  const double drift = change_pct(pre, post);
  return Bracketed{baseline, change_pct(baseline, candidate), drift,
                   std::abs(drift) <= drift_limit_pct};
}

std::optional<double> abba_log_speedup(std::span<const double, 4> seconds) {
  if (!std::all_of(seconds.begin(), seconds.end(), is_positive)) return std::nullopt;
  return (std::log(seconds[0]) + std::log(seconds[3]) - std::log(seconds[1]) -
          std::log(seconds[2])) /
         2;
}

std::optional<PassSaving> passes_saved(double strict_tokens_per_pass, double asd_tokens_per_pass) {
  if (!all_positive({strict_tokens_per_pass, asd_tokens_per_pass})) return std::nullopt;
  return PassSaving{1 - strict_tokens_per_pass / asd_tokens_per_pass,
                    change_pct(strict_tokens_per_pass, asd_tokens_per_pass)};
}

std::optional<AnswerTime> time_to_answer(double throughput_gain_pct, double length_change_pct) {
  const double speed = 1 + throughput_gain_pct / 100;
  const double length = 1 + length_change_pct / 100;
  if (!all_positive({speed, length})) return std::nullopt;
  return AnswerTime{100 * (length / speed - 1), 100 * (speed / length - 1)};
}

}  // namespace asdbench
