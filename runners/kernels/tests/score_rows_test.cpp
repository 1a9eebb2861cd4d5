// score_rows against a reference that reads row by row, on every backend of the program.
#include "runners/kernels/score_rows.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "runners/kernels/tests/backend.h"

namespace asdbench::kernels::testing {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

HostScores reference(const std::vector<float>& logits, const std::vector<TokenId>& draft,
                     std::int64_t vocab, MaskedVocab masked) {
  HostScores out;
  for (std::size_t row = 0; row < draft.size(); ++row) {
    const float* values = logits.data() + row * static_cast<std::size_t>(vocab);
    bool bad_logits = false;
    TokenId best = kNoToken;
    float second = -kInfinity;
    for (TokenId id = 0; id < vocab; ++id) {
      const float value = values[id];
      if (std::isnan(value) || value == kInfinity ||
          (value == -kInfinity && masked == MaskedVocab::kNo)) {
        bad_logits = true;
      }
      if (std::isfinite(value) && (best == kNoToken || value > values[best])) best = id;
    }
    for (TokenId id = 0; id < vocab; ++id) {
      if (id != best && values[id] > second) second = values[id];
    }
    bad_logits = bad_logits || best == kNoToken;
    const bool bad_draft = draft[row] < kNoToken || draft[row] >= vocab;
    const bool has_draft_logit = !bad_logits && !bad_draft && draft[row] != kNoToken;
    out.choice.push_back(bad_logits ? kNoToken : best);
    out.choice_logit.push_back(bad_logits ? kNan : values[best]);
    out.runner_up.push_back(bad_logits ? kNan : second);
    out.draft_logit.push_back(has_draft_logit ? values[draft[row]] : kNan);
    out.bad.push_back(
        static_cast<std::uint8_t>((bad_logits ? kBadLogits : 0) | (bad_draft ? kBadDraft : 0)));
  }
  return out;
}

/// Equal bits, except that any NaN equals any other.
void expect_same_floats(const std::vector<float>& found, const std::vector<float>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (std::isnan(expected[i])) {
      EXPECT_TRUE(std::isnan(found[i])) << "row " << i << ": " << found[i];
    } else {
      EXPECT_EQ(std::bit_cast<std::uint32_t>(found[i]), std::bit_cast<std::uint32_t>(expected[i]))
          << "row " << i << ": " << found[i] << ", expected " << expected[i];
    }
  }
}

/// Equal values: which of two zeros is the runner-up is not defined.
void expect_equal(const std::vector<float>& found, const std::vector<float>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_TRUE(found[i] == expected[i] || (std::isnan(found[i]) && std::isnan(expected[i])))
        << "row " << i << ": " << found[i] << ", expected " << expected[i];
  }
}

class ScoreRowsTest : public ::testing::TestWithParam<Backend> {
 protected:
  void check(const std::vector<float>& logits, const std::vector<TokenId>& draft,
             std::int64_t vocab, MaskedVocab masked = MaskedVocab::kNo, int offset = 0) {
    const HostScores expected = reference(logits, draft, vocab, masked);
    const HostScores found = score_rows_on(GetParam(), logits, draft, vocab, masked, offset);
    EXPECT_EQ(found.bad, expected.bad);
    EXPECT_EQ(found.choice, expected.choice);
    expect_same_floats(found.choice_logit, expected.choice_logit);
    expect_equal(found.runner_up, expected.runner_up);
    expect_same_floats(found.draft_logit, expected.draft_logit);
  }
};

/// Multiples of 1/64 within +-`range`/64: rich in exact ties when `range` is small.
std::vector<float> random_logits(std::size_t count, int range, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<int> steps(-range, range);
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(steps(random)) / 64.0f;
  return values;
}

std::vector<TokenId> random_draft(std::size_t rows, std::int64_t vocab, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<TokenId> ids(kNoToken, static_cast<TokenId>(vocab) - 1);
  std::vector<TokenId> draft(rows);
  for (TokenId& id : draft) id = ids(random);
  return draft;
}

TEST_P(ScoreRowsTest, BreaksTiesByLowestIdAtEveryLengthAndAlignment) {
  for (std::int64_t vocab = 1; vocab <= 200; ++vocab) {
    const auto seed = static_cast<std::uint32_t>(11 + vocab);
    const auto logits = random_logits(static_cast<std::size_t>(3 * vocab), 2, seed);
    check(logits, random_draft(3, vocab, seed), vocab, MaskedVocab::kNo,
          static_cast<int>(vocab % 5));
  }
}

TEST_P(ScoreRowsTest, RealVocabulariesWithTiesAndWithout) {
  for (const std::int64_t vocab : {49'152, 151'936}) {
    for (const int range : {8, 1 << 20}) {
      const auto seed = static_cast<std::uint32_t>(vocab + range);
      check(random_logits(static_cast<std::size_t>(4 * vocab), range, seed),
            random_draft(4, vocab, seed), vocab, MaskedVocab::kNo, range == 8 ? 1 : 0);
    }
  }
}

TEST_P(ScoreRowsTest, TheMaximumIsFoundAtEveryPlace) {
  // Past one stretch of the CPU body, one sweep of a thread block, and every tail.
  for (const std::int64_t vocab : {63, 64, 4'096, 4'097, 8'191, 8'999}) {
    for (std::int64_t at = 0; at < vocab; at += at < 130 || at > vocab - 130 ? 1 : 61) {
      std::vector<float> logits(static_cast<std::size_t>(vocab), -1.0f);
      logits[static_cast<std::size_t>(at)] = 2.0f;
      logits.back() = 2.0f;  // a later equal must lose
      const HostScores found =
          score_rows_on(GetParam(), logits, {kNoToken}, vocab, MaskedVocab::kNo, 3);
      ASSERT_EQ(found.choice.front(), at) << "vocab " << vocab;
    }
  }
}

TEST_P(ScoreRowsTest, SignedZerosAreEqualAndKeepTheirBits) {
  check({-1.0f, -0.0f, 0.0f}, {2}, 3);
  check({-1.0f, 0.0f, -0.0f}, {2}, 3);
  std::vector<float> logits(100, -0.0f);
  logits[70] = 0.0f;
  check(logits, {70}, 100);
}

TEST_P(ScoreRowsTest, EveryNonFiniteValueIsFoundAtEveryPlace) {
  for (const float foreign : {kNan, -kNan, kInfinity, -kInfinity}) {
    for (const MaskedVocab masked : {MaskedVocab::kNo, MaskedVocab::kYes}) {
      for (const std::size_t at : {0, 1, 7, 31, 32, 63, 64, 100, 4'095, 4'096, 5'000, 5'002}) {
        const std::int64_t vocab = 5'003;
        auto logits = random_logits(static_cast<std::size_t>(3 * vocab), 64, 5);
        logits[static_cast<std::size_t>(vocab) + at] = foreign;  // the middle row only
        check(logits, {0, static_cast<TokenId>(at), 2}, vocab, masked, 1);
      }
    }
  }
}

TEST_P(ScoreRowsTest, NanHidesNoInfinityAndInfinityNoNan) {
  std::vector<float> logits = random_logits(300, 64, 6);
  logits[10] = kInfinity;
  logits[200] = kNan;
  check(logits, {3}, 300);
}

TEST_P(ScoreRowsTest, ARowWithoutAFiniteValueIsBadEvenWhenMasked) {
  check(std::vector<float>(200, -kInfinity), {5}, 200, MaskedVocab::kYes);
  check(std::vector<float>(200, -kInfinity), {5}, 200, MaskedVocab::kNo);
}

TEST_P(ScoreRowsTest, AMaskedDraftHasAnInfinitelyLowLogit) {
  std::vector<float> logits(90, -kInfinity);
  logits[40] = -3.0f;
  logits[88] = -3.0f;
  check(logits, {7}, 90, MaskedVocab::kYes);
  const HostScores found = score_rows_on(GetParam(), logits, {7}, 90, MaskedVocab::kYes, 0);
  EXPECT_EQ(found.choice.front(), 40);
  EXPECT_EQ(found.draft_logit.front(), -kInfinity);
}

TEST_P(ScoreRowsTest, ADraftOutsideTheVocabularyIsBadAndNeverRead) {
  const TokenId huge = std::numeric_limits<TokenId>::max();
  const TokenId tiny = std::numeric_limits<TokenId>::min();
  check(random_logits(60, 64, 8), {10, -2, huge, tiny, kNoToken, 9}, 10);
}

TEST_P(ScoreRowsTest, ExtremeFiniteValuesAreOrdered) {
  const float largest = std::numeric_limits<float>::max();
  const float denormal = std::numeric_limits<float>::denorm_min();
  check({-largest, -denormal, 0.0f, denormal}, {0}, 4);
  check({-largest, -largest}, {1}, 2);
  check({largest, -largest, largest}, {1}, 3);
}

TEST_P(ScoreRowsTest, NoRowsAndNoVocabulary) {
  check({}, {}, 49'152);
  check({}, {kNoToken, 0}, 0);
}

INSTANTIATE_TEST_SUITE_P(On, ScoreRowsTest, ::testing::ValuesIn(backends()),
                         [](const auto& parameter) { return parameter.param.name; });

}  // namespace
}  // namespace asdbench::kernels::testing
