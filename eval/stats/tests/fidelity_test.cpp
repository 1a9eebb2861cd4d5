// Fidelity and judged aggregates on the published cases and at their edges.
#include "eval/stats/fidelity.h"

#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "eval/core/json.h"
#include "eval/stats/aggregate_cases.h"
#include "eval/stats/judged.h"

namespace asdbench {
namespace {

using Tokens = std::vector<TokenId>;

void expect_equal(const Json& value, const Json& expected, const std::string& id) {
  if (expected.is_object()) {
    for (const auto& [key, part] : expected.items()) expect_equal(value.at(key), part, id + key);
  } else if (expected.is_number()) {
    ASSERT_TRUE(value.is_number()) << id;
    EXPECT_NEAR(value.get<double>(), expected.get<double>(), 1e-9) << id;
  } else {
    EXPECT_EQ(value, expected) << id;
  }
}

TEST(Fixtures, AggregatesAreAsPublished) {
  std::ifstream in(ASDBENCH_TEST_DATA "/scoring_aggregate.jsonl");
  int counted = 0;
  for (std::string line; std::getline(in, line); ++counted) {
    const Json entry = parse_json(line);
    const auto value = aggregate_value(entry["kind"], entry["prediction"]);
    ASSERT_TRUE(value.has_value()) << entry["id"];
    expect_equal(*value, entry["expected"], entry["id"].get<std::string>() + " ");
  }
  EXPECT_EQ(counted, 21);
}

TEST(Fidelity, EdgesOfTokenComparison) {
  const TokenFidelity empty = token_fidelity({}, {});
  EXPECT_TRUE(empty.identical);
  EXPECT_FALSE(empty.first_divergence.has_value());
  EXPECT_EQ(empty.prefix_match, 1);
  EXPECT_EQ(empty.position_agreement, 1);
  const Tokens a = {1, 2, 3}, b = {9, 2, 3};
  EXPECT_EQ(token_fidelity(a, b).first_divergence, 0);
  EXPECT_EQ(token_fidelity(a, b).prefix_match, 0);
  EXPECT_NEAR(token_fidelity(a, b).position_agreement, 2.0 / 3, 1e-12);
}

/// The textbook table.
std::size_t longest_common(const std::vector<int>& a, const std::vector<int>& b) {
  std::vector<std::vector<std::size_t>> table(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t j = 0; j < b.size(); ++j) {
      table[i + 1][j + 1] =
          a[i] == b[j] ? table[i][j] + 1 : std::max(table[i][j + 1], table[i + 1][j]);
    }
  }
  return table[a.size()][b.size()];
}

TEST(Fidelity, RougeEqualsTheTextbookTable) {
  std::mt19937 random(3);
  for (int round = 0; round < 300; ++round) {
    const int words = 1 + static_cast<int>(random() % 12);
    const auto draw = [&](std::size_t length) {
      std::vector<int> out(length);
      for (int& word : out) word = static_cast<int>(random() % static_cast<unsigned>(words));
      return out;
    };
    const std::vector<int> a = draw(1 + random() % 200), b = draw(1 + random() % 200);
    const auto text = [](const std::vector<int>& ids) {
      std::string out;
      for (const int id : ids) out += "W" + std::to_string(id) + ", ";
      return out;
    };
    const auto common = static_cast<double>(longest_common(a, b));
    const double precision = common / static_cast<double>(a.size());
    const double recall = common / static_cast<double>(b.size());
    const double expected = common == 0 ? 0 : 2 * precision * recall / (precision + recall);
    EXPECT_NEAR(rouge_l(text(a), text(b)), expected, 1e-12) << round;
    EXPECT_EQ(rouge_l(text(a), text(a)), 1);
  }
  EXPECT_EQ(rouge_l("\u00e9 \u4e2d", "\u00e9 \u4e2d"), 0);  // no word of a-z and 0-9
}

TEST(Judged, NothingIsUndefinedNotZero) {
  EXPECT_FALSE(mean_ratings({}).average.has_value());
  EXPECT_FALSE(win_rate({}).weighted.has_value());
  const std::vector<std::optional<double>> failed = {std::nullopt};
  EXPECT_FALSE(win_rate(failed).weighted.has_value());
  EXPECT_EQ(win_rate(failed).failed, 1);
  EXPECT_FALSE(subject_means({}).micro.has_value());
  const std::vector<std::pair<std::int64_t, std::int64_t>> one_empty = {{0, 0}, {1, 2}};
  EXPECT_EQ(subject_means(one_empty).macro, 0.5);
  EXPECT_EQ(pair_winner(Winner::kError, Winner::kFirst), Winner::kError);
  const std::vector<std::optional<double>> draws = {1.5, 0.0, 2.0};
  EXPECT_NEAR(*win_rate(draws).weighted, 200.0 / 3, 1e-12);
  EXPECT_NEAR(*win_rate(draws).discrete, 200.0 / 3, 1e-12);
}

}  // namespace
}  // namespace asdbench
