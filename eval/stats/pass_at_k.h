// The share of problems that at least one of k samples solves, estimated without bias. Source:
// specs/scoring.md, section 5.4; Chen et al. 2021, arXiv:2107.03374.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace asdbench {

/// Samples of one problem, and how many of them passed.
struct SolvedSamples {
  std::int64_t samples = 0;
  std::int64_t passed = 0;
};

/// Probability that k samples drawn without replacement hold one that passed; undefined unless
/// 0 <= passed <= samples and 1 <= k <= samples.
std::optional<double> pass_at_k(const SolvedSamples& problem, std::int64_t k);

/// Mean over problems; undefined for no problem, and when it is for one of them.
std::optional<double> pass_at_k(std::span<const SolvedSamples> problems, std::int64_t k);

}  // namespace asdbench
