// Shingles as numbers, rare ones first; a pair that is near shares one of the first few.
#include "eval/audit/splits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <set>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "eval/audit/chain.h"
#include "eval/core/digest.h"
#include "eval/core/error.h"
#include "eval/core/json.h"
#include "eval/core/prompt_identity.h"

namespace asdbench {
namespace {

using Shingles = std::vector<std::uint32_t>;  // sorted, each once

/// Runs of kShingleWords words; a shorter text is one shingle. The views point into `text`, which
/// is normalised: words stand between single spaces.
std::vector<std::string_view> shingles_of(std::string_view text) {
  std::vector<std::size_t> starts = {0};
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ' ') starts.push_back(i + 1);
  }
  if (starts.size() <= kShingleWords) return {text};
  starts.push_back(text.size() + 1);
  std::vector<std::string_view> shingles;
  for (std::size_t i = 0; i + kShingleWords < starts.size(); ++i) {
    shingles.push_back(text.substr(starts[i], starts[i + kShingleWords] - 1 - starts[i]));
  }
  return shingles;
}

/// Shingle sets of both splits, numbered so that a rarer shingle has the smaller number.
struct Sets {
  std::vector<Shingles> a, b;
};

Sets number_shingles(std::span<const std::string> a, std::span<const std::string> b) {
  std::unordered_map<std::string_view, std::uint32_t> numbers;
  std::vector<std::uint32_t> texts;  // that hold a shingle
  const auto number = [&](std::span<const std::string> split) {
    std::vector<Shingles> sets;
    for (const std::string& text : split) {
      Shingles set;
      for (const std::string_view shingle : shingles_of(text)) {
        const auto next = static_cast<std::uint32_t>(numbers.size());
        set.push_back(numbers.emplace(shingle, next).first->second);
      }
      std::sort(set.begin(), set.end());
      set.erase(std::unique(set.begin(), set.end()), set.end());
      texts.resize(numbers.size());
      for (const std::uint32_t shingle : set) ++texts[shingle];
      sets.push_back(std::move(set));
    }
    return sets;
  };
  Sets sets{.a = number(a), .b = number(b)};
  std::vector<std::uint32_t> order(texts.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t i, std::uint32_t j) { return texts[i] < texts[j]; });
  std::vector<std::uint32_t> rank(order.size());
  for (std::uint32_t i = 0; i < order.size(); ++i) rank[order[i]] = i;
  for (std::vector<Shingles>* split : {&sets.a, &sets.b}) {
    for (Shingles& set : *split) {
      for (std::uint32_t& shingle : set) shingle = rank[shingle];
      std::sort(set.begin(), set.end());
    }
  }
  return sets;
}

double jaccard_of(const Shingles& x, const Shingles& y) {
  std::size_t shared = 0;
  for (std::size_t i = 0, j = 0; i < x.size() && j < y.size();) {
    if (x[i] == y[j]) {
      ++shared, ++i, ++j;
    } else {
      ++(x[i] < y[j] ? i : j);
    }
  }
  return static_cast<double>(shared) / static_cast<double>(x.size() + y.size() - shared);
}

/// How many of the first shingles of a set must be looked at: a pair at the limit shares at least
/// `limit` times its size, so that missing all of these leaves too few.
std::size_t prefix_of(const Shingles& set, double limit) {
  // The small term keeps a product that rounds up from hiding a pair.
  const auto needed =
      static_cast<std::size_t>(std::ceil(limit * static_cast<double>(set.size()) - 1e-9));
  return set.size() - std::max<std::size_t>(needed, 1) + 1;
}

std::vector<NearPair> near_pairs(const Sets& sets, const std::vector<bool>& skip, double limit) {
  std::unordered_map<std::uint32_t, std::vector<std::size_t>> index;
  for (std::size_t i = 0; i < sets.a.size(); ++i) {
    for (std::size_t k = 0; k < prefix_of(sets.a[i], limit); ++k) {
      index[sets.a[i][k]].push_back(i);
    }
  }
  std::vector<NearPair> pairs;
  std::vector<std::size_t> seen_by(sets.a.size(), sets.b.size());
  for (std::size_t j = 0; j < sets.b.size(); ++j) {
    if (skip[j]) continue;
    const Shingles& set = sets.b[j];
    std::vector<NearPair> found;
    for (std::size_t k = 0; k < prefix_of(set, limit); ++k) {
      const auto posting = index.find(set[k]);
      if (posting == index.end()) continue;
      for (const std::size_t i : posting->second) {
        if (seen_by[i] == j) continue;
        seen_by[i] = j;
        const double value = jaccard_of(sets.a[i], set);
        if (value >= limit) found.push_back({.in_b = j, .in_a = i, .jaccard = value});
      }
    }
    std::sort(found.begin(), found.end(),
              [](const NearPair& x, const NearPair& y) { return x.in_a < y.in_a; });
    pairs.insert(pairs.end(), found.begin(), found.end());
  }
  return pairs;
}

}  // namespace

std::string split_root(std::span<const std::string> hashes) {
  const std::set<std::string> sorted(hashes.begin(), hashes.end());
  Sha256 digest;
  for (const std::string& hash : sorted) digest.update(bytes_of_hash(hash, "hash of a prompt"));
  return digest.finish_hex();
}

Overlap compare_splits(std::span<const std::string> a, std::span<const std::string> b,
                       double jaccard) {
  if (!(jaccard > 0 && jaccard <= 1)) {
    throw DataError(fmt::format("near-duplicate limit: found {}; expected above 0, at most 1",
                                shortest_real(jaccard)));
  }
  const auto normalised = [](std::span<const std::string> texts) {
    std::vector<std::string> out;
    out.reserve(texts.size());
    for (const std::string& text : texts) out.push_back(normalise_prompt(text));
    return out;
  };
  const std::vector<std::string> texts_a = normalised(a);
  const std::vector<std::string> texts_b = normalised(b);
  std::vector<std::string> hashes_a, hashes_b;
  for (const std::string& text : texts_a) hashes_a.push_back(sha256_hex(text));
  for (const std::string& text : texts_b) hashes_b.push_back(sha256_hex(text));
  const std::unordered_set<std::string> in_a(hashes_a.begin(), hashes_a.end());
  Overlap overlap{
      .exact_in_b = {}, .near = {}, .root_a = split_root(hashes_a), .root_b = split_root(hashes_b)};
  std::vector<bool> exact(b.size(), false);
  for (std::size_t j = 0; j < b.size(); ++j) {
    exact[j] = in_a.contains(hashes_b[j]);
    if (exact[j]) overlap.exact_in_b.push_back(j);
  }
  overlap.near = near_pairs(number_shingles(texts_a, texts_b), exact, jaccard);
  return overlap;
}

}  // namespace asdbench
