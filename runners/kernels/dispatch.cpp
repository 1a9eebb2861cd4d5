// Sends each kernel to the CPU table of the active instruction set, or to CUDA.
#include <limits>
#include <stdexcept>
#include <string>

#include "runners/kernels/cpu_kernels.h"
#include "runners/kernels/errors.h"
#include "runners/kernels/score_rows.h"
#include "runners/kernels/score_rows_cuda.h"

namespace asdbench::kernels {

const CpuKernels& cpu_kernels(Isa isa) {
  if (!supported(isa)) {
    throw IsaError("this CPU or build lacks " + std::string(name_of(isa)));
  }
#if defined(ASDBENCH_X86_KERNELS)
  if (isa == Isa::kAvx512) return kAvx512Kernels;
  if (isa == Isa::kAvx2) return kAvx2Kernels;
#endif
  return kPlainKernels;
}

const DotKernels* dot_kernels(Isa isa, ActivationType type) {
  const CpuKernels& kernels = cpu_kernels(isa);
  if (type == ActivationType::kFloat32) return nullptr;
#if defined(ASDBENCH_X86_KERNELS)
  if (isa == Isa::kAvx512 && type == ActivationType::kInt8 && !has_vnni()) {
    return &kAvx2Kernels.int8;  // panels are the same
  }
  if (isa == Isa::kAvx512 && type == ActivationType::kBf16 && !has_bf16_dots()) return nullptr;
#endif
  const DotKernels& dots = type == ActivationType::kInt8 ? kernels.int8 : kernels.bf16;
  return dots.linear_panel == nullptr ? nullptr : &dots;
}

std::string_view name_of(ActivationType type) {
  constexpr std::string_view kNames[] = {"float32", "bf16", "int8"};
  return kNames[static_cast<std::size_t>(type)];
}

void score_rows(const float* logits, const TokenId* draft, std::int64_t rows, std::int64_t vocab,
                MaskedVocab masked, RowScores out, Stream stream) {
  if (rows < 0 || vocab < 0 || vocab > std::numeric_limits<TokenId>::max()) {
    throw std::invalid_argument("score_rows: rows " + std::to_string(rows) + ", vocab " +
                                std::to_string(vocab) +
                                "; both must be at least 0, and ids must fit 32 bits");
  }
  if (rows == 0) return;
  if (!stream.on_device) {
    cpu_kernels(active_isa()).score_rows(logits, draft, rows, vocab, masked, out);
    return;
  }
#if defined(ASDBENCH_CUDA_KERNELS)
  score_rows_cuda(logits, draft, rows, vocab, masked, out, stream);
#else
  throw CudaError(
      "score_rows: this build has no CUDA kernels; configure with "
      "-DASDBENCH_WITH_CUDA=ON or bring the logits to the host");
#endif
}

}  // namespace asdbench::kernels
