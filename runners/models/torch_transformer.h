// The llama, qwen2 and qwen3 transformer on libtorch: the reference path, on the CPU or on a GPU.
#pragma once

#include <cstdint>

#include "runners/checkpoint/checkpoint.h"
#include "runners/models/engine.h"

namespace asdbench {

/// Where rows are scored: by our kernel on host logits, or by ATen operations where the logits are.
enum class TorchScoring : std::uint8_t { kKernelOnCpu, kAten };

/// What happens to cache rows past a slot's length. Filling them with NaN shows every read of a row
/// that was rolled back.
enum class DeadRows : std::uint8_t { kLeave, kFillWithNan };

/// For tests; the defaults are what runs use.
struct TorchChecks {
  TorchScoring scoring = TorchScoring::kKernelOnCpu;
#ifdef NDEBUG
  DeadRows dead_rows = DeadRows::kLeave;
#else
  DeadRows dead_rows = DeadRows::kFillWithNan;
#endif
};

/// Why no GPU can be used ("no NVIDIA driver ... was found"), or "" when one can. Loads libtorch's
/// GPU kernels.
std::string torch_gpu_missing();

/// Copies the weights out of `checkpoint`, widened to float32; it may be closed afterwards.
///
/// `info` brings name, weight_dtype and sha256; the rest of it is filled in here.
/// Errors:  DeviceError when the device asked for cannot be used or memory is short.
/// Source:  specs/targets.md, sections 4 and 5; TF32 and reduced-precision reductions are off.
LoadedTarget make_torch_transformer(const Checkpoint& checkpoint, TargetInfo info,
                                    const EngineOptions& options, const TorchChecks& checks = {});

}  // namespace asdbench
