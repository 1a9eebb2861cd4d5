// Roots, shared prompts and near-duplicates, against every pair compared directly, and their speed.
#include "eval/audit/splits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <set>

#include "eval/core/digest.h"
#include "eval/core/error.h"
#include "eval/core/prompt_identity.h"
#include "eval/core/rng.h"

namespace asdbench {
namespace {

std::string words(SplitMix64& random, std::size_t count, std::uint64_t vocabulary) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    text += (i > 0 ? " w" : "w") + std::to_string(random.index(vocabulary));
  }
  return text;
}

/// Replaces one word at a time.
std::string altered(SplitMix64& random, const std::string& text, int changes) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  for (int i = 0; i < changes; ++i) parts[random.index(parts.size())] = "x";
  std::string out;
  for (const std::string& part : parts) out += (out.empty() ? "" : " ") + part;
  return out;
}

std::set<std::string> direct_shingles(const std::string& text) {
  const std::string normal = normalise_prompt(text);
  std::vector<std::string> parts;
  std::size_t begin = 0;
  while (begin <= normal.size()) {
    const std::size_t end = std::min(normal.find(' ', begin), normal.size());
    parts.push_back(normal.substr(begin, end - begin));
    begin = end + 1;
  }
  if (parts.size() < kShingleWords) return {normal};
  std::set<std::string> set;
  for (std::size_t i = 0; i + kShingleWords <= parts.size(); ++i) {
    std::string shingle;
    for (std::size_t k = 0; k < kShingleWords; ++k) shingle += parts[i + k] + " ";
    set.insert(shingle);
  }
  return set;
}

double direct_jaccard(const std::string& x, const std::string& y) {
  const auto a = direct_shingles(x), b = direct_shingles(y);
  double shared = 0;
  for (const std::string& shingle : a) shared += b.contains(shingle) ? 1 : 0;
  return shared / (static_cast<double>(a.size() + b.size()) - shared);
}

TEST(Splits, FindsExactlyTheNearPairsThatEveryPairComparedFinds) {
  SplitMix64 random(5);
  for (const double limit : {0.3, 0.7, 1.0}) {
    std::vector<std::string> a, b;
    for (int i = 0; i < 60; ++i) a.push_back(words(random, 3 + random.index(40), 50));
    for (int i = 0; i < 60; ++i) {
      b.push_back(altered(random, a[random.index(a.size())], static_cast<int>(random.index(4))));
    }
    const Overlap found = compare_splits(a, b, limit);
    const std::set<std::size_t> exact(found.exact_in_b.begin(), found.exact_in_b.end());
    std::vector<std::pair<std::size_t, std::size_t>> expected, got;
    for (std::size_t j = 0; j < b.size(); ++j) {
      bool equal = false;
      for (const std::string& text : a) equal = equal || prompt_hash(text) == prompt_hash(b[j]);
      EXPECT_EQ(exact.contains(j), equal) << j;
      for (std::size_t i = 0; i < a.size() && !equal; ++i) {
        if (direct_jaccard(a[i], b[j]) >= limit) expected.emplace_back(j, i);
      }
    }
    for (const NearPair& pair : found.near) got.emplace_back(pair.in_b, pair.in_a);
    EXPECT_EQ(got, expected) << limit;
    EXPECT_FALSE(found.disjoint());
  }
}

TEST(Splits, CaseAndWhitespaceDoNotHideAPromptButOtherBytesDo) {
  const std::vector<std::string> a = {"How many apples are left?"};
  EXPECT_FALSE(
      compare_splits(a, std::vector<std::string>{"  how\r\nMANY  apples are\tleft? "}).disjoint());
  EXPECT_TRUE(compare_splits(a, std::vector<std::string>{"How many apples are left"}).disjoint());
}

TEST(Splits, EmptySplitsAndRootsAreDefined) {
  const Overlap none = compare_splits({}, {});
  EXPECT_TRUE(none.disjoint());
  EXPECT_EQ(none.root_a, sha256_hex(""));
  const std::string x = prompt_hash("x"), y = prompt_hash("y");
  EXPECT_EQ(split_root(std::vector<std::string>{x, y, x}),
            split_root(std::vector<std::string>{y, x}));
  EXPECT_THROW(split_root(std::vector<std::string>{"12"}), DataError);
  EXPECT_THROW(compare_splits({}, {}, 0), DataError);
  EXPECT_THROW(compare_splits({}, {}, 1.5), DataError);
}

// Processor time, so that a busy machine does not fail it; the bound of issue 7 is 10 s.
double seconds_of(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  const std::clock_t begin = std::clock();
  EXPECT_EQ(compare_splits(a, b).root_a.size(), 64u);
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

TEST(Splits, TenThousandByTenThousandPromptsTakeSeconds) {
  SplitMix64 random(6);
  std::vector<std::string> a, b, same_a, same_b;
  const std::string frame = words(random, 30, 10'000);
  for (int i = 0; i < 10'000; ++i) {
    a.push_back(words(random, 45, 5'000));
    b.push_back(words(random, 45, 5'000));
    // All prompts share most of their text, as those of one template do.
    same_a.push_back(frame + " " + words(random, 25, 5'000));
    same_b.push_back(frame + " " + words(random, 25, 5'000));
  }
  EXPECT_LT(seconds_of(a, b), 10);
  EXPECT_LT(seconds_of(same_a, same_b), 10);
}

}  // namespace
}  // namespace asdbench
