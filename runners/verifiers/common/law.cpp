// Sums over a vocabulary.
#include "runners/verifiers/common/law.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "eval/core/error.h"

namespace asdbench {
namespace {

// Whether `id` comes before `other` in the order of ranks.
bool before(std::span<const float> logits, std::size_t id, std::size_t other) {
  return logits[id] > logits[other] || (logits[id] == logits[other] && id < other);
}

}  // namespace

Law::Law(std::span<const float> logits) : logits_(logits) {
  ASDBENCH_CHECK(!logits.empty() && logits.data() != nullptr, "the rule was given no logits");
  max_ = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - max_);
  log_normaliser_ = max_ + std::log(sum);
}

double Law::log_prob(TokenId id) const {
  return static_cast<double>(logits_[static_cast<std::size_t>(id)]) - log_normaliser_;
}

double Law::prob(TokenId id) const { return std::exp(log_prob(id)); }

double Law::max_prob() const { return std::exp(max_ - log_normaliser_); }

double Law::entropy() const {
  double sum = 0;
  for (TokenId id = 0; id < vocab(); ++id) sum -= prob(id) * log_prob(id);
  return sum;
}

double Law::top_entropy(std::int32_t count) const {
  std::array<float, 8> top;  // greatest first; the first `filled` are set
  ASDBENCH_CHECK(count >= 1 && static_cast<std::size_t>(count) <= top.size(), "1 to 8 ids");
  std::size_t filled = 0;
  for (const float logit : logits_) {
    const auto end = top.begin() + static_cast<std::ptrdiff_t>(filled);
    const auto at = std::upper_bound(top.begin(), end, logit, std::greater<>());
    if (filled < static_cast<std::size_t>(count)) {
      std::move_backward(at, end, end + 1);
      *at = logit;
      ++filled;
    } else if (at != end) {
      std::move_backward(at, end - 1, end);
      *at = logit;
    }
  }
  double sum = 0;
  for (std::size_t i = 0; i < filled; ++i) {
    const double log = static_cast<double>(top[i]) - log_normaliser_;
    sum -= std::exp(log) * log;
  }
  return sum;
}

double Law::mass_before(TokenId id) const {
  double sum = 0;
  for (TokenId other = 0; other < vocab(); ++other) {
    if (before(logits_, static_cast<std::size_t>(other), static_cast<std::size_t>(id)))
      sum += prob(other);
  }
  return sum;
}

std::int64_t rank(std::span<const float> logits, TokenId id) {
  std::int64_t ahead = 0;
  for (std::size_t other = 0; other < logits.size(); ++other) {
    ahead += before(logits, other, static_cast<std::size_t>(id)) ? 1 : 0;
  }
  return ahead + 1;
}

double total_variation(const Law& first, const Law& second) {
  double sum = 0;
  for (TokenId id = 0; id < first.vocab(); ++id) sum += std::abs(first.prob(id) - second.prob(id));
  return sum / 2;
}

double jensen_shannon(const Law& first, const Law& second) {
  double sum = 0;
  for (TokenId id = 0; id < first.vocab(); ++id) {
    const double p = first.prob(id), q = second.prob(id);
    const double log_middle = std::log((p + q) / 2);
    if (p > 0) sum += p * (first.log_prob(id) - log_middle);
    if (q > 0) sum += q * (second.log_prob(id) - log_middle);
  }
  return sum / 2;
}

}  // namespace asdbench
