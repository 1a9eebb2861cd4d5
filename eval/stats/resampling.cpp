// Resampling of units; a unit is a pair or a cluster, as its sums.
#include "eval/stats/resampling.h"

#include <cmath>
#include <map>
#include <vector>

#include "eval/core/rng.h"

namespace asdbench {
namespace {

struct Unit {
  double first = 0;
  double second = 0;
  double pairs = 0;
};

std::optional<std::vector<Unit>> units_of(std::span<const Pair> pairs,
                                          const BootstrapOptions& options) {
  if (pairs.empty() || !(options.confidence > 0 && options.confidence < 1)) return std::nullopt;
  if (!options.clusters.empty() && options.clusters.size() != pairs.size()) return std::nullopt;
  std::vector<Unit> units;
  std::map<std::uint64_t, std::size_t> unit_of_cluster;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    if (!std::isfinite(pairs[i].first) || !std::isfinite(pairs[i].second)) return std::nullopt;
    std::size_t at = units.size();
    if (!options.clusters.empty())
      at = unit_of_cluster.emplace(options.clusters[i], at).first->second;
    if (at == units.size()) units.emplace_back();
    units[at].first += pairs[i].first;
    units[at].second += pairs[i].second;
    units[at].pairs += 1;
  }
  return units;
}

std::optional<double> value_of(const Unit& total, PairedStatistic statistic) {
  if (statistic == PairedStatistic::kMeanDifference) {
    return (total.second - total.first) / total.pairs;
  }
  if (total.second == 0) return std::nullopt;
  return total.first / total.second;
}

void add(Unit& total, const Unit& unit) {
  total.first += unit.first;
  total.second += unit.second;
  total.pairs += unit.pairs;
}

std::optional<BootstrapEstimate> estimate(std::span<const Unit> units, PairedStatistic statistic,
                                          double confidence, std::span<const double> values) {
  Unit total;
  for (const Unit& unit : units) add(total, unit);
  const std::optional<double> point = value_of(total, statistic);
  const double tail = (1 - confidence) / 2;
  const std::optional<double> lo = quantile_linear(values, tail);
  const std::optional<double> hi = quantile_linear(values, 1 - tail);
  if (!point || !lo || !hi) return std::nullopt;
  return BootstrapEstimate{*point, {*lo, *hi}, values.size()};
}

}  // namespace

std::optional<BootstrapEstimate> drawn_bootstrap(std::span<const Pair> pairs,
                                                 PairedStatistic statistic,
                                                 const BootstrapOptions& options) {
  const auto units = units_of(pairs, options);
  if (!units || options.resamples == 0) return std::nullopt;
  SplitMix64 generator(options.seed);
  std::vector<double> values;
  values.reserve(options.resamples);
  for (std::uint64_t r = 0; r < options.resamples; ++r) {
    Unit total;
    for (std::size_t i = 0; i < units->size(); ++i) {
      add(total, (*units)[generator.index(units->size())]);
    }
    const auto value = value_of(total, statistic);
    if (!value) return std::nullopt;
    values.push_back(*value);
  }
  return estimate(*units, statistic, options.confidence, values);
}

std::optional<BootstrapEstimate> exhaustive_bootstrap(std::span<const Pair> pairs,
                                                      PairedStatistic statistic,
                                                      const BootstrapOptions& options) {
  const auto units = units_of(pairs, options);
  if (!units || units->size() > kExhaustiveUnits) return std::nullopt;
  const std::size_t n = units->size();
  std::size_t resamples = 1;
  for (std::size_t i = 0; i < n; ++i) resamples *= n;
  std::vector<double> values;
  values.reserve(resamples);
  for (std::size_t r = 0; r < resamples; ++r) {
    Unit total;
    // The digits of r in base n are the units drawn.
    for (std::size_t i = 0, digits = r; i < n; ++i, digits /= n) add(total, (*units)[digits % n]);
    const auto value = value_of(total, statistic);
    if (!value) return std::nullopt;
    values.push_back(*value);
  }
  return estimate(*units, statistic, options.confidence, values);
}

std::optional<BootstrapEstimate> paired_bootstrap(std::span<const Pair> pairs,
                                                  PairedStatistic statistic,
                                                  const BootstrapOptions& options) {
  const auto units = units_of(pairs, options);
  if (!units) return std::nullopt;
  return units->size() <= kExhaustiveUnits ? exhaustive_bootstrap(pairs, statistic, options)
                                           : drawn_bootstrap(pairs, statistic, options);
}

}  // namespace asdbench
