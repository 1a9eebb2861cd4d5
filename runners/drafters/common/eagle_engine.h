// The EAGLE-3 step on one of our engines.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "runners/drafters/common/fitted_drafter.h"
#include "runners/target.h"

namespace asdbench {

/// Rows of one slot, at positions `position`, `position` + 1, ...
struct EagleRows {
  std::int32_t slot = 0;
  std::int64_t position = 0;
  std::span<const TokenId> tokens;  // [rows]; the one that follows each position
};

/// One decoder layer over features of the target or of itself (specs: drafters, 4.3 and 4.4). The
/// row of position i pairs the feature of i with the token of i + 1, and predicts that of i + 2.
class EagleEngine {
 public:
  virtual ~EagleEngine() = default;
  virtual void reserve(const BatchLimits& limits) = 0;
  /// Caches rows of a slot whose features are those of `taps` [rows, taps * Ht].
  virtual void cache(const EagleRows& rows, const float* taps) = 0;
  /// Copies rows of taps to the waiting ones of a slot, from the `at`-th on.
  virtual void keep(std::int32_t slot, std::int64_t at, const float* taps, std::int64_t rows) = 0;

  /// Runs the waiting rows of each slot and chains `drafts` - 1 rows after the last of them, each
  /// on the feature and the token that the row before it gave. `picks` [drafts, slots] are ids of
  /// the target, kNoToken when a logit is not finite; what follows such a one means nothing.
  ///
  /// Unless `least_confidence` is 0, `confidences` [drafts, slots] receive how sure a chain is up
  /// to and with each draft: the product of the shares e^a / (e^a + e^b) of its best logit a
  /// against the second b. The call may end early once each slot has one below `least_confidence`.
  /// Returns the number of drafts that were made.
  virtual std::int64_t draft(std::span<const EagleRows> slots, std::int64_t drafts,
                             double least_confidence, std::span<TokenId> picks,
                             std::span<float> confidences) = 0;
  /// Logits of the last drafts on the host: [drafts, slots, draft vocabulary].
  virtual const float* logits() = 0;
};

/// On the kernels of a native target, else on the device of a torch target.
std::unique_ptr<EagleEngine> make_eagle_engine(const FittedDrafter& fitted,
                                               const DrafterContext& context);
/// In builds with libtorch.
std::unique_ptr<EagleEngine> make_torch_eagle(const FittedDrafter& fitted,
                                              const DrafterContext& context);

}  // namespace asdbench
