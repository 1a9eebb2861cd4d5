// A torch-free target with a small vocabulary and a law in closed form: most tests stand on it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "eval/core/params.h"
#include "runners/target.h"

namespace asdbench {

/// What the built-in targets share: a cache per slot that holds one state per position, each folded
/// from the state before it and an id. A row reads the newest state alone, so it depends on every
/// id in the cache, and any mistake in keeping the cache changes the logits.
class HistoryTarget : public Target {
 public:
  using State = std::uint64_t;

  void reserve(const BatchLimits& limits, bool host_logits) override;
  StepView prefill(const Request& request) override;
  StepView forward(std::span<Request* const> live) override;
  void keep(const Request& request, std::int32_t drafts) override;
  void release(const Request& request) override;

  /// The state before any id.
  static constexpr State kEmpty = 0x243f6a8885a308d3;
  /// The state after one more id.
  static State fold(State state, TokenId token) {
    return mix(state + 0x9e3779b97f4a7c15 * (static_cast<State>(token) + 1));
  }
  /// The finaliser of SplitMix64: a bijection without visible pattern.
  static State mix(State z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  /// [vocab] logits after `history`, from the closed form and without a cache.
  std::vector<float> logits_after(std::span<const TokenId> history) const;
  /// The states in the slot's cache, oldest first.
  std::span<const State> cached(std::int32_t slot) const;

 protected:
  explicit HistoryTarget(std::int64_t vocab) : vocab_(vocab) {}

  /// Writes the [vocab] logits that follow a non-empty history: its state and its last id.
  virtual void write_row(State state, TokenId last, float* row) const = 0;
  /// Makes a step over `rows` positions that began at `begin_ns` (steady clock) last as long as it
  /// should.
  virtual void spend(std::int64_t begin_ns, std::int64_t rows) const;

 private:
  void append(std::int32_t slot, TokenId token);
  void add_row(std::int32_t slot, TokenId last, TokenId draft);
  StepView score();

  std::int64_t vocab_;
  std::int64_t positions_ = 0;  // per slot
  bool host_logits_ = false;
  std::vector<State> states_;         // [slots, positions]
  std::vector<std::int64_t> length_;  // [slots]
  std::size_t rows_ = 0;              // rows of the step
  std::vector<float> logits_;         // [slots * (K + 1), vocab]
  std::vector<TokenId> draft_;        // [slots * (K + 1)], and the same for the rest
  std::vector<TokenId> choice_;
  std::vector<float> choice_logit_;
  std::vector<float> runner_up_;
  std::vector<float> draft_logit_;
  std::vector<std::uint8_t> bad_;
};

struct ToyOptions {
  std::int64_t vocab = 64;
  std::int64_t positions = 4096;
  std::int32_t ends = 1;  // the last so many ids of the vocabulary end an answer
  std::uint64_t seed = 1;
};

/// Logits are multiples of 1/64: sixteen steps of 1/8 by the last id, which let prompt lookup find
/// repetitions, and eight of 1/64 by the whole history. The best ids of a row often tie.
class ToyTarget final : public HistoryTarget {
 public:
  explicit ToyTarget(const ToyOptions& options);
  TargetInfo info() const override;

 protected:
  void write_row(State state, TokenId last, float* row) const override;

 private:
  ToyOptions options_;
};

/// Options vocab, positions, ends, seed.
std::unique_ptr<Target> make_toy_target(const Params& params);

/// The last `count` ids of a vocabulary, sorted.
std::vector<TokenId> last_ids(std::int64_t vocab, std::int32_t count);

}  // namespace asdbench
