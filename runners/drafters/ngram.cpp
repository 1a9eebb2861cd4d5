// Prompt lookup: proposes what followed the latest earlier occurrence of the last n tokens.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "eval/core/error.h"
#include "runners/drafter.h"

namespace asdbench {
namespace {

// Where each n-gram of one request last ended: open addressing over the ends, at most half full.
// The history itself holds the ids, so an entry is one number.
class EndTable {
 public:
  EndTable(std::int32_t n, std::int64_t positions)
      : n_(n), ends_(std::bit_ceil(static_cast<std::uint64_t>(2 * positions)), kFree) {}

  void clear() { std::fill(ends_.begin(), ends_.end(), kFree); }
  /// Notes that an n-gram ends before index `end`.
  void add(std::span<const TokenId> history, std::int32_t end) { slot(history, end) = end; }
  /// The index after the latest noted occurrence of the last n ids, or 0.
  std::int32_t find(std::span<const TokenId> history) {
    const auto end = static_cast<std::int32_t>(history.size());
    return end < n_ ? kFree : slot(history, end);
  }
  std::int32_t n() const { return n_; }

 private:
  static constexpr std::int32_t kFree = 0;  // no n-gram ends before the first id

  std::int32_t& slot(std::span<const TokenId> history, std::int32_t end) {
    const auto gram =
        history.subspan(static_cast<std::size_t>(end - n_), static_cast<std::size_t>(n_));
    std::uint64_t hash = 0;
    for (const TokenId id : gram) {
      hash = (hash ^ static_cast<std::uint32_t>(id)) * 0x9e3779b97f4a7c15;
      hash ^= hash >> 32;
    }
    const std::uint64_t mask = ends_.size() - 1;
    for (std::uint64_t at = hash & mask;; at = (at + 1) & mask) {
      std::int32_t& found = ends_[at];
      if (found == kFree) return found;
      const auto other = history.subspan(static_cast<std::size_t>(found - n_), gram.size());
      if (std::equal(gram.begin(), gram.end(), other.begin())) return found;
    }
  }

  std::int32_t n_;
  std::vector<std::int32_t> ends_;
};

class Ngram final : public Drafter {
 public:
  Ngram(std::int32_t drafts, std::int32_t min_n, std::int32_t max_n)
      : drafts_(drafts), min_n_(min_n), max_n_(max_n) {}

  DrafterInfo info() const override { return {.name = "ngram", .sha256 = "", .drafts = drafts_}; }

  void reserve(const BatchLimits& limits) override {
    positions_ = limits.positions;
    slots_.clear();
    slots_.resize(static_cast<std::size_t>(limits.requests));
    for (Slot& slot : slots_) {
      for (std::int32_t n = max_n_; n >= min_n_; --n) slot.tables.emplace_back(n, positions_);
    }
  }
  void begin(const Request& request) override {
    Slot& slot = slots_[static_cast<std::size_t>(request.slot)];
    for (EndTable& table : slot.tables) table.clear();
    slot.known = 0;
    follow(slot, request.history());
  }

 protected:
  using Drafter::propose;
  Draft propose(const RequestView& request, DraftLimits limits) override {
    const auto history = request.history();
    Slot& slot = slots_[static_cast<std::size_t>(request.slot())];
    follow(slot, history);
    for (EndTable& table : slot.tables) {  // the longest n first
      const auto at = static_cast<std::size_t>(table.find(history));
      if (at == 0) continue;
      const auto most = static_cast<std::size_t>(std::min(limits.tokens, drafts_));
      return Draft::of(history.subspan(at, std::min(most, history.size() - at)));
    }
    return Draft::none();
  }

 private:
  struct Slot {
    std::vector<EndTable> tables;  // n from the longest to the shortest
    std::int32_t known = 0;        // ends below this are in the tables
  };

  // Notes all n-grams that end before the last id: the one that ends after it is what is looked up.
  void follow(Slot& slot, std::span<const TokenId> history) const {
    const auto last = static_cast<std::int32_t>(history.size()) - 1;
    ASDBENCH_CHECK(last < positions_, "the history is longer than what was reserved");
    for (std::int32_t end = slot.known + 1; end <= last; ++end) {
      for (EndTable& table : slot.tables) {
        if (end >= table.n()) table.add(history, end);
      }
    }
    slot.known = last;
  }

  std::int32_t drafts_, min_n_, max_n_;
  std::int64_t positions_ = 0;
  std::vector<Slot> slots_;
};

}  // namespace

std::unique_ptr<Drafter> make_ngram(const Params& params, const DrafterContext&) {
  const auto drafts = static_cast<std::int32_t>(params.integer("K", 8, 1, kMaxDraft));
  const auto min_n = static_cast<std::int32_t>(params.integer("min_n", 2, 1, 16));
  const auto max_n = static_cast<std::int32_t>(params.integer("max_n", 4, 1, 16));
  if (max_n < min_n) {
    params.fail("max_n", fmt::format("max_n is {}, below min_n, which is {}", max_n, min_n));
  }
  return std::make_unique<Ngram>(drafts, min_n, max_n);
}

}  // namespace asdbench
