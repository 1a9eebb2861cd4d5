// Packs a checkpoint and runs its decoder blocks on runners/kernels.
#include "runners/models/native_transformer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <new>
#include <numbers>
#include <optional>

#include "eval/core/error.h"
#include "runners/kernels/attention.h"
#include "runners/kernels/linear.h"
#include "runners/kernels/pool.h"
#include "runners/kernels/score_rows.h"
#include "runners/kernels/slab.h"
#include "runners/models/slot_table.h"

namespace asdbench {
namespace {

using kernels::LinearOutput;
using kernels::MutableRows;
using kernels::PackedMatrix;
using kernels::Rows;
using kernels::WeightFormat;

// Long enough that the weights of a chunk are read for many rows, short enough that its activations
// stay in cache.
constexpr std::int64_t kPrefillRows = 128;

// ---- weights

std::optional<WeightFormat> packed_format(WeightType type) {
  switch (type) {
    case WeightType::kF32:
      return WeightFormat::kF32;
    case WeightType::kF16:
      return WeightFormat::kF16;
    case WeightType::kBF16:
      return WeightFormat::kBf16;
    case WeightType::kQ8_0:
      return WeightFormat::kQ8_0;
    case WeightType::kQ4_0:
      return WeightFormat::kQ4_0;
    case WeightType::kQ4_1:
      return WeightFormat::kQ4_1;
    case WeightType::kQ5_0:
      return WeightFormat::kQ5_0;
    case WeightType::kQ5_1:
      return WeightFormat::kQ5_1;
    default:
      return std::nullopt;  // K-quants have no kernel of their own
  }
}

/// The matrix `name` with its rows in the order `row_at` gives (the stored row of each output).
template <typename RowAt>
PackedMatrix pack_rows(const Tensor& tensor, RowAt row_at) {
  const std::int64_t outputs = tensor.shape[0];
  const std::int64_t inputs = tensor.shape[1];
  const std::optional<WeightFormat> format = packed_format(tensor.type);
  if (!format) {
    return PackedMatrix::from_rows(WeightFormat::kF16, outputs, inputs,
                                   [&](std::int64_t output, std::span<float> values) {
                                     dequantise_rows(tensor, row_at(output), 1, values);
                                   });
  }
  const std::size_t row_bytes = tensor.bytes.size() / static_cast<std::size_t>(outputs);
  std::vector<std::byte> ordered(tensor.bytes.size());
  for (std::int64_t output = 0; output < outputs; ++output) {
    const auto from = static_cast<std::size_t>(row_at(output)) * row_bytes;
    std::copy_n(tensor.bytes.begin() + static_cast<std::ptrdiff_t>(from), row_bytes,
                ordered.begin() +
                    static_cast<std::ptrdiff_t>(static_cast<std::size_t>(output) * row_bytes));
  }
  return PackedMatrix::pack(*format, outputs, inputs, ordered);
}

PackedMatrix pack(const Tensor& tensor) {
  const std::optional<WeightFormat> format = packed_format(tensor.type);
  if (format) return PackedMatrix::pack(*format, tensor.shape[0], tensor.shape[1], tensor.bytes);
  return pack_rows(tensor, [](std::int64_t row) { return row; });
}

struct Layer {
  std::vector<float> input_norm, post_norm;  // [H]
  PackedMatrix query, key, value, output;    // [Nq D, H], [Nk D, H], [Nk D, H], [H, Nq D]
  std::vector<float> query_bias, key_bias, value_bias, output_bias;  // empty: none
  std::vector<float> query_norm, key_norm;                           // [D]; empty: none
  PackedMatrix gate, up, down;                                       // [F, H], [F, H], [H, F]
};

struct Weights {
  PackedMatrix embedding;  // [V, H]; empty when the head is tied: its rows are the embedding then
  std::vector<Layer> layers;
  std::vector<float> final_norm;  // [H]
  PackedMatrix head;              // [V, H]
};

const float* bias_or_null(const std::vector<float>& bias) {
  return bias.empty() ? nullptr : bias.data();
}

Weights pack_weights(const Checkpoint& checkpoint) {
  const ModelConfig& config = checkpoint.config();
  const auto vector = [&](const std::string& name) {
    std::vector<float> values(static_cast<std::size_t>(checkpoint.tensor(name).elements()));
    checkpoint.read(name, values);
    return values;
  };
  const auto optional_vector = [&](bool there, const std::string& name) {
    return there ? vector(name) : std::vector<float>();
  };
  const auto matrix = [&](const std::string& name) { return pack(checkpoint.tensor(name)); };
  const auto query_or_key = [&](const std::string& name) {
    if (!config.interleaved_qk_rows) return matrix(name);
    return pack_rows(checkpoint.tensor(name),
                     [&](std::int64_t row) { return stored_qk_row(config, row); });
  };

  Weights weights;
  for (std::int64_t i = 0; i < config.layers; ++i) {
    const std::string prefix = fmt::format("model.layers.{}.", i);
    const std::string attention = prefix + "self_attn.";
    const std::string mlp = prefix + "mlp.";
    Layer layer;
    layer.input_norm = vector(prefix + "input_layernorm.weight");
    layer.query = query_or_key(attention + "q_proj.weight");
    layer.key = query_or_key(attention + "k_proj.weight");
    layer.value = matrix(attention + "v_proj.weight");
    layer.query_bias = optional_vector(config.qkv_bias, attention + "q_proj.bias");
    layer.key_bias = optional_vector(config.qkv_bias, attention + "k_proj.bias");
    layer.value_bias = optional_vector(config.qkv_bias, attention + "v_proj.bias");
    layer.query_norm = optional_vector(config.qk_norm, attention + "q_norm.weight");
    layer.key_norm = optional_vector(config.qk_norm, attention + "k_norm.weight");
    layer.output = matrix(attention + "o_proj.weight");
    layer.output_bias = optional_vector(config.output_bias, attention + "o_proj.bias");
    layer.post_norm = vector(prefix + "post_attention_layernorm.weight");
    layer.gate = matrix(mlp + "gate_proj.weight");
    layer.up = matrix(mlp + "up_proj.weight");
    layer.down = matrix(mlp + "down_proj.weight");
    weights.layers.push_back(std::move(layer));
  }
  weights.final_norm = vector("model.norm.weight");
  weights.head = matrix("lm_head.weight");
  if (!config.tied_head) weights.embedding = matrix("model.embed_tokens.weight");
  return weights;
}

/// f' of specs/targets.md, 4.3: [D / 2] float32.
std::vector<float> rotary_frequencies(const ModelConfig& config) {
  std::vector<float> frequencies;
  const auto theta = static_cast<float>(config.rope_theta);
  for (std::int64_t j = 0; j < config.head_dim / 2; ++j) {
    const float exponent = static_cast<float>(2 * j) / static_cast<float>(config.head_dim);
    float f = 1.0F / std::pow(theta, exponent);
    if (config.llama3_rope) {
      const Llama3Rope& rope = *config.llama3_rope;
      const double wavelength = 2 * std::numbers::pi / static_cast<double>(f);
      const double longest = rope.original_positions / rope.low_freq_factor;
      const double shortest = rope.original_positions / rope.high_freq_factor;
      if (wavelength > longest) {
        f = static_cast<float>(static_cast<double>(f) / rope.factor);
      } else if (wavelength >= shortest) {
        const double t = (rope.original_positions / wavelength - rope.low_freq_factor) /
                         (rope.high_freq_factor - rope.low_freq_factor);
        f = static_cast<float>((1 - t) * static_cast<double>(f) / rope.factor +
                               t * static_cast<double>(f));
      }
    }
    if (!config.rope_divisors.empty()) f /= config.rope_divisors[static_cast<std::size_t>(j)];
    frequencies.push_back(f);
  }
  return frequencies;
}

// ---- the target

/// The caches of all layers of one slot.
struct SlotCache {
  std::shared_ptr<std::byte> memory;
  std::vector<kernels::LayerCache> layers;
};

class NativeTransformer final : public Target {
 public:
  NativeTransformer(const Checkpoint& checkpoint, TargetInfo info, EngineOptions options)
      : config_(checkpoint.config()),
        info_(std::move(info)),
        options_(std::move(options)),
        own_pool_(options_.threads > 0 ? std::make_unique<kernels::Pool>(options_.threads)
                                       : nullptr),
        pool_(own_pool_ ? *own_pool_ : kernels::Pool::process()),
        weights_(pack_weights(checkpoint)),
        frequencies_(rotary_frequencies(config_)) {}

  TargetInfo info() const override { return info_; }

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
    }
    return score(rows - 1, 1);
  }

  StepView forward(std::span<Request* const> live) override {
    const std::int64_t rows = table_.plan_step(live);
    run_layers(rows);
    return score(0, rows);
  }

  void keep(const Request& request, std::int32_t drafts) override {
    table_.cut(request, table_.kept_length(request, drafts));
  }

  void release(const Request& request) override { table_.cut(request, 0); }

 private:
  void allocate(const BatchLimits& limits) {
    const std::int64_t rows = std::int64_t{limits.requests} * (limits.drafts + 1);
    if (limits.positions > positions_) caches_.clear();  // every cache is too short
    positions_ = std::max(positions_, limits.positions);
    while (caches_.size() < static_cast<std::size_t>(limits.requests))
      caches_.push_back(make_cache());
    table_.reserve(caches_.size(), rows, positions_);
    if (host_logits_) {
      logits_.resize(static_cast<std::size_t>(std::max(rows, step_rows_) * config_.vocab));
    }
    if (rows <= step_rows_) return;
    step_rows_ = rows;
    const auto floats = [](std::vector<float>& buffer, std::int64_t count) {
      buffer.resize(static_cast<std::size_t>(count));
    };
    const std::int64_t most = std::max(step_rows_, kPrefillRows);
    floats(x_, most * config_.hidden);
    floats(normed_, most * config_.hidden);
    floats(qkv_, most * qkv_width());
    floats(mixed_, most * query_width());
    floats(gated_, most * config_.intermediate);
    floats(cosine_, most * config_.head_dim / 2);
    floats(sine_, most * config_.head_dim / 2);
    const auto rows_size = static_cast<std::size_t>(step_rows_);
    blocks_.reserve(static_cast<std::size_t>(limits.requests));
    choice_.resize(rows_size);
    choice_logit_.resize(rows_size);
    runner_up_.resize(rows_size);
    draft_logit_.resize(rows_size);
    bad_.resize(rows_size);
  }

  SlotCache make_cache() const {
    const kernels::CacheShape shape{config_.kv_heads, config_.head_dim, positions_};
    const std::int64_t layer_floats = shape.key_floats() + shape.value_floats();
    SlotCache slot;
    slot.memory = kernels::allocate_pages(static_cast<std::size_t>(config_.layers * layer_floats) *
                                          sizeof(float));
    auto* at = reinterpret_cast<float*>(slot.memory.get());
    for (std::int64_t i = 0; i < config_.layers; ++i) {
      slot.layers.push_back({shape, at, at + shape.key_floats()});
      at += layer_floats;
    }
    return slot;
  }

  std::int64_t query_width() const { return config_.heads * config_.head_dim; }
  std::int64_t key_width() const { return config_.kv_heads * config_.head_dim; }
  std::int64_t qkv_width() const { return query_width() + 2 * key_width(); }

  /// Embeds the planned tokens into the residual stream and computes the angles of their positions.
  void embed() {
    const PackedMatrix& table = config_.tied_head ? weights_.head : weights_.embedding;
    const std::int64_t half = config_.head_dim / 2;
    for (const Segment& segment : table_.segments()) {
      for (std::int64_t row = segment.first; row < segment.first + segment.rows; ++row) {
        table.unpack_row(
            table_.tokens()[static_cast<std::size_t>(row)],
            {x_.data() + row * config_.hidden, static_cast<std::size_t>(config_.hidden)});
        kernels::rope_angles(segment.start + row - segment.first, frequencies_,
                             cosine_.data() + row * half, sine_.data() + row * half);
      }
    }
  }

  /// Runs the planned rows through all layers of the residual stream.
  void run_layers(std::int64_t rows) {
    embed();
    tap(0, x_, rows);
    for (std::int64_t i = 0; i < config_.layers; ++i) {
      const Layer& layer = weights_.layers[static_cast<std::size_t>(i)];
      const Rows x{x_.data(), config_.hidden};
      const MutableRows x_out{x_.data(), config_.hidden};
      const Rows normed{normed_.data(), config_.hidden};

      norm(rows, layer.input_norm);
      float* qkv = qkv_.data();
      const LinearOutput projections[] = {
          {&layer.query, {qkv, qkv_width()}, bias_or_null(layer.query_bias)},
          {&layer.key, {qkv + query_width(), qkv_width()}, bias_or_null(layer.key_bias)},
          {&layer.value,
           {qkv + query_width() + key_width(), qkv_width()},
           bias_or_null(layer.value_bias)}};
      kernels::linear(pool_, normed, rows, projections);
      attend(i, layer);
      const LinearOutput output{&layer.output, x_out, bias_or_null(layer.output_bias), x};
      kernels::linear(pool_, {mixed_.data(), query_width()}, rows, {&output, 1});

      norm(rows, layer.post_norm);
      kernels::linear_swiglu(pool_, normed, rows, layer.gate, layer.up,
                             {gated_.data(), config_.intermediate});
      const LinearOutput down{&layer.down, x_out, nullptr, x};
      kernels::linear(pool_, {gated_.data(), config_.intermediate}, rows, {&down, 1});
      tap(i + 1, x_, rows);
    }
  }

  /// Norms and rotates queries and keys, stores keys and values, and mixes the values of each row.
  void attend(std::int64_t index, const Layer& layer) {
    const std::int64_t half = config_.head_dim / 2;
    blocks_.clear();
    std::int64_t positions = 0, rows = 0;
    for (const Segment& segment : table_.segments()) {
      const kernels::LayerCache& cache =
          caches_[static_cast<std::size_t>(segment.slot)].layers[static_cast<std::size_t>(index)];
      for (std::int64_t i = 0; i < segment.rows; ++i) {
        const std::int64_t row = segment.first + i;
        float* query = qkv_.data() + row * qkv_width();
        float* key = query + query_width();
        if (config_.qk_norm) {
          head_norm(query, config_.heads, layer.query_norm);
          head_norm(key, config_.kv_heads, layer.key_norm);
        }
        kernels::rope(query, config_.heads + config_.kv_heads, half, cosine_.data() + row * half,
                      sine_.data() + row * half);
        kernels::store_keys_values(cache, segment.start + i, key, key + key_width());
      }
      blocks_.push_back({cache,
                         segment.start,
                         segment.rows,
                         {qkv_.data() + segment.first * qkv_width(), qkv_width()},
                         {mixed_.data() + segment.first * query_width(), query_width()}});
      positions = std::max(positions, segment.start + segment.rows);
      rows += segment.rows;
    }
    const std::int64_t floats =
        kernels::attention_workspace(rows, config_.heads, config_.head_dim, positions);
    if (static_cast<std::int64_t>(workspace_.size()) < floats) {
      // Grows with the longest history so far; sized for the reserved positions at once, so that it
      // grows once.
      workspace_.resize(static_cast<std::size_t>(kernels::attention_workspace(
          std::max(step_rows_, rows), config_.heads, config_.head_dim, positions_)));
    }
    kernels::attention(pool_, blocks_, config_.heads, workspace_);
  }

  void norm(std::int64_t rows, const std::vector<float>& weight) {
    kernels::rms_norm({x_.data(), config_.hidden}, rows, config_.hidden, weight.data(),
                      static_cast<float>(config_.rms_eps), {normed_.data(), config_.hidden});
  }

  void head_norm(float* heads, std::int64_t count, const std::vector<float>& weight) const {
    kernels::rms_norm({heads, config_.head_dim}, count, config_.head_dim, weight.data(),
                      static_cast<float>(config_.rms_eps), {heads, config_.head_dim});
  }

  void tap(std::int64_t index, const std::vector<float>& values, std::int64_t rows) const {
    if (options_.tap) {
      options_.tap(index, {values.data(), static_cast<std::size_t>(rows * config_.hidden)});
    }
  }

  /// Logits and scores of rows [first, first + rows) of the residual stream, with the planned
  /// drafts.
  StepView score(std::int64_t first, std::int64_t rows) {
    kernels::rms_norm({x_.data() + first * config_.hidden, config_.hidden}, rows, config_.hidden,
                      weights_.final_norm.data(), static_cast<float>(config_.rms_eps),
                      {normed_.data(), config_.hidden});
    tap(config_.layers + 1, normed_, rows);
    float* logits = host_logits_ ? logits_.data() : nullptr;
    kernels::linear_scores(
        pool_, {normed_.data(), config_.hidden}, rows, weights_.head, table_.drafts().data(),
        {choice_.data(), choice_logit_.data(), runner_up_.data(), draft_logit_.data(), bad_.data()},
        {logits, config_.vocab});
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
  std::vector<float> frequencies_;  // [D / 2]

  std::int64_t positions_ = 0;  // per slot
  std::int64_t step_rows_ = 0;  // rows of one step
  bool host_logits_ = false;    // whether a step's logits are kept
  SlotTable table_;
  std::vector<SlotCache> caches_;  // [slots]
  std::vector<kernels::AttentionBlock> blocks_;
  std::vector<float> x_, normed_, qkv_, mixed_, gated_, cosine_, sine_, logits_, workspace_;
  std::vector<TokenId> choice_;
  std::vector<float> choice_logit_, runner_up_, draft_logit_;
  std::vector<std::uint8_t> bad_;
};

}  // namespace

LoadedTarget make_native_transformer(const Checkpoint& checkpoint, TargetInfo info,
                                     const EngineOptions& options) {
  const ModelConfig& config = checkpoint.config();
  info.engine = "native";
  info.device = "cpu";
  info.compute_dtype = "float32";
  info.logit_dtype = "float32";
  info.vocab = config.vocab;
  info.positions = config.positions;
  info.end_ids = config.end_ids;
  try {
    return {.target = std::make_unique<NativeTransformer>(checkpoint, std::move(info), options),
            .warnings = {}};
  } catch (const std::bad_alloc&) {
    throw DeviceError(fmt::format("{}: no memory for the weights ({} bytes)",
                                  checkpoint.path().string(), checkpoint.tensor_bytes()));
  }
}

}  // namespace asdbench
