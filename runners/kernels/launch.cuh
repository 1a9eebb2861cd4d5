// How CUDA is called here: every call is checked, every launch goes through launch().
#pragma once

#include <cuda_runtime.h>

#include <cstdlib>
#include <string>
#include <string_view>

#include "runners/kernels/errors.h"

namespace asdbench::kernels {

/// Throws CudaError that names the call, the place and CUDA's own words.
inline void cuda_check(cudaError_t status, const char* call, const char* file, int line) {
  if (status == cudaSuccess) return;
  throw CudaError(std::string(file) + ":" + std::to_string(line) + ": " + call + ": " +
                  cudaGetErrorName(status) + ": " + cudaGetErrorString(status) +
                  "; ASDBENCH_SYNC=1 places a fault of an earlier launch");
}

/// Whether ASDBENCH_SYNC=1 asks for a synchronisation after every launch.
inline bool synchronous_launches() {
  static const bool synchronous = [] {
    const char* value = std::getenv("ASDBENCH_SYNC");
    return value != nullptr && std::string_view(value) == "1";
  }();
  return synchronous;
}

}  // namespace asdbench::kernels

#define ASDBENCH_CUDA_CHECK(call) ::asdbench::kernels::cuda_check((call), #call, __FILE__, __LINE__)

namespace asdbench::kernels {

/// Launches `kernel` on `stream` and checks the launch; its faults surface at the next
/// synchronisation, which is here under ASDBENCH_SYNC=1.
template <typename... Parameters, typename... Arguments>
void launch(const char* name, void (*kernel)(Parameters...), dim3 grid, dim3 block,
            std::size_t shared_bytes, cudaStream_t stream, Arguments... arguments) {
  kernel<<<grid, block, shared_bytes, stream>>>(arguments...);
  cuda_check(cudaGetLastError(), name, __FILE__, __LINE__);
  if (synchronous_launches()) cuda_check(cudaStreamSynchronize(stream), name, __FILE__, __LINE__);
}

}  // namespace asdbench::kernels
