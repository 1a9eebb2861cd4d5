// The block of DSpark and DFlash on libtorch, on the device of its target.
#include <algorithm>

#include "eval/core/error.h"
#include "runners/drafters/common/block_engine.h"
#include "runners/drafters/common/torch_weights_internal.h"
#include "runners/models/torch_block_internal.h"

namespace asdbench {
namespace {

using torch_blocks::guarded;

// Rows of a prompt that are cached at once.
constexpr std::int64_t kPromptRows = 256;

class TorchBlock final : public BlockEngine {
 public:
  TorchBlock(const FittedDrafter& fitted, const DrafterContext& context)
      : config_(fitted.checkpoint->drafter()),
        device_(torch_blocks::torch_target(fitted).device()),
        hidden_(fitted.sizes.hidden),
        width_(static_cast<std::int64_t>(fitted.taps.size()) * hidden_),
        runner_(fitted.sizes, fitted.sizes.layers, device_),
        embedding_(torch_blocks::draft_embedding(fitted, context)),
        head_(torch_blocks::draft_head(fitted, context)),
        picks_(fitted.checkpoint->target_ids(), head_.size(1), device_) {
    const DrafterCheckpoint& checkpoint = *fitted.checkpoint;
    const auto vector = [&](const char* name) {
      return torch_blocks::read(checkpoint, device_, name);
    };
    fusion_ = torch_blocks::read_transposed(checkpoint, device_, "fc.weight");
    context_norm_ = vector("hidden_norm.weight");
    for (std::int64_t i = 0; i < fitted.sizes.layers; ++i) {
      layers_.push_back(
          torch_blocks::read_block(checkpoint, device_, fmt::format("layers.{}.", i), hidden_));
    }
    final_norm_ = vector("norm.weight");
    if (config_.markov_rank > 0) {
      markov_in_ = vector("markov_head.markov_w1.weight");
      markov_out_ =
          torch_blocks::read_transposed(checkpoint, device_, "markov_head.markov_w2.weight");
    }
    if (config_.confidence) {
      confidence_ =
          torch_blocks::read_transposed(checkpoint, device_, "confidence_head.proj.weight");
      confidence_bias_ = vector("confidence_head.proj.bias");
    }
  }

  void reserve(const BatchLimits& limits, std::int64_t block) override {
    guarded("allocating for the drafter", [&] {
      block_ = block;
      const std::int64_t slots = limits.requests;
      const std::int64_t waiting = std::int64_t{limits.drafts} + 1;
      // A block may reach beyond the last position that is ever committed.
      runner_.reserve(slots, std::max({kPromptRows, slots * waiting, slots * block}),
                      limits.positions + block);
      const auto floats = at::TensorOptions(at::kFloat).device(device_);
      waiting_ = at::empty({slots, waiting, width_}, floats);
      logits_ =
          at::empty({std::max<std::int64_t>(limits.drafts, 1) * slots, head_.size(1)}, floats);
    });
  }

  void cache(const ContextRows& rows, const float* taps) override {
    guarded("caching a prompt for the drafter", [&] {
      for (std::int64_t done = 0; done < rows.rows; done += kPromptRows) {
        const std::int64_t some = std::min(kPromptRows, rows.rows - done);
        segments_.assign(1, {rows.slot, rows.position + done, 0, some});
        store_context(torch_blocks::rows_at(taps + done * width_, some, width_, device_));
      }
    });
  }

  void keep(std::int32_t slot, std::int64_t at, const float* taps, std::int64_t rows) override {
    guarded("keeping hidden states", [&] {
      waiting_[slot].narrow(0, at, rows).copy_(torch_blocks::rows_at(taps, rows, width_, device_));
    });
  }

  void cache_waiting(std::span<const ContextRows> slots) override {
    guarded("caching for the drafter", [&] {
      std::vector<at::Tensor> taps;
      std::int64_t rows = 0;
      segments_.clear();
      for (const ContextRows& each : slots) {
        if (each.rows == 0) continue;
        taps.push_back(waiting_[each.slot].narrow(0, 0, each.rows));
        segments_.push_back({each.slot, each.position, rows, each.rows});
        rows += each.rows;
      }
      if (rows > 0) store_context(at::cat(taps));
    });
  }

  std::int64_t draft(std::span<const BlockStart> starts, std::int64_t drafts,
                     double /*least_confidence*/, std::span<TokenId> picks,
                     std::span<float> confidences) override {
    guarded("drafting", [&] {
      const std::int64_t count = std::ssize(starts);
      std::vector<TokenId> anchors;
      for (const BlockStart& start : starts) anchors.push_back(start.anchor);
      at::Tensor before = torch_blocks::ids_on(anchors, device_);
      const at::Tensor outputs = run_block(starts, before, drafts);  // [drafts, starts, H]
      at::Tensor logits = logits_.narrow(0, 0, drafts * count);
      at::mm_out(logits, outputs.reshape({drafts * count, hidden_}), head_);
      std::vector<at::Tensor> ids, confident;
      // The chain stays on the device: a token is needed by the next row only, not by the host.
      for (std::int64_t k = 0; k < drafts; ++k) {
        at::Tensor row = logits.narrow(0, k * count, count);
        at::Tensor seen = outputs[k];
        if (config_.markov_rank > 0) {
          const at::Tensor token = markov_in_.index_select(0, before);
          row.addmm_(token, markov_out_);
          if (config_.confidence_with_markov) seen = at::cat({seen, token}, 1);
        }
        if (config_.confidence) {
          confident.push_back(at::sigmoid(at::addmm(confidence_bias_, seen, confidence_)));
        }
        ids.push_back(picks_.best(row));
        before = ids.back().clamp_min(0);
      }
      rows_ = drafts * count;
      torch_blocks::copy_ids(at::cat(ids), picks);
      if (!config_.confidence) return;
      const at::Tensor host = at::cat(confident).cpu().contiguous();
      std::copy_n(host.const_data_ptr<float>(), host.numel(), confidences.begin());
    });
    return drafts;
  }

  const float* logits() override {
    host_logits_ = logits_.narrow(0, 0, rows_).cpu();
    return host_logits_.const_data_ptr<float>();
  }

 private:
  /// Keys and values of context rows in every layer: c = norm(fc * taps) serves them all.
  void store_context(const at::Tensor& taps) {
    const at::Tensor context = runner_.rms(taps.mm(fusion_), context_norm_);
    runner_.place(segments_);
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      runner_.store(static_cast<std::int64_t>(i), layers_[i], context);
    }
  }

  /// The layers over [anchor, mask, mask, ...] of each start, and the final norm of the rows that
  /// predict drafts.
  at::Tensor run_block(std::span<const BlockStart> starts, const at::Tensor& anchors,
                       std::int64_t drafts) {
    const std::int64_t count = std::ssize(starts);
    at::Tensor x = embedding_[config_.mask_id].expand({count, block_, hidden_}).clone();
    x.select(1, 0).copy_(embedding_.index_select(0, anchors));
    x = x.view({count * block_, hidden_});
    segments_.clear();
    for (std::size_t i = 0; i < starts.size(); ++i) {
      segments_.push_back(
          {starts[i].slot, starts[i].position, static_cast<std::int64_t>(i) * block_, block_});
    }
    runner_.place(segments_);
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      runner_.attend(static_cast<std::int64_t>(i), layers_[i],
                     runner_.rms(x, layers_[i].input_norm), x, StepMask::kWholeStep);
      runner_.feed_forward(layers_[i], x);
    }
    // Row 0 predicts the first draft, or stands on the anchor and predicts nothing.
    const at::Tensor rows = x.view({count, block_, hidden_})
                                .narrow(1, config_.from_anchor ? 0 : 1, drafts)
                                .transpose(0, 1);
    return runner_.rms(rows, final_norm_);
  }

  DrafterConfig config_;
  at::Device device_;
  std::int64_t hidden_;
  std::int64_t width_;  // of a row of taps
  torch_blocks::BlockRunner runner_;
  at::Tensor embedding_;  // [V, H]
  at::Tensor head_;       // [H, draft vocabulary]
  torch_blocks::PickMap picks_;
  at::Tensor fusion_;                     // [taps * H, H]
  at::Tensor context_norm_, final_norm_;  // [H]
  std::vector<torch_blocks::BlockWeights> layers_;
  at::Tensor markov_in_;        // [V, r]
  at::Tensor markov_out_;       // [r, draft vocabulary]
  at::Tensor confidence_;       // [H or H + r, 1]
  at::Tensor confidence_bias_;  // [1]

  std::int64_t block_ = 0;
  at::Tensor waiting_;  // [slots, K + 1, taps * H]
  at::Tensor logits_;   // [K * starts, draft vocabulary]
  at::Tensor host_logits_;
  std::int64_t rows_ = 0;  // of logits_, of the last draft
  std::vector<Segment> segments_;
};

}  // namespace

std::unique_ptr<BlockEngine> make_torch_block(const FittedDrafter& fitted,
                                              const DrafterContext& context) {
  return guarded("loading the drafter",
                 [&] { return std::make_unique<TorchBlock>(fitted, context); });
}

}  // namespace asdbench
