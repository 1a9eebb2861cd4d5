// A heap of candidate merges over a linked list of symbols.
#include "runners/text/bpe.h"

#include <algorithm>
#include <cstddef>
#include <queue>

namespace asdbench {
namespace {

constexpr std::size_t kNone = static_cast<std::size_t>(-1);

// Positions are those of the unmerged word; a merge keeps its left symbol and drops the right one.
struct Symbol {
  TokenId id;  // kNoToken once dropped
  std::size_t previous;
  std::size_t next;
};

struct Candidate {
  std::int32_t rank;
  std::size_t at;
  TokenId left, right, result;  // left and right as they were: a stale candidate is recognised

  bool operator<(const Candidate& other) const {  // the top of a heap is its greatest element
    return rank != other.rank ? rank > other.rank : at > other.at;
  }
};

class Word {
 public:
  Word(const MergeTable& table, const std::vector<TokenId>& ids) : table_(table) {
    symbols_.reserve(ids.size());
    for (std::size_t i = 0; i < ids.size(); ++i) {
      symbols_.push_back({ids[i], i == 0 ? kNone : i - 1, i + 1 == ids.size() ? kNone : i + 1});
    }
    for (std::size_t i = 0; i < symbols_.size(); ++i) consider(i);
  }

  void merge_all() {
    while (!candidates_.empty()) {
      const Candidate best = candidates_.top();
      candidates_.pop();
      if (is_current(best)) merge(best);
    }
  }

  void write(std::vector<TokenId>& out) const {
    out.clear();
    for (std::size_t i = 0; i != kNone; i = symbols_[i].next) out.push_back(symbols_[i].id);
  }

 private:
  void consider(std::size_t at) {
    const std::size_t next = symbols_[at].next;
    if (next == kNone) return;
    const TokenId left = symbols_[at].id;
    const TokenId right = symbols_[next].id;
    if (const MergeTable::Rule* rule = table_.find(left, right)) {
      candidates_.push({rule->rank, at, left, right, rule->result});
    }
  }

  bool is_current(const Candidate& candidate) const {
    const Symbol& left = symbols_[candidate.at];
    return left.id == candidate.left && left.next != kNone &&
           symbols_[left.next].id == candidate.right;
  }

  void merge(const Candidate& candidate) {
    Symbol& left = symbols_[candidate.at];
    Symbol& right = symbols_[left.next];
    left.id = candidate.result;
    right.id = kNoToken;
    left.next = right.next;
    if (left.next != kNone) symbols_[left.next].previous = candidate.at;
    consider(candidate.at);
    if (left.previous != kNone) consider(left.previous);
  }

  const MergeTable& table_;
  std::vector<Symbol> symbols_;
  std::priority_queue<Candidate> candidates_;
};

}  // namespace

MergeTable::MergeTable(const std::vector<Merge>& merges, TokenId vocab)
    : first_(static_cast<std::size_t>(vocab) + 1, 0), rules_(merges.size()) {
  for (const Merge& merge : merges) ++first_[static_cast<std::size_t>(merge.left) + 1];
  for (std::size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
  std::vector<std::int32_t> next(first_.begin(), first_.end() - 1);
  for (std::size_t rank = 0; rank < merges.size(); ++rank) {
    const Merge& merge = merges[rank];
    const std::int32_t slot = next[static_cast<std::size_t>(merge.left)]++;
    rules_[static_cast<std::size_t>(slot)] = {merge.right, static_cast<std::int32_t>(rank),
                                              merge.result};
  }
  for (std::size_t i = 0; i + 1 < first_.size(); ++i) {
    std::sort(rules_.begin() + first_[i], rules_.begin() + first_[i + 1],
              [](const Rule& a, const Rule& b) { return a.right < b.right; });
  }
}

const MergeTable::Rule* MergeTable::find(TokenId left, TokenId right) const {
  const auto begin = rules_.begin() + first_[static_cast<std::size_t>(left)];
  const auto end = rules_.begin() + first_[static_cast<std::size_t>(left) + 1];
  const auto found = std::lower_bound(begin, end, right,
                                      [](const Rule& rule, TokenId id) { return rule.right < id; });
  return found != end && found->right == right ? &*found : nullptr;
}

void apply_merges(const MergeTable& table, std::vector<TokenId>& ids) {
  if (ids.size() < 2) return;
  Word word(table, ids);
  word.merge_all();
  word.write(ids);
}

}  // namespace asdbench
