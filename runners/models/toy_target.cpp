// The cache of the built-in targets, and the toy law.
#include "runners/models/toy_target.h"

#include <chrono>
#include <limits>
#include <numeric>

#include "eval/core/error.h"
#include "runners/kernels/score_rows.h"

namespace asdbench {
namespace {

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

void HistoryTarget::reserve(const BatchLimits& limits, bool host_logits) {
  const auto slots = static_cast<std::size_t>(limits.requests);
  const auto rows = slots * static_cast<std::size_t>(limits.drafts + 1);
  positions_ = limits.positions;
  host_logits_ = host_logits;
  states_.assign(slots * static_cast<std::size_t>(positions_), 0);
  length_.assign(slots, 0);
  logits_.assign(rows * static_cast<std::size_t>(vocab_), 0);
  draft_.assign(rows, kNoToken);
  choice_.assign(rows, kNoToken);
  choice_logit_.assign(rows, 0);
  runner_up_.assign(rows, 0);
  draft_logit_.assign(rows, 0);
  bad_.assign(rows, 0);
}

StepView HistoryTarget::prefill(const Request& request) {
  const std::int64_t begin = now_ns();
  length_[static_cast<std::size_t>(request.slot)] = 0;
  for (const TokenId token : request.prompt()) append(request.slot, token);
  rows_ = 0;
  add_row(request.slot, request.prompt().back(), kNoToken);
  const StepView step = score();
  spend(begin, static_cast<std::int64_t>(request.prompt().size()));
  return step;
}

StepView HistoryTarget::forward(std::span<Request* const> live) {
  const std::int64_t begin = now_ns();
  rows_ = 0;
  for (const Request* request : live) {
    const std::int32_t slot = request->slot;
    ASDBENCH_CHECK(length_[static_cast<std::size_t>(slot)] + 1 ==
                       static_cast<std::int64_t>(request->history().size()),
                   "the cache does not hold the history without its pending id");
    TokenId last = request->pending();
    for (const TokenId draft : request->draft) {
      append(slot, last);
      add_row(slot, last, draft);
      last = draft;
    }
    append(slot, last);
    add_row(slot, last, kNoToken);
  }
  const StepView step = score();
  spend(begin, static_cast<std::int64_t>(rows_));
  return step;
}

void HistoryTarget::keep(const Request& request, std::int32_t drafts) {
  const auto length = static_cast<std::int64_t>(request.history().size()) + drafts;
  std::int64_t& held = length_[static_cast<std::size_t>(request.slot)];
  ASDBENCH_CHECK(length <= held, "more drafts kept than were scored");
  held = length;
}

void HistoryTarget::release(const Request& request) {
  length_[static_cast<std::size_t>(request.slot)] = 0;
}

std::vector<float> HistoryTarget::logits_after(std::span<const TokenId> history) const {
  const State state = std::accumulate(history.begin(), history.end(), kEmpty, fold);
  std::vector<float> row(static_cast<std::size_t>(vocab_));
  write_row(state, history.back(), row.data());
  return row;
}

std::span<const HistoryTarget::State> HistoryTarget::cached(std::int32_t slot) const {
  const auto index = static_cast<std::size_t>(slot);
  return std::span(states_).subspan(index * static_cast<std::size_t>(positions_),
                                    static_cast<std::size_t>(length_[index]));
}

void HistoryTarget::spend(std::int64_t /*begin_ns*/, std::int64_t /*rows*/) const {}

void HistoryTarget::append(std::int32_t slot, TokenId token) {
  std::int64_t& length = length_[static_cast<std::size_t>(slot)];
  ASDBENCH_CHECK(length < positions_, "the cache is full");
  State* states = states_.data() + slot * positions_;
  states[length] = fold(length == 0 ? kEmpty : states[length - 1], token);
  ++length;
}

void HistoryTarget::add_row(std::int32_t slot, TokenId last, TokenId draft) {
  const std::int64_t length = length_[static_cast<std::size_t>(slot)];
  const State state = states_[static_cast<std::size_t>(slot * positions_ + length - 1)];
  write_row(state, last, logits_.data() + rows_ * static_cast<std::size_t>(vocab_));
  draft_[rows_++] = draft;
}

StepView HistoryTarget::score() {
  const auto rows = static_cast<std::int64_t>(rows_);
  kernels::score_rows(
      logits_.data(), draft_.data(), rows, vocab_, kernels::MaskedVocab::kNo,
      {choice_.data(), choice_logit_.data(), runner_up_.data(), draft_logit_.data(), bad_.data()});
  const RowScoresView all{choice_, choice_logit_, runner_up_, draft_logit_, bad_};
  return {all.slice(0, rows_), {host_logits_ ? logits_.data() : nullptr, rows, vocab_}};
}

ToyTarget::ToyTarget(const ToyOptions& options) : HistoryTarget(options.vocab), options_(options) {}

TargetInfo ToyTarget::info() const {
  return {.name = "toy",
          .engine = "toy",
          .device = "cpu",
          .weight_dtype = "none",
          .compute_dtype = "float32",
          .logit_dtype = "float32",
          .sha256 = "",
          .vocab = options_.vocab,
          .positions = options_.positions,
          .end_ids = last_ids(options_.vocab, options_.ends)};
}

void ToyTarget::write_row(State state, TokenId last, float* row) const {
  const State by_last = mix(options_.seed + 0x9e3779b97f4a7c15 * (static_cast<State>(last) + 1));
  const State by_history = mix(state ^ options_.seed);
  // Thirty-two bits and one multiplication an id are enough here; the loop must stay cheap, since
  // the cost of the decode loop is measured on top of it.
  const auto low = static_cast<std::uint32_t>(by_last);
  const auto high = static_cast<std::uint32_t>(by_history);
  const auto vocab = static_cast<std::uint32_t>(options_.vocab);
  for (std::uint32_t id = 0; id < vocab; ++id) {
    std::uint32_t coarse = (low ^ id) * 0x85ebca6bU;
    std::uint32_t fine = (high ^ id) * 0xc2b2ae35U;
    coarse = (coarse ^ (coarse >> 15)) * 0x2c1b3c6dU >> 28;
    fine = (fine ^ (fine >> 15)) * 0x297a2d39U >> 29;
    row[id] = static_cast<float>(coarse * 8 + fine) * (1.0F / 64);
  }
}

std::unique_ptr<Target> make_toy_target(const Params& params) {
  ToyOptions options;
  options.vocab = params.integer("vocab", options.vocab, 2, 1 << 20);
  options.positions = params.integer("positions", options.positions, 2, 1 << 20);
  options.ends =
      static_cast<std::int32_t>(params.integer("ends", options.ends, 0, options.vocab - 1));
  options.seed = static_cast<std::uint64_t>(
      params.integer("seed", 1, 0, std::numeric_limits<std::int64_t>::max()));
  return std::make_unique<ToyTarget>(options);
}

std::vector<TokenId> last_ids(std::int64_t vocab, std::int32_t count) {
  std::vector<TokenId> ids(static_cast<std::size_t>(count));
  std::iota(ids.begin(), ids.end(), static_cast<TokenId>(vocab - count));
  return ids;
}

}  // namespace asdbench
