// The CPU kernels for AVX-512 F, BW, DQ and VL. This file alone is compiled for them: it must not
// instantiate anything of the standard library, whose copy the linker could pick for other files.
#include <immintrin.h>

#include <cstdint>

#include "runners/kernels/cpu_kernels.h"
#include "runners/kernels/linear_cpu.h"
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
  // A load that several operations share. The empty statement keeps the compiler from repeating it
  // as an operand of each, which would double the traffic of the load ports.
  static Float load_once(const float* values) {
    Float value = load(values);
    asm("" : "+v"(value));
    return value;
  }
  static void store(float* values, Float value) { _mm512_storeu_ps(values, value); }
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

  using Int = __m512i;
  static constexpr int kTileRows = 8;
  static constexpr int kChains = 30;  // sums and weights that registers hold

  static Float fma(Float a, Float b, Float c) { return _mm512_fmadd_ps(a, b, c); }
  /// sums[v] += weights[v] * *x, fused.
  template <int rows, int vectors>
  static void add_products(Float* sums, const Float* weights, const float* x) {
    if constexpr (rows <= 4) {
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) {
        asm volatile("vfmadd231ps %2%{1to16%}, %1, %0" : "+v"(sums[v]) : "v"(weights[v]), "m"(*x));
      }
      return;
    }
    Float value;
    asm volatile("vbroadcastss %1, %0" : "=v"(value) : "m"(*x));
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) {
      asm volatile("vfmadd231ps %2, %1, %0" : "+v"(sums[v]) : "v"(weights[v]), "v"(value));
    }
  }
  static Float add(Float a, Float b) { return _mm512_add_ps(a, b); }
  static Float subtract(Float a, Float b) { return _mm512_sub_ps(a, b); }
  static float sum_lanes(Float a) { return _mm512_reduce_add_ps(a); }
  static Float multiply(Float a, Float b) { return _mm512_mul_ps(a, b); }
  static Float divide(Float a, Float b) { return _mm512_div_ps(a, b); }
  static Float round(Float a) {
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
  static Float times_power_of_two(Float a, Float n) {
    const Int exponent = _mm512_slli_epi32(_mm512_cvtps_epi32(n), 23);
    return _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(a), exponent));
  }
  static Float load_f16(const std::uint16_t* values) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(values)));
  }
  static Float load_bf16(const std::uint16_t* values) {
    const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(values));
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
  }
  static Int load_int(const std::int32_t* values) { return _mm512_loadu_si512(values); }
  template <int bits>
  static Int shift_left(Int value) {
    return _mm512_slli_epi32(value, bits);
  }
  template <int bits>
  static Int shift_right(Int value) {
    return _mm512_srli_epi32(value, bits);
  }
  /// The highest byte as a signed integer.
  static Int shift_byte_down(Int value) { return _mm512_srai_epi32(value, 24); }
  // Weights are loaded again for each use: registers are full of sums, and the compiler would keep
  // the weights and spill sums.
  static Int load_again(const std::int32_t* values) {
    Int value;
    asm volatile("vmovdqu32 %1, %0"
                 : "=v"(value)
                 : "m"(*reinterpret_cast<const __m512i_u*>(values)));
    return value;
  }
  static Int load_masked(const std::int32_t* values, int mask) {
    Int value;
    asm volatile("vpandd %1, %2, %0"
                 : "=v"(value)
                 : "m"(*reinterpret_cast<const __m512i_u*>(values)), "v"(_mm512_set1_epi32(mask)));
    return value;
  }
  static Int bit_and(Int value, int mask) {
    return _mm512_and_si512(value, _mm512_set1_epi32(mask));
  }
  static Int bit_or(Int a, Int b) { return _mm512_or_si512(a, b); }
  static Float to_float(Int value) { return _mm512_cvtepi32_ps(value); }
};

}  // namespace

const CpuKernels kAvx512Kernels = {
    .score_rows = score_rows_cpu<Avx512>,
    .read = read_cpu<Avx512>,
    .prepare_rows = prepare_rows_cpu<Avx512>,
    .linear_panel = linear_panel_cpu<Avx512>,
    .swiglu = swiglu_cpu<Avx512>,
    .attend_chunk = attend_chunk_cpu<Avx512>,
    .join_chunks = join_chunks_cpu<Avx512>,
    .rms_norm = rms_norm_cpu<Avx512>,
};

}  // namespace asdbench::kernels
