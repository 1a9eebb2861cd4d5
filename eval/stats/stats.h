// Moments, quantiles and intervals: pure functions on spans. What is undefined is std::nullopt,
// never 0 and never NaN.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace asdbench {

/// Both ends belong to the interval; units are those of the estimate.
struct Interval {
  double lo = 0;
  double hi = 0;
};

/// Arithmetic mean; undefined for no values.
std::optional<double> mean(std::span<const double> values);
/// Sample standard deviation (divisor n - 1); undefined for fewer than two values.
std::optional<double> standard_deviation(std::span<const double> values);

/// Quantile of the standard normal law; undefined unless 0 < probability < 1.
std::optional<double> normal_quantile(double probability);
/// P(Z > z) of the standard normal law.
double normal_upper_tail(double z);
/// Quantile of Student's t; undefined unless 0 < probability < 1 and degrees > 0.
std::optional<double> t_quantile(double probability, double degrees);
/// Empirical quantile with linear interpolation at h = (n - 1) q; undefined for no values, q
/// outside [0, 1] or a value that is not finite. `values` need not be sorted.
std::optional<double> quantile_linear(std::span<const double> values, double q);

/// Wilson's score interval of a share of `k` among `n`; undefined unless 0 <= k <= n, n > 0 and
/// 0 < confidence < 1. Source: specs/measurement.md, section 5.
std::optional<Interval> wilson(std::int64_t k, std::int64_t n, double confidence = 0.95);
/// The exact interval from beta quantiles, with the same domain.
std::optional<Interval> clopper_pearson(std::int64_t k, std::int64_t n, double confidence = 0.95);

/// Log speedups of independent groups, as a gain in percent.
struct LogRatioEstimate {
  std::int64_t n = 0;
  double mean = 0;  // of the log ratios
  double pct = 0;   // 100 (exp(mean) - 1)
  // Absent for n = 1: one group says nothing about spread.
  std::optional<double> sd;
  std::optional<double> se;
  std::optional<double> t_two_sided;
  std::optional<Interval> interval_pct;       // two-sided
  std::optional<double> one_sided_lower_pct;  // lower bound at `confidence`, one-sided
};
/// mean +- t sd / sqrt(n) on the log scale, then exponentiated; undefined for no values, a value
/// that is not finite, or a confidence outside (0, 1). Source: specs/measurement.md, section 3.
std::optional<LogRatioEstimate> log_ratio_t(std::span<const double> log_ratios,
                                            double confidence = 0.95);

/// The non-inferiority margin (a share, not points) that `n` paired prompts with discordance `psi`
/// can certify at one-sided `alpha` with `power`; undefined unless psi is in [0, 1], n > 0 and
/// alpha and power are in (0, 1). Source: specs/measurement.md, section 4.
std::optional<double> certifiable_margin(double psi, std::int64_t n, double alpha = 0.05,
                                         double power = 0.8);
/// Prompts needed to certify `margin` when the true difference is `lambda`; undefined where the
/// formula has no positive answer (lambda at or below -margin, psi below lambda squared).
std::optional<std::int64_t> certifiable_sample_size(double psi, double lambda, double margin,
                                                    double alpha = 0.05, double power = 0.8);

}  // namespace asdbench
