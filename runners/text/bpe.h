// Merges of byte-pair encoding: which two ids become which, in what order.
#pragma once

#include <cstdint>
#include <vector>

#include "eval/core/token_id.h"

namespace asdbench {

struct Merge {
  TokenId left;
  TokenId right;
  TokenId result;
};

/// Immutable merge rules over ids; ranks are positions in the list they are made from.
class MergeTable {
 public:
  /// `merges` by rank, ids in [0, vocab), no pair twice (the tokenizer checks).
  MergeTable(const std::vector<Merge>& merges, TokenId vocab);

  struct Rule {
    TokenId right;
    std::int32_t rank;
    TokenId result;
  };
  /// The rule for a pair of neighbours; null when they do not merge.
  const Rule* find(TokenId left, TokenId right) const;

 private:
  // Rules of left id i are rules_[first_[i]] .. rules_[first_[i + 1]), sorted by right id: no hash
  // that a hostile vocabulary could fill with collisions.
  std::vector<std::int32_t> first_;  // [vocab + 1]
  std::vector<Rule> rules_;
};

/// Replaces `ids` by its merged form: the lowest rank first, the leftmost among equals, until no
/// rule applies. O(n log n) for n ids.
void apply_merges(const MergeTable& table, std::vector<TokenId>& ids);

}  // namespace asdbench
