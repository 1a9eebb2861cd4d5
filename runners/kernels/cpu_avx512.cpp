// The CPU kernels for AVX-512 F, BW, DQ and VL. This file alone is compiled for them: it must not
// instantiate anything of the standard library, whose copy the linker could pick for other files.
#include <immintrin.h>

#include <cstdint>

#include "runners/kernels/cpu_kernels.h"
#include "runners/kernels/read_cpu.h"
#include "runners/kernels/score_rows_cpu.h"

namespace asdbench::kernels {
namespace {

struct Avx512 {
  using Float = __m512;
  using Mask = __mmask16;
  using Words = __m512i;
  static constexpr int kLanes = 16;
  static constexpr int kWords = 8;

  static Float broadcast(float value) { return _mm512_set1_ps(value); }
  static Float load(const float* values) { return _mm512_loadu_ps(values); }
  static Float max(Float a, Float b) { return _mm512_max_ps(a, b); }
  static Float min(Float a, Float b) { return _mm512_min_ps(a, b); }
  static float largest_lane(Float value) { return _mm512_reduce_max_ps(value); }
  static float smallest_lane(Float value) { return _mm512_reduce_min_ps(value); }
  static Mask no_lanes() { return 0; }
  static Mask is_equal(Float a, Float b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
  static Mask is_nan(Float value) { return _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q); }
  static Mask either(Mask a, Mask b) { return _kor_mask16(a, b); }
  static bool any_lane(Mask mask) { return mask != 0; }
  static long long word(Words words, int lane) { return words[lane]; }
};

}  // namespace

const CpuKernels kAvx512Kernels = {score_rows_cpu<Avx512>, read_cpu<Avx512>};

}  // namespace asdbench::kernels
