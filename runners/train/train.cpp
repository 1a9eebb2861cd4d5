// The training loop: AdamW with warm-up and a cosine, clipped gradients, a state that resumes bit
// by bit.
#include "runners/train/train.h"

#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstring>
#include <future>
#include <numbers>
#include <numeric>

#include "eval/core/digest.h"
#include "eval/core/error.h"
#include "eval/core/output_file.h"
#include "eval/core/rng.h"
#include "runners/checkpoint/safetensors_writer.h"
#include "runners/train/draft_model_internal.h"

namespace asdbench {
namespace {

namespace fs = std::filesystem;
using training::DraftModel;
using training::NamedTensor;
using Clock = std::chrono::steady_clock;

constexpr double kBeta1 = 0.9;
constexpr double kBeta2 = 0.95;
constexpr double kEpsilon = 1e-8;
constexpr double kLastRate = 0.05;                        // of the learning rate, at the last step
constexpr std::uint64_t kStride = 0x9e3779b97f4a7c15ULL;  // of seeds
constexpr const char* kStateFile = "training.safetensors";

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// ---- which replies a step sees

/// Every epoch is a shuffle of its own; a step takes replies until it has its share of tokens.
/// Steps have to be asked for in order.
class Schedule {
 public:
  Schedule(std::span<const Reply> replies, std::uint64_t seed, std::int64_t step_tokens)
      : replies_(replies), draw_(seed), step_tokens_(step_tokens) {}

  std::vector<const Reply*> next() {
    std::vector<const Reply*> step;
    for (std::int64_t tokens = 0; tokens < step_tokens_;) {
      if (at_ == order_.size()) shuffle();
      step.push_back(&replies_[order_[at_++]]);
      tokens += step.back()->reply_tokens();
      // A small corpus: no reply twice in one step.
      if (step.size() == replies_.size()) break;
    }
    return step;
  }

 private:
  void shuffle() {
    order_.resize(replies_.size());
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    for (std::size_t i = order_.size(); i > 1; --i)
      std::swap(order_[i - 1], order_[draw_.index(i)]);
    at_ = 0;
  }

  std::span<const Reply> replies_;
  SplitMix64 draw_;
  std::int64_t step_tokens_;
  std::vector<std::size_t> order_;
  std::size_t at_ = 0;
};

// ---- what strict verification would do

Acceptance measure(DraftModel& model, std::span<const Reply> replies, std::int64_t drafts) {
  const c10::NoGradGuard no_gradient;
  const auto depth = static_cast<std::size_t>(drafts);
  std::vector<std::int64_t> reached(depth, 0), passes(depth, 0);
  std::int64_t chains = 0, committed = 0;
  for (const Reply& reply : replies) {
    const at::Tensor matches = model.matches(reply, drafts).contiguous();
    const bool* hit = matches.const_data_ptr<bool>();
    const std::int64_t places = matches.size(0);
    committed += places;
    for (std::int64_t k = 1; k <= drafts; ++k) {
      for (std::int64_t at = 0; at < places;) {
        std::int64_t accepted = 0;
        while (accepted < k && hit[at * drafts + accepted]) ++accepted;
        ++passes[static_cast<std::size_t>(k - 1)];
        at += accepted + 1;
        if (k < drafts) continue;
        ++chains;
        for (std::int64_t j = 0; j < accepted; ++j) ++reached[static_cast<std::size_t>(j)];
      }
    }
  }
  Acceptance acceptance{
      .position = {}, .committed = {}, .replies = static_cast<std::int64_t>(replies.size())};
  for (std::size_t j = 0; j < depth && chains > 0; ++j) {
    acceptance.position.push_back(static_cast<double>(reached[j]) / static_cast<double>(chains));
    acceptance.committed.push_back(static_cast<double>(committed) / static_cast<double>(passes[j]));
  }
  return acceptance;
}

// ---- the optimizer

class AdamW {
 public:
  AdamW(std::vector<NamedTensor>& parameters, const TrainOptions& options)
      : parameters_(parameters), options_(options) {
    for (const NamedTensor& parameter : parameters) {
      first_.push_back(at::zeros_like(parameter.tensor));
      second_.push_back(at::zeros_like(parameter.tensor));
    }
  }

  /// Update number `step`, from 1, by the gradients that are there; clears them.
  void update(std::int64_t step) {
    std::vector<at::Tensor> values, gradients, steps;
    at::Tensor norm = at::zeros({}, at::kDouble);
    for (NamedTensor& parameter : parameters_) {
      ASDBENCH_CHECK(parameter.tensor.grad().defined(), parameter.name + " takes part in the loss");
      gradients.push_back(parameter.tensor.grad());
      values.push_back(parameter.tensor.detach());
      steps.push_back(at::full({}, static_cast<double>(step), at::kFloat));
      norm += gradients.back().square().sum().to(at::kDouble);
    }
    const double length = std::sqrt(norm.item<double>());
    if (!std::isfinite(length)) {
      throw InternalError(fmt::format("the gradient of step {} is not finite", step));
    }
    if (length > options_.clip) {
      for (at::Tensor& gradient : gradients) gradient.mul_(options_.clip / length);
    }
    at::_fused_adamw_(values, gradients, first_, second_, {}, steps, rate(step), kBeta1, kBeta2,
                      options_.weight_decay, kEpsilon, /*amsgrad=*/false, /*maximize=*/false);
    for (NamedTensor& parameter : parameters_) parameter.tensor.mutable_grad().reset();
  }

  /// Everything that a resumed run needs, parameters included.
  std::vector<NamedTensor> state() const {
    std::vector<NamedTensor> state;
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      state.push_back({"parameter." + parameters_[i].name, parameters_[i].tensor.detach()});
      state.push_back({"first." + parameters_[i].name, first_[i]});
      state.push_back({"second." + parameters_[i].name, second_[i]});
    }
    return state;
  }

 private:
  double rate(std::int64_t step) const {
    if (step <= options_.warmup) {
      return options_.learning_rate * static_cast<double>(step) /
             static_cast<double>(options_.warmup);
    }
    const double part =
        static_cast<double>(step - options_.warmup) /
        static_cast<double>(std::max<std::int64_t>(options_.steps - options_.warmup, 1));
    const double cosine = 0.5 * (1 + std::cos(std::numbers::pi * part));
    return options_.learning_rate * (kLastRate + (1 - kLastRate) * cosine);
  }

  std::vector<NamedTensor>& parameters_;
  const TrainOptions& options_;
  std::vector<at::Tensor> first_, second_;
};

// ---- files

std::string dtype_name(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return "F32";
    case at::kBFloat16:
      return "BF16";
    case at::kLong:
      return "I64";
    case at::kBool:
      return "BOOL";
    default:
      throw InternalError("a tensor of a type that is never written");
  }
}

void write_tensors(const fs::path& path, std::vector<NamedTensor> tensors) {
  std::vector<SafetensorsEntry> entries;
  for (NamedTensor& named : tensors) {
    named.tensor = named.tensor.contiguous();
    entries.push_back({named.name,
                       dtype_name(named.tensor.scalar_type()),
                       named.tensor.sizes().vec(),
                       {static_cast<const std::byte*>(named.tensor.const_data_ptr()),
                        static_cast<std::size_t>(named.tensor.nbytes())}});
  }
  write_safetensors(path, entries);
}

/// What a state belongs to: other arguments must not go on from it. Another number of steps may.
std::string fingerprint(const std::string& kind, const Params& params, const TrainInput& input,
                        const TrainOptions& options) {
  Sha256 digest;
  for (const auto* replies : {&input.train, &input.held_out}) {
    for (const Reply& reply : *replies) digest.update(sha256_tokens(reply.tokens()));
    digest.update("|");
  }
  for (const auto& [key, value] : params.resolved()) digest.update(key + "=" + value + " ");
  digest.update(fmt::format("{} {} {} {} {} {} {} {} {}", kind, options.seed, options.step_tokens,
                            options.learning_rate, options.warmup, options.clip,
                            options.weight_decay, options.compute, options.threads));
  return digest.finish_hex();
}

/// A string as a tensor, so that the state is one file.
NamedTensor text_tensor(const std::string& name, const std::string& text) {
  std::vector<std::int64_t> bytes(text.begin(), text.end());
  return {name, at::tensor(bytes)};
}

/// How far a training is, and the lengths that its steps were planned for.
struct State {
  std::int64_t step = 0;
  std::vector<PlannedSteps> schedule;
};

at::Tensor schedule_tensor(const std::vector<PlannedSteps>& schedule) {
  std::vector<std::int64_t> values;
  for (const PlannedSteps& part : schedule) values.insert(values.end(), {part.from, part.steps});
  return at::tensor(values).view({-1, 2});
}

void save_state(const fs::path& path, const AdamW& optimizer, const State& state,
                const std::string& mark) {
  std::vector<NamedTensor> tensors = optimizer.state();
  tensors.push_back({"step", at::full({1}, state.step, at::kLong)});
  tensors.push_back({"schedule", schedule_tensor(state.schedule)});
  tensors.push_back(text_tensor("fingerprint", mark));
  write_tensors(path, std::move(tensors));
}

/// Copies the tensors of a state file to where they are wanted.
class StateFile {
 public:
  explicit StateFile(const fs::path& path) : path_(path), file_(SafetensorsFile::open(path)) {}

  /// Extent of the first axis, 0 when there is no such tensor.
  std::int64_t length(const std::string& name) const {
    const SafetensorsEntry* entry = find(name);
    return entry == nullptr || entry->shape.empty() ? 0 : entry->shape.front();
  }
  void read(const NamedTensor& into) const {
    const SafetensorsEntry* entry = find(into.name);
    if (entry == nullptr || entry->dtype != dtype_name(into.tensor.scalar_type()) ||
        entry->shape != into.tensor.sizes().vec()) {
      refuse();
    }
    std::memcpy(into.tensor.mutable_data_ptr(), entry->bytes.data(), entry->bytes.size());
  }
  [[noreturn]] void refuse() const {
    throw DataError(
        fmt::format("{}: the state of a training with another target, other data or options\n  "
                    "move it away, or "
                    "choose another folder with --out",
                    path_.string()));
  }

 private:
  const SafetensorsEntry* find(const std::string& name) const {
    for (const SafetensorsEntry& entry : file_.entries()) {
      if (entry.name == name) return &entry;
    }
    return nullptr;
  }
  fs::path path_;
  SafetensorsFile file_;
};

/// Reads the state into the optimizer's tensors; a state of no steps when there is no file.
State load_state(const fs::path& path, const AdamW& optimizer, const std::string& mark) {
  if (!fs::exists(path)) return {};
  const StateFile file(path);
  const NamedTensor expected = text_tensor("fingerprint", mark);
  const NamedTensor found{"fingerprint", at::empty_like(expected.tensor)};
  file.read(found);
  if (!found.tensor.equal(expected.tensor)) file.refuse();
  const NamedTensor step{"step", at::empty({1}, at::kLong)};
  const NamedTensor schedule{"schedule", at::empty({file.length("schedule"), 2}, at::kLong)};
  file.read(step);
  file.read(schedule);
  const c10::NoGradGuard no_gradient;
  for (const NamedTensor& each : optimizer.state()) file.read(each);
  State state{.step = step.tensor.item<std::int64_t>(), .schedule = {}};
  const auto* parts = schedule.tensor.const_data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < schedule.tensor.size(0); ++i) {
    state.schedule.push_back({.from = parts[2 * i], .steps = parts[2 * i + 1]});
  }
  return state;
}

/// Rounds the parameters to what is stored, so that what is measured is what is written.
void round_to_bf16(std::vector<NamedTensor>& parameters) {
  const c10::NoGradGuard no_gradient;
  for (NamedTensor& parameter : parameters) {
    parameter.tensor.copy_(parameter.tensor.to(at::kBFloat16).to(at::kFloat));
  }
}

void write_drafter(const fs::path& folder, DraftModel& model) {
  std::vector<NamedTensor> tensors;
  for (const NamedTensor& parameter : model.parameters()) {
    tensors.push_back({parameter.name, parameter.tensor.detach().to(at::kBFloat16)});
  }
  for (NamedTensor& constant : model.constants()) tensors.push_back(std::move(constant));
  write_tensors(folder / model.weights_file(), std::move(tensors));
  write_output_file(folder / "config.json", model.config().dump(2) + "\n");
}

// ---- the loop

class Loop {
 public:
  Loop(DraftModel& model, const TrainInput& input, const TrainOptions& options, fs::path state_file,
       std::string mark, const TrainCallbacks& callbacks)
      : model_(model),
        input_(input),
        options_(options),
        state_file_(std::move(state_file)),
        mark_(std::move(mark)),
        callbacks_(callbacks),
        optimizer_(model.parameters(), options),
        schedule_(input.train, options.seed, options.step_tokens) {}

  TrainOutcome run() {
    state_ = load_state(state_file_, optimizer_, mark_);
    const std::int64_t done = state_.step;
    if (state_.schedule.empty() || state_.schedule.back().steps != options_.steps) {
      state_.schedule.push_back({.from = done + 1, .steps = options_.steps});
    }
    for (std::int64_t step = 0; step < done; ++step) schedule_.next();
    begin_ = reported_ = Clock::now();
    while (state_.step < options_.steps) {
      if (callbacks_.interrupted()) {
        save_state(state_file_, optimizer_, state_, mark_);
        TrainOutcome outcome;
        outcome.interrupted = true;
        return outcome;
      }
      advance(++state_.step);
      report(state_.step, done);
      if (state_.step % options_.checkpoint_every == 0) {
        save_state(state_file_, optimizer_, state_, mark_);
      }
    }
    return finish();
  }

 private:
  /// The replies of a step are dealt to the threads; each computes the gradient of its own mean.
  /// With two threads the sum does not depend on which comes first.
  void advance(std::int64_t step) {
    const std::vector<const Reply*> replies = schedule_.next();
    const std::size_t shards = std::min(static_cast<std::size_t>(options_.threads), replies.size());
    std::vector<std::vector<const Reply*>> hands(shards);
    for (std::size_t i = 0; i < replies.size(); ++i) hands[i % shards].push_back(replies[i]);
    std::vector<std::future<double>> losses;
    for (std::size_t i = 0; i < shards; ++i) {
      losses.push_back(std::async(std::launch::async, [&, i] {
        at::set_num_threads(1);  // of this thread
        SplitMix64 draw(options_.seed + (static_cast<std::uint64_t>(step) * 64 + i) * kStride);
        const at::Tensor loss = model_.loss(hands[i], draw) / static_cast<double>(shards);
        loss.backward();
        return loss.item<double>();
      }));
    }
    double total = 0;
    for (std::future<double>& loss : losses) loss.wait();  // all, before one of them may throw
    for (std::future<double>& loss : losses) total += loss.get();
    optimizer_.update(step);
    losses_.push_back(total);
    for (const Reply* reply : replies) tokens_ += reply->reply_tokens();
  }

  void report(std::int64_t step, std::int64_t done) {
    const bool evaluate = step % options_.evaluate_every == 0 && step < options_.steps;
    constexpr double kSilence = 10;  // seconds
    if (!evaluate && seconds_since(reported_) < kSilence) return;
    TrainProgress progress{.step = step, .steps = options_.steps};
    const std::size_t fresh = losses_.size() - reported_losses_;
    progress.loss = mean(reported_losses_, losses_.size());
    ASDBENCH_CHECK(fresh > 0, "a step was done since the last report");
    reported_losses_ = losses_.size();
    const double seconds = seconds_since(begin_) - measuring_;
    progress.tokens_per_second = static_cast<double>(tokens_) / seconds;
    progress.seconds_left =
        seconds / static_cast<double>(step - done) * static_cast<double>(options_.steps - step);
    if (evaluate) {
      const Clock::time_point measuring = Clock::now();
      progress.held_out = measure(model_, input_.held_out, options_.drafts);
      measuring_ += seconds_since(measuring);
    }
    callbacks_.progress(progress);
    reported_ = Clock::now();
  }

  TrainOutcome finish() {
    round_to_bf16(model_.parameters());
    TrainOutcome outcome;
    const std::size_t tenth = std::max<std::size_t>(losses_.size() / 10, 1);
    if (!losses_.empty()) {
      outcome.first_loss = mean(0, tenth);
      outcome.last_loss = mean(losses_.size() - tenth, losses_.size());
    }
    outcome.held_out = measure(model_, input_.held_out, options_.drafts);
    outcome.schedule = state_.schedule;
    return outcome;
  }

  double mean(std::size_t first, std::size_t end) const {
    double sum = 0;
    for (std::size_t i = first; i < end; ++i) sum += losses_[i];
    return sum / static_cast<double>(std::max<std::size_t>(end - first, 1));
  }

  DraftModel& model_;
  const TrainInput& input_;
  const TrainOptions& options_;
  fs::path state_file_;
  std::string mark_;
  const TrainCallbacks& callbacks_;
  AdamW optimizer_;
  Schedule schedule_;
  State state_;
  std::vector<double> losses_;
  std::size_t reported_losses_ = 0;
  std::int64_t tokens_ = 0;
  double measuring_ = 0;  // seconds
  Clock::time_point begin_, reported_;
};

struct Kind {
  std::string_view name;
  void (*check)(const Params&, const ModelConfig&);
  std::unique_ptr<DraftModel> (*make)(const Params&, const training::ModelSource&);
};

const Kind& kind_of(std::string_view name) {
  static constexpr std::array<Kind, 3> kKinds = {
      {{"dspark", training::check_dspark_options, training::make_dspark_model},
       {"eagle3", training::check_eagle3_options, training::make_eagle3_model},
       {"medusa", training::check_medusa_options, training::make_medusa_model}}};
  const auto* found =
      std::find_if(kKinds.begin(), kKinds.end(), [&](const Kind& k) { return k.name == name; });
  ASDBENCH_CHECK(found != kKinds.end(), std::string(name) + " is among trainable_drafters()");
  return *found;
}

}  // namespace

void check_drafter_options(const std::string& kind, const Params& params,
                           const ModelConfig& target) {
  kind_of(kind).check(params, target);
}

TrainOutcome train_drafter(const std::string& kind, const Params& params, const TrainInput& input,
                           const TrainOptions& options, const fs::path& folder,
                           const TrainCallbacks& callbacks) {
  ASDBENCH_CHECK(!input.train.empty() && !input.held_out.empty(),
                 "replies to train and measure on");
  at::set_num_threads(1);  // a step is shared out by replies, not by operations
  try {
    const auto model = kind_of(kind).make(
        params, {.target = input.target,
                 .taps = input.taps,
                 .replies = input.train,
                 .seed = options.seed,
                 .compute = options.compute == "bfloat16" ? at::kBFloat16 : at::kFloat});
    std::error_code error;
    fs::create_directories(folder, error);
    if (error) {
      throw DataError(fmt::format("{}: cannot be made: {}", folder.string(), error.message()));
    }
    const fs::path state_file = folder / kStateFile;
    Loop loop(*model, input, options, state_file, fingerprint(kind, params, input, options),
              callbacks);
    TrainOutcome outcome = loop.run();
    if (outcome.interrupted) return outcome;
    write_drafter(folder, *model);
    fs::remove(state_file, error);
    return outcome;
  } catch (const c10::Error& error) {
    throw DeviceError(fmt::format("training: {}", error.what_without_backtrace()));
  }
}

}  // namespace asdbench
