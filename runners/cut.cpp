// Natural end, then length.
#include "runners/cut.h"

#include <algorithm>

namespace asdbench {

bool StopRule::is_end(TokenId token) const {
  return std::binary_search(end_ids.begin(), end_ids.end(), token);
}

Kept cut(const Block& block, const Decision& decision) {
  const StopRule& stop = block.stop;
  const auto ends = [&](TokenId token) { return !stop.ignore_end_ids && stop.is_end(token); };
  Kept kept;
  kept.drafts = decision.accepted;
  kept.target_token = true;
  std::copy_n(block.draft.begin(), decision.accepted, kept.tokens.begin());
  kept.tokens[static_cast<std::size_t>(decision.accepted)] = decision.target_token;

  const auto tokens = kept.committed_tokens();
  const auto end = std::find_if(tokens.begin(), tokens.end(), ends);
  if (end != tokens.end()) {
    kept.finish = FinishReason::kEos;
    if (end - tokens.begin() < kept.drafts) {
      kept.drafts = static_cast<std::int32_t>(end - tokens.begin()) + 1;
      kept.target_token = false;
    }
  }
  if (stop.remaining && kept.committed() >= *stop.remaining) {
    if (kept.committed() > *stop.remaining) {
      kept.drafts = *stop.remaining;
      kept.target_token = false;
    }
    if (!ends(kept.committed_tokens().back())) {
      kept.finish = stop.context_limited ? FinishReason::kContextLimit : FinishReason::kLength;
    }
  }
  // Exceptions that a cut removed are not charged.
  for (const Exception& exception : decision.exceptions) {
    if (exception.position >= kept.drafts) break;
    ++kept.exceptions;
    kept.block_regret = exception.block_regret;
  }
  return kept;
}

}  // namespace asdbench
