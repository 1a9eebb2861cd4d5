// Fixed-work throughput: equal counted tokens in every arm, arms in mirrored order (specs:
// measurement, sections 1-3).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "eval/core/token_id.h"
#include "runners/decoder.h"
#include "runners/throughput/environment.h"

namespace asdbench {

struct WorkItem {
  std::string sample_id;
  std::vector<TokenId> prompt;
  std::int32_t tokens = 0;  // T: counted, the token from prefill excluded
};

/// One arm: a drafter and a rule over the shared target.
struct Arm {
  std::string name;
  Drafter* drafter = nullptr;
  const Verifier* verifier = nullptr;
  std::int32_t drafts = 0;  // K
  std::int32_t batch = 1;
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
};

/// Order of arms in the slots of group `group`: S A A S, then A S S A for two arms; a palindrome
/// rotated by one arm from group to group for more (0 1 2 2 1 0, 1 2 0 0 2 1, ...).
std::vector<std::size_t> slot_order(std::size_t arms, std::int64_t group);

/// Decodes all work items in every slot of one group, end ids ignored for the stop. Empty when
/// interrupted.
std::vector<SlotResult> run_group(Target& target, const std::vector<Arm>& arms,
                                  const std::vector<WorkItem>& work, std::int64_t group,
                                  const std::function<bool()>& interrupted);

/// How many requests of each arm are run without being counted: `least`, then until the last three
/// differ by less than 2 % in time per token, `most` in all.
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
