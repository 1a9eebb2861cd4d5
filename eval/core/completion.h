// One finished generation: its tokens, how it ended, and a record of every pass and exception.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "eval/core/token_id.h"

namespace asdbench {

enum class FinishReason : std::uint8_t { kEos, kStopString, kLength, kContextLimit };

/// "eos", "stop_string", "length", "context_limit".
std::string_view name_of(FinishReason reason);

/// The conditions that stopped position `accepted` of a block (specs: asd, sections 3, 7, 9), as
/// bit flags in the order in which they are listed.
enum BlockedBy : std::uint8_t {
  kBlockedByNothing = 0,
  kBlockedByGate = 1,
  kBlockedByCap = 2,
  kBlockedByBudget = 4,
  kBlockedByHeadroom = 8,
  kBlockedByEosGuard = 16,
  kBlockedByStrict = 32,  // literal tie policy with a zero control, and rules without exceptions
  kBlockedByStrictHead = 64,  // the first positions of a request accept no exception
};

/// "gate,budget" and so on; "" for nothing.
std::string describe_blocked_by(std::uint8_t flags);

/// One pass of one request. Counts are tokens.
struct PassRecord {
  std::int32_t drafted = 0;        // K, tokens scored in this pass
  std::int32_t accepted = 0;       // leading drafts accepted before cuts
  std::int32_t kept = 0;           // drafts after cuts
  std::int32_t committed = 0;      // kept plus, unless cut, the target token
  std::int32_t strict_length = 0;  // leading matches before cuts
  std::uint8_t blocked_by = 0;     // BlockedBy flags; 0 when everything was accepted
};

/// One accepted mismatch that was kept.
struct ExceptionRecord {
  std::int32_t pass = 0;             // index into the passes of its request
  std::int32_t output_position = 0;  // from 0; the token from prefill is 0
  std::int32_t block_position = 0;   // from 0
  std::int32_t drafted = 0;          // K of the pass
  TokenId draft = kNoToken;
  TokenId choice = kNoToken;
  double regret = 0;       // nats
  double weight = 0;       // q, what the gate was multiplied with
  double spent_after = 0;  // ledger after this exception, nats
};

/// The gap below which two float32 computations of one row may choose differently, nats.
inline constexpr double kNearTieGap = 1e-3;

/// A committed choice of the target that was nearly another one.
struct NearTie {
  std::int32_t output_position = 0;  // from 0; the token from prefill is 0
  double gap = 0;                    // best minus second logit, nats, below kNearTieGap
};

/// One generation of one request.
struct Completion {
  std::vector<TokenId>
      tokens;        // committed ids, the one from prefill first, the end id (if any) last
  std::string text;  // decoded without the end token
  std::optional<FinishReason> finish;  // absent when the request failed
  std::string error;                   // why it failed; "" when it did not
  std::int32_t prompt_tokens = 0;
  double spent = 0;  // the ledger at the end, nats
  std::vector<PassRecord> passes;
  std::vector<ExceptionRecord> exceptions;
  std::vector<NearTie> near_ties;
  std::int64_t prefill_ns = 0;
  std::int64_t decode_ns = 0;
};

}  // namespace asdbench
