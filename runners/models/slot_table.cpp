// Bookkeeping of rows and slots.
#include "runners/models/slot_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "eval/core/error.h"

namespace asdbench {

void SlotTable::reserve(std::size_t slots, std::int64_t rows, std::int64_t positions) {
  slots_.assign(std::max(slots_.size(), slots), {});
  rows_ = std::max(rows_, rows);
  positions_ = std::max(positions_, positions);
  segments_.reserve(slots_.size());
  tokens_.reserve(static_cast<std::size_t>(std::max(rows_, positions_)));
  drafts_.reserve(static_cast<std::size_t>(rows_));
}

const SlotTable::Slot& SlotTable::slot_of(const Request& request) const {
  ASDBENCH_CHECK(request.slot >= 0 && static_cast<std::size_t>(request.slot) < slots_.size(),
                 fmt::format("slot {} of {}", request.slot, slots_.size()));
  return slots_[static_cast<std::size_t>(request.slot)];
}

SlotTable::Slot& SlotTable::slot_of(const Request& request) {
  return const_cast<Slot&>(std::as_const(*this).slot_of(request));
}

std::span<const TokenId> SlotTable::plan_prompt(const Request& request, std::int64_t start,
                                                std::int64_t rows) {
  const std::span<const TokenId> prompt = request.prompt();
  const auto length = static_cast<std::int64_t>(prompt.size());
  ASDBENCH_CHECK(length <= positions_,
                 fmt::format("a prompt of {} ids, reserved: {}", length, positions_));
  segments_.assign(1, {request.slot, start, 0, rows});
  const auto piece =
      prompt.subspan(static_cast<std::size_t>(start), static_cast<std::size_t>(rows));
  tokens_.assign(piece.begin(), piece.end());
  drafts_.assign(1, kNoToken);
  Slot& slot = slot_of(request);
  slot.length = start + rows;
  slot.before_pass = slot.length;
  return tokens_;
}

std::int64_t SlotTable::plan_step(std::span<Request* const> live) {
  segments_.clear();
  tokens_.clear();
  drafts_.clear();
  std::int64_t rows = 0;
  for (const Request* request : live) {
    Slot& slot = slot_of(*request);
    const auto history = static_cast<std::int64_t>(request->history().size());
    ASDBENCH_CHECK(slot.length == history - 1,
                   fmt::format("slot {} caches {} of {} ids", request->slot, slot.length, history));
    const auto count = static_cast<std::int64_t>(request->draft.size()) + 1;
    ASDBENCH_CHECK(rows + count <= rows_ && slot.length + count <= positions_,
                   fmt::format("{} rows at position {}, reserved: {} rows, {} positions",
                               rows + count, slot.length, rows_, positions_));
    segments_.push_back({request->slot, slot.length, rows, count});
    tokens_.push_back(request->pending());
    tokens_.insert(tokens_.end(), request->draft.begin(), request->draft.end());
    drafts_.insert(drafts_.end(), request->draft.begin(), request->draft.end());
    drafts_.push_back(kNoToken);
    slot.before_pass = slot.length;
    slot.length += count;
    rows += count;
  }
  return rows;
}

std::int64_t SlotTable::kept_length(const Request& request, std::int32_t drafts) const {
  const Slot& slot = slot_of(request);
  const std::int64_t kept = slot.before_pass + 1 + drafts;
  ASDBENCH_CHECK(drafts >= 0 && kept <= slot.length,
                 fmt::format("keeping {} of {} positions", kept, slot.length));
  return kept;
}

void SlotTable::cut(const Request& request, std::int64_t length) {
  Slot& slot = slot_of(request);
  slot.length = length;
  slot.before_pass = length;
}

}  // namespace asdbench
