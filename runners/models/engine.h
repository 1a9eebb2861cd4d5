// What every engine that runs a checkpoint takes and gives.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runners/checkpoint/checkpoint.h"
#include "runners/target.h"

namespace asdbench {

/// Receives the hidden states of a step as [rows, hidden] host values: R[index] for index 0 to
/// layers (specs: targets, section 4.5), then the final norm's output of the scored rows as index
/// layers + 1.
using HiddenTap = std::function<void(std::int64_t index, std::span<const float> values)>;

struct EngineOptions {
  std::string engine = "auto";  // auto | native | torch; auto is torch on a GPU, native on the CPU
  std::string device = "auto";  // auto | cpu | cuda
  std::int32_t threads = 0;     // 0: one per core
  /// float32 | bf16 | int8: what the native engine rounds activations to before each linear layer.
  std::string activations = "float32";
  HiddenTap tap;  // for comparisons; costs a copy per layer
};

/// A target made from a checkpoint: a drafter can be fitted to its sizes.
class CheckpointTarget : public Target {
 public:
  virtual const ModelConfig& config() const = 0;
};

/// ConfigError unless each tap is R[0] to R[layers].
void check_selection(const HiddenSelection& selection, const ModelConfig& config,
                     const std::string& target);

struct LoadedTarget {
  std::unique_ptr<Target> target;
  std::vector<std::string> warnings;  // why `auto` took the CPU, for instance
};

}  // namespace asdbench
