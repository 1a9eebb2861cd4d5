// The batched form of drafters that have none of their own.
#include "runners/drafter.h"

#include "eval/core/error.h"

namespace asdbench {

void Drafter::propose(std::span<Request* const> live, std::span<const DraftLimits> limits) {
  for (std::size_t i = 0; i < live.size(); ++i) {
    const Draft draft = propose(RequestView(*live[i]), limits[i]);
    live[i]->draft.assign(draft.tokens().begin(), draft.tokens().end());
    live[i]->draft_logits.reset();
  }
}

Draft Drafter::propose(const RequestView&, DraftLimits) {
  throw InternalError("drafter " + info().name + " overrides neither form of propose");
}

}  // namespace asdbench
