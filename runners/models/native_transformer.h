// The llama, qwen2 and qwen3 transformer on our own CPU kernels, over weights as they are stored.
#pragma once

#include <cstdint>
#include <span>

#include "runners/checkpoint/checkpoint.h"
#include "runners/kernels/linear.h"
#include "runners/kernels/pool.h"
#include "runners/models/engine.h"

namespace asdbench {

/// A target on our kernels, and what it lends to drafters on the same kernels.
class NativeTarget : public CheckpointTarget {
 public:
  virtual kernels::Pool& pool() = 0;
  virtual const kernels::PackedMatrix& embedding() const = 0;  // [V, H]
  virtual const kernels::PackedMatrix& head() const = 0;       // [V, H]
};

/// The matrices that the native engine has no kernel for (K-quants) and keeps as float16, and what
/// that rounding does to their weights.
struct Narrowed {
  std::int64_t matrices = 0;
  double rms = 0;      // of the errors over that of the weights
  double largest = 0;  // error over the largest weight of its matrix
};

/// Dequantises those matrices once: seconds for a large model.
Narrowed narrowed_weights(std::span<const Tensor* const> matrices);
Narrowed narrowed_weights(const Checkpoint& checkpoint);

/// Packs the weights of `checkpoint` for this CPU; it may be closed afterwards.
///
/// Weights keep their stored type (K-quants become float16); activations (unless the options say
/// otherwise), accumulation, cache and logits are float32. The bits of a row depend on its own
/// request alone: not on the rows, requests or threads beside it. `info` brings name, weight_dtype
/// and sha256; the rest of it is filled in here. Errors:  DeviceError when memory is short;
/// std::invalid_argument of the kernels never reaches the caller. Source:  specs/targets.md,
/// sections 4 and 10.
LoadedTarget make_native_transformer(const Checkpoint& checkpoint, TargetInfo info,
                                     const EngineOptions& options);

}  // namespace asdbench
