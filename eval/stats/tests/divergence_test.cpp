// Divergence of token lists against a full Levenshtein table; ledger sums over nothing.
#include "eval/stats/divergence.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "eval/core/rng.h"

namespace asdbench {
namespace {

std::int64_t full_table(const std::vector<TokenId>& a, const std::vector<TokenId>& b) {
  std::vector<std::vector<std::int64_t>> table(a.size() + 1,
                                               std::vector<std::int64_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        table[i][j] = static_cast<std::int64_t>(std::max(i, j));
      } else {
        table[i][j] = std::min({table[i - 1][j] + 1, table[i][j - 1] + 1,
                                table[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      }
    }
  }
  return table[a.size()][b.size()];
}

TEST(Divergence, DistanceEqualsTheFullTableOnRandomLists) {
  SplitMix64 random(20240607);
  const auto list = [&] {
    std::vector<TokenId> ids(random.index(9));
    for (TokenId& id : ids) id = static_cast<TokenId>(random.index(3));
    return ids;
  };
  for (int i = 0; i < 2000; ++i) {
    const auto a = list();
    const auto b = list();
    const Divergence found = diverge(a, b);
    EXPECT_EQ(found.edit_distance, full_table(a, b));
    EXPECT_EQ(found.first.has_value(), a != b);
    EXPECT_EQ(found.first.value_or(found.common_prefix), found.common_prefix);
  }
}

// Lengths around the words of 64 rows that are worked on at once.
TEST(Divergence, DistanceEqualsTheFullTableOnLongLists) {
  SplitMix64 random(20261201);
  for (const std::uint64_t alphabet : {2, 5, 1000}) {
    const auto list = [&](std::size_t size) {
      std::vector<TokenId> ids(size);
      for (TokenId& id : ids) id = static_cast<TokenId>(random.index(alphabet));
      return ids;
    };
    for (const std::size_t size : {1, 63, 64, 65, 127, 128, 129, 200}) {
      for (const std::size_t other : {1, 64, 150}) {
        const auto a = list(size), b = list(other);
        EXPECT_EQ(diverge(a, b).edit_distance, full_table(a, b)) << size << " " << other;
        EXPECT_EQ(diverge(b, a).edit_distance, full_table(a, b)) << size << " " << other;
      }
      // Near copies, as replies of two rules are.
      const auto a = list(size);
      auto b = a;
      for (int i = 0; i < 5; ++i)
        b[random.index(size)] = static_cast<TokenId>(random.index(alphabet));
      if (size > 2) b.erase(b.begin() + 1);
      EXPECT_EQ(diverge(a, b).edit_distance, full_table(a, b)) << size;
    }
  }
}

TEST(Divergence, EmptyListsAreEqual) {
  const Divergence found = diverge({}, {});
  EXPECT_FALSE(found.first);
  EXPECT_EQ(found.edit_share, 0);
  EXPECT_EQ(found.common_prefix, 0);
}

TEST(LedgerSummary, RatiosOverNothingAreAbsent) {
  const LedgerSummary none = summarise_ledger({}, 8);
  EXPECT_EQ(none.requests, 0);
  EXPECT_FALSE(none.exceptions_per_request);
  EXPECT_FALSE(none.budget_used_max);
  EXPECT_FALSE(none.tokens_per_pass);
  const std::vector<LedgerRequest> quiet = {{10, 5, {}, 0, false}};
  const LedgerSummary summary = summarise_ledger(quiet, 0);
  EXPECT_EQ(summary.exceptions_per_request, 0);
  EXPECT_FALSE(summary.regret_per_exception);
  EXPECT_FALSE(summary.reused_per_exception);
  EXPECT_FALSE(summary.budget_used_mean);
  EXPECT_EQ(summary.tokens_per_pass, 2);
  EXPECT_EQ(summarise_ledger(quiet, std::numeric_limits<double>::infinity()).budget_used_max, 0);
}

}  // namespace
}  // namespace asdbench
