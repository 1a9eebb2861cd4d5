// McNemar, Tango's score test by bisection, Wald, Holm, and the e-process.
#include "eval/stats/paired.h"

#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <cmath>
#include <limits>
#include <numeric>

#include "eval/core/error.h"

namespace asdbench {
namespace {

bool possible(const PairedCounts& counts) {
  return counts.n > 0 && counts.b >= 0 && counts.c >= 0 && counts.b <= counts.n &&
         counts.c <= counts.n - counts.b;
}

bool is_open_unit(double p) { return p > 0 && p < 1; }

double lambda_of(const PairedCounts& counts) {
  return static_cast<double>(counts.b - counts.c) / static_cast<double>(counts.n);
}

// z falls as l grows; where z(l) crosses `target` between two points that enclose the crossing.
double cross(const PairedCounts& counts, double target, double below, double above) {
  // The interval halves to neighbouring doubles well before the bound on the steps.
  for (int step = 0; step < 200; ++step) {
    const double middle = below + (above - below) / 2;
    if (middle <= below || middle >= above) break;
    (*tango_z(counts, middle) > target ? below : above) = middle;
  }
  return below + (above - below) / 2;
}

}  // namespace

std::string_view name_of(GateVerdict verdict) {
  switch (verdict) {
    case GateVerdict::kPass:
      return "pass";
    case GateVerdict::kFail:
      return "fail";
    case GateVerdict::kInconclusive:
      break;
  }
  return "inconclusive";
}

std::optional<McNemar> mcnemar(std::int64_t b, std::int64_t c) {
  if (b < 0 || c < 0) return std::nullopt;
  if (b + c == 0) return McNemar{};
  const boost::math::binomial law(static_cast<double>(b + c), 0.5);
  const double smaller = static_cast<double>(std::min(b, c));
  const double at_most = boost::math::cdf(law, smaller);
  const double exactly = boost::math::pdf(law, smaller);
  McNemar test;
  test.two_sided = std::min(1.0, 2 * at_most);
  // 2 P(X < min) + P(X = min), as P(X < min) = P(X <= min) - P(X = min).
  test.mid_p = std::min(1.0, 2 * at_most - exactly);
  test.harm_one_sided =
      c == 0 ? 1 : boost::math::cdf(boost::math::complement(law, static_cast<double>(c - 1)));
  return test;
}

std::optional<double> tango_z(const PairedCounts& counts, double l) {
  if (!possible(counts) || !(l >= -1 && l <= 1)) return std::nullopt;
  const double n = static_cast<double>(counts.n);
  const double b = static_cast<double>(counts.b);
  const double c = static_cast<double>(counts.c);
  const double quadratic = 2 * n;
  const double linear = -b - c + (2 * n - b + c) * l;
  const double constant = -c * l * (1 - l);
  // The discriminant is not negative but for rounding.
  const double root = std::sqrt(std::max(0.0, linear * linear - 4 * quadratic * constant));
  const double q = (root - linear) / (2 * quadratic);
  const double variance = n * (2 * q + l * (1 - l));
  const double difference = b - c - n * l;
  if (variance > 0) return difference / std::sqrt(variance);
  if (difference == 0) return 0;
  return std::copysign(std::numeric_limits<double>::infinity(), difference);
}

std::optional<Interval> tango_bounds(const PairedCounts& counts, double alpha) {
  if (!possible(counts) || !is_open_unit(alpha)) return std::nullopt;
  const double z = *normal_quantile(1 - alpha);
  return Interval{cross(counts, z, -1, 1), cross(counts, -z, -1, 1)};
}

std::optional<NonInferiority> non_inferiority(const PairedCounts& counts, double margin,
                                              double alpha) {
  if (!(margin >= 0 && margin <= 1)) return std::nullopt;
  const std::optional<Interval> bounds = tango_bounds(counts, alpha);
  if (!bounds) return std::nullopt;
  NonInferiority result;
  result.lambda = lambda_of(counts);
  result.z = *tango_z(counts, -margin);
  result.p = normal_upper_tail(result.z);
  result.bounds = *bounds;
  if (bounds->lo > -margin) {
    result.verdict = GateVerdict::kPass;
  } else if (bounds->hi < -margin) {
    result.verdict = GateVerdict::kFail;
  }
  return result;
}

std::optional<PairedWald> paired_wald(const PairedCounts& counts, double alpha, bool adjusted) {
  if (!possible(counts) || !is_open_unit(alpha)) return std::nullopt;
  const double more = adjusted ? 1 : 0;
  const double n = static_cast<double>(counts.n) + 2 * more;
  const double b = static_cast<double>(counts.b) + more;
  const double c = static_cast<double>(counts.c) + more;
  PairedWald result;
  result.lambda = (b - c) / n;
  // Rounding may take the variance of n equal outcomes below zero.
  result.standard_error = std::sqrt(std::max(0.0, b + c - (b - c) * (b - c) / n)) / n;
  const double half = *normal_quantile(1 - alpha) * result.standard_error;
  result.bounds = {result.lambda - half, result.lambda + half};
  return result;
}

std::optional<std::vector<double>> holm(std::span<const double> p_values) {
  if (!std::all_of(p_values.begin(), p_values.end(), [](double p) { return p >= 0 && p <= 1; })) {
    return std::nullopt;
  }
  std::vector<std::size_t> order(p_values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t i, std::size_t j) { return p_values[i] < p_values[j]; });
  std::vector<double> adjusted(p_values.size());
  double largest = 0;
  for (std::size_t k = 0; k < order.size(); ++k) {
    const double factor = static_cast<double>(order.size() - k);
    largest = std::max(largest, std::min(1.0, factor * p_values[order[k]]));
    adjusted[order[k]] = largest;
  }
  return adjusted;
}

EProcess::EProcess(double margin, double eta, double alpha) : margin_(margin), eta_(eta) {
  ASDBENCH_CHECK(eta > 0 && eta <= 0.5, "eta is outside (0, 0.5]");
  ASDBENCH_CHECK(margin >= 0 && margin < 1, "the margin is outside [0, 1)");
  ASDBENCH_CHECK(is_open_unit(alpha), "alpha is outside (0, 1)");
  threshold_ = -std::log(alpha);
}

void EProcess::observe(int outcome) {
  ASDBENCH_CHECK(outcome >= -1 && outcome <= 1, "an outcome is -1, 0 or 1");
  ++seen_;
  // With eta <= 1/2 and a margin below 1 both factors stay positive.
  const double bet = eta_ * (outcome + margin_);
  log_wealth_pass_ += std::log1p(bet);
  log_wealth_fail_ += std::log1p(-bet);
  if (!pass_at_ && log_wealth_pass_ >= threshold_) pass_at_ = seen_;
  if (!fail_at_ && log_wealth_fail_ >= threshold_) fail_at_ = seen_;
}

GateVerdict EProcess::verdict() const {
  if (!pass_at_ && !fail_at_) return GateVerdict::kInconclusive;
  if (pass_at_ && (!fail_at_ || *pass_at_ < *fail_at_)) return GateVerdict::kPass;
  return GateVerdict::kFail;
}

}  // namespace asdbench
