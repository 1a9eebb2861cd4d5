// The CPU kernels in C++ without intrinsics: the fallback, and what the other sets are compared to.
#include <cstdint>

#include "runners/kernels/cpu_kernels.h"
#include "runners/kernels/read_cpu.h"
#include "runners/kernels/score_rows_cpu.h"

namespace asdbench::kernels {
namespace {

struct Plain {
  using Float = float;
  using Mask = bool;
  using Words = std::uint64_t;
  static constexpr int kLanes = 1;
  static constexpr int kWords = 1;

  static Float broadcast(float value) { return value; }
  static Float load(const float* values) { return *values; }
  static Float max(Float a, Float b) { return b > a ? b : a; }
  static Float min(Float a, Float b) { return b < a ? b : a; }
  static float largest_lane(Float value) { return value; }
  static float smallest_lane(Float value) { return value; }
  static Mask no_lanes() { return false; }
  static Mask is_equal(Float a, Float b) { return a == b; }
  static Mask is_nan(Float value) { return value != value; }
  static Mask either(Mask a, Mask b) { return a || b; }
  static bool any_lane(Mask mask) { return mask; }
  static std::uint64_t word(Words words, int) { return words; }
};

}  // namespace

const CpuKernels kPlainKernels = {score_rows_cpu<Plain>, read_cpu<Plain>};

}  // namespace asdbench::kernels
