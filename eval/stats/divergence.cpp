// Levenshtein with one row between common ends; ledger sums.
#include "eval/stats/divergence.h"

#include <algorithm>
#include <numeric>

namespace asdbench {
namespace {

std::int64_t levenshtein(std::span<const TokenId> a, std::span<const TokenId> b) {
  if (a.size() < b.size()) std::swap(a, b);
  // row[j]: distance of the part of `a` seen so far to the first j of `b`.
  std::vector<std::int64_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::int64_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::int64_t diagonal = row[0];
    row[0] = static_cast<std::int64_t>(i) + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::int64_t change = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({change, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

std::optional<double> ratio(double part, double whole) {
  if (whole == 0) return std::nullopt;
  return part / whole;
}

}  // namespace

Divergence diverge(std::span<const TokenId> a, std::span<const TokenId> b) {
  Divergence result;
  const auto [at_a, at_b] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  result.common_prefix = at_a - a.begin();
  const bool equal = at_a == a.end() && at_b == b.end();
  if (!equal) result.first = result.common_prefix;
  const std::size_t longest = std::max(a.size(), b.size());
  // Common ends cost nothing in the distance and the square of their length in time.
  a = a.subspan(static_cast<std::size_t>(result.common_prefix));
  b = b.subspan(static_cast<std::size_t>(result.common_prefix));
  while (!a.empty() && !b.empty() && a.back() == b.back()) {
    a = a.first(a.size() - 1);
    b = b.first(b.size() - 1);
  }
  result.edit_distance = levenshtein(a, b);
  if (longest > 0) {
    result.edit_share = static_cast<double>(result.edit_distance) / static_cast<double>(longest);
  }
  return result;
}

LedgerSummary summarise_ledger(std::span<const LedgerRequest> requests, double budget) {
  LedgerSummary summary;
  summary.requests = static_cast<std::int64_t>(requests.size());
  double tokens = 0;
  double passes = 0;
  double reused = 0;
  double with_exception = 0;
  double blocked = 0;
  double spent_max = 0;
  for (const LedgerRequest& request : requests) {
    const double spent = std::accumulate(request.exceptions.begin(), request.exceptions.end(), 0.0);
    summary.exceptions += static_cast<std::int64_t>(request.exceptions.size());
    summary.regret_total += spent;
    spent_max = std::max(spent_max, spent);
    tokens += static_cast<double>(request.tokens);
    passes += static_cast<double>(request.passes);
    reused += static_cast<double>(request.reused);
    with_exception += request.exceptions.empty() ? 0 : 1;
    blocked += request.budget_blocked ? 1 : 0;
  }
  const double count = static_cast<double>(summary.requests);
  const double exceptions = static_cast<double>(summary.exceptions);
  summary.exceptions_per_request = ratio(exceptions, count);
  summary.exceptions_per_100_tokens = ratio(100 * exceptions, tokens);
  summary.regret_per_exception = ratio(summary.regret_total, exceptions);
  if (summary.requests > 0) {
    summary.budget_used_mean = ratio(summary.regret_total / count, budget);
    summary.budget_used_max = ratio(spent_max, budget);
  }
  summary.requests_with_exception = ratio(with_exception, count);
  summary.reused_per_exception = ratio(reused, exceptions);
  summary.tokens_per_pass = ratio(tokens, passes);
  summary.blocked_by_budget_share = ratio(blocked, count);
  return summary;
}

}  // namespace asdbench
