// Fixed-work throughput: equal counted tokens in every arm, arms in mirrored order (specs:
// measurement, sections 1-3).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "eval/core/token_id.h"
#include "runners/decoder.h"

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
};

/// Order of arms in the slots of group `group`: S A A S, then A S S A for two arms; a palindrome
/// rotated by one arm from group to group for more (0 1 2 2 1 0, 1 2 0 0 2 1, ...).
std::vector<std::size_t> slot_order(std::size_t arms, std::int64_t group);

/// Decodes all work items in every slot of one group, end ids ignored for the stop. Empty when
/// interrupted.
std::vector<SlotResult> run_group(Target& target, const std::vector<Arm>& arms,
                                  const std::vector<WorkItem>& work, std::int64_t group,
                                  const std::function<bool()>& interrupted);

/// Runs `requests` requests of each arm without counting them; stops early when interrupted.
void warm_up(Target& target, const std::vector<Arm>& arms, const std::vector<WorkItem>& work,
             std::int32_t requests, const std::function<bool()>& interrupted);

/// Log speedup of `arm` over `base` in one group: half the sum of ln t of base's two slots minus
/// that of the arm's.
double group_log_ratio(const std::vector<SlotResult>& slots, std::size_t arm, std::size_t base);

}  // namespace asdbench
