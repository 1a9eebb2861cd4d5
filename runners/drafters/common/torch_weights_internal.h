// Matrices that a drafter on libtorch takes from its file or shares with its target.
#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "runners/drafters/common/fitted_drafter.h"
#include "runners/models/torch_transformer_internal.h"

namespace asdbench::torch_blocks {

/// The target behind a drafter on libtorch. InternalError when it is another engine's.
TorchTarget& torch_target(const FittedDrafter& fitted);

/// The drafter's embedding [V, H]: the target's unless the file has another.
at::Tensor draft_embedding(const FittedDrafter& fitted, const DrafterContext& context);
/// The drafter's head [H, draft vocabulary]: the file's, or the columns of the target's that it
/// drafts.
at::Tensor draft_head(const FittedDrafter& fitted, const DrafterContext& context);

/// From rows of a head to ids of the target, on the device.
class PickMap {
 public:
  PickMap(const std::vector<TokenId>& target_ids, std::int64_t head_rows, at::Device device);
  /// The best id of each row of logits [rows, draft vocabulary] as int64; -1 where one is not
  /// finite.
  at::Tensor best(const at::Tensor& logits) const;

 private:
  at::Tensor rows_;  // [draft vocabulary] int64: 0, 1, ...
  at::Tensor ids_;   // [draft vocabulary + 1] int64; the last, for a row that is not finite, is -1
};

/// Rows [rows, width] at `data`, in the memory of `device`.
at::Tensor rows_at(const float* data, std::int64_t rows, std::int64_t width, at::Device device);
/// Host ids as int64 on `device`.
at::Tensor ids_on(std::span<const TokenId> ids, at::Device device);
/// int64 ids of any shape into `out`, in their order: the one copy to the host of a proposal.
void copy_ids(const at::Tensor& ids, std::span<TokenId> out);

}  // namespace asdbench::torch_blocks
