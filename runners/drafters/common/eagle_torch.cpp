// The EAGLE-3 step on libtorch, on the device of its target.
#include <algorithm>

#include "eval/core/error.h"
#include "runners/drafters/common/eagle_engine.h"
#include "runners/drafters/common/torch_weights_internal.h"
#include "runners/models/torch_block_internal.h"

namespace asdbench {
namespace {

using torch_blocks::guarded;

// Rows of a prompt that are cached at once.
constexpr std::int64_t kPromptRows = 256;

class TorchEagle final : public EagleEngine {
 public:
  TorchEagle(const FittedDrafter& fitted, const DrafterContext& context)
      : device_(torch_blocks::torch_target(fitted).device()),
        hidden_(fitted.sizes.hidden),
        width_(static_cast<std::int64_t>(fitted.taps.size()) * fitted.target->config().hidden),
        runner_(fitted.sizes, 1, device_),
        embedding_(torch_blocks::draft_embedding(fitted, context)),
        fusion_(torch_blocks::read_transposed(*fitted.checkpoint, device_, "fc.weight")),
        feature_norm_(torch_blocks::read(*fitted.checkpoint, device_, "hidden_norm.weight")),
        block_(torch_blocks::read_block(*fitted.checkpoint, device_, "layers.0.", 2 * hidden_)),
        final_norm_(torch_blocks::read(*fitted.checkpoint, device_, "norm.weight")),
        head_(torch_blocks::draft_head(fitted, context)),
        picks_(fitted.checkpoint->target_ids(), head_.size(1), device_) {}

  void reserve(const BatchLimits& limits) override {
    guarded("allocating for the drafter", [&] {
      const std::int64_t slots = limits.requests;
      const std::int64_t waiting = std::int64_t{limits.drafts} + 1;
      runner_.reserve(slots, std::max(kPromptRows, slots * waiting), limits.positions);
      const auto floats = at::TensorOptions(at::kFloat).device(device_);
      waiting_ = at::empty({slots, waiting, width_}, floats);
      logits_ =
          at::empty({std::max<std::int64_t>(limits.drafts, 1) * slots, head_.size(1)}, floats);
    });
  }

  void cache(const EagleRows& rows, const float* taps) override {
    guarded("caching a prompt for the drafter", [&] {
      const std::int64_t count = std::ssize(rows.tokens);
      for (std::int64_t done = 0; done < count; done += kPromptRows) {
        const std::int64_t some = std::min(kPromptRows, count - done);
        const auto tokens =
            rows.tokens.subspan(static_cast<std::size_t>(done), static_cast<std::size_t>(some));
        const at::Tensor features =
            torch_blocks::rows_at(taps + done * width_, some, width_, device_).mm(fusion_);
        segments_.assign(1, {rows.slot, rows.position + done, 0, some});
        runner_.place(segments_);
        runner_.store(0, block_, pair(torch_blocks::ids_on(tokens, device_), features));
      }
    });
  }

  void keep(std::int32_t slot, std::int64_t at, const float* taps, std::int64_t rows) override {
    guarded("keeping hidden states", [&] {
      waiting_[slot].narrow(0, at, rows).copy_(torch_blocks::rows_at(taps, rows, width_, device_));
    });
  }

  /// Never ends early: that would have to wait for the device after every draft.
  std::int64_t draft(std::span<const EagleRows> slots, std::int64_t drafts, double least_confidence,
                     std::span<TokenId> picks, std::span<float> confidences) override {
    guarded("drafting", [&] {
      std::vector<at::Tensor> taps;
      std::vector<TokenId> tokens, last;
      segments_.clear();
      for (const EagleRows& each : slots) {
        const std::int64_t rows = std::ssize(each.tokens);
        taps.push_back(waiting_[each.slot].narrow(0, 0, rows));
        segments_.push_back({each.slot, each.position, std::ssize(tokens), rows});
        tokens.insert(tokens.end(), each.tokens.begin(), each.tokens.end());
        last.push_back(static_cast<TokenId>(tokens.size()) - 1);
      }
      at::Tensor features = at::cat(taps).mm(fusion_);
      at::Tensor input = pair(torch_blocks::ids_on(tokens, device_), features);
      runner_.place(segments_);
      runner_.store(0, block_, input);
      // Only the last row of a slot is read; the others were for the cache.
      const at::Tensor last_rows = torch_blocks::ids_on(last, device_);
      features = features.index_select(0, last_rows);
      input = input.index_select(0, last_rows);
      for (std::size_t i = 0; i < segments_.size(); ++i) {
        Segment& segment = segments_[i];
        segment = {segment.slot, segment.start + segment.rows - 1, static_cast<std::int64_t>(i), 1};
      }
      std::vector<at::Tensor> ids = {finish(0, Projections::kQueries, input, features)};
      for (std::int64_t k = 1; k < drafts; ++k) {
        input = pair(ids.back().clamp_min(0), features);
        for (Segment& segment : segments_) ++segment.start;
        ids.push_back(finish(k, Projections::kAll, input, features));
      }
      rows_ = drafts * std::ssize(slots);
      torch_blocks::copy_ids(at::cat(ids), picks);
      if (least_confidence > 0) rate(drafts, std::ssize(slots), confidences);
    });
    return drafts;
  }

  const float* logits() override {
    host_logits_ = logits_.narrow(0, 0, rows_).cpu();
    return host_logits_.const_data_ptr<float>();
  }

 private:
  /// Confidences of the drafts that logits_ holds.
  void rate(std::int64_t drafts, std::int64_t slots, std::span<float> confidences) const {
    at::Tensor shares = at::ones({rows_}, logits_.options());
    if (logits_.size(1) > 1) {
      const at::Tensor best = std::get<0>(logits_.narrow(0, 0, rows_).topk(2));
      shares = (best.select(1, 0) - best.select(1, 1)).sigmoid();
    }
    const at::Tensor chains = shares.view({drafts, slots}).cumprod(0).cpu().contiguous();
    std::copy_n(chains.const_data_ptr<float>(), rows_, confidences.data());
  }

  /// [norm(E[token]) ; norm(feature)], [rows, 2 H].
  at::Tensor pair(const at::Tensor& tokens, const at::Tensor& features) const {
    return at::cat({runner_.rms(embedding_.index_select(0, tokens), block_.input_norm),
                    runner_.rms(features, feature_norm_)},
                   1);
  }

  /// The block over one row of each segment; `features` becomes its output. Returns the ids of
  /// draft `k`.
  at::Tensor finish(std::int64_t k, Projections projections, const at::Tensor& input,
                    at::Tensor& features) {
    runner_.place(segments_);
    runner_.attend(0, block_, input, features, StepMask::kCausal, projections);
    runner_.feed_forward(block_, features);
    const std::int64_t rows = features.size(0);
    at::Tensor logits = logits_.narrow(0, k * rows, rows);
    at::mm_out(logits, runner_.rms(features, final_norm_), head_);
    return picks_.best(logits);
  }

  at::Device device_;
  std::int64_t hidden_;
  std::int64_t width_;  // of a row of taps
  torch_blocks::BlockRunner runner_;
  at::Tensor embedding_;     // [V, H]
  at::Tensor fusion_;        // [taps * Ht, H]
  at::Tensor feature_norm_;  // [H]
  torch_blocks::BlockWeights block_;
  at::Tensor final_norm_;  // [H]
  at::Tensor head_;        // [H, draft vocabulary]
  torch_blocks::PickMap picks_;

  at::Tensor waiting_;  // [slots, K + 1, taps * Ht]
  at::Tensor logits_;   // [K * slots, draft vocabulary]
  at::Tensor host_logits_;
  std::int64_t rows_ = 0;  // of logits_, of the last draft
  std::vector<Segment> segments_;
};

}  // namespace

std::unique_ptr<EagleEngine> make_torch_eagle(const FittedDrafter& fitted,
                                              const DrafterContext& context) {
  return guarded("loading the drafter",
                 [&] { return std::make_unique<TorchEagle>(fitted, context); });
}

}  // namespace asdbench
