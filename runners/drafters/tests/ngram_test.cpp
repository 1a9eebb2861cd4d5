// Prompt lookup against a search through the whole history.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "eval/core/error.h"
#include "runners/drafter.h"
#include "runners/models/toy_target.h"

namespace asdbench {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

ToyTarget& toy() {
  static ToyTarget target({});
  return target;
}

std::unique_ptr<Drafter> ngram(const std::vector<std::pair<std::string, std::string>>& options) {
  Params params("ngram", {"study.yaml", 3, "matrix.drafter[0].ngram"});
  for (const auto& [key, value] : options) params.set(key, value, {});
  for (const DrafterFactory& factory : drafter_factories()) {
    if (factory.name == "ngram") return factory.make(params, {toy()});
  }
  throw InternalError("no ngram");
}

std::vector<TokenId> propose(Drafter& by, Request& request, std::int32_t limit) {
  Request* const live[] = {&request};
  const DraftLimits limits[] = {{limit}};
  by.propose(live, limits);
  return request.draft;
}

// Commits `tokens` as if the target had chosen them.
void commit(Request& request, const std::vector<TokenId>& tokens) {
  for (const TokenId token : tokens) {
    request.draft.clear();
    Kept kept;
    kept.target_token = true;
    kept.tokens[0] = token;
    request.commit(kept, {});
  }
}

std::vector<TokenId> search(std::span<const TokenId> history, std::size_t min_n, std::size_t max_n,
                            std::size_t most) {
  for (std::size_t n = max_n; n >= min_n; --n) {
    for (std::size_t at = history.size(); at-- > n;) {  // `at` follows an occurrence
      const auto tail = history.last(n);
      if (!std::equal(tail.begin(), tail.end(), history.begin() + static_cast<long>(at - n)))
        continue;
      const auto found = history.subspan(at, std::min(most, history.size() - at));
      return {found.begin(), found.end()};
    }
  }
  return {};
}

TEST(NgramTest, ProposesWhatFollowedTheLatestOccurrence) {
  const auto by = ngram({{"K", "4"}, {"min_n", "2"}, {"max_n", "3"}});
  by->reserve({.requests = 1, .drafts = 4, .positions = 100});
  Request request("a", {1, 2, 3, 7, 1, 2, 3, 8, 9, 2, 3, 5, 1, 2}, {50, false}, {}, Rng());
  request.commit_first(3, 100);
  by->begin(request);
  EXPECT_THAT(propose(*by, request, 4), ElementsAre(8, 9, 2, 3));  // 1 2 3, not the later 2 3
  EXPECT_THAT(propose(*by, request, 2), ElementsAre(8, 9));
  EXPECT_THAT(propose(*by, request, 0), ElementsAre());
  EXPECT_THAT(propose(*by, request, 64), ElementsAre(8, 9, 2, 3));  // K of its own
  commit(request, {4});
  EXPECT_THAT(propose(*by, request, 4), ElementsAre());
  commit(request, {4});
  commit(request, {4});
  EXPECT_THAT(propose(*by, request, 4), ElementsAre(4));  // overlapping: 4 4 before 4
}

TEST(NgramTest, EqualsAFullSearchWhileHistoriesGrow) {
  SplitMix64 random(17);
  std::size_t found = 0;
  for (int round = 0; round < 60; ++round) {
    const std::size_t min_n = 1 + random.index(3), max_n = min_n + random.index(4);
    const auto by = ngram({{"min_n", std::to_string(min_n)}, {"max_n", std::to_string(max_n)}});
    by->reserve({.requests = 2, .drafts = 8, .positions = 300});
    for (std::int32_t slot = 0; slot < 2; ++slot) {  // the second request finds used tables
      const std::uint64_t vocab = 2 + random.index(8);
      std::vector<TokenId> prompt;
      for (std::size_t i = 0; i <= random.index(40); ++i)
        prompt.push_back(static_cast<TokenId>(random.index(vocab)));
      Request request("a", prompt, {200, false}, {}, Rng());
      request.slot = round % 2;
      request.commit_first(static_cast<TokenId>(random.index(vocab)), 300);
      by->begin(request);
      while (request.output().size() < 190) {
        const auto expected = search(request.history(), min_n, max_n, 8);
        ASSERT_EQ(propose(*by, request, 8), expected);
        found += expected.empty() ? 0 : 1;
        std::vector<TokenId> next;
        for (std::size_t i = 0; i <= random.index(6); ++i)
          next.push_back(static_cast<TokenId>(random.index(vocab)));
        commit(request, next);
      }
    }
  }
  EXPECT_GT(found, 1000U);
}

TEST(NgramTest, RefusesImpossibleOptions) {
  try {
    ngram({{"min_n", "5"}, {"max_n", "3"}});
    ADD_FAILURE();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("max_n is 3, below min_n, which is 5"));
  }
  EXPECT_THROW(ngram({{"K", "65"}}), ConfigError);
  EXPECT_THROW(ngram({{"K", "0"}}), ConfigError);
  EXPECT_THROW(ngram({{"min_n", "0"}}), ConfigError);
}

}  // namespace
}  // namespace asdbench
