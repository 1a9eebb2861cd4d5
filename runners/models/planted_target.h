// A target whose greedy path, runner-up, regret and cost are planted: acceptance and speed are
// known before they are measured.
#pragma once

#include <cstdint>
#include <memory>

#include "runners/models/toy_target.h"

namespace asdbench {

struct PlantedOptions {
  std::int64_t vocab = 64;
  std::int64_t positions = 4096;
  std::uint64_t seed = 1;
  double regret = 0.125;         // smallest regret of the runner-up, nats
  double regret_spread = 0;      // added to it: 0, 1, 2 or 3 thirds of this, equally often
  std::int64_t mean_tokens = 0;  // the choice is the end id once in so many positions; 0: never
  double step_us = 0;            // a step costs step_us + rows * row_us
  double row_us = 0;
};

/// At every history one id is best, one is the runner-up at a planted distance, and the others lie
/// 8 nats lower. The last id of the vocabulary is the end id, and never the runner-up.
class PlantedTarget final : public HistoryTarget {
 public:
  explicit PlantedTarget(const PlantedOptions& options);
  TargetInfo info() const override;

  /// What follows a history with this state.
  struct Plan {
    TokenId choice;
    TokenId runner_up;
    float regret;  // nats, as the float32 logits have it
  };
  Plan plan(State state) const;

 protected:
  void write_row(State state, TokenId last, float* row) const override;
  void spend(std::int64_t begin_ns, std::int64_t rows) const override;

 private:
  PlantedOptions options_;
};

/// Options vocab, positions, seed, regret, regret_spread, mean_tokens, step_us, row_us.
std::unique_ptr<Target> make_planted_target(const Params& params);

/// Waits, busily, until `cost_us` have passed since `begin_ns` of the steady clock.
void spin_until(std::int64_t begin_ns, double cost_us);

}  // namespace asdbench
