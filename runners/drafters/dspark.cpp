// DSpark: a block of drafts in one pass, chained by a Markov head, cut by a confidence head.
// DeepSpec's files and SpecForge's container of them (specs: drafters, section 2).
#include "runners/drafters/common/block_drafter.h"

namespace asdbench {

std::unique_ptr<Drafter> make_dspark(const Params& params, const DrafterContext& context) {
  return make_block_drafter(params, context, DraftMethod::kDSpark);
}

}  // namespace asdbench
