// The planted law and its cost.
#include "runners/models/planted_target.h"

#include <algorithm>
#include <chrono>
#include <limits>

namespace asdbench {
namespace {

constexpr float kBest = 4;
constexpr float kFar = -4;

}  // namespace

PlantedTarget::PlantedTarget(const PlantedOptions& options)
    : HistoryTarget(options.vocab), options_(options) {}

TargetInfo PlantedTarget::info() const {
  return {.name = "planted",
          .engine = "planted",
          .device = "cpu",
          .weight_dtype = "none",
          .compute_dtype = "float32",
          .logit_dtype = "float32",
          .sha256 = "",
          .vocab = options_.vocab,
          .positions = options_.positions,
          .end_ids = last_ids(options_.vocab, 1)};
}

PlantedTarget::Plan PlantedTarget::plan(State state) const {
  const State draw = mix(state ^ mix(options_.seed));
  const auto ordinary = static_cast<State>(options_.vocab - 1);  // all ids but the end id
  Plan plan;
  plan.choice = static_cast<TokenId>((draw & 0xffff'ffff) % ordinary);
  const State distance = 1 + (draw >> 32) % (ordinary - 1);
  plan.runner_up = static_cast<TokenId>((static_cast<State>(plan.choice) + distance) % ordinary);
  const State more = mix(draw);
  if (options_.mean_tokens > 0 && more % static_cast<State>(options_.mean_tokens) == 0) {
    plan.choice = static_cast<TokenId>(options_.vocab - 1);
  }
  const auto thirds = static_cast<double>((more >> 40) & 3);
  const double regret = options_.regret + options_.regret_spread * thirds / 3;
  plan.regret = kBest - (kBest - static_cast<float>(regret));
  return plan;
}

void PlantedTarget::write_row(State state, TokenId /*last*/, float* row) const {
  const Plan planned = plan(state);
  std::fill_n(row, options_.vocab, kFar);
  row[planned.runner_up] = kBest - planned.regret;
  row[planned.choice] = kBest;
}

void PlantedTarget::spend(std::int64_t begin_ns, std::int64_t rows) const {
  spin_until(begin_ns, options_.step_us + static_cast<double>(rows) * options_.row_us);
}

std::unique_ptr<Target> make_planted_target(const Params& params) {
  PlantedOptions options;
  options.vocab = params.integer("vocab", options.vocab, 4, 1 << 20);
  options.positions = params.integer("positions", options.positions, 2, 1 << 20);
  options.seed = static_cast<std::uint64_t>(
      params.integer("seed", 1, 0, std::numeric_limits<std::int64_t>::max()));
  // A regret of 0 would let the lower id win; one of 8 would reach the others.
  options.regret = params.number("regret", options.regret, 1.0 / 64, 3.5);
  options.regret_spread = params.number("regret_spread", options.regret_spread, 0, 3.5);
  options.mean_tokens = params.integer("mean_tokens", options.mean_tokens, 0, 1 << 20);
  options.step_us = params.number("step_us", options.step_us, 0, 1e6);
  options.row_us = params.number("row_us", options.row_us, 0, 1e6);
  return std::make_unique<PlantedTarget>(options);
}

void spin_until(std::int64_t begin_ns, double cost_us) {
  if (cost_us <= 0) return;
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::time_point(std::chrono::duration_cast<Clock::duration>(
      std::chrono::nanoseconds(begin_ns + static_cast<std::int64_t>(cost_us * 1000))));
  while (Clock::now() < end) {
  }
}

}  // namespace asdbench
