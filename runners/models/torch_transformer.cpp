// Embedding, decoder blocks and head of a checkpoint over the rows of a step, on libtorch.
#include "runners/models/torch_transformer.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <thread>
#include <utility>

#include "eval/core/error.h"
#include "runners/kernels/score_rows.h"
#include "runners/models/slot_table.h"
#include "runners/models/torch_block_internal.h"
#include "runners/models/torch_transformer_internal.h"

namespace asdbench {
namespace {

using torch_blocks::guarded;

// Prompt rows per step: long enough for full speed of the matrix products, short enough that the
// scores of a long prompt (heads x rows x positions) stay small.
constexpr std::int64_t kPrefillRows = 256;

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

struct Weights {
  at::Tensor embedding;  // [V, H]
  std::vector<torch_blocks::BlockWeights> blocks;
  at::Tensor final_norm;  // [H]
  at::Tensor head;        // [H, V]
};

Weights read_weights(const Checkpoint& checkpoint, at::Device device) {
  const ModelConfig& config = checkpoint.config();
  Weights weights;
  weights.embedding = torch_blocks::read(checkpoint, device, "model.embed_tokens.weight");
  for (std::int64_t i = 0; i < config.layers; ++i) {
    weights.blocks.push_back(torch_blocks::read_block(
        checkpoint, device, fmt::format("model.layers.{}.", i), config.hidden));
  }
  weights.final_norm = torch_blocks::read(checkpoint, device, "model.norm.weight");
  weights.head = config.tied_head
                     ? weights.embedding.t().contiguous()
                     : torch_blocks::read_transposed(checkpoint, device, "lm_head.weight");
  return weights;
}

// ---- the target

class TorchTransformer final : public TorchTarget {
 public:
  TorchTransformer(const Checkpoint& checkpoint, TargetInfo info, EngineOptions options,
                   TorchChecks checks, at::Device device)
      : config_(checkpoint.config()),
        info_(std::move(info)),
        options_(std::move(options)),
        checks_(checks),
        device_(device),
        weights_(read_weights(checkpoint, device)),
        runner_(config_, config_.layers, device) {}

  TargetInfo info() const override { return info_; }
  const ModelConfig& config() const override { return config_; }
  at::Device device() const override { return device_; }
  at::Tensor embedding() const override { return weights_.embedding; }
  at::Tensor head() const override { return weights_.head; }

  void listen(const HiddenSelection& selection, HiddenListener* listener) override {
    check_selection(selection, config_, info_.name);
    selection_ = selection;
    listener_ = selection.empty() ? nullptr : listener;
  }

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
        hand_over_taps(request, table_.segments().front());
      }
      const StepView view = score(x.narrow(0, x.size(0) - 1, 1));
      if (wants_final_norm()) {
        listener_->on_final_norm(request, length - 1, 1, normed_.const_data_ptr<float>());
      }
      return view;
    });
  }

  StepView forward(std::span<Request* const> live) override {
    return guarded("forward", [&] {
      const StepView view = score(run_layers(table_.plan_step(live)));
      for (std::size_t i = 0; i < live.size(); ++i) {
        const Segment& segment = table_.segments()[i];
        hand_over_taps(*live[i], segment);
        if (!wants_final_norm()) continue;
        listener_->on_final_norm(*live[i], segment.start, segment.rows,
                                 normed_.const_data_ptr<float>() + segment.first * config_.hidden);
      }
      return view;
    });
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
      runner_.poison(request.slot, length, dead);
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
    const bool fits = static_cast<std::int64_t>(table_.slots()) >= limits.requests &&
                      positions_ >= limits.positions && step_rows_ >= rows;
    positions_ = std::max(positions_, limits.positions);
    step_rows_ = std::max(step_rows_, rows);
    table_.reserve(static_cast<std::size_t>(limits.requests), step_rows_, positions_);
    if (!fits) allocate_buffers();
    const auto width = static_cast<std::int64_t>(selection_.taps.size()) * config_.hidden;
    taps_ = at::empty({std::max(step_rows_, kPrefillRows), width},
                      at::TensorOptions(at::kFloat).device(device_));
    if (checks_.dead_rows == DeadRows::kFillWithNan) runner_.poison_all();
  }

  void allocate_buffers() {
    const std::int64_t rows = std::max(step_rows_, kPrefillRows);
    const auto on_device = at::TensorOptions(at::kFloat).device(device_);
    runner_.reserve(static_cast<std::int64_t>(table_.slots()), rows, positions_);
    x_ = at::empty({rows, config_.hidden}, on_device);
    logits_ = at::empty({step_rows_, config_.vocab}, on_device);
    ids_ = at::empty({rows}, at::kLong);
    vocab_ids_ = at::arange(config_.vocab, at::TensorOptions(at::kLong).device(device_));
    choice_.resize(static_cast<std::size_t>(step_rows_));
    choice_logit_.resize(choice_.size());
    runner_up_.resize(choice_.size());
    draft_logit_.resize(choice_.size());
    bad_.resize(choice_.size());
  }

  /// Writes the ids of the planned rows.
  void place_rows(std::int64_t rows) {
    for (std::int64_t row = 0; row < rows; ++row) {
      // A drafted id outside the vocabulary is the rule's to report; its row only must not be read
      // from outside the table.
      const TokenId token = table_.tokens()[static_cast<std::size_t>(row)];
      const bool known = token >= 0 && token < config_.vocab;
      ids_.mutable_data_ptr<std::int64_t>()[row] = known ? token : 0;
    }
  }

  /// Runs the `rows` planned rows through all layers; returns the
  /// residual stream [rows, H], valid until the next call.
  at::Tensor run_layers(std::int64_t rows) {
    place_rows(rows);
    runner_.place(table_.segments());
    at::Tensor x = x_.narrow(0, 0, rows);
    at::index_select_out(x, weights_.embedding, 0, ids_.narrow(0, 0, rows).to(device_));
    tap(0, x);
    for (std::int64_t i = 0; i < config_.layers; ++i) {
      const torch_blocks::BlockWeights& block = weights_.blocks[static_cast<std::size_t>(i)];
      runner_.attend(i, block, runner_.rms(x, block.input_norm), x);
      runner_.feed_forward(block, x);
      tap(i + 1, x);
    }
    return x;
  }

  /// R[index] is in `rows`: copies it to its columns of the taps that are listened to.
  void tap(std::int64_t index, const at::Tensor& rows) {
    for (std::size_t i = 0; i < selection_.taps.size(); ++i) {
      if (selection_.taps[i] != index) continue;
      taps_.narrow(0, 0, rows.size(0))
          .narrow(1, static_cast<std::int64_t>(i) * config_.hidden, config_.hidden)
          .copy_(rows);
    }
    if (!options_.tap) return;
    const at::Tensor host = rows.cpu().contiguous();
    options_.tap(index, {host.const_data_ptr<float>(), static_cast<std::size_t>(host.numel())});
  }

  void hand_over_taps(const Request& request, const Segment& segment) {
    if (listener_ == nullptr || selection_.taps.empty()) return;
    listener_->on_taps(request, segment.start, segment.rows,
                       taps_.const_data_ptr<float>() + segment.first * taps_.size(1));
  }

  bool wants_final_norm() const { return listener_ != nullptr && selection_.final_norm; }

  /// Logits and scores of residual rows x [rows, H] with the planned drafts.
  StepView score(const at::Tensor& x) {
    const std::int64_t rows = x.size(0);
    at::Tensor logits = logits_.narrow(0, 0, rows);
    normed_ = runner_.rms(x, weights_.final_norm);
    tap(config_.layers + 1, normed_);
    at::mm_out(logits, normed_, weights_.head);
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

  ModelConfig config_;
  TargetInfo info_;
  EngineOptions options_;
  TorchChecks checks_;
  at::Device device_;
  Weights weights_;
  torch_blocks::BlockRunner runner_;
  HiddenSelection selection_;
  HiddenListener* listener_ = nullptr;

  // Set by reserve: S slots, P positions, R rows of the largest step.
  std::int64_t positions_ = 0;  // P
  std::int64_t step_rows_ = 0;  // rows that one forward may score
  bool host_logits_wanted_ = false;
  SlotTable table_;
  at::Tensor x_;            // [R, H]
  at::Tensor taps_;         // [R, taps * H]
  at::Tensor normed_;       // [rows, H] of the last step, after the final norm
  at::Tensor logits_;       // [step_rows_, V]
  at::Tensor ids_;          // [R] int64 on the host
  at::Tensor vocab_ids_;    // [V] int64
  at::Tensor host_logits_;  // [rows, V] of the last step, when wanted

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
