// Levenshtein between common ends, 64 rows at a time; ledger sums.
#include "eval/stats/divergence.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace asdbench {
namespace {

/// 64 rows of the table at a time: of each column only the steps between neighbouring rows are
/// kept, +1 in `more` and -1 in `less` (Myers 1999, in the form of Hyyro 2003).
std::int64_t levenshtein(std::span<const TokenId> a, std::span<const TokenId> b) {
  if (a.empty() || b.empty()) return static_cast<std::int64_t>(std::max(a.size(), b.size()));
  std::vector<std::pair<TokenId, std::size_t>> places;  // of each token in `a`
  for (std::size_t i = 0; i < a.size(); ++i) places.emplace_back(a[i], i);
  std::sort(places.begin(), places.end());
  const std::size_t blocks = (a.size() + 63) / 64;
  std::vector<std::uint64_t> more(blocks, ~std::uint64_t{0}), less(blocks, 0), equal(blocks, 0);
  auto distance = static_cast<std::int64_t>(a.size());
  for (const TokenId token : b) {
    const auto first =
        std::lower_bound(places.begin(), places.end(), std::pair(token, std::size_t{0}));
    for (auto at = first; at != places.end() && at->first == token; ++at) {
      equal[at->second / 64] |= std::uint64_t{1} << at->second % 64;
    }
    std::int32_t step = 1;  // from column to column, in the row above the block
    for (std::size_t k = 0; k < blocks; ++k) {
      const std::uint64_t falls = step < 0 ? 1 : 0, rises = step > 0 ? 1 : 0;
      const std::uint64_t vertical = equal[k] | less[k];
      const std::uint64_t same = equal[k] | falls;
      const std::uint64_t diagonal = (((same & more[k]) + more[k]) ^ more[k]) | same;
      const std::uint64_t up = less[k] | ~(diagonal | more[k]);
      const std::uint64_t down = more[k] & diagonal;
      const std::size_t last = k + 1 == blocks ? (a.size() - 1) % 64 : 63;
      step =
          static_cast<std::int32_t>(up >> last & 1) - static_cast<std::int32_t>(down >> last & 1);
      const std::uint64_t up_below = up << 1 | rises, down_below = down << 1 | falls;
      more[k] = down_below | ~(vertical | up_below);
      less[k] = up_below & vertical;
    }
    distance += step;
    for (auto at = first; at != places.end() && at->first == token; ++at) {
      equal[at->second / 64] = 0;
    }
  }
  return distance;
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
