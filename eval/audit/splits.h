// Splits of prompts by the hash of their normalised text: roots, shared prompts, near-duplicates.
// Source: specs/measurement.md, section 9.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace asdbench {

/// Two prompts whose sets of 8-word shingles have a Jaccard similarity of at least the limit.
struct NearPair {
  std::size_t in_b = 0;
  std::size_t in_a = 0;
  double jaccard = 0;
};

struct Overlap {
  std::vector<std::size_t> exact_in_b;  // prompts of B whose hash is in A
  std::vector<NearPair> near;           // of the other prompts of B, by index in B, then in A
  std::string root_a, root_b;

  bool disjoint() const { return exact_in_b.empty() && near.empty(); }
};

inline constexpr double kNearDuplicate = 0.7;
inline constexpr std::size_t kShingleWords = 8;

/// SHA-256 over the concatenated 32-byte hashes, sorted and without duplicates. DataError when one
/// is not 64 hex digits.
std::string split_root(std::span<const std::string> hashes);

/// Compares two lists of prompt texts (user messages joined by LF). Exact: an inverted index over
/// the rarest shingles of each text finds every pair that can reach the limit. DataError unless
/// 0 < `jaccard` <= 1.
Overlap compare_splits(std::span<const std::string> a, std::span<const std::string> b,
                       double jaccard = kNearDuplicate);

}  // namespace asdbench
