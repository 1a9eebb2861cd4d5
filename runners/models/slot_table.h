// Which rows of a step belong to which slot, and how far the cache of each slot reaches.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "eval/core/token_id.h"
#include "runners/request.h"

namespace asdbench {

/// Rows [first, first + rows) of a step belong to one slot and stand at positions start, start + 1,
/// ...
struct Segment {
  std::int32_t slot = 0;
  std::int64_t start = 0;
  std::int64_t first = 0;
  std::int64_t rows = 0;
};

/// What the rows of a step see of each other; they see everything before the step.
enum class StepMask : std::uint8_t { kCausal, kWholeStep };

/// Which projections of a step's rows are computed: without keys and values, those are cached
/// already.
enum class Projections : std::uint8_t { kAll, kQueries };

/// The discipline of specs/targets.md, section 4.6, for every engine that runs a checkpoint: a pass
/// appends the pending token and its drafts, and is then cut to what was committed. The caches
/// themselves are the engine's.
class SlotTable {
 public:
  /// Empties all slots; there are at least `slots` from now on. `rows`: of one step; `positions`:
  /// of one slot.
  void reserve(std::size_t slots, std::int64_t rows, std::int64_t positions);
  std::size_t slots() const { return slots_.size(); }

  /// Lays out positions [start, start + rows) of the request's prompt as one step; the last piece
  /// of a prompt is scored by one row without a draft.
  std::span<const TokenId> plan_prompt(const Request& request, std::int64_t start,
                                       std::int64_t rows);
  /// Lays out the pending token and the drafts of each request as one step; returns its rows.
  std::int64_t plan_step(std::span<Request* const> live);
  /// Id of each planned row, in order.
  std::span<const TokenId> tokens() const { return tokens_; }
  /// Draft that each scored row judges, kNoToken for none; what kernels::score_rows takes.
  const std::vector<TokenId>& drafts() const { return drafts_; }
  const std::vector<Segment>& segments() const { return segments_; }

  /// Positions that the slot caches, committed or of the pass under way.
  std::int64_t length(const Request& request) const { return slot_of(request).length; }
  /// The length that remains when the pass keeps `drafts` drafts.
  std::int64_t kept_length(const Request& request, std::int32_t drafts) const;
  void cut(const Request& request, std::int64_t length);

 private:
  struct Slot {
    std::int64_t length = 0;
    std::int64_t before_pass = 0;  // length before the last step
  };
  const Slot& slot_of(const Request& request) const;
  Slot& slot_of(const Request& request);

  std::int64_t rows_ = 0;
  std::int64_t positions_ = 0;
  std::vector<Slot> slots_;
  std::vector<Segment> segments_;
  std::vector<TokenId> tokens_, drafts_;
};

}  // namespace asdbench
