// Matrices that a drafter on our kernels takes from its file or shares with its target.
#pragma once

#include <string>

#include "runners/drafters/common/fitted_drafter.h"
#include "runners/kernels/linear.h"
#include "runners/models/native_block.h"
#include "runners/models/native_transformer.h"

namespace asdbench::native {

bool is_native(const FittedDrafter& fitted);

/// The target behind a drafter on our kernels. InternalError when it is another engine's.
NativeTarget& native_target(const FittedDrafter& fitted);

/// A matrix of the drafter's file, in the type of its option `weights`. ModelError when it cannot
/// be rounded to that.
kernels::PackedMatrix draft_matrix(const FittedDrafter& fitted, const std::string& name);
/// The same for all matrices of a block.
BlockWeights draft_block(const FittedDrafter& fitted, const std::string& prefix);

/// The drafter's embedding [V, H]: the target's unless the file has another.
kernels::PackedMatrix draft_embedding(const FittedDrafter& fitted, const DrafterContext& context);

/// The drafter's head [draft vocabulary, H]: the file's, or the rows of the target's that it
/// drafts.
kernels::PackedMatrix draft_head(const FittedDrafter& fitted, const DrafterContext& context);

}  // namespace asdbench::native
