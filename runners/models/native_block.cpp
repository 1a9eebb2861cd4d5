// Packs the weights of decoder blocks and runs them on runners/kernels.
#include "runners/models/native_block.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "eval/core/error.h"
#include "runners/kernels/slab.h"

namespace asdbench::native {

using kernels::LinearOutput;
using kernels::MutableRows;
using kernels::PackedMatrix;
using kernels::Rows;
using kernels::WeightFormat;

namespace {

const float* bias_or_null(const std::vector<float>& bias) {
  return bias.empty() ? nullptr : bias.data();
}

void grow(std::vector<float>& buffer, std::int64_t count) {
  buffer.resize(std::max(buffer.size(), static_cast<std::size_t>(count)));
}

}  // namespace

std::optional<kernels::WeightFormat> packed_format(WeightType type) {
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

PackedMatrix pack(const Tensor& tensor, std::optional<WeightFormat> as) {
  if (as) {
    return PackedMatrix::from_rows(*as, tensor.shape[0], tensor.shape[1],
                                   [&](std::int64_t output, std::span<float> values) {
                                     dequantise_rows(tensor, output, 1, values);
                                   });
  }
  const std::optional<WeightFormat> format = packed_format(tensor.type);
  if (format) return PackedMatrix::pack(*format, tensor.shape[0], tensor.shape[1], tensor.bytes);
  return pack_rows(tensor, [](std::int64_t row) { return row; });
}

PackedMatrix pack_rows(const Tensor& tensor,
                       const std::function<std::int64_t(std::int64_t)>& row_at) {
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

std::vector<float> read_vector(const Checkpoint& checkpoint, const std::string& name) {
  std::vector<float> values(static_cast<std::size_t>(checkpoint.tensor(name).elements()));
  checkpoint.read(name, values);
  return values;
}

BlockWeights pack_block(const Checkpoint& checkpoint, const std::string& prefix,
                        std::optional<WeightFormat> as) {
  const ModelConfig& config = checkpoint.config();
  const auto optional_vector = [&](bool there, const std::string& name) {
    return there ? read_vector(checkpoint, name) : std::vector<float>();
  };
  const auto matrix = [&](const std::string& name) { return pack(checkpoint.tensor(name), as); };
  const auto query_or_key = [&](const std::string& name) {
    if (!config.interleaved_qk_rows) return matrix(name);
    ASDBENCH_CHECK(!as, "only folders' checkpoints are rounded, and their rows stand in order");
    return pack_rows(checkpoint.tensor(name),
                     [&](std::int64_t row) { return stored_qk_row(config, row); });
  };
  const std::string attention = prefix + "self_attn.";
  const std::string mlp = prefix + "mlp.";
  BlockWeights block;
  block.input_norm = read_vector(checkpoint, prefix + "input_layernorm.weight");
  block.query = query_or_key(attention + "q_proj.weight");
  block.key = query_or_key(attention + "k_proj.weight");
  block.value = matrix(attention + "v_proj.weight");
  block.query_bias = optional_vector(config.qkv_bias, attention + "q_proj.bias");
  block.key_bias = optional_vector(config.qkv_bias, attention + "k_proj.bias");
  block.value_bias = optional_vector(config.qkv_bias, attention + "v_proj.bias");
  block.query_norm = optional_vector(config.qk_norm, attention + "q_norm.weight");
  block.key_norm = optional_vector(config.qk_norm, attention + "k_norm.weight");
  block.output = matrix(attention + "o_proj.weight");
  block.output_bias = optional_vector(config.output_bias, attention + "o_proj.bias");
  block.post_norm = read_vector(checkpoint, prefix + "post_attention_layernorm.weight");
  block.gate = matrix(mlp + "gate_proj.weight");
  block.up = matrix(mlp + "up_proj.weight");
  block.down = matrix(mlp + "down_proj.weight");
  return block;
}

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

// ---- running

BlockRunner::BlockRunner(kernels::Pool& pool, const ModelConfig& config, std::int64_t layers,
                         kernels::ActivationType activations)
    : pool_(pool),
      config_(config),
      layers_(layers),
      activations_(activations),
      frequencies_(rotary_frequencies(config)) {}

void BlockRunner::reserve(const Limits& limits) {
  if (limits.positions > limits_.positions) caches_.clear();  // every cache is too short
  limits_ = {std::max(limits_.slots, limits.slots), std::max(limits_.rows, limits.rows),
             std::max(limits_.attended_rows, limits.attended_rows),
             std::max(limits_.positions, limits.positions)};
  while (caches_.size() < static_cast<std::size_t>(limits_.slots)) caches_.push_back(make_cache());
  blocks_.reserve(caches_.size());
  grow(queries_, limits_.attended_rows * query_width());
  grow(keys_values_, limits_.rows * 2 * key_width());
  grow(mixed_, limits_.attended_rows * query_width());
  grow(normed_, limits_.attended_rows * config_.hidden);
  grow(gated_, limits_.attended_rows * config_.intermediate);
  grow(cosine_, limits_.rows * config_.head_dim / 2);
  grow(sine_, limits_.rows * config_.head_dim / 2);
  grow(workspace_, kernels::attention_workspace(limits_.attended_rows, config_.heads,
                                                config_.head_dim, limits_.positions));
}

BlockRunner::SlotCache BlockRunner::make_cache() const {
  const kernels::CacheShape shape{config_.kv_heads, config_.head_dim, limits_.positions};
  const std::int64_t layer_floats = shape.key_floats() + shape.value_floats();
  SlotCache slot;
  slot.memory =
      kernels::allocate_pages(static_cast<std::size_t>(layers_ * layer_floats) * sizeof(float));
  auto* at = reinterpret_cast<float*>(slot.memory.get());
  for (std::int64_t i = 0; i < layers_; ++i) {
    slot.layers.push_back({shape, at, at + shape.key_floats()});
    at += layer_floats;
  }
  return slot;
}

void BlockRunner::place(std::span<const Segment> segments) {
  const std::int64_t half = config_.head_dim / 2;
  segments_ = segments;
  rows_ = 0;
  for (const Segment& segment : segments) {
    ASDBENCH_CHECK(segment.first + segment.rows <= limits_.rows, "more rows than were reserved");
    for (std::int64_t i = 0; i < segment.rows; ++i) {
      const std::int64_t row = segment.first + i;
      kernels::rope_angles(segment.start + i, frequencies_, cosine_.data() + row * half,
                           sine_.data() + row * half);
    }
    rows_ += segment.rows;
  }
}

void BlockRunner::store(std::size_t layer, const BlockWeights& weights, Rows input) {
  project(weights, input, /*queries=*/false, /*keys_values=*/true);
  store_projected(layer, weights);
}

void BlockRunner::attend(std::size_t layer, const BlockWeights& weights, Rows input, Rows residual,
                         MutableRows out, StepMask mask, Projections projections) {
  ASDBENCH_CHECK(rows_ <= limits_.attended_rows, "more rows than were reserved");
  const bool keys_values = projections == Projections::kAll;
  project(weights, input, /*queries=*/true, keys_values);
  if (keys_values) store_projected(layer, weights);
  mix(layer, weights, mask);
  const LinearOutput output{&weights.output, out, bias_or_null(weights.output_bias), residual};
  kernels::linear(pool_, {mixed_.data(), query_width()}, rows_, {&output, 1}, activations_);
}

void BlockRunner::project(const BlockWeights& weights, Rows input, bool queries, bool keys_values) {
  const std::int64_t kv_width = 2 * key_width();
  const std::array<LinearOutput, 3> outputs = {
      {{&weights.query, {queries_.data(), query_width()}, bias_or_null(weights.query_bias)},
       {&weights.key, {keys_values_.data(), kv_width}, bias_or_null(weights.key_bias)},
       {&weights.value,
        {keys_values_.data() + key_width(), kv_width},
        bias_or_null(weights.value_bias)}}};
  const std::span<const LinearOutput> all = outputs;
  kernels::linear(pool_, input, rows_,
                  all.subspan(queries ? 0 : 1, (queries ? 1 : 0) + (keys_values ? 2 : 0)),
                  activations_);
}

void BlockRunner::store_projected(std::size_t layer, const BlockWeights& weights) {
  const std::int64_t half = config_.head_dim / 2;
  for (const Segment& segment : segments_) {
    const kernels::LayerCache& cache =
        caches_[static_cast<std::size_t>(segment.slot)].layers[layer];
    for (std::int64_t i = 0; i < segment.rows; ++i) {
      const std::int64_t row = segment.first + i;
      float* key = keys_values_.data() + row * 2 * key_width();
      if (config_.qk_norm) head_norm(key, config_.kv_heads, weights.key_norm);
      kernels::rope(key, config_.kv_heads, half, cosine_.data() + row * half,
                    sine_.data() + row * half);
      kernels::store_keys_values(cache, segment.start + i, key, key + key_width());
    }
  }
}

/// Norms and rotates the queries, and mixes the values of each row.
void BlockRunner::mix(std::size_t layer, const BlockWeights& weights, StepMask mask) {
  const std::int64_t half = config_.head_dim / 2;
  blocks_.clear();
  for (const Segment& segment : segments_) {
    for (std::int64_t row = segment.first; row < segment.first + segment.rows; ++row) {
      float* query = queries_.data() + row * query_width();
      if (config_.qk_norm) head_norm(query, config_.heads, weights.query_norm);
      kernels::rope(query, config_.heads, half, cosine_.data() + row * half,
                    sine_.data() + row * half);
    }
    blocks_.push_back({caches_[static_cast<std::size_t>(segment.slot)].layers[layer],
                       segment.start,
                       segment.rows,
                       {queries_.data() + segment.first * query_width(), query_width()},
                       {mixed_.data() + segment.first * query_width(), query_width()},
                       mask == StepMask::kWholeStep});
  }
  kernels::attention(pool_, blocks_, config_.heads, workspace_);
}

void BlockRunner::feed_forward(const BlockWeights& weights, MutableRows x) {
  const MutableRows normed{normed_.data(), config_.hidden};
  norm({x.data, x.stride}, rows_, weights.post_norm, normed);
  kernels::linear_swiglu(pool_, {normed.data, normed.stride}, rows_, weights.gate, weights.up,
                         {gated_.data(), config_.intermediate}, activations_);
  const LinearOutput down{&weights.down, x, nullptr, {x.data, x.stride}};
  kernels::linear(pool_, {gated_.data(), config_.intermediate}, rows_, {&down, 1}, activations_);
}

void BlockRunner::norm(Rows x, std::int64_t rows, const std::vector<float>& weight,
                       MutableRows out) const {
  kernels::rms_norm(x, rows, config_.hidden, weight.data(), static_cast<float>(config_.rms_eps),
                    out);
}

void BlockRunner::head_norm(float* heads, std::int64_t count,
                            const std::vector<float>& weight) const {
  kernels::rms_norm({heads, config_.head_dim}, count, config_.head_dim, weight.data(),
                    static_cast<float>(config_.rms_eps), {heads, config_.head_dim});
}

}  // namespace asdbench::native
