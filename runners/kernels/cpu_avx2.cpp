// The CPU kernels for AVX2, FMA and F16C. This file alone is compiled for them: it must not
// instantiate anything of the standard library, whose copy the linker could pick for other files.
#include <immintrin.h>

#include <cstdint>

#include "runners/kernels/cpu_kernels.h"
#include "runners/kernels/read_cpu.h"
#include "runners/kernels/score_rows_cpu.h"

namespace asdbench::kernels {
namespace {

struct Avx2 {
  using Float = __m256;
  using Mask = __m256;
  using Words = __m256i;
  static constexpr int kLanes = 8;
  static constexpr int kWords = 4;

  static Float broadcast(float value) { return _mm256_set1_ps(value); }
  static Float load(const float* values) { return _mm256_loadu_ps(values); }
  static Float max(Float a, Float b) { return _mm256_max_ps(a, b); }
  static Float min(Float a, Float b) { return _mm256_min_ps(a, b); }
  static float largest_lane(Float value) {
    __m128 half = _mm_max_ps(_mm256_castps256_ps128(value), _mm256_extractf128_ps(value, 1));
    half = _mm_max_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_max_ss(half, _mm_movehdup_ps(half)));
  }
  static float smallest_lane(Float value) {
    __m128 half = _mm_min_ps(_mm256_castps256_ps128(value), _mm256_extractf128_ps(value, 1));
    half = _mm_min_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_min_ss(half, _mm_movehdup_ps(half)));
  }
  static Mask no_lanes() { return _mm256_setzero_ps(); }
  static Mask is_equal(Float a, Float b) { return _mm256_cmp_ps(a, b, _CMP_EQ_OQ); }
  static Mask is_nan(Float value) { return _mm256_cmp_ps(value, value, _CMP_UNORD_Q); }
  static Mask either(Mask a, Mask b) { return _mm256_or_ps(a, b); }
  static bool any_lane(Mask mask) { return _mm256_movemask_ps(mask) != 0; }
  static long long word(Words words, int lane) { return words[lane]; }
};

}  // namespace

const CpuKernels kAvx2Kernels = {score_rows_cpu<Avx2>, read_cpu<Avx2>};

}  // namespace asdbench::kernels
