// Softmax, rank, entropy and divergences of logit rows, in binary64 and without storage.
#pragma once

#include <cstdint>
#include <span>

#include "eval/core/token_id.h"

namespace asdbench {

/// The softmax at temperature 1 of a row of finite logits. Refers to the row.
class Law {
 public:
  explicit Law(std::span<const float> logits);

  double prob(TokenId id) const;
  double log_prob(TokenId id) const;
  double max_prob() const;
  /// Nats.
  double entropy() const;
  /// -sum p ln p over the `count` likeliest ids, not renormalised; nats.
  double top_entropy(std::int32_t count) const;
  /// Mass of the ids ranked before `id`.
  double mass_before(TokenId id) const;
  std::int64_t vocab() const { return static_cast<std::int64_t>(logits_.size()); }

 private:
  std::span<const float> logits_;
  double max_;             // greatest logit
  double log_normaliser_;  // ln sum exp z
};

/// Rank from 1 by logit, lowest id first among equals.
std::int64_t rank(std::span<const float> logits, TokenId id);
/// Total variation, 0 to 1.
double total_variation(const Law& first, const Law& second);
/// Jensen-Shannon divergence, nats, 0 to ln 2.
double jensen_shannon(const Law& first, const Law& second);

}  // namespace asdbench
