// DFlash: a block of independent drafts in one pass. arXiv:2602.06036, the files of z-lab and of
// DeepSpec (specs: drafters, section 3).
#include "runners/drafters/common/block_drafter.h"

namespace asdbench {

std::unique_ptr<Drafter> make_dflash(const Params& params, const DrafterContext& context) {
  return make_block_drafter(params, context, DraftMethod::kDFlash);
}

}  // namespace asdbench
