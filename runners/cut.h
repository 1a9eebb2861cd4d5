// The only code that cuts a decision at an end id or at a length.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "eval/core/completion.h"
#include "runners/verifier.h"

namespace asdbench {

/// What of a decision is committed.
struct Kept {
  std::int32_t drafts = 0;      // e: leading drafts kept
  bool target_token = false;    // whether the target's token follows them
  std::int32_t exceptions = 0;  // exceptions among the kept drafts
  double block_regret = 0;      // C_e, what the ledger is charged
  std::optional<FinishReason> finish;
  std::array<TokenId, kMaxDraft + 1> tokens;  // the first committed() are set

  std::int32_t committed() const { return drafts + (target_token ? 1 : 0); }
  std::span<const TokenId> committed_tokens() const {
    return {tokens.data(), static_cast<std::size_t>(committed())};
  }
};

/// Applies the natural end, then the length (specs: asd, section 5, steps 3 and 4).
Kept cut(const Block& block, const Decision& decision);

}  // namespace asdbench
