// The block of DSpark and DFlash on our own CPU kernels.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "eval/core/error.h"
#include "runners/drafters/common/block_engine.h"
#include "runners/drafters/common/native_weights.h"
#include "runners/kernels/score_rows.h"
#include "runners/models/native_block.h"

namespace asdbench {
namespace {

using kernels::LinearOutput;
using kernels::PackedMatrix;

// Rows of a prompt that are cached at once.
constexpr std::int64_t kPromptRows = 128;

class NativeBlock final : public BlockEngine {
 public:
  NativeBlock(const FittedDrafter& fitted, const DrafterContext& context)
      : config_(fitted.checkpoint->drafter()),
        hidden_(fitted.sizes.hidden),
        taps_width_(static_cast<std::int64_t>(fitted.taps.size()) * hidden_),
        pool_(native::native_target(fitted).pool()),
        runner_(pool_, fitted.sizes, fitted.sizes.layers),
        embedding_(native::draft_embedding(fitted, context)),
        head_(native::draft_head(fitted, context)),
        target_ids_(fitted.checkpoint->target_ids()) {
    const DrafterCheckpoint& checkpoint = *fitted.checkpoint;
    fusion_ = native::draft_matrix(fitted, "fc.weight");
    context_norm_ = native::read_vector(checkpoint, "hidden_norm.weight");
    for (std::int64_t i = 0; i < fitted.sizes.layers; ++i) {
      layers_.push_back(native::draft_block(fitted, fmt::format("layers.{}.", i)));
    }
    final_norm_ = native::read_vector(checkpoint, "norm.weight");
    if (config_.markov_rank > 0) {
      // One row of W1 is read for a draft: rounding it would save nothing.
      markov_in_ = native::pack(checkpoint.tensor("markov_head.markov_w1.weight"));
      markov_out_ = native::draft_matrix(fitted, "markov_head.markov_w2.weight");
    }
    if (config_.confidence) {
      confidence_ = native::read_vector(checkpoint, "confidence_head.proj.weight");
      confidence_bias_ = native::read_vector(checkpoint, "confidence_head.proj.bias").front();
    }
    mask_.resize(static_cast<std::size_t>(hidden_));
    embedding_.unpack_row(config_.mask_id, mask_);
  }

  void reserve(const BatchLimits& limits, std::int64_t block) override {
    block_ = block;
    const std::int64_t slots = limits.requests;
    waiting_rows_ = std::int64_t{limits.drafts} + 1;
    const std::int64_t context_rows = std::max(kPromptRows, slots * waiting_rows_);
    const std::int64_t rows = std::max(context_rows, slots * block);
    // A block may reach beyond the last position that is ever committed.
    runner_.reserve({slots, rows, slots * block, limits.positions + block});
    const std::int64_t draft_rows = slots * limits.drafts;
    const auto floats = [](std::vector<float>& buffer, std::int64_t count) {
      buffer.resize(static_cast<std::size_t>(count));
    };
    floats(waiting_, slots * waiting_rows_ * taps_width_);
    floats(gathered_, slots * waiting_rows_ * taps_width_);
    floats(context_, context_rows * hidden_);
    floats(x_, slots * block * hidden_);
    floats(normed_, slots * block * hidden_);
    floats(outputs_, draft_rows * hidden_);
    const bool keeps_logits = limits.draft_logits || config_.markov_rank > 0;
    floats(base_, keeps_logits ? draft_rows * head_.outputs() : 0);
    floats(previous_, slots * config_.markov_rank);
    segments_.reserve(static_cast<std::size_t>(slots));
    no_drafts_.assign(static_cast<std::size_t>(draft_rows), kNoToken);
    for (std::vector<float>* each : {&best_, &runner_up_, &draft_logit_}) floats(*each, draft_rows);
    bad_.resize(static_cast<std::size_t>(draft_rows));
    low_.resize(static_cast<std::size_t>(slots));
  }

  void cache(const ContextRows& rows, const float* taps) override {
    for (std::int64_t done = 0; done < rows.rows; done += kPromptRows) {
      const std::int64_t some = std::min(kPromptRows, rows.rows - done);
      segments_.assign(1, {rows.slot, rows.position + done, 0, some});
      store_context(taps + done * taps_width_, some);
    }
  }

  void keep(std::int32_t slot, std::int64_t at, const float* taps, std::int64_t rows) override {
    ASDBENCH_CHECK(at + rows <= waiting_rows_, "more rows wait than a pass commits");
    std::copy_n(taps, rows * taps_width_,
                waiting_.data() + (slot * waiting_rows_ + at) * taps_width_);
  }

  void cache_waiting(std::span<const ContextRows> slots) override {
    std::int64_t rows = 0;
    segments_.clear();
    for (const ContextRows& each : slots) {
      std::copy_n(waiting_.data() + each.slot * waiting_rows_ * taps_width_,
                  each.rows * taps_width_, gathered_.data() + rows * taps_width_);
      if (each.rows > 0) segments_.push_back({each.slot, each.position, rows, each.rows});
      rows += each.rows;
    }
    if (rows > 0) store_context(gathered_.data(), rows);
  }

  std::int64_t draft(std::span<const BlockStart> starts, std::int64_t drafts,
                     double least_confidence, std::span<TokenId> picks,
                     std::span<float> confidences) override {
    run_block(starts);
    norm_outputs(starts.size(), drafts);
    if (config_.markov_rank == 0) {
      score(std::ssize(starts) * drafts, picks);
    } else {
      run_head(std::ssize(starts) * drafts);
    }
    std::fill_n(low_.begin(), starts.size(), std::uint8_t{0});
    for (std::int64_t k = 0; k < drafts; ++k) {
      const auto first = static_cast<std::size_t>(k) * starts.size();
      if (config_.markov_rank > 0) {
        add_markov_bias(starts, k, picks);
        pick(k, picks.subspan(first, starts.size()));
      }
      if (!config_.confidence) continue;
      for (std::size_t i = 0; i < starts.size(); ++i) {
        confidences[first + i] = confidence(static_cast<std::int64_t>(first + i), i);
        const bool low = static_cast<double>(confidences[first + i]) < least_confidence;
        if (low) low_[i] = 1;
      }
      const auto end = low_.begin() + std::ssize(starts);
      if (std::find(low_.begin(), end, 0) == end) return k + 1;
    }
    return drafts;
  }

  const float* logits() override { return base_.data(); }

 private:
  /// Keys and values of context rows in every layer: c = norm(fc * taps) serves them all.
  void store_context(const float* taps, std::int64_t rows) {
    const LinearOutput fusion{&fusion_, {context_.data(), hidden_}};
    kernels::linear(pool_, {taps, taps_width_}, rows, {&fusion, 1});
    runner_.norm({context_.data(), hidden_}, rows, context_norm_, {context_.data(), hidden_});
    runner_.place(segments_);
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      runner_.store(i, layers_[i], {context_.data(), hidden_});
    }
  }

  /// x = the layers over [anchor, mask, mask, ...] of each start.
  void run_block(std::span<const BlockStart> starts) {
    segments_.clear();
    for (std::size_t i = 0; i < starts.size(); ++i) {
      const std::int64_t first = static_cast<std::int64_t>(i) * block_;
      segments_.push_back({starts[i].slot, starts[i].position, first, block_});
      float* rows = x_.data() + first * hidden_;
      embedding_.unpack_row(starts[i].anchor, {rows, static_cast<std::size_t>(hidden_)});
      for (std::int64_t row = 1; row < block_; ++row) {
        std::copy(mask_.begin(), mask_.end(), rows + row * hidden_);
      }
    }
    runner_.place(segments_);
    const kernels::Rows x{x_.data(), hidden_};
    const kernels::MutableRows x_out{x_.data(), hidden_};
    const kernels::MutableRows normed{normed_.data(), hidden_};
    const std::int64_t rows = std::ssize(starts) * block_;
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      runner_.norm(x, rows, layers_[i].input_norm, normed);
      runner_.attend(i, layers_[i], {normed.data, hidden_}, x, x_out, StepMask::kWholeStep);
      runner_.feed_forward(layers_[i], x_out);
    }
  }

  /// outputs = norm(x) of the rows that predict drafts.
  void norm_outputs(std::size_t starts, std::int64_t drafts) {
    const auto count = static_cast<std::int64_t>(starts);
    // Row 0 predicts the first draft, or stands on the anchor and predicts nothing.
    const std::int64_t first_row = config_.from_anchor ? 0 : 1;
    for (std::int64_t k = 0; k < drafts; ++k) {
      const float* rows = x_.data() + (first_row + k) * hidden_;
      runner_.norm({rows, block_ * hidden_}, count, final_norm_,
                   {outputs_.data() + k * count * hidden_, hidden_});
    }
  }

  /// The best ids of independent rows.
  void score(std::int64_t rows, std::span<TokenId> picks) {
    kernels::linear_scores(
        pool_, {outputs_.data(), hidden_}, rows, head_, no_drafts_.data(),
        {picks.data(), best_.data(), runner_up_.data(), draft_logit_.data(), bad_.data()},
        {base_.empty() ? nullptr : base_.data(), head_.outputs()});
    map_to_target(picks.first(static_cast<std::size_t>(rows)));
  }

  /// base = head(outputs).
  void run_head(std::int64_t rows) {
    const LinearOutput head{&head_, {base_.data(), head_.outputs()}};
    kernels::linear(pool_, {outputs_.data(), hidden_}, rows, {&head, 1});
  }

  void map_to_target(std::span<TokenId> picks) const {
    if (target_ids_.empty()) return;
    for (TokenId& each : picks) {
      if (each != kNoToken) each = target_ids_[static_cast<std::size_t>(each)];
    }
  }

  /// Row k of each start += W2 * W1[the token before it].
  void add_markov_bias(std::span<const BlockStart> starts, std::int64_t k,
                       std::span<const TokenId> picks) {
    const std::int64_t rank = config_.markov_rank;
    const auto count = std::ssize(starts);
    for (std::size_t i = 0; i < starts.size(); ++i) {
      const TokenId before =
          k == 0 ? starts[i].anchor : picks[static_cast<std::size_t>(k - 1) * starts.size() + i];
      markov_in_.unpack_row(
          std::max(before, 0),
          {previous_.data() + static_cast<std::int64_t>(i) * rank, static_cast<std::size_t>(rank)});
    }
    float* rows = base_.data() + k * count * head_.outputs();
    const LinearOutput bias{
        &markov_out_, {rows, head_.outputs()}, nullptr, {rows, head_.outputs()}};
    kernels::linear(pool_, {previous_.data(), rank}, count, {&bias, 1});
  }

  void pick(std::int64_t k, std::span<TokenId> picks) {
    const float* rows = base_.data() + k * std::ssize(picks) * head_.outputs();
    kernels::score_rows(
        rows, no_drafts_.data(), std::ssize(picks), head_.outputs(), kernels::MaskedVocab::kNo,
        {picks.data(), best_.data(), runner_up_.data(), draft_logit_.data(), bad_.data()});
    map_to_target(picks);
  }

  /// Of a row of outputs, with the Markov embedding of its start as add_markov_bias left it.
  float confidence(std::int64_t row, std::size_t start) const {
    double sum = static_cast<double>(confidence_bias_);
    const auto add = [&](std::int64_t first, const float* values, std::int64_t count) {
      for (std::int64_t d = 0; d < count; ++d) {
        sum += static_cast<double>(confidence_[static_cast<std::size_t>(first + d)]) *
               static_cast<double>(values[d]);
      }
    };
    add(0, outputs_.data() + row * hidden_, hidden_);
    if (config_.confidence_with_markov) {
      const std::int64_t rank = config_.markov_rank;
      add(hidden_, previous_.data() + static_cast<std::int64_t>(start) * rank, rank);
    }
    return static_cast<float>(1 / (1 + std::exp(-sum)));
  }

  DrafterConfig config_;
  std::int64_t hidden_;
  std::int64_t taps_width_;
  kernels::Pool& pool_;
  native::BlockRunner runner_;
  PackedMatrix embedding_;           // [V, H]
  PackedMatrix head_;                // [draft vocabulary, H]
  std::vector<TokenId> target_ids_;  // [draft vocabulary]; empty: the same
  PackedMatrix fusion_;              // [H, taps * H]
  std::vector<float> context_norm_, final_norm_;
  std::vector<native::BlockWeights> layers_;
  PackedMatrix markov_in_;         // [V, r]
  PackedMatrix markov_out_;        // [draft vocabulary, r]
  std::vector<float> confidence_;  // [H] or [H + r]
  float confidence_bias_ = 0;
  std::vector<float> mask_;  // [H], the embedding of the mask

  std::int64_t block_ = 0;
  std::int64_t waiting_rows_ = 0;  // of each slot
  std::vector<float> waiting_;     // [slots, waiting rows, taps * H]
  std::vector<float> gathered_;    // [rows, taps * H]
  std::vector<float> context_;     // [rows, H]
  std::vector<float> x_, normed_;  // [slots * block, H]
  std::vector<float> outputs_;     // [drafts, starts, H], after the final norm
  std::vector<float> base_;        // [drafts, starts, draft vocabulary]; may be empty
  std::vector<float> previous_;    // [starts, r]
  std::vector<Segment> segments_;
  std::vector<TokenId> no_drafts_;
  std::vector<float> best_, runner_up_, draft_logit_;
  std::vector<std::uint8_t> bad_, low_;  // low: a confidence was too low
};

}  // namespace

std::unique_ptr<BlockEngine> make_block_engine(const FittedDrafter& fitted,
                                               const DrafterContext& context) {
#ifdef ASDBENCH_TORCH_ENGINE
  if (!native::is_native(fitted)) return make_torch_block(fitted, context);
#endif
  return std::make_unique<NativeBlock>(fitted, context);
}

}  // namespace asdbench
