// Fixed-work throughput: equal counted tokens in every arm, arms in mirrored order (specs:
// measurement, sections 1-3).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "eval/core/token_id.h"
#include "runners/decoder.h"
#include "runners/throughput/environment.h"

namespace asdbench {

struct WorkItem {
  std::string sample_id;
  std::vector<TokenId> prompt;
  std::int32_t tokens = 0;   // T: counted, the token from prefill excluded
  bool natural_end = false;  // ends where the model ends, after T at the latest
};

/// One arm: a drafter and a rule over the shared target.
struct Arm {
  std::string name;
  Drafter* drafter = nullptr;
  const Verifier* verifier = nullptr;
  std::int32_t drafts = 0;  // K
  std::int32_t batch = 1;
};

/// What became of one prompt in one slot.
struct PromptResult {
  std::int64_t tokens = 0;     // counted
  std::int64_t decode_ns = 0;  // prompts that are decoded together share their time equally
  std::int64_t prefill_ns = 0;
  std::string tokens_sha256;
};

/// What one arm did in one slot.
struct SlotResult {
  std::size_t arm = 0;
  std::int32_t slot = 0;
  std::int64_t prompts = 0, tokens = 0, passes = 0, drafted = 0, accepted = 0, post_end_tokens = 0;
  std::int64_t decode_ns = 0, prefill_ns = 0;
  PassTimes times;
  std::string tokens_sha256;
  std::vector<EnvironmentFigure> environment;
  std::vector<PromptResult> each;  // in the order of the work
  // Of the counted work, what was done when no prompt waited and places of the batch stood empty.
  std::int64_t tail_tokens = 0, tail_ns = 0;
};

/// Order of arms in the slots of group `group`: S A A S, then A S S A for two arms; a palindrome
/// rotated by one arm from group to group for more (0 1 2 2 1 0, 1 2 0 0 2 1, ...).
std::vector<std::size_t> slot_order(std::size_t arms, std::int64_t group);

/// Decodes all work items in every slot, slots in `order` (indices of arms); end ids are ignored
/// for the stop unless an item says otherwise. An arm keeps `batch` requests in flight as long as
/// prompts wait. Empty when interrupted.
std::vector<SlotResult> run_slots(Target& target, const std::vector<Arm>& arms,
                                  const std::vector<WorkItem>& work,
                                  const std::vector<std::size_t>& order,
                                  const std::function<bool()>& interrupted);

/// One group: `run_slots` in the order of slot_order.
std::vector<SlotResult> run_group(Target& target, const std::vector<Arm>& arms,
                                  const std::vector<WorkItem>& work, std::int64_t group,
                                  const std::function<bool()>& interrupted);

/// Decodes all work items once, untimed by the environment record: for checks and replays. Absent
/// when interrupted.
std::optional<SlotResult> decode_once(Target& target, const Arm& arm,
                                      const std::vector<WorkItem>& work,
                                      const std::function<bool()>& interrupted);

/// How many requests of each arm (batches of them, where an arm has a batch) are run without being
/// counted: `least`, then until the last three differ by less than 2 % in time per token, `most` in
/// all.
struct WarmUpRule {
  std::int32_t least = 2;
  std::int32_t most = 30;
};

struct WarmUp {
  std::int32_t requests = 0;
  bool stable = false;  // whether the last three agreed
};

/// Warms every arm up; one entry an arm, fewer when interrupted.
std::vector<WarmUp> warm_up(Target& target, const std::vector<Arm>& arms,
                            const std::vector<WorkItem>& work, WarmUpRule rule,
                            const std::function<bool()>& interrupted);

/// Log speedup of `arm` over `base` in one group: half the sum of ln t of base's two slots minus
/// that of the arm's.
double group_log_ratio(const std::vector<SlotResult>& slots, std::size_t arm, std::size_t base);

}  // namespace asdbench
