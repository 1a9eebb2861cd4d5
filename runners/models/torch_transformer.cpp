// One implementation of three families: what differs between them is data (biases, head norms,
// rope).
#include "runners/models/torch_transformer.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <thread>
#include <utility>

#include "eval/core/error.h"
#include "runners/kernels/score_rows.h"
#include "runners/models/slot_table.h"

namespace asdbench {
namespace {

// Prompt rows per step: long enough for full speed of the matrix products, short enough that the
// scores of a long prompt (heads x rows x positions) stay small.
constexpr std::int64_t kPrefillRows = 256;

/// Runs `body` without gradient bookkeeping; failures of libtorch become ours.
template <typename Body>
auto guarded(const char* what, const Body& body) {
  try {
    const c10::InferenceMode inference;
    return body();
  } catch (const c10::Error& error) {
    throw DeviceError(fmt::format("{}: {}", what, error.what_without_backtrace()));
  }
}

// ---- devices

struct GpuSearch {
  std::string name;    // "NVIDIA H200"
  std::string reason;  // why there is none; "" when there is
};

/// Loads libtorch's GPU kernels, which register themselves with the dispatcher. Must come before
/// any call that asks ATen about CUDA: the answer is remembered.
GpuSearch load_gpu_kernels() {
  // Only the driver's library tells cheaply whether a GPU is there; libtorch_cuda is a gigabyte.
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == nullptr) return {.name = "", .reason = "no NVIDIA driver (libcuda.so.1) was found"};
  const auto init = reinterpret_cast<int (*)(unsigned)>(dlsym(driver, "cuInit"));
  const auto count_devices = reinterpret_cast<int (*)(int*)>(dlsym(driver, "cuDeviceGetCount"));
  const auto name_device =
      reinterpret_cast<int (*)(char*, int, int)>(dlsym(driver, "cuDeviceGetName"));
  int count = 0;
  if (init == nullptr || count_devices == nullptr || name_device == nullptr || init(0) != 0 ||
      count_devices(&count) != 0 || count == 0) {
    return {.name = "", .reason = "the NVIDIA driver reports no GPU"};
  }
  if (dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_GLOBAL) == nullptr) {
    return {
        .name = "",
        .reason = fmt::format("libtorch's GPU kernels cannot be loaded ({}); scripts/setup --cuda "
                              "installs the CUDA libraries that they need",
                              dlerror())};
  }
  if (!at::hasCUDA()) {
    return {.name = "", .reason = "libtorch_cuda.so was loaded but registered no CUDA support"};
  }
  char name[256] = {};
  name_device(name, static_cast<int>(sizeof name) - 1, 0);
  return {.name = name, .reason = ""};
}

struct ChosenDevice {
  at::Device device = at::kCPU;
  std::string text = "cpu";
  std::vector<std::string> warnings;
};

ChosenDevice choose_device(const std::string& wanted) {
  if (wanted == "cpu") return {};
  const GpuSearch gpu = load_gpu_kernels();
  if (gpu.reason.empty()) {
    return {.device = at::Device(at::kCUDA, 0), .text = "cuda:0 " + gpu.name, .warnings = {}};
  }
  if (wanted == "cuda") {
    throw DeviceError(fmt::format(
        "device cuda: {}\n  use --device cpu, or auto to take the CPU when there is no GPU",
        gpu.reason));
  }
  return {
      .device = at::kCPU, .text = "cpu", .warnings = {"device auto: using the CPU: " + gpu.reason}};
}

// ---- weights

// Matrices lie as [in, out], transposed: on the CPU a block of 8 rows then costs 2.1 times one row,
// and 2.9 times with the [out, in] of the checkpoint.
struct Layer {
  at::Tensor input_norm;  // [H]
  at::Tensor qkv;         // [H, (Nq + 2 Nk) D], columns of q, k, v
  at::Tensor qkv_bias;    // [(Nq + 2 Nk) D] or undefined
  at::Tensor qk_norm;  // [Nq + Nk, D] or undefined: q_norm for each q head, k_norm for each k head
  at::Tensor output;   // [Nq D, H]
  at::Tensor output_bias;  // [H] or undefined
  at::Tensor post_norm;    // [H]
  at::Tensor gate_up;      // [H, 2 F], columns of gate, up
  at::Tensor down;         // [F, H]
};

struct Weights {
  at::Tensor embedding;  // [V, H]
  std::vector<Layer> layers;
  at::Tensor final_norm;  // [H]
  at::Tensor head;        // [H, V]
};

/// Matrices (or vectors) of a checkpoint below each other as one float32 tensor of `shape`, q and k
/// in half-split order.
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

Weights read_weights(const Checkpoint& checkpoint, at::Device device) {
  const ModelConfig& config = checkpoint.config();
  const std::int64_t hidden = config.hidden;
  const std::int64_t q_rows = config.heads * config.head_dim;
  const std::int64_t qkv_rows = q_rows + 2 * config.kv_heads * config.head_dim;

  const auto get = [&](const std::vector<std::string>& names,
                       const std::vector<std::int64_t>& shape) {
    return read(checkpoint, device, names, shape);
  };
  // A matrix [out, in], transposed.
  const auto get_matrix = [&](const std::vector<std::string>& names, std::int64_t out,
                              std::int64_t in) {
    return get(names, {out, in}).t().contiguous();
  };
  Weights weights;
  weights.embedding = get({"model.embed_tokens.weight"}, {config.vocab, hidden});
  for (std::int64_t i = 0; i < config.layers; ++i) {
    const std::string prefix = fmt::format("model.layers.{}.", i);
    const std::string attention = prefix + "self_attn.";
    const std::string mlp = prefix + "mlp.";
    Layer layer;
    layer.input_norm = get({prefix + "input_layernorm.weight"}, {hidden});
    layer.qkv = get_matrix(
        {attention + "q_proj.weight", attention + "k_proj.weight", attention + "v_proj.weight"},
        qkv_rows, hidden);
    if (config.qkv_bias) {
      layer.qkv_bias =
          get({attention + "q_proj.bias", attention + "k_proj.bias", attention + "v_proj.bias"},
              {qkv_rows});
    }
    if (config.qk_norm) {
      const at::Tensor q_norm = get({attention + "q_norm.weight"}, {config.head_dim});
      const at::Tensor k_norm = get({attention + "k_norm.weight"}, {config.head_dim});
      layer.qk_norm =
          at::cat({q_norm.expand({config.heads, -1}), k_norm.expand({config.kv_heads, -1})});
    }
    layer.output = get_matrix({attention + "o_proj.weight"}, hidden, q_rows);
    if (config.output_bias) layer.output_bias = get({attention + "o_proj.bias"}, {hidden});
    layer.post_norm = get({prefix + "post_attention_layernorm.weight"}, {hidden});
    layer.gate_up = get_matrix({mlp + "gate_proj.weight", mlp + "up_proj.weight"},
                               2 * config.intermediate, hidden);
    layer.down = get_matrix({mlp + "down_proj.weight"}, hidden, config.intermediate);
    weights.layers.push_back(std::move(layer));
  }
  weights.final_norm = get({"model.norm.weight"}, {hidden});
  weights.head = config.tied_head ? weights.embedding.t().contiguous()
                                  : get_matrix({"lm_head.weight"}, config.vocab, hidden);
  return weights;
}

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

// ---- the target

class TorchTransformer final : public Target {
 public:
  TorchTransformer(const Checkpoint& checkpoint, TargetInfo info, EngineOptions options,
                   TorchChecks checks, at::Device device)
      : config_(checkpoint.config()),
        info_(std::move(info)),
        options_(std::move(options)),
        checks_(checks),
        device_(device),
        weights_(read_weights(checkpoint, device)) {}

  TargetInfo info() const override { return info_; }

  void reserve(const BatchLimits& limits, bool host_logits) override {
    guarded("allocating for the decode loop", [&] { allocate(limits, host_logits); });
  }

  StepView prefill(const Request& request) override {
    return guarded("prefill", [&] {
      const auto length = static_cast<std::int64_t>(request.prompt().size());
      check_prompt(request.prompt());
      cut(request, 0);
      at::Tensor x;
      for (std::int64_t start = 0; start < length; start += kPrefillRows) {
        const std::int64_t rows = std::min(kPrefillRows, length - start);
        table_.plan_prompt(request, start, rows);
        x = run_layers(rows);
      }
      return score(x.narrow(0, x.size(0) - 1, 1));
    });
  }

  StepView forward(std::span<Request* const> live) override {
    return guarded("forward", [&] { return score(run_layers(table_.plan_step(live))); });
  }

  void keep(const Request& request, std::int32_t drafts) override {
    const std::int64_t kept = table_.kept_length(request, drafts);
    guarded("cutting the cache", [&] { cut(request, kept); });
  }

  void release(const Request& request) override {
    guarded("releasing a slot", [&] { cut(request, 0); });
  }

 private:
  void check_prompt(std::span<const TokenId> prompt) const {
    ASDBENCH_CHECK(!prompt.empty() && static_cast<std::int64_t>(prompt.size()) <= positions_,
                   fmt::format("a prompt of {} ids, reserved: {}", prompt.size(), positions_));
    for (const TokenId token : prompt) {
      if (token < 0 || token >= config_.vocab) {
        throw BlockError(
            BlockFault::kTokenOutOfRange,
            fmt::format("prompt id {} is outside the vocabulary of {}", token, config_.vocab));
      }
    }
  }

  /// Drops cache rows from `length` on.
  void cut(const Request& request, std::int64_t length) {
    const std::int64_t dead = table_.length(request) - length;
    if (checks_.dead_rows == DeadRows::kFillWithNan && dead > 0) {
      cache_[request.slot].narrow(3, length, dead).fill_(kNan);
    }
    table_.cut(request, length);
  }

  void allocate(const BatchLimits& limits, bool host_logits) {
    if (limits.positions > config_.positions) {
      throw ConfigError(fmt::format("{}: {} positions were asked for, but the model has {}",
                                    info_.name, limits.positions, config_.positions));
    }
    host_logits_wanted_ = host_logits;
    const std::int64_t rows = static_cast<std::int64_t>(limits.requests) * (limits.drafts + 1);
    const bool fits = cache_.defined() && cache_.size(0) >= limits.requests &&
                      positions_ >= limits.positions && step_rows_ >= rows;
    positions_ = std::max(positions_, limits.positions);
    step_rows_ = std::max(step_rows_, rows);
    table_.reserve(static_cast<std::size_t>(limits.requests), step_rows_, positions_);
    if (!fits) allocate_buffers();
    if (checks_.dead_rows == DeadRows::kFillWithNan) cache_.fill_(kNan);
  }

  void allocate_buffers() {
    const auto on_device = at::TensorOptions(at::kFloat).device(device_);
    const std::int64_t rows = std::max(step_rows_, kPrefillRows);
    const std::int64_t head_rows = config_.heads + 2 * config_.kv_heads;
    cache_ = at::Tensor();  // first, so that old and new never exist together
    cache_ = at::empty({static_cast<std::int64_t>(table_.slots()), config_.layers, 2,
                        config_.kv_heads, positions_, config_.head_dim},
                       on_device);
    x_ = at::empty({rows, config_.hidden}, on_device);
    qkv_ = at::empty({rows, head_rows * config_.head_dim}, on_device);
    attention_ = at::empty({rows, config_.heads * config_.head_dim}, on_device);
    gate_up_ = at::empty({rows, 2 * config_.intermediate}, on_device);
    logits_ = at::empty({step_rows_, config_.vocab}, on_device);
    // Rows and columns of the drafts of one pass: column j is hidden from row i < j.
    later_hidden_ = at::full({rows, rows}, -kInfinity, on_device).triu_(1);
    ids_ = at::empty({rows}, at::kLong);
    places_ = at::empty({rows}, at::kLong);
    const at::Tensor angles =
        at::outer(at::arange(positions_, at::kFloat), rotary_frequencies(config_));  // [P, D / 2]
    cos_ = at::cat({at::cos(angles), at::cos(angles)}, 1).to(device_);
    signed_sin_ = at::cat({-at::sin(angles), at::sin(angles)}, 1).to(device_);
    vocab_ids_ = at::arange(config_.vocab, at::TensorOptions(at::kLong).device(device_));
    choice_.resize(static_cast<std::size_t>(step_rows_));
    choice_logit_.resize(choice_.size());
    runner_up_.resize(choice_.size());
    draft_logit_.resize(choice_.size());
    bad_.resize(choice_.size());
  }

  /// Writes ids and positions of the planned rows.
  void place_rows() {
    for (const Segment& segment : table_.segments()) {
      for (std::int64_t i = 0; i < segment.rows; ++i) {
        const std::int64_t row = segment.first + i;
        // A drafted id outside the vocabulary is the rule's to report; its row only must not be
        // read from outside the table.
        const TokenId token = table_.tokens()[static_cast<std::size_t>(row)];
        const bool known = token >= 0 && token < config_.vocab;
        ids_.mutable_data_ptr<std::int64_t>()[row] = known ? token : 0;
        places_.mutable_data_ptr<std::int64_t>()[row] = segment.start + i;
      }
    }
  }

  /// Normalises in float32, rounds to the width of `x`, then multiplies: two roundings (4.2).
  at::Tensor rms(const at::Tensor& x, const at::Tensor& weight) const {
    const at::Tensor inverse = x.square().mean(-1, /*keepdim=*/true).add_(config_.rms_eps).rsqrt_();
    return (x * inverse).mul_(weight);
  }

  static void linear_into(at::Tensor& out, const at::Tensor& x, const at::Tensor& weight,
                          const at::Tensor& bias) {
    if (bias.defined()) {
      at::addmm_out(out, bias, x, weight);
    } else {
      at::mm_out(out, x, weight);
    }
  }

  /// Runs the `rows` planned rows through all layers; returns the
  /// residual stream [rows, H], valid until the next call.
  at::Tensor run_layers(std::int64_t rows) {
    place_rows();
    const at::Tensor places = places_.narrow(0, 0, rows).to(device_);
    at::Tensor x = x_.narrow(0, 0, rows);
    at::index_select_out(x, weights_.embedding, 0, ids_.narrow(0, 0, rows).to(device_));
    const at::Tensor cos = cos_.index_select(0, places).unsqueeze(1);                // [rows, 1, D]
    const at::Tensor signed_sin = signed_sin_.index_select(0, places).unsqueeze(1);  // [rows, 1, D]
    at::Tensor qkv = qkv_.narrow(0, 0, rows);
    at::Tensor attention = attention_.narrow(0, 0, rows);
    at::Tensor gate_up = gate_up_.narrow(0, 0, rows);
    const at::Tensor gate = gate_up.narrow(1, 0, config_.intermediate);
    const at::Tensor up = gate_up.narrow(1, config_.intermediate, config_.intermediate);
    const at::Tensor heads = qkv.view({rows, -1, config_.head_dim});
    at::Tensor qk = heads.narrow(1, 0, config_.heads + config_.kv_heads);

    tap(0, x);
    for (std::int64_t i = 0; i < config_.layers; ++i) {
      const Layer& layer = weights_.layers[static_cast<std::size_t>(i)];
      linear_into(qkv, rms(x, layer.input_norm), layer.qkv, layer.qkv_bias);
      if (layer.qk_norm.defined()) qk.copy_(rms(qk, layer.qk_norm));
      // u' = u cos + rot(u) sin with rot(u) = [-u2 | u1]: the sign is in the table (4.3).
      const at::Tensor swapped = at::roll(qk, config_.head_dim / 2, -1).mul_(signed_sin);
      qk.mul_(cos).add_(swapped);
      for (const Segment& segment : table_.segments()) attend(i, segment, heads, attention);
      x.addmm_(attention, layer.output);
      if (layer.output_bias.defined()) x.add_(layer.output_bias);
      at::mm_out(gate_up, rms(x, layer.post_norm), layer.gate_up);
      x.addmm_(at::silu(gate).mul_(up), layer.down);
      tap(i + 1, x);
    }
    return x;
  }

  /// Appends the segment's keys and values to its slot and writes its rows of `attention`.
  void attend(std::int64_t layer, const Segment& segment, const at::Tensor& heads,
              const at::Tensor& attention) {
    const std::int64_t rows = segment.rows;
    const std::int64_t length = segment.start + rows;
    const std::int64_t dim = config_.head_dim;
    const std::int64_t group = config_.heads / config_.kv_heads;
    const at::Tensor own = heads.narrow(0, segment.first, rows);  // [rows, Nq + 2 Nk, D]
    const at::Tensor cache = cache_[segment.slot][layer];         // [2, Nk, P, D]
    const at::Tensor new_kv = own.narrow(1, config_.heads, 2 * config_.kv_heads)
                                  .view({rows, 2, config_.kv_heads, dim})
                                  .permute({1, 2, 0, 3});
    cache.narrow(2, segment.start, rows).copy_(new_kv);
    const at::Tensor keys = cache[0].narrow(1, 0, length);    // [Nk, length, D]
    const at::Tensor values = cache[1].narrow(1, 0, length);  // [Nk, length, D]

    // Query head h reads kv head h / group: the heads of a group stand together, so their rows form
    // one matrix per kv head.
    const at::Tensor queries = own.narrow(1, 0, config_.heads)
                                   .transpose(0, 1)
                                   .reshape({config_.kv_heads, group * rows, dim});
    const at::Tensor scores =
        at::bmm(queries, keys.transpose(1, 2)).mul_(1 / std::sqrt(static_cast<double>(dim)));
    if (rows > 1) {
      scores.view({config_.kv_heads, group, rows, length})
          .narrow(3, segment.start, rows)
          .add_(later_hidden_.narrow(0, 0, rows).narrow(1, 0, rows));
    }
    const at::Tensor mixed = at::bmm(at::softmax(scores, -1), values);  // [Nk, group * rows, D]
    attention.narrow(0, segment.first, rows)
        .view({rows, config_.heads, dim})
        .copy_(mixed.view({config_.heads, rows, dim}).transpose(0, 1));
  }

  void tap(std::int64_t index, const at::Tensor& rows) const {
    if (!options_.tap) return;
    const at::Tensor host = rows.cpu().contiguous();
    options_.tap(index, {host.const_data_ptr<float>(), static_cast<std::size_t>(host.numel())});
  }

  /// Logits and scores of residual rows x [rows, H] with the planned drafts.
  StepView score(const at::Tensor& x) {
    const std::int64_t rows = x.size(0);
    at::Tensor logits = logits_.narrow(0, 0, rows);
    const at::Tensor normed = rms(x, weights_.final_norm);
    tap(config_.layers + 1, normed);
    at::mm_out(logits, normed, weights_.head);
    if (device_.is_cpu() && checks_.scoring == TorchScoring::kKernelOnCpu) {
      kernels::score_rows(logits.const_data_ptr<float>(), table_.drafts().data(), rows,
                          config_.vocab, kernels::MaskedVocab::kNo,
                          {choice_.data(), choice_logit_.data(), runner_up_.data(),
                           draft_logit_.data(), bad_.data()});
    } else {
      score_in_aten(logits);
    }
    const auto count = static_cast<std::size_t>(rows);
    StepView view;
    view.scores = {std::span(choice_).first(count), std::span(choice_logit_).first(count),
                   std::span(runner_up_).first(count), std::span(draft_logit_).first(count),
                   std::span(bad_).first(count)};
    view.logits = {nullptr, rows, config_.vocab};
    if (host_logits_wanted_) {
      host_logits_ = logits.cpu();  // no copy when they are there already
      view.logits.data = host_logits_.const_data_ptr<float>();
    }
    return view;
  }

  /// The same decisions as kernels::score_rows, where the logits are: argmax documents no order of
  /// ties, so the lowest id among the maxima is taken explicitly.
  void score_in_aten(const at::Tensor& logits) {
    const std::int64_t rows = logits.size(0);
    const auto is_outside = [&](TokenId id) { return id < kNoToken || id >= config_.vocab; };
    const at::Tensor drafts = at::zeros({rows}, at::kLong);
    for (std::int64_t i = 0; i < rows; ++i) {
      const TokenId id = table_.drafts()[static_cast<std::size_t>(i)];
      if (id >= 0 && !is_outside(id)) drafts.mutable_data_ptr<std::int64_t>()[i] = id;
    }
    const at::Tensor best = logits.amax(-1);  // [rows]; carries NaN through
    const at::Tensor choice =
        at::where(logits == best.unsqueeze(1), vocab_ids_, config_.vocab).amin(-1);
    // The choice masked out of a copy, so that a tie leaves its equal behind.
    const at::Tensor others =
        logits.scatter(1, choice.clamp_max(config_.vocab - 1).unsqueeze(1), -kInfinity).amax(-1);
    const at::Tensor draft_logit = logits.gather(1, drafts.to(device_).unsqueeze(1)).squeeze(1);
    const at::Tensor finite = at::isfinite(logits).all(-1);
    // One copy to the host; a double holds ids and float32 values exactly.
    const at::Tensor packed =
        at::stack({choice.to(at::kDouble), best.to(at::kDouble), draft_logit.to(at::kDouble),
                   finite.to(at::kDouble), others.to(at::kDouble)})
            .cpu();
    const double* values = packed.const_data_ptr<double>();
    constexpr float kNoLogit = std::numeric_limits<float>::quiet_NaN();
    for (std::int64_t i = 0; i < rows; ++i) {
      const auto at = static_cast<std::size_t>(i);
      const bool bad_logits = values[3 * rows + i] == 0;
      const bool bad_draft = is_outside(table_.drafts()[at]);
      bad_[at] = static_cast<std::uint8_t>((bad_logits ? kernels::kBadLogits : 0) |
                                           (bad_draft ? kernels::kBadDraft : 0));
      choice_[at] = bad_logits ? kNoToken : static_cast<TokenId>(values[i]);
      choice_logit_[at] = bad_logits ? kNoLogit : static_cast<float>(values[rows + i]);
      runner_up_[at] = bad_logits ? kNoLogit : static_cast<float>(values[4 * rows + i]);
      draft_logit_[at] = bad_[at] != 0 || table_.drafts()[at] == kNoToken
                             ? kNoLogit
                             : static_cast<float>(values[2 * rows + i]);
    }
  }

  static constexpr double kInfinity = std::numeric_limits<double>::infinity();
  static constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

  ModelConfig config_;
  TargetInfo info_;
  EngineOptions options_;
  TorchChecks checks_;
  at::Device device_;
  Weights weights_;

  // Set by reserve: S slots, P positions, R rows of the largest step.
  std::int64_t positions_ = 0;  // P
  std::int64_t step_rows_ = 0;  // rows that one forward may score
  bool host_logits_wanted_ = false;
  SlotTable table_;
  at::Tensor cache_;             // [S, L, 2, Nk, P, D], keys then values
  at::Tensor x_;                 // [R, H]
  at::Tensor qkv_;               // [R, (Nq + 2 Nk) D]
  at::Tensor attention_;         // [R, Nq D]
  at::Tensor gate_up_;           // [R, 2 F]
  at::Tensor logits_;            // [step_rows_, V]
  at::Tensor later_hidden_;      // [R, R], -inf above the diagonal
  at::Tensor ids_, places_;      // [R] int64 on the host
  at::Tensor cos_, signed_sin_;  // [P, D]; the sine's first half negated
  at::Tensor vocab_ids_;         // [V] int64
  at::Tensor host_logits_;       // [rows, V] of the last step, when wanted

  // Of the step in progress.
  std::vector<TokenId> choice_;
  std::vector<float> choice_logit_, runner_up_, draft_logit_;
  std::vector<std::uint8_t> bad_;
};

}  // namespace

std::string torch_gpu_missing() { return load_gpu_kernels().reason; }

LoadedTarget make_torch_transformer(const Checkpoint& checkpoint, TargetInfo info,
                                    const EngineOptions& options, const TorchChecks& checks) {
  return guarded("loading the model", [&] {
    ChosenDevice chosen = choose_device(options.device);
    const auto cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    at::set_num_threads(options.threads > 0 ? options.threads : cores);
    at::globalContext().setAllowTF32CuBLAS(false);
    const ModelConfig& config = checkpoint.config();
    info.engine = "torch";
    info.device = chosen.text;
    info.compute_dtype = "float32";
    info.logit_dtype = "float32";
    info.vocab = config.vocab;
    info.positions = config.positions;
    info.end_ids = config.end_ids;
    LoadedTarget made;
    made.target = std::make_unique<TorchTransformer>(checkpoint, std::move(info), options, checks,
                                                     chosen.device);
    made.warnings = std::move(chosen.warnings);
    return made;
  });
}

}  // namespace asdbench
