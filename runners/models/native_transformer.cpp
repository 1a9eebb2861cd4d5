// Embedding, decoder blocks and head of a checkpoint over the rows of a step.
#include "runners/models/native_transformer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <new>

#include "eval/core/error.h"
#include "runners/kernels/half.h"
#include "runners/models/native_block.h"
#include "runners/models/slot_table.h"

namespace asdbench {
namespace {

using kernels::MutableRows;
using kernels::PackedMatrix;
using kernels::Rows;

// Long enough that the weights of a chunk are read for many rows, short enough that its activations
// stay in cache.
constexpr std::int64_t kPrefillRows = 128;

struct Weights {
  PackedMatrix embedding;  // [V, H]; empty when the head is tied: its rows are the embedding then
  std::vector<native::BlockWeights> blocks;
  std::vector<float> final_norm;  // [H]
  PackedMatrix head;              // [V, H]
};

Weights pack_weights(const Checkpoint& checkpoint) {
  const ModelConfig& config = checkpoint.config();
  Weights weights;
  for (std::int64_t i = 0; i < config.layers; ++i) {
    weights.blocks.push_back(native::pack_block(checkpoint, fmt::format("model.layers.{}.", i)));
  }
  weights.final_norm = native::read_vector(checkpoint, "model.norm.weight");
  weights.head = native::pack(checkpoint.tensor("lm_head.weight"));
  if (!config.tied_head) {
    weights.embedding = native::pack(checkpoint.tensor("model.embed_tokens.weight"));
  }
  return weights;
}

kernels::ActivationType activation_type(std::string_view name) {
  for (const auto type : {kernels::ActivationType::kFloat32, kernels::ActivationType::kBf16,
                          kernels::ActivationType::kInt8}) {
    if (kernels::name_of(type) == name) return type;
  }
  throw InternalError(fmt::format("activations {}", name));
}

class NativeTransformer final : public NativeTarget {
 public:
  NativeTransformer(const Checkpoint& checkpoint, TargetInfo info, EngineOptions options)
      : config_(checkpoint.config()),
        info_(std::move(info)),
        options_(std::move(options)),
        own_pool_(options_.threads > 0 ? std::make_unique<kernels::Pool>(options_.threads)
                                       : nullptr),
        pool_(own_pool_ ? *own_pool_ : kernels::Pool::process()),
        weights_(pack_weights(checkpoint)),
        runner_(pool_, config_, config_.layers, activation_type(options_.activations)) {}

  TargetInfo info() const override { return info_; }
  const ModelConfig& config() const override { return config_; }
  kernels::Pool& pool() override { return pool_; }
  const PackedMatrix& embedding() const override {
    return config_.tied_head ? weights_.head : weights_.embedding;
  }
  const PackedMatrix& head() const override { return weights_.head; }

  void listen(const HiddenSelection& selection, HiddenListener* listener) override {
    check_selection(selection, config_, info_.name);
    selection_ = selection;
    listener_ = selection.empty() ? nullptr : listener;
  }

  void reserve(const BatchLimits& limits, bool host_logits) override {
    if (limits.positions > config_.positions) {
      throw ConfigError(fmt::format("{}: {} positions were asked for, but the model has {}",
                                    info_.name, limits.positions, config_.positions));
    }
    host_logits_ = host_logits;
    try {
      allocate(limits);
    } catch (const std::bad_alloc&) {
      throw DeviceError(fmt::format(
          "{}: no memory for {} requests of {} positions\n  use a smaller batch or max_tokens",
          info_.name, limits.requests, limits.positions));
    }
  }

  StepView prefill(const Request& request) override {
    const auto length = static_cast<std::int64_t>(request.prompt().size());
    std::int64_t rows = 0;
    for (std::int64_t start = 0; start < length; start += kPrefillRows) {
      rows = std::min(kPrefillRows, length - start);
      table_.plan_prompt(request, start, rows);
      run_layers(rows);
      hand_over_taps(request, table_.segments().front());
    }
    const StepView view = score(rows - 1, 1);
    if (listener_ != nullptr && selection_.final_norm) {
      listener_->on_final_norm(request, length - 1, 1, normed_.data());
    }
    return view;
  }

  StepView forward(std::span<Request* const> live) override {
    const std::int64_t rows = table_.plan_step(live);
    run_layers(rows);
    const StepView view = score(0, rows);
    for (std::size_t i = 0; i < live.size(); ++i) {
      const Segment& segment = table_.segments()[i];
      hand_over_taps(*live[i], segment);
      if (listener_ != nullptr && selection_.final_norm) {
        listener_->on_final_norm(*live[i], segment.start, segment.rows,
                                 normed_.data() + segment.first * config_.hidden);
      }
    }
    return view;
  }

  void keep(const Request& request, std::int32_t drafts) override {
    table_.cut(request, table_.kept_length(request, drafts));
  }

  void release(const Request& request) override { table_.cut(request, 0); }

 private:
  void allocate(const BatchLimits& limits) {
    const std::int64_t rows = std::int64_t{limits.requests} * (limits.drafts + 1);
    step_rows_ = std::max(step_rows_, rows);
    const std::int64_t most = std::max(step_rows_, kPrefillRows);
    runner_.reserve({limits.requests, most, most, limits.positions});
    table_.reserve(static_cast<std::size_t>(limits.requests), rows, limits.positions);
    const auto floats = [](std::vector<float>& buffer, std::int64_t count) {
      buffer.resize(std::max(buffer.size(), static_cast<std::size_t>(count)));
    };
    floats(x_, most * config_.hidden);
    floats(normed_, most * config_.hidden);
    floats(taps_, most * taps_width());
    if (host_logits_) floats(logits_, step_rows_ * config_.vocab);
    const auto rows_size = static_cast<std::size_t>(step_rows_);
    choice_.resize(rows_size);
    choice_logit_.resize(rows_size);
    runner_up_.resize(rows_size);
    draft_logit_.resize(rows_size);
    bad_.resize(rows_size);
  }

  std::int64_t taps_width() const {
    return static_cast<std::int64_t>(selection_.taps.size()) * config_.hidden;
  }

  /// Runs the planned rows through all layers of the residual stream.
  void run_layers(std::int64_t rows) {
    const Rows x{x_.data(), config_.hidden};
    const MutableRows x_out{x_.data(), config_.hidden};
    const MutableRows normed{normed_.data(), config_.hidden};
    for (std::int64_t row = 0; row < rows; ++row) {
      embedding().unpack_row(
          table_.tokens()[static_cast<std::size_t>(row)],
          {x_.data() + row * config_.hidden, static_cast<std::size_t>(config_.hidden)});
    }
    runner_.place(table_.segments());
    tap(0, x_, rows);
    for (std::size_t i = 0; i < weights_.blocks.size(); ++i) {
      const native::BlockWeights& block = weights_.blocks[i];
      runner_.norm(x, rows, block.input_norm, normed);
      runner_.attend(i, block, {normed.data, normed.stride}, x, x_out);
      runner_.feed_forward(block, x_out);
      tap(static_cast<std::int64_t>(i) + 1, x_, rows);
    }
  }

  /// R[index] is in x: copies it to its columns of the taps that are listened to.
  void tap(std::int64_t index, const std::vector<float>& values, std::int64_t rows) {
    if (options_.tap) {
      options_.tap(index, {values.data(), static_cast<std::size_t>(rows * config_.hidden)});
    }
    for (std::size_t i = 0; i < selection_.taps.size(); ++i) {
      if (selection_.taps[i] != index) continue;
      const std::int64_t column = static_cast<std::int64_t>(i) * config_.hidden;
      for (std::int64_t row = 0; row < rows; ++row) {
        std::copy_n(values.data() + row * config_.hidden, config_.hidden,
                    taps_.data() + row * taps_width() + column);
      }
    }
  }

  void hand_over_taps(const Request& request, const Segment& segment) {
    if (listener_ == nullptr || selection_.taps.empty()) return;
    listener_->on_taps(request, segment.start, segment.rows,
                       taps_.data() + segment.first * taps_width());
  }

  /// Logits and scores of rows [first, first + rows) of the residual stream, with the planned
  /// drafts.
  StepView score(std::int64_t first, std::int64_t rows) {
    runner_.norm({x_.data() + first * config_.hidden, config_.hidden}, rows, weights_.final_norm,
                 {normed_.data(), config_.hidden});
    if (options_.tap) {
      options_.tap(config_.layers + 1,
                   {normed_.data(), static_cast<std::size_t>(rows * config_.hidden)});
    }
    float* logits = host_logits_ ? logits_.data() : nullptr;
    kernels::linear_scores(
        pool_, {normed_.data(), config_.hidden}, rows, weights_.head, table_.drafts().data(),
        {choice_.data(), choice_logit_.data(), runner_up_.data(), draft_logit_.data(), bad_.data()},
        {logits, config_.vocab}, activation_type(options_.activations));
    const auto count = static_cast<std::size_t>(rows);
    StepView view;
    view.scores = {std::span(choice_).first(count), std::span(choice_logit_).first(count),
                   std::span(runner_up_).first(count), std::span(draft_logit_).first(count),
                   std::span(bad_).first(count)};
    view.logits = {logits, rows, config_.vocab};
    return view;
  }

  ModelConfig config_;
  TargetInfo info_;
  EngineOptions options_;
  std::unique_ptr<kernels::Pool> own_pool_;
  kernels::Pool& pool_;
  Weights weights_;
  native::BlockRunner runner_;
  HiddenSelection selection_;
  HiddenListener* listener_ = nullptr;

  std::int64_t step_rows_ = 0;  // rows that one forward may score
  bool host_logits_ = false;    // whether a step's logits are kept
  SlotTable table_;
  std::vector<float> x_, normed_;  // [rows, H]
  std::vector<float> taps_;        // [rows, taps * H]
  std::vector<float> logits_;      // [step rows, V]
  std::vector<TokenId> choice_;
  std::vector<float> choice_logit_, runner_up_, draft_logit_;
  std::vector<std::uint8_t> bad_;
};

}  // namespace

Narrowed narrowed_weights(std::span<const Tensor* const> matrices) {
  Narrowed narrowed;
  double errors = 0, weights = 0;
  std::vector<float> row;
  for (const Tensor* tensor : matrices) {
    if (native::packed_format(tensor->type)) continue;
    ++narrowed.matrices;
    double largest_error = 0, largest_weight = 0;
    row.resize(static_cast<std::size_t>(tensor->shape[1]));
    for (std::int64_t i = 0; i < tensor->shape[0]; ++i) {
      dequantise_rows(*tensor, i, 1, row);
      for (const float weight : row) {
        const double error = std::abs(
            double{kernels::half_to_float(kernels::float_to_half(weight))} - double{weight});
        errors += error * error;
        weights += double{weight} * weight;
        largest_error = std::max(largest_error, error);
        largest_weight = std::max(largest_weight, std::abs(double{weight}));
      }
    }
    if (largest_weight > 0) {
      narrowed.largest = std::max(narrowed.largest, largest_error / largest_weight);
    }
  }
  if (weights > 0) narrowed.rms = std::sqrt(errors / weights);
  return narrowed;
}

Narrowed narrowed_weights(const Checkpoint& checkpoint) {
  std::vector<const Tensor*> matrices;
  for (const auto& [name, tensor] : checkpoint.tensors()) {
    if (tensor.shape.size() == 2) matrices.push_back(&tensor);
  }
  return narrowed_weights(matrices);
}

LoadedTarget make_native_transformer(const Checkpoint& checkpoint, TargetInfo info,
                                     const EngineOptions& options) {
  const ModelConfig& config = checkpoint.config();
  info.engine = "native";
  info.device = "cpu";
  info.compute_dtype = "float32";
  info.logit_dtype = "float32";
  info.activations = options.activations;
  info.vocab = config.vocab;
  info.positions = config.positions;
  info.end_ids = config.end_ids;
  std::vector<std::string> warnings;
  if (kernels::active_isa() == kernels::Isa::kPlain) {
    warnings.emplace_back(
        "no AVX2 here, or ASDBENCH_ISA=plain: the native engine runs its kernels without vector "
        "instructions, many times slower");
  }
  if (options.threads > kernels::Pool::usable_cores()) {
    warnings.push_back(fmt::format("threads: {} on {} cores: steps wait for each other's threads",
                                   options.threads, kernels::Pool::usable_cores()));
  }
  try {
    return {.target = std::make_unique<NativeTransformer>(checkpoint, std::move(info), options),
            .warnings = std::move(warnings)};
  } catch (const std::bad_alloc&) {
    throw DeviceError(fmt::format("{}: no memory for the weights ({} bytes)",
                                  checkpoint.path().string(), checkpoint.tensor_bytes()));
  }
}

}  // namespace asdbench
