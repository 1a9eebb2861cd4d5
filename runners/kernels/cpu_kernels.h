// The table of CPU kernels of one instruction set; the only place where a set is turned into code.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runners/kernels/activation_type.h"
#include "runners/kernels/attention_cpu.h"
#include "runners/kernels/dot_cpu.h"
#include "runners/kernels/isa.h"
#include "runners/kernels/linear_cpu.h"
#include "runners/kernels/score_rows.h"
#include "runners/kernels/weight_format.h"

namespace asdbench::kernels {

/// The linear kernel for rounded activations on dot products of their type (dot_cpu.h); inputs are
/// a multiple of kBlock. Its sums differ from those of CpuKernels over the rounded floats in the
/// last places only.
struct DotKernels {
  void (*prepare_rows)(const float* x, std::int64_t x_stride, int rows, std::int64_t inputs,
                       bool for_nibbles, float* values, float* sums);
  void (*linear_panel)(WeightFormat format, const PanelTask& task);
};

struct CpuKernels {
  /// score_rows.h, on the host.
  void (*score_rows)(const float* logits, const TokenId* draft, std::int64_t rows,
                     std::int64_t vocab, MaskedVocab masked, RowScores out);
  /// Exclusive or of `count` 64-bit words at `words`, 64-byte aligned, `count` a multiple of 64:
  /// the plain read that bandwidth is measured with.
  std::uint64_t (*read)(const std::uint64_t* words, std::int64_t count);
  /// Rows [rows, inputs], rounded to `type`, as linear_panel reads them: `values` [blocks, rows,
  /// kBlock], padded with zeros and, for formats with nibbles, divided by the power of their place
  /// (panel_layout.h); `sums` [blocks, rows]. Both 64-byte aligned.
  void (*prepare_rows)(const float* x, std::int64_t x_stride, int rows, std::int64_t inputs,
                       bool for_nibbles, ActivationType type, float* values, float* sums);
  /// sums [rows, kPanel] += x times one packed panel; rows >= 1. The order of operations of
  /// linear.h.
  void (*linear_panel)(WeightFormat format, const PanelTask& task);
  DotKernels int8;
  DotKernels bf16;  // null functions where there are none
  /// gate [count] becomes silu(gate) * up; count is a multiple of kPanel.
  void (*swiglu)(float* gate, const float* up, std::int64_t count);
  /// attention_cpu.h.
  void (*attend_chunk)(const ChunkTask& task);
  /// out [head_size] from `chunks` results of attend_chunk, result_stride floats apart, which it
  /// uses up.
  void (*join_chunks)(float* results, int chunks, std::int64_t result_stride, int head_size,
                      float* out);
  /// One row of attention.h's rms_norm.
  void (*rms_norm)(const float* x, std::int64_t width, const float* weight, float epsilon,
                   float* out);
};

/// Errors: IsaError when this CPU or build lacks `isa`.
const CpuKernels& cpu_kernels(Isa isa);

/// The dot products that `isa` has on this CPU for `type`, or null: then the float kernels run over
/// rounded activations. Errors: as cpu_kernels.
const DotKernels* dot_kernels(Isa isa, ActivationType type);

/// One per translation unit that is compiled for its set (CMakeLists.txt); use cpu_kernels().
extern const CpuKernels kPlainKernels;
extern const CpuKernels kAvx2Kernels;
extern const CpuKernels kAvx512Kernels;

}  // namespace asdbench::kernels
