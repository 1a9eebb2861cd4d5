// The EAGLE-3 step on our own CPU kernels.
#include <algorithm>
#include <cmath>
#include <new>

#include "eval/core/error.h"
#include "runners/drafters/common/eagle_engine.h"
#include "runners/drafters/common/native_weights.h"
#include "runners/models/native_block.h"

namespace asdbench {
namespace {

using kernels::LinearOutput;
using kernels::PackedMatrix;

// Rows of a prompt that are cached at once.
constexpr std::int64_t kPromptRows = 128;

class NativeEagle final : public EagleEngine {
 public:
  NativeEagle(const FittedDrafter& fitted, const DrafterContext& context)
      : hidden_(fitted.sizes.hidden),
        taps_width_(static_cast<std::int64_t>(fitted.taps.size()) * fitted.target->config().hidden),
        pool_(native::native_target(fitted).pool()),
        runner_(pool_, fitted.sizes, 1),
        embedding_(native::draft_embedding(fitted, context)),
        fusion_(native::draft_matrix(fitted, "fc.weight")),
        feature_norm_(native::read_vector(*fitted.checkpoint, "hidden_norm.weight")),
        block_(native::draft_block(fitted, "layers.0.")),
        final_norm_(native::read_vector(*fitted.checkpoint, "norm.weight")),
        head_(native::draft_head(fitted, context)),
        target_ids_(fitted.checkpoint->target_ids()) {}

  void reserve(const BatchLimits& limits) override {
    const std::int64_t slots = limits.requests;
    waiting_rows_ = std::int64_t{limits.drafts} + 1;
    const std::int64_t rows = std::max(kPromptRows, slots * waiting_rows_);
    runner_.reserve({slots, rows, slots, limits.positions});
    const auto floats = [](std::vector<float>& buffer, std::int64_t count) {
      buffer.resize(static_cast<std::size_t>(count));
    };
    floats(waiting_, slots * waiting_rows_ * taps_width_);
    floats(gathered_, slots * waiting_rows_ * taps_width_);
    floats(features_, rows * hidden_);
    floats(input_, rows * 2 * hidden_);
    floats(last_features_, slots * hidden_);
    floats(last_input_, slots * 2 * hidden_);
    floats(out_, slots * hidden_);
    floats(normed_, slots * hidden_);
    floats(logits_, limits.draft_logits ? limits.drafts * slots * head_.outputs() : 0);
    segments_.reserve(static_cast<std::size_t>(slots));
    no_drafts_.assign(static_cast<std::size_t>(slots), kNoToken);
    for (std::vector<float>* scores : {&best_, &runner_up_, &draft_logit_}) floats(*scores, slots);
    bad_.resize(static_cast<std::size_t>(slots));
  }

  void cache(const EagleRows& rows, const float* taps) override {
    const auto count = static_cast<std::int64_t>(rows.tokens.size());
    for (std::int64_t done = 0; done < count; done += kPromptRows) {
      const std::int64_t some = std::min(kPromptRows, count - done);
      fuse(taps + done * taps_width_, some);
      for (std::int64_t row = 0; row < some; ++row) {
        pair(rows.tokens[static_cast<std::size_t>(done + row)], features_.data() + row * hidden_,
             input_.data() + row * 2 * hidden_);
      }
      segments_.assign(1, {rows.slot, rows.position + done, 0, some});
      runner_.place(segments_);
      runner_.store(0, block_, {input_.data(), 2 * hidden_});
    }
  }

  void keep(std::int32_t slot, std::int64_t at, const float* taps, std::int64_t rows) override {
    ASDBENCH_CHECK(at + rows <= waiting_rows_, "more rows wait than a pass commits");
    std::copy_n(taps, rows * taps_width_,
                waiting_.data() + (slot * waiting_rows_ + at) * taps_width_);
  }

  std::int64_t draft(std::span<const EagleRows> slots, std::int64_t drafts, double least_confidence,
                     std::span<TokenId> picks, std::span<float> confidences) override {
    cache_waiting(slots);
    // Only the last row of a slot is read; the others were for the cache.
    for (std::size_t i = 0; i < segments_.size(); ++i) {
      Segment& segment = segments_[i];
      const std::int64_t last = segment.first + segment.rows - 1;
      const auto to = static_cast<std::int64_t>(i);
      std::copy_n(features_.data() + last * hidden_, hidden_, last_features_.data() + to * hidden_);
      std::copy_n(input_.data() + last * 2 * hidden_, 2 * hidden_,
                  last_input_.data() + to * 2 * hidden_);
      segment = {segment.slot, segment.start + segment.rows - 1, to, 1};
    }
    for (std::int64_t k = 0; k < drafts; ++k) {
      const std::size_t first = static_cast<std::size_t>(k) * slots.size();
      if (k > 0) continue_from(picks.subspan(first - slots.size(), slots.size()));
      finish(k, k == 0 ? Projections::kQueries : Projections::kAll,
             picks.subspan(first, slots.size()));
      if (least_confidence > 0 && !rate(first, slots.size(), least_confidence, confidences)) {
        return k + 1;
      }
    }
    return drafts;
  }

  const float* logits() override { return logits_.data(); }

 private:
  /// features = fc * taps, [rows, H].
  void fuse(const float* taps, std::int64_t rows) {
    const LinearOutput fusion{&fusion_, {features_.data(), hidden_}};
    kernels::linear(pool_, {taps, taps_width_}, rows, {&fusion, 1});
  }

  /// Features and inputs of the waiting rows, their keys and values, and the segments they form.
  void cache_waiting(std::span<const EagleRows> slots) {
    std::int64_t rows = 0;
    segments_.clear();
    for (const EagleRows& each : slots) {
      const auto count = static_cast<std::int64_t>(each.tokens.size());
      std::copy_n(waiting_.data() + each.slot * waiting_rows_ * taps_width_, count * taps_width_,
                  gathered_.data() + rows * taps_width_);
      segments_.push_back({each.slot, each.position, rows, count});
      rows += count;
    }
    fuse(gathered_.data(), rows);
    for (std::size_t i = 0; i < slots.size(); ++i) {
      const Segment& segment = segments_[i];
      for (std::int64_t row = 0; row < segment.rows; ++row) {
        pair(slots[i].tokens[static_cast<std::size_t>(row)],
             features_.data() + (segment.first + row) * hidden_,
             input_.data() + (segment.first + row) * 2 * hidden_);
      }
    }
    runner_.place(segments_);
    runner_.store(0, block_, {input_.data(), 2 * hidden_});
  }

  /// input = [norm(E[token]) ; norm(feature)], 2 H wide.
  void pair(TokenId token, const float* feature, float* input) {
    embedding_.unpack_row(token, {input, static_cast<std::size_t>(hidden_)});
    runner_.norm({input, hidden_}, 1, block_.input_norm, {input, hidden_});
    runner_.norm({feature, hidden_}, 1, feature_norm_, {input + hidden_, hidden_});
  }

  /// The rows after the last ones: features are what the block gave, tokens the drafts `before`.
  void continue_from(std::span<const TokenId> before) {
    for (std::size_t i = 0; i < before.size(); ++i) {
      const auto row = static_cast<std::int64_t>(i);
      float* feature = last_features_.data() + row * hidden_;
      std::copy_n(out_.data() + row * hidden_, hidden_, feature);
      pair(std::max(before[i], 0), feature, last_input_.data() + row * 2 * hidden_);
      ++segments_[i].start;
    }
  }

  /// Confidences of the drafts just made, which begin at `first`; false when all are below `least`.
  bool rate(std::size_t first, std::size_t slots, double least,
            std::span<float> confidences) const {
    bool any = false;
    for (std::size_t i = 0; i < slots; ++i) {
      const double share = 1 / (1 + std::exp(static_cast<double>(runner_up_[i] - best_[i])));
      const double before = first == 0 ? 1 : static_cast<double>(confidences[first - slots + i]);
      confidences[first + i] = static_cast<float>(before * share);
      any |= static_cast<double>(confidences[first + i]) >= least;
    }
    return any;
  }

  /// The block over the last rows, one of each segment, and draft `k` after each.
  void finish(std::int64_t k, Projections project, std::span<TokenId> picks) {
    const auto rows = static_cast<std::int64_t>(segments_.size());
    runner_.place(segments_);
    runner_.attend(0, block_, {last_input_.data(), 2 * hidden_}, {last_features_.data(), hidden_},
                   {out_.data(), hidden_}, StepMask::kCausal, project);
    runner_.feed_forward(block_, {out_.data(), hidden_});
    runner_.norm({out_.data(), hidden_}, rows, final_norm_, {normed_.data(), hidden_});
    float* logits = logits_.empty() ? nullptr : logits_.data() + k * rows * head_.outputs();
    kernels::linear_scores(
        pool_, {normed_.data(), hidden_}, rows, head_, no_drafts_.data(),
        {picks.data(), best_.data(), runner_up_.data(), draft_logit_.data(), bad_.data()},
        {logits, head_.outputs()});
    if (target_ids_.empty()) return;
    for (TokenId& pick : picks) {
      if (pick != kNoToken) pick = target_ids_[static_cast<std::size_t>(pick)];
    }
  }

  std::int64_t hidden_;
  std::int64_t taps_width_;
  kernels::Pool& pool_;
  native::BlockRunner runner_;
  PackedMatrix embedding_;  // [V, H]
  PackedMatrix fusion_;     // [H, taps * Ht]
  std::vector<float> feature_norm_;
  native::BlockWeights block_;
  std::vector<float> final_norm_;
  PackedMatrix head_;                // [draft vocabulary, H]
  std::vector<TokenId> target_ids_;  // [draft vocabulary]; empty: the same

  std::int64_t waiting_rows_ = 0;     // of each slot
  std::vector<float> waiting_;        // [slots, waiting rows, taps * Ht]
  std::vector<float> gathered_;       // [rows, taps * Ht]
  std::vector<float> features_;       // [rows, H]
  std::vector<float> input_;          // [rows, 2 H]
  std::vector<float> last_features_;  // [slots, H]
  std::vector<float> last_input_;     // [slots, 2 H]
  std::vector<float> out_;            // [slots, H]; features of the next drafted rows
  std::vector<float> normed_;         // [slots, H]
  std::vector<float> logits_;         // [K, slots, draft vocabulary]; empty: not wanted
  std::vector<Segment> segments_;
  std::vector<TokenId> no_drafts_;
  std::vector<float> best_, runner_up_, draft_logit_;
  std::vector<std::uint8_t> bad_;
};

}  // namespace

std::unique_ptr<EagleEngine> make_eagle_engine(const FittedDrafter& fitted,
                                               const DrafterContext& context) {
#ifdef ASDBENCH_TORCH_ENGINE
  if (!native::is_native(fitted)) return make_torch_eagle(fitted, context);
#endif
  return std::make_unique<NativeEagle>(fitted, context);
}

}  // namespace asdbench
