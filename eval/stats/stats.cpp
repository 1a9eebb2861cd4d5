// Moments, quantiles and intervals of specs/measurement.md, sections 3 to 5; quantiles from
// Boost.Math.
#include "eval/stats/stats.h"

#include <algorithm>
#include <boost/math/distributions/beta.hpp>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <vector>

namespace asdbench {
namespace {

bool is_probability(double p) { return p > 0 && p < 1; }

bool all_finite(std::span<const double> values) {
  return std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); });
}

double as_pct(double log_ratio) { return 100 * std::expm1(log_ratio); }

}  // namespace

std::optional<double> mean(std::span<const double> values) {
  if (values.empty()) return std::nullopt;
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

std::optional<double> standard_deviation(std::span<const double> values) {
  if (values.size() < 2) return std::nullopt;
  const double center = *mean(values);
  double squares = 0;
  for (const double value : values) squares += (value - center) * (value - center);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

std::optional<double> normal_quantile(double probability) {
  if (!is_probability(probability)) return std::nullopt;
  return boost::math::quantile(boost::math::normal(), probability);
}

double normal_upper_tail(double z) { return 0.5 * std::erfc(z / std::sqrt(2.0)); }

std::optional<double> t_quantile(double probability, double degrees) {
  if (!is_probability(probability) || !(degrees > 0) || !std::isfinite(degrees)) {
    return std::nullopt;
  }
  return boost::math::quantile(boost::math::students_t(degrees), probability);
}

std::optional<double> quantile_linear(std::span<const double> values, double q) {
  if (values.empty() || !(q >= 0 && q <= 1) || !all_finite(values)) return std::nullopt;
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const double h = static_cast<double>(sorted.size() - 1) * q;
  const auto below = static_cast<std::size_t>(h);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (h - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

std::optional<Interval> wilson(std::int64_t k, std::int64_t n, double confidence) {
  if (n <= 0 || k < 0 || k > n || !is_probability(confidence)) return std::nullopt;
  const double z = *normal_quantile(0.5 + confidence / 2);
  const double count = static_cast<double>(n);
  const double share = static_cast<double>(k) / count;
  const double scale = 1 + z * z / count;
  const double center = (share + z * z / (2 * count)) / scale;
  const double half =
      z * std::sqrt(share * (1 - share) / count + z * z / (4 * count * count)) / scale;
  // Exactly 0 and 1 at the ends: there the two terms cancel only up to rounding.
  return Interval{k == 0 ? 0.0 : center - half, k == n ? 1.0 : center + half};
}

std::optional<Interval> clopper_pearson(std::int64_t k, std::int64_t n, double confidence) {
  if (n <= 0 || k < 0 || k > n || !is_probability(confidence)) return std::nullopt;
  const double tail = (1 - confidence) / 2;
  const double hits = static_cast<double>(k);
  const double misses = static_cast<double>(n - k);
  using boost::math::beta_distribution;
  Interval interval{0, 1};
  if (k > 0) {
    interval.lo = boost::math::quantile(beta_distribution<double>(hits, misses + 1), tail);
  }
  if (k < n) {
    interval.hi = boost::math::quantile(
        boost::math::complement(beta_distribution<double>(hits + 1, misses), tail));
  }
  return interval;
}

std::optional<LogRatioEstimate> log_ratio_t(std::span<const double> log_ratios, double confidence) {
  if (log_ratios.empty() || !all_finite(log_ratios) || !is_probability(confidence)) {
    return std::nullopt;
  }
  LogRatioEstimate estimate;
  estimate.n = static_cast<std::int64_t>(log_ratios.size());
  estimate.mean = *mean(log_ratios);
  estimate.pct = as_pct(estimate.mean);
  estimate.sd = standard_deviation(log_ratios);
  if (!estimate.sd) return estimate;
  const double degrees = static_cast<double>(estimate.n - 1);
  estimate.se = *estimate.sd / std::sqrt(static_cast<double>(estimate.n));
  estimate.t_two_sided = t_quantile(0.5 + confidence / 2, degrees);
  const double half = *estimate.t_two_sided * *estimate.se;
  estimate.interval_pct = Interval{as_pct(estimate.mean - half), as_pct(estimate.mean + half)};
  estimate.one_sided_lower_pct =
      as_pct(estimate.mean - *t_quantile(confidence, degrees) * *estimate.se);
  return estimate;
}

std::optional<double> certifiable_margin(double psi, std::int64_t n, double alpha, double power) {
  if (!(psi >= 0 && psi <= 1) || n <= 0 || !is_probability(alpha) || !is_probability(power)) {
    return std::nullopt;
  }
  return (*normal_quantile(1 - alpha) + *normal_quantile(power)) *
         std::sqrt(psi / static_cast<double>(n));
}

std::optional<std::int64_t> certifiable_sample_size(double psi, double lambda, double margin,
                                                    double alpha, double power) {
  if (!(psi >= 0 && psi <= 1) || !(lambda + margin > 0) || !is_probability(alpha) ||
      !is_probability(power)) {
    return std::nullopt;
  }
  const double z = *normal_quantile(1 - alpha) + *normal_quantile(power);
  const double needed =
      std::ceil(z * z * (psi - lambda * lambda) / ((lambda + margin) * (lambda + margin)));
  // Beyond 2^53 the count itself would be rounded.
  if (!(needed > 0 && needed < 0x1.0p53)) return std::nullopt;
  return static_cast<std::int64_t>(needed);
}

}  // namespace asdbench
