// Paired bootstrap over prompts or whole clusters, reproducible by seed. Source:
// specs/measurement.md, section 3.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "eval/stats/stats.h"

namespace asdbench {

/// One pair of figures a prompt, both drawn together.
struct Pair {
  double first = 0;
  double second = 0;
};

enum class PairedStatistic : std::uint8_t {
  kRatioOfSums,     // sum of first / sum of second
  kMeanDifference,  // mean of second - first
};

struct BootstrapEstimate {
  double point = 0;
  Interval interval;  // percentile, linear interpolation, at (1 - confidence) / 2 each side
  std::uint64_t resamples = 0;
};

struct BootstrapOptions {
  double confidence = 0.95;
  std::uint64_t seed = 0;
  std::uint64_t resamples = 10'000;
  /// Cluster of each pair, any numbers; pairs of one cluster are drawn together. Empty: every pair
  /// alone.
  std::span<const std::uint64_t> clusters = {};
};

/// Resamples drawn with SplitMix64, in order, resample by resample. With clusters, as many clusters
/// are drawn as there are, in the order of their first pair. Undefined for no pairs, a figure that
/// is not finite, clusters of another length, no resamples, a confidence outside (0, 1), or a ratio
/// over nothing in the data or in a resample.
std::optional<BootstrapEstimate> drawn_bootstrap(std::span<const Pair> pairs,
                                                 PairedStatistic statistic,
                                                 const BootstrapOptions& options);

/// All n^n resamples of n pairs or clusters; undefined as above, and for more than
/// `kExhaustiveUnits`.
std::optional<BootstrapEstimate> exhaustive_bootstrap(std::span<const Pair> pairs,
                                                      PairedStatistic statistic,
                                                      const BootstrapOptions& options);
inline constexpr std::size_t kExhaustiveUnits = 5;

/// Exhaustive up to `kExhaustiveUnits` pairs or clusters, drawn beyond.
std::optional<BootstrapEstimate> paired_bootstrap(std::span<const Pair> pairs,
                                                  PairedStatistic statistic,
                                                  const BootstrapOptions& options = {});

}  // namespace asdbench
