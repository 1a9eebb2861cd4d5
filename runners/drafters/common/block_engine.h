// The block of DSpark and DFlash on one of our engines.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "runners/drafters/common/fitted_drafter.h"
#include "runners/target.h"

namespace asdbench {

/// A block of one slot: the pending token at `position`, masks after it.
struct BlockStart {
  std::int32_t slot = 0;
  std::int64_t position = 0;
  TokenId anchor = 0;
};

/// Context rows of one slot: positions [position, position + rows).
struct ContextRows {
  std::int32_t slot = 0;
  std::int64_t position = 0;
  std::int64_t rows = 0;
};

/// Layers over a block that sees the target's features of everything before it (specs: drafters, 2
/// and 3). Only the context is cached; the rows of a block are written over by the next context.
class BlockEngine {
 public:
  virtual ~BlockEngine() = default;
  /// `block`: rows of a block.
  virtual void reserve(const BatchLimits& limits, std::int64_t block) = 0;
  /// Caches context whose features are those of `taps` [rows, taps * H].
  virtual void cache(const ContextRows& rows, const float* taps) = 0;
  /// Copies rows of taps to the waiting ones of a slot, from the `at`-th on.
  virtual void keep(std::int32_t slot, std::int64_t at, const float* taps, std::int64_t rows) = 0;
  /// Caches the waiting rows of each slot.
  virtual void cache_waiting(std::span<const ContextRows> slots) = 0;

  /// Runs a block for each start, the head over the rows that give the first `drafts` drafts, and
  /// the Markov chain over them. `picks` [drafts, starts] are ids of the target, kNoToken when a
  /// logit is not finite; `confidences` [drafts, starts] are written where there is such a head.
  ///
  /// May end early once each start has had a confidence below `least_confidence`; returns the
  /// number of drafts that were made.
  virtual std::int64_t draft(std::span<const BlockStart> starts, std::int64_t drafts,
                             double least_confidence, std::span<TokenId> picks,
                             std::span<float> confidences) = 0;
  /// Logits of the last drafts on the host: [drafts, starts, draft vocabulary].
  virtual const float* logits() = 0;
};

/// On the kernels of a native target, else on the device of a torch target.
std::unique_ptr<BlockEngine> make_block_engine(const FittedDrafter& fitted,
                                               const DrafterContext& context);
/// In builds with libtorch.
std::unique_ptr<BlockEngine> make_torch_block(const FittedDrafter& fitted,
                                              const DrafterContext& context);

}  // namespace asdbench
