// Reads the weights of decoder blocks and runs them on ATen. One implementation of three families:
// what differs between them is data (biases, head norms, rope).
#include <algorithm>
#include <cmath>
#include <limits>

#include "runners/models/torch_block_internal.h"

namespace asdbench::torch_blocks {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// f' of specs/targets.md, 4.3: [D / 2] float32, by the operations of the reference, so that the
/// bits are its bits.
at::Tensor rotary_frequencies(const ModelConfig& config) {
  const auto dims = static_cast<double>(config.head_dim);
  at::Tensor f =
      1.0 / at::pow(config.rope_theta, at::arange(0, config.head_dim, 2, at::kFloat) / dims);
  if (config.llama3_rope) {
    const Llama3Rope& rope = *config.llama3_rope;
    const at::Tensor wavelength = 2 * M_PI / f;
    const double longest = rope.original_positions / rope.low_freq_factor;
    const double shortest = rope.original_positions / rope.high_freq_factor;
    const at::Tensor t = (rope.original_positions / wavelength - rope.low_freq_factor) /
                         (rope.high_freq_factor - rope.low_freq_factor);
    const at::Tensor blended = (1 - t) * f / rope.factor + t * f;
    f = at::where(wavelength < shortest, f,
                  at::where(wavelength > longest, f / rope.factor, blended));
  }
  if (!config.rope_divisors.empty()) f = f / at::tensor(config.rope_divisors, at::kFloat);
  return f;
}

}  // namespace

at::Tensor read(const Checkpoint& checkpoint, at::Device device,
                const std::vector<std::string>& names, const std::vector<std::int64_t>& shape) {
  const at::Tensor all = at::empty(shape, at::kFloat);
  std::span<float> left(all.mutable_data_ptr<float>(), static_cast<std::size_t>(all.numel()));
  for (const std::string& name : names) {
    const auto elements = static_cast<std::size_t>(checkpoint.tensor(name).elements());
    ASDBENCH_CHECK(elements <= left.size(), name);
    checkpoint.read(name, left.first(elements));
    left = left.subspan(elements);
  }
  ASDBENCH_CHECK(left.empty(), names.front());
  return all.to(device);
}

at::Tensor read(const Checkpoint& checkpoint, at::Device device, const std::string& name) {
  return read(checkpoint, device, {name}, checkpoint.tensor(name).shape);
}

at::Tensor read_transposed(const Checkpoint& checkpoint, at::Device device,
                           const std::string& name) {
  return read(checkpoint, device, name).t().contiguous();
}

BlockWeights read_block(const Checkpoint& checkpoint, at::Device device, const std::string& prefix,
                        std::int64_t input_width) {
  const ModelConfig& config = checkpoint.config();
  const std::int64_t hidden = config.hidden;
  const std::int64_t q_rows = config.heads * config.head_dim;
  const std::int64_t qkv_rows = q_rows + 2 * config.kv_heads * config.head_dim;
  const std::string attention = prefix + "self_attn.";
  const std::string mlp = prefix + "mlp.";
  const auto get = [&](const std::vector<std::string>& names,
                       const std::vector<std::int64_t>& shape) {
    return read(checkpoint, device, names, shape);
  };
  // A matrix [out, in], transposed.
  const auto get_matrix = [&](const std::vector<std::string>& names, std::int64_t out,
                              std::int64_t in) {
    return get(names, {out, in}).t().contiguous();
  };
  BlockWeights block;
  block.input_norm = get({prefix + "input_layernorm.weight"}, {hidden});
  block.qkv = get_matrix(
      {attention + "q_proj.weight", attention + "k_proj.weight", attention + "v_proj.weight"},
      qkv_rows, input_width);
  if (config.qkv_bias) {
    block.qkv_bias =
        get({attention + "q_proj.bias", attention + "k_proj.bias", attention + "v_proj.bias"},
            {qkv_rows});
  }
  if (config.qk_norm) {
    const at::Tensor q_norm = get({attention + "q_norm.weight"}, {config.head_dim});
    const at::Tensor k_norm = get({attention + "k_norm.weight"}, {config.head_dim});
    block.qk_norm =
        at::cat({q_norm.expand({config.heads, -1}), k_norm.expand({config.kv_heads, -1})});
  }
  block.output = get_matrix({attention + "o_proj.weight"}, hidden, q_rows);
  if (config.output_bias) block.output_bias = get({attention + "o_proj.bias"}, {hidden});
  block.post_norm = get({prefix + "post_attention_layernorm.weight"}, {hidden});
  block.gate_up = get_matrix({mlp + "gate_proj.weight", mlp + "up_proj.weight"},
                             2 * config.intermediate, hidden);
  block.down = get_matrix({mlp + "down_proj.weight"}, hidden, config.intermediate);
  return block;
}

at::Tensor lowest_best(const at::Tensor& logits, const at::Tensor& ids) {
  const at::Tensor best = logits.amax(-1, /*keepdim=*/true);
  const at::Tensor places = at::where(logits == best, ids, ids.numel()).amin(-1);
  return at::where(at::isfinite(logits).all(-1), places, ids.numel());
}

BlockRunner::BlockRunner(const ModelConfig& config, std::int64_t layers, at::Device device)
    : config_(config), layers_(layers), device_(device) {}

void BlockRunner::reserve(std::int64_t slots, std::int64_t rows, std::int64_t positions) {
  const auto on_device = at::TensorOptions(at::kFloat).device(device_);
  positions_ = positions;
  step_rows_ = rows;
  const std::int64_t head_rows = config_.heads + 2 * config_.kv_heads;
  cache_ = at::Tensor();  // first, so that old and new never exist together
  cache_ = at::empty({slots, layers_, 2, config_.kv_heads, positions, config_.head_dim}, on_device);
  qkv_ = at::empty({rows, head_rows * config_.head_dim}, on_device);
  attention_ = at::empty({rows, config_.heads * config_.head_dim}, on_device);
  gate_up_ = at::empty({rows, 2 * config_.intermediate}, on_device);
  // Rows and columns of the drafts of one pass: column j is hidden from row i < j.
  later_hidden_ = at::full({rows, rows}, -kInfinity, on_device).triu_(1);
  places_ = at::empty({rows}, at::kLong);
  const at::Tensor angles =
      at::outer(at::arange(positions, at::kFloat), rotary_frequencies(config_));  // [P, D / 2]
  cos_ = at::cat({at::cos(angles), at::cos(angles)}, 1).to(device_);
  signed_sin_ = at::cat({-at::sin(angles), at::sin(angles)}, 1).to(device_);
}

void BlockRunner::poison(std::int32_t slot, std::int64_t start, std::int64_t count) {
  cache_[slot].narrow(3, start, count).fill_(kNan);
}

void BlockRunner::poison_all() { cache_.fill_(kNan); }

void BlockRunner::place(std::span<const Segment> segments) {
  segments_ = segments;
  rows_ = 0;
  auto* places = places_.mutable_data_ptr<std::int64_t>();
  for (const Segment& segment : segments) {
    rows_ += segment.rows;
    ASDBENCH_CHECK(segment.first + segment.rows <= step_rows_, "more rows than were reserved");
    for (std::int64_t i = 0; i < segment.rows; ++i) places[segment.first + i] = segment.start + i;
  }
  const at::Tensor on_device = places_.narrow(0, 0, rows_).to(device_);
  step_cos_ = cos_.index_select(0, on_device).unsqueeze(1);
  step_sin_ = signed_sin_.index_select(0, on_device).unsqueeze(1);
}

void BlockRunner::store(std::int64_t layer, const BlockWeights& weights, const at::Tensor& input) {
  project(weights, input, config_.heads, 2 * config_.kv_heads);
  rotate(weights, config_.heads, config_.kv_heads);
  append(layer);
}

void BlockRunner::attend(std::int64_t layer, const BlockWeights& weights, const at::Tensor& input,
                         at::Tensor& x, StepMask mask, Projections projections) {
  const bool keys_values = projections == Projections::kAll;
  project(weights, input, 0, config_.heads + (keys_values ? 2 * config_.kv_heads : 0));
  rotate(weights, 0, config_.heads + (keys_values ? config_.kv_heads : 0));
  if (keys_values) append(layer);
  for (const Segment& segment : segments_) mix(layer, segment, mask);
  x.addmm_(attention_.narrow(0, 0, rows_), weights.output);
  if (weights.output_bias.defined()) x.add_(weights.output_bias);
}

at::Tensor BlockRunner::heads(std::int64_t first, std::int64_t count) const {
  return qkv_.narrow(0, 0, rows_).view({rows_, -1, config_.head_dim}).narrow(1, first, count);
}

void BlockRunner::project(const BlockWeights& weights, const at::Tensor& input, std::int64_t first,
                          std::int64_t count) {
  const std::int64_t from = first * config_.head_dim;
  const std::int64_t width = count * config_.head_dim;
  at::Tensor out = qkv_.narrow(0, 0, rows_).narrow(1, from, width);
  const at::Tensor matrix = weights.qkv.narrow(1, from, width);
  if (weights.qkv_bias.defined()) {
    at::addmm_out(out, weights.qkv_bias.narrow(0, from, width), input, matrix);
  } else {
    at::mm_out(out, input, matrix);
  }
}

void BlockRunner::rotate(const BlockWeights& weights, std::int64_t first, std::int64_t count) {
  at::Tensor rotated = heads(first, count);
  if (weights.qk_norm.defined()) {
    rotated.copy_(rms(rotated, weights.qk_norm.narrow(0, first, count)));
  }
  // u' = u cos + rot(u) sin with rot(u) = [-u2 | u1]: the sign is in the table (4.3).
  const at::Tensor swapped = at::roll(rotated, config_.head_dim / 2, -1).mul_(step_sin_);
  rotated.mul_(step_cos_).add_(swapped);
}

/// Appends keys and values of every segment to its slot.
void BlockRunner::append(std::int64_t layer) {
  const at::Tensor keys_values = heads(config_.heads, 2 * config_.kv_heads);
  for (const Segment& segment : segments_) {
    const at::Tensor own = keys_values.narrow(0, segment.first, segment.rows)
                               .view({segment.rows, 2, config_.kv_heads, config_.head_dim})
                               .permute({1, 2, 0, 3});
    cache_[segment.slot][layer].narrow(2, segment.start, segment.rows).copy_(own);
  }
}

/// Writes the segment's rows of the mixed values.
void BlockRunner::mix(std::int64_t layer, const Segment& segment, StepMask mask) {
  const std::int64_t rows = segment.rows;
  const std::int64_t length = segment.start + rows;
  const std::int64_t dim = config_.head_dim;
  const std::int64_t group = config_.heads / config_.kv_heads;
  const at::Tensor cache = cache_[segment.slot][layer];     // [2, Nk, P, D]
  const at::Tensor keys = cache[0].narrow(1, 0, length);    // [Nk, length, D]
  const at::Tensor values = cache[1].narrow(1, 0, length);  // [Nk, length, D]

  // Query head h reads kv head h / group: the heads of a group stand together, so their rows form
  // one matrix per kv head.
  const at::Tensor queries = heads(0, config_.heads)
                                 .narrow(0, segment.first, rows)
                                 .transpose(0, 1)
                                 .reshape({config_.kv_heads, group * rows, dim});
  const at::Tensor scores =
      at::bmm(queries, keys.transpose(1, 2)).mul_(1 / std::sqrt(static_cast<double>(dim)));
  if (rows > 1 && mask == StepMask::kCausal) {
    scores.view({config_.kv_heads, group, rows, length})
        .narrow(3, segment.start, rows)
        .add_(later_hidden_.narrow(0, 0, rows).narrow(1, 0, rows));
  }
  const at::Tensor mixed = at::bmm(at::softmax(scores, -1), values);  // [Nk, group * rows, D]
  attention_.narrow(0, segment.first, rows)
      .view({rows, config_.heads, dim})
      .copy_(mixed.view({config_.heads, rows, dim}).transpose(0, 1));
}

void BlockRunner::feed_forward(const BlockWeights& weights, at::Tensor& x) {
  at::Tensor gate_up = gate_up_.narrow(0, 0, rows_);
  const at::Tensor gate = gate_up.narrow(1, 0, config_.intermediate);
  const at::Tensor up = gate_up.narrow(1, config_.intermediate, config_.intermediate);
  at::mm_out(gate_up, rms(x, weights.post_norm), weights.gate_up);
  x.addmm_(at::silu(gate).mul_(up), weights.down);
}

at::Tensor BlockRunner::rms(const at::Tensor& x, const at::Tensor& weight) const {
  const at::Tensor inverse = x.square().mean(-1, /*keepdim=*/true).add_(config_.rms_eps).rsqrt_();
  return (x * inverse).mul_(weight);
}

}  // namespace asdbench::torch_blocks
