// Paired right/wrong answers of two arms: tests of difference, bounds on the loss, and a test that
// may be looked at after every prompt. Source: specs/measurement.md, section 4.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "eval/stats/stats.h"

namespace asdbench {

/// `n` prompts answered by both arms: `b` strict wrong and ASD right, `c` strict right and ASD
/// wrong.
struct PairedCounts {
  std::int64_t n = 0;
  std::int64_t b = 0;
  std::int64_t c = 0;
};

enum class GateVerdict : std::uint8_t { kPass, kFail, kInconclusive };
/// "pass", "fail", "inconclusive".
std::string_view name_of(GateVerdict verdict);

struct McNemar {
  double two_sided = 1;
  double mid_p = 1;
  double harm_one_sided = 1;  // P(X >= c)
};
/// Exact, under Binomial(b + c, 1/2); undefined for a negative count.
std::optional<McNemar> mcnemar(std::int64_t b, std::int64_t c);

/// z of the paired score test (Tango) of the hypothesis that the difference is `l`, in [-1, 1];
/// infinite where the variance vanishes and the hypothesis is not the estimate. Undefined for
/// impossible counts.
std::optional<double> tango_z(const PairedCounts& counts, double l);
/// Where the one-sided tests at `alpha` give way: `lo` is the lower bound, `hi` the upper.
std::optional<Interval> tango_bounds(const PairedCounts& counts, double alpha);

struct NonInferiority {
  double lambda = 0;  // (b - c) / n
  double z = 0;       // at -margin
  double p = 0;       // upper tail of z
  Interval bounds;    // one-sided, each at alpha
  GateVerdict verdict = GateVerdict::kInconclusive;
};
/// Passes when the lower bound is above -margin, fails when the upper one is below it. Undefined
/// for impossible counts, a margin outside [0, 1] or an alpha outside (0, 1).
std::optional<NonInferiority> non_inferiority(const PairedCounts& counts, double margin,
                                              double alpha = 0.05);

struct PairedWald {
  double lambda = 0;
  double standard_error = 0;
  Interval bounds;
};
/// For reference, never for a gate; `adjusted` adds one to b and c and two to n.
std::optional<PairedWald> paired_wald(const PairedCounts& counts, double alpha, bool adjusted);

/// Holm's adjusted p-values in the order given; undefined when one is outside [0, 1].
std::optional<std::vector<double>> holm(std::span<const double> p_values);

/// Two betting processes on outcomes +1 (only ASD right), -1 (only strict right), 0. Each keeps a
/// probability of at most alpha to ever reach 1 / alpha under its hypothesis, so that looking after
/// every prompt costs nothing.
class EProcess {
 public:
  /// `eta` in (0, 0.5], `margin` in [0, 1), `alpha` in (0, 1); InternalError otherwise (freeze
  /// checks them).
  EProcess(double margin, double eta, double alpha);

  /// InternalError for an outcome other than -1, 0, 1.
  void observe(int outcome);

  double log_wealth_pass() const { return log_wealth_pass_; }
  double log_wealth_fail() const { return log_wealth_fail_; }
  /// Number of outcomes after which the threshold was first reached.
  std::optional<std::int64_t> pass_at() const { return pass_at_; }
  std::optional<std::int64_t> fail_at() const { return fail_at_; }
  /// Decided by whichever came first.
  GateVerdict verdict() const;

 private:
  double margin_;
  double eta_;
  double threshold_;  // ln(1 / alpha)
  std::int64_t seen_ = 0;
  double log_wealth_pass_ = 0;
  double log_wealth_fail_ = 0;
  std::optional<std::int64_t> pass_at_;
  std::optional<std::int64_t> fail_at_;
};

}  // namespace asdbench
