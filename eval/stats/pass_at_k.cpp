// 1 - C(n - c, k) / C(n, k) as a product, which neither overflows nor cancels.
#include "eval/stats/pass_at_k.h"

namespace asdbench {

std::optional<double> pass_at_k(const SolvedSamples& problem, std::int64_t k) {
  const auto [samples, passed] = problem;
  if (passed < 0 || passed > samples || k < 1 || k > samples) return std::nullopt;
  if (samples - passed < k) return 1;
  double none_passes = 1;
  for (std::int64_t i = samples - passed + 1; i <= samples; ++i) {
    none_passes *= 1 - static_cast<double>(k) / static_cast<double>(i);
  }
  return 1 - none_passes;
}

std::optional<double> pass_at_k(std::span<const SolvedSamples> problems, std::int64_t k) {
  double sum = 0;
  for (const SolvedSamples& problem : problems) {
    const std::optional<double> one = pass_at_k(problem, k);
    if (!one) return std::nullopt;
    sum += *one;
  }
  if (problems.empty()) return std::nullopt;
  return sum / static_cast<double>(problems.size());
}

}  // namespace asdbench
