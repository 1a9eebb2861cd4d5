// The errors of kernels, which may not include core's; callers above translate them.
#pragma once

#include <stdexcept>

namespace asdbench::kernels {

/// ASDBENCH_ISA names an instruction set that is unknown or that this CPU lacks: a configuration
/// error of the user.
struct IsaError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A CUDA call or launch failed, or the build has no CUDA kernels: a device error.
struct CudaError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace asdbench::kernels
