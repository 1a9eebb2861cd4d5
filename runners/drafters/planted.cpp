// Drafts for the planted target with an acceptance rate on demand.
#include <algorithm>
#include <chrono>
#include <limits>

#include "eval/core/error.h"
#include "runners/drafter.h"
#include "runners/models/planted_target.h"

namespace asdbench {
namespace {

struct PlantedDraftOptions {
  std::int32_t drafts = 8;  // K
  double acceptance = 0.8;  // probability that a draft is the target's choice, given all before it
  double near = 1;          // share of the other drafts that are the runner-up
  double token_us = 0;      // cost of one draft
  std::uint64_t seed = 1;
};

// Every draw is a function of the history, so that a proposal depends on neither batch nor order.
class Planted final : public Drafter {
 public:
  Planted(const PlantedTarget& target, const PlantedDraftOptions& options)
      : target_(target), options_(options) {}

  DrafterInfo info() const override {
    return {.name = "planted", .sha256 = "", .drafts = options_.drafts};
  }
  void reserve(const BatchLimits& limits) override {
    slots_.assign(static_cast<std::size_t>(limits.requests), {});
  }
  void begin(const Request& request) override {
    slots_[static_cast<std::size_t>(request.slot)] = {};
  }

 protected:
  using Drafter::propose;
  Draft propose(const RequestView& request, DraftLimits limits) override {
    const auto begin = std::chrono::steady_clock::now().time_since_epoch();
    HistoryTarget::State state = follow(request);
    Draft draft;
    const std::int32_t most = std::min(limits.tokens, options_.drafts);
    while (draft.size() < most) {
      const TokenId token = guess(state);
      draft.push_back(token);
      state = HistoryTarget::fold(state, token);
    }
    spin_until(std::chrono::duration_cast<std::chrono::nanoseconds>(begin).count(),
               draft.size() * options_.token_us);
    return draft;
  }

 private:
  struct Slot {
    std::size_t known = 0;  // ids folded into the state
    HistoryTarget::State state = HistoryTarget::kEmpty;
  };

  HistoryTarget::State follow(const RequestView& request) {
    Slot& slot = slots_[static_cast<std::size_t>(request.slot())];
    for (const TokenId token : request.history().subspan(slot.known)) {
      slot.state = HistoryTarget::fold(slot.state, token);
    }
    slot.known = request.history().size();
    return slot.state;
  }

  TokenId guess(HistoryTarget::State state) const {
    const PlantedTarget::Plan plan = target_.plan(state);
    const HistoryTarget::State draw = HistoryTarget::mix(state + HistoryTarget::mix(options_.seed));
    if (uniform(draw) < options_.acceptance) return plan.choice;
    if (uniform(HistoryTarget::mix(draw)) < options_.near) return plan.runner_up;
    TokenId other = 0;
    while (other == plan.choice || other == plan.runner_up) ++other;
    return other;
  }

  static double uniform(HistoryTarget::State draw) {
    return static_cast<double>(draw >> 11) * 0x1.0p-53;
  }

  const PlantedTarget& target_;
  PlantedDraftOptions options_;
  std::vector<Slot> slots_;
};

}  // namespace

std::unique_ptr<Drafter> make_planted(const Params& params, const DrafterContext& context) {
  const auto* target = dynamic_cast<const PlantedTarget*>(&context.target);
  if (target == nullptr) {
    throw ConfigError(params.where().text() +
                      ": drafter planted knows the planted target only, not " +
                      context.target.info().name + "; set target: planted, or choose ngram");
  }
  PlantedDraftOptions options;
  options.drafts = static_cast<std::int32_t>(params.integer("K", options.drafts, 1, kMaxDraft));
  options.acceptance = params.number("acceptance", options.acceptance, 0, 1);
  options.near = params.number("near", options.near, 0, 1);
  options.token_us = params.number("token_us", options.token_us, 0, 1e6);
  options.seed = static_cast<std::uint64_t>(
      params.integer("seed", 1, 0, std::numeric_limits<std::int64_t>::max()));
  return std::make_unique<Planted>(*target, options);
}

}  // namespace asdbench
