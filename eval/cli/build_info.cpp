// Version, commit and compiler of this program.
#include <fmt/format.h>

#include "asdbench_build_info.h"  // written by scripts/cmake/build_info.cmake
#include "eval/cli/terminal_internal.h"

namespace asdbench::cli {

BuildInfo build_info() {
  return {.version = ASDBENCH_VERSION,
          .commit = ASDBENCH_COMMIT,
          .compiler = fmt::format("{} {}", ASDBENCH_COMPILER, __VERSION__),
          .build_type = ASDBENCH_BUILD_TYPE,
          .dirty = ASDBENCH_DIRTY,
          .torch = ASDBENCH_TORCH_BUILD != 0,
          .cuda = ASDBENCH_CUDA_BUILD != 0};
}

}  // namespace asdbench::cli
