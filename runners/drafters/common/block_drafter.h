// DSpark and DFlash: a block of tokens in one pass (specs: drafters, sections 2 and 3).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runners/drafters/common/block_engine.h"
#include "runners/drafters/common/cached_drafter.h"
#include "runners/drafters/common/draft_law.h"

namespace asdbench {

struct BlockOptions {
  std::int32_t drafts = 0;      // K
  std::int64_t block = 0;       // rows of the block, whatever K is
  double least_confidence = 0;  // drafts are cut before the first one below; 0: never
};

class BlockDrafter final : public CachedDrafter {
 public:
  BlockDrafter(const FittedDrafter& fitted, const DrafterContext& context,
               const BlockOptions& options);

  DrafterInfo info() const override { return info_; }
  using Drafter::propose;
  void propose(std::span<Request* const> live, std::span<const DraftLimits> limits) override;

  /// Confidences of the slot's last proposal: one for each draft and, when it was cut, for the one
  /// it was cut at. Empty without such a head.
  std::span<const float> confidences(std::int32_t slot) const;

 protected:
  void allocate(const BatchLimits& limits) override;
  std::int64_t cache_prompt(const Request& request, std::int64_t position, std::int64_t rows,
                            const float* taps) override;
  void keep_waiting(std::int32_t slot, std::int64_t at, const float* taps,
                    std::int64_t rows) override;

 private:
  void take_picks(Request& request, std::size_t i, std::int64_t limit);

  BlockOptions options_;
  DrafterInfo info_;
  std::int64_t vocab_;
  bool has_confidence_;
  std::vector<TokenId> target_ids_;
  std::unique_ptr<BlockEngine> engine_;
  DraftLaw law_;
  std::vector<ContextRows> context_;
  std::vector<BlockStart> starts_;
  std::vector<TokenId> picks_;                   // [K, requests]
  std::vector<float> picked_confidences_;        // [K, requests]
  std::vector<float> confidences_;               // [slots, K]
  std::vector<std::int32_t> confidence_counts_;  // [slots]
};

/// Reads the options K, block and (DSpark) confidence, and makes the drafter.
std::unique_ptr<Drafter> make_block_drafter(const Params& params, const DrafterContext& context,
                                            DraftMethod method);

}  // namespace asdbench
