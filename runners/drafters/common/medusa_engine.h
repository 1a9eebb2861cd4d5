// Medusa's heads on one of our engines.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "runners/drafters/common/fitted_drafter.h"
#include "runners/target.h"

namespace asdbench {

/// Residual blocks and an output matrix for each head, all over the same hidden state (specs:
/// drafters, 6.1).
class MedusaEngine {
 public:
  virtual ~MedusaEngine() = default;
  virtual void reserve(const BatchLimits& limits) = 0;
  /// Copies the hidden state [H] that the slot's heads read next.
  virtual void keep(std::int32_t slot, const float* hidden) = 0;
  /// The best ids of the first `drafts` heads for each slot: `picks` [drafts, slots] are ids of the
  /// target, kNoToken where a logit is not finite.
  virtual void draft(std::span<const std::int32_t> slots, std::int64_t drafts,
                     std::span<TokenId> picks) = 0;
  /// Logits of the last drafts on the host: [drafts, slots, draft vocabulary].
  virtual const float* logits() = 0;
};

/// On the kernels of a native target, else on the device of a torch target.
std::unique_ptr<MedusaEngine> make_medusa_engine(const FittedDrafter& fitted);
/// In builds with libtorch.
std::unique_ptr<MedusaEngine> make_torch_medusa(const FittedDrafter& fitted);

}  // namespace asdbench
