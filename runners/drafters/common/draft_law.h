// The drafter's logits over the target's vocabulary, for rules that read them.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "runners/drafter.h"

namespace asdbench {

/// One row of [vocab] for each draft of a pass. Ids that the drafter cannot draft have -inf.
class DraftLaw {
 public:
  /// Rows for all slots; none unless the rule reads them.
  void reserve(const BatchLimits& limits, std::int64_t vocab) {
    vocab_ = vocab;
    drafts_ = limits.draft_logits ? limits.drafts : 0;
    rows_.assign(static_cast<std::size_t>(limits.requests * drafts_ * vocab), kNever);
  }
  bool wanted() const { return drafts_ > 0; }
  /// Row of the next draft of the request: `logits` has one value for each of `target_ids`, or for
  /// each id when that is empty.
  void add(Request& request, const float* logits, const std::vector<TokenId>& target_ids) {
    const auto at = static_cast<std::int64_t>(request.draft.size());
    float* first = rows_.data() + request.slot * drafts_ * vocab_;
    float* row = first + at * vocab_;
    if (target_ids.empty()) {
      std::copy_n(logits, vocab_, row);
    } else {
      for (std::size_t i = 0; i < target_ids.size(); ++i) row[target_ids[i]] = logits[i];
    }
    request.draft_logits = LogitsView{first, at + 1, vocab_};
  }

 private:
  static constexpr float kNever = -std::numeric_limits<float>::infinity();
  std::int64_t vocab_ = 0;
  std::int64_t drafts_ = 0;
  std::vector<float> rows_;  // [slots, K, vocab]
};

}  // namespace asdbench
