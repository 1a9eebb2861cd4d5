// What drafters with a cache of their own share: which rows of the target they have cached, and
// which wait.
#pragma once

#include <cstdint>
#include <vector>

#include "runners/drafter.h"

namespace asdbench {

/// Follows what the target has seen and what was committed of it (specs: drafters, 2.6 and 4.5).
///
/// At the start of a round, with the pending token at position s, the rows of positions 0 to s - 1
/// are cached or waiting; drafted rows are never kept. Rows wait from observe(), which may be
/// followed by another request's prefill, until the next propose(), which can take those of all
/// requests together.
class CachedDrafter : public Drafter {
 public:
  HiddenSelection reads() const final { return {.taps = taps_}; }
  void reserve(const BatchLimits& limits) final;
  void on_taps(const Request& request, std::int64_t position, std::int64_t rows,
               const float* data) final;
  void observe(const Request& request, const Kept& kept) final;
  void release(const Request& request) final;

 protected:
  /// `width`: floats of one row of taps.
  CachedDrafter(std::vector<std::int64_t> taps, std::int64_t width)
      : taps_(std::move(taps)), width_(width) {}

  /// Rows of a slot that wait: positions [position, position + rows).
  struct Waiting {
    std::int64_t position = 0;
    std::int64_t rows = 0;
  };
  /// Hands out the waiting rows of a request that proposes; they count as cached from now on.
  Waiting take_waiting(const Request& request);
  const BatchLimits& limits() const { return limits_; }

  virtual void allocate(const BatchLimits& limits) = 0;
  /// Caches rows of a prompt; returns how many of them could be: the rest waits.
  virtual std::int64_t cache_prompt(const Request& request, std::int64_t position,
                                    std::int64_t rows, const float* taps) = 0;
  /// Copies `rows` rows to the waiting ones of a slot, from the `at`-th on.
  virtual void keep_waiting(std::int32_t slot, std::int64_t at, const float* taps,
                            std::int64_t rows) = 0;

 private:
  struct Slot {
    std::int64_t cached = 0;
    std::int64_t waiting = 0;
    // Of the target's last step.
    std::int64_t step_position = 0;
    std::int64_t step_rows = 0;
    const float* step_taps = nullptr;
  };
  Slot& slot_of(const Request& request);

  std::vector<std::int64_t> taps_;
  std::int64_t width_;
  BatchLimits limits_;
  std::vector<Slot> slots_;
};

}  // namespace asdbench
