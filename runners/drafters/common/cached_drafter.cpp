// Bookkeeping of cached and waiting rows.
#include "runners/drafters/common/cached_drafter.h"

#include <fmt/format.h>

#include "eval/core/error.h"

namespace asdbench {

void CachedDrafter::reserve(const BatchLimits& limits) {
  limits_ = limits;
  slots_.assign(static_cast<std::size_t>(limits.requests), {});
  allocate(limits);
}

CachedDrafter::Slot& CachedDrafter::slot_of(const Request& request) {
  ASDBENCH_CHECK(request.slot >= 0 && static_cast<std::size_t>(request.slot) < slots_.size(),
                 fmt::format("slot {} of {}", request.slot, slots_.size()));
  return slots_[static_cast<std::size_t>(request.slot)];
}

void CachedDrafter::on_taps(const Request& request, std::int64_t position, std::int64_t rows,
                            const float* data) {
  Slot& slot = slot_of(request);
  if (!request.output().empty()) {
    slot.step_position = position;
    slot.step_rows = rows;
    slot.step_taps = data;
    return;
  }
  if (position == 0) slot = {};
  ASDBENCH_CHECK(slot.cached == position && slot.waiting == 0, "prompt rows come in order");
  const std::int64_t done = cache_prompt(request, position, rows, data);
  slot.cached += done;
  slot.waiting = rows - done;
  keep_waiting(request.slot, 0, data + done * width_, slot.waiting);
}

void CachedDrafter::observe(const Request& request, const Kept& kept) {
  Slot& slot = slot_of(request);
  const std::int64_t rows = std::int64_t{kept.drafts} + 1;
  ASDBENCH_CHECK(
      slot.step_position == slot.cached && slot.waiting == 0 && rows <= slot.step_rows,
      fmt::format("{} rows at {}, but {} are cached", rows, slot.step_position, slot.cached));
  keep_waiting(request.slot, 0, slot.step_taps, rows);
  slot.waiting = rows;
  slot.step_taps = nullptr;
  slot.step_rows = 0;
}

void CachedDrafter::release(const Request& request) { slot_of(request) = {}; }

CachedDrafter::Waiting CachedDrafter::take_waiting(const Request& request) {
  Slot& slot = slot_of(request);
  const Waiting waiting{slot.cached, slot.waiting};
  slot.cached += slot.waiting;
  slot.waiting = 0;
  ASDBENCH_CHECK(
      slot.cached + 1 == static_cast<std::int64_t>(request.history().size()),
      fmt::format("{} rows cached for a history of {}", slot.cached, request.history().size()));
  return waiting;
}

}  // namespace asdbench
