// Token comparisons, and a longest common subsequence that handles 64 words at a time.
#include "eval/stats/fidelity.h"

#include <algorithm>
#include <bit>
#include <map>
#include <string>
#include <vector>

namespace asdbench {
namespace {

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  bool open = false;
  for (const char c : text) {
    const char lower = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    const bool inside = (lower >= 'a' && lower <= 'z') || (lower >= '0' && lower <= '9');
    if (inside && !open) words.emplace_back();
    if (inside) words.back() += lower;
    open = inside;
  }
  return words;
}

/// Length of the longest common subsequence. A zero bit of the state at j says that the length for
/// the first j + 1 words of `b` is one more than for the first j; each word of `a` is one addition
/// over all bits (Hyyro's form of the bit-parallel algorithm).
std::size_t common_subsequence(const std::vector<std::string>& a,
                               const std::vector<std::string>& b) {
  std::map<std::string_view, std::vector<std::size_t>> places;  // of each word in `b`
  for (std::size_t j = 0; j < b.size(); ++j) places[b[j]].push_back(j);
  const std::size_t blocks = (b.size() + 63) / 64;
  std::vector<std::uint64_t> state(blocks, ~std::uint64_t{0}), matches(blocks, 0);
  for (const std::string& word : a) {
    const auto found = places.find(word);
    if (found == places.end()) continue;
    for (const std::size_t j : found->second) matches[j / 64] |= std::uint64_t{1} << j % 64;
    std::uint64_t carry = 0;
    for (std::size_t k = 0; k < blocks; ++k) {
      const std::uint64_t common = state[k] & matches[k];
      const std::uint64_t sum = state[k] + common;
      const std::uint64_t total = sum + carry;
      carry = (sum < common ? 1 : 0) | (total < sum ? 1 : 0);
      state[k] = total | (state[k] & ~matches[k]);
    }
    for (const std::size_t j : found->second) matches[j / 64] = 0;
  }
  std::size_t length = 0;
  for (std::size_t k = 0; k < blocks; ++k) {
    const std::size_t bits = std::min<std::size_t>(64, b.size() - 64 * k);
    const std::uint64_t used = bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
    length += static_cast<std::size_t>(std::popcount(~state[k] & used));
  }
  return length;
}

}  // namespace

TokenFidelity token_fidelity(std::span<const TokenId> prediction,
                             std::span<const TokenId> reference) {
  TokenFidelity result;
  const std::size_t shorter = std::min(prediction.size(), reference.size());
  const std::size_t longer = std::max(prediction.size(), reference.size());
  const auto ends =
      std::mismatch(prediction.begin(), prediction.end(), reference.begin(), reference.end());
  const auto prefix = ends.first - prediction.begin();
  result.identical = static_cast<std::size_t>(prefix) == longer;
  if (!result.identical) result.first_divergence = prefix;
  if (longer == 0) {
    result.prefix_match = result.position_agreement = 1;
    return result;
  }
  std::size_t equal = 0;
  for (std::size_t i = 0; i < shorter; ++i) equal += prediction[i] == reference[i] ? 1 : 0;
  result.prefix_match = static_cast<double>(prefix) / static_cast<double>(longer);
  result.position_agreement = static_cast<double>(equal) / static_cast<double>(longer);
  return result;
}

double rouge_l(std::string_view prediction, std::string_view reference) {
  const std::vector<std::string> a = words_of(prediction), b = words_of(reference);
  if (a.empty() || b.empty()) return 0;
  const auto common = static_cast<double>(common_subsequence(a, b));
  const double precision = common / static_cast<double>(a.size());
  const double recall = common / static_cast<double>(b.size());
  return common == 0 ? 0 : 2 * precision * recall / (precision + recall);
}

}  // namespace asdbench
