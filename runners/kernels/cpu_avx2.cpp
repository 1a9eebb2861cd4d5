// The CPU kernels for AVX2, FMA and F16C. This file alone is compiled for them: it must not
// instantiate anything of the standard library, whose copy the linker could pick for other files.
#include <immintrin.h>

#include <cstdint>

#include "runners/kernels/cpu_kernels.h"
#include "runners/kernels/dot_cpu.h"
#include "runners/kernels/linear_cpu.h"
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
  // A load that several operations share. The empty statement keeps the compiler from repeating it
  // as an operand of each, which would double the traffic of the load ports.
  static Float load_once(const float* values) {
    Float value = load(values);
    asm("" : "+x"(value));
    return value;
  }
  static void store(float* values, Float value) { _mm256_storeu_ps(values, value); }
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

  using Int = __m256i;
  static constexpr int kTileRows = 4;
  static constexpr int kChains = 15;  // sums and weights that registers hold
  static constexpr int kOneByOneRows = 2;

  static Float fma(Float a, Float b, Float c) { return _mm256_fmadd_ps(a, b, c); }
  /// sums[v] += weights[v] * *x, fused.
  template <int rows, int vectors>
  static void add_products(Float* sums, const Float* weights, const float* x) {
    Float value;
    asm volatile("vbroadcastss %1, %0" : "=x"(value) : "m"(*x));
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) {
      asm volatile("vfmadd231ps %2, %1, %0" : "+x"(sums[v]) : "x"(weights[v]), "x"(value));
    }
  }
  static Float broadcast_once(const float* x) {
    Float value;
    asm volatile("vbroadcastss %1, %0" : "=x"(value) : "m"(*x));
    return value;
  }
  /// sum += weights * value, fused.
  static void add_product(Float& sum, Float weights, Float value) {
    asm volatile("vfmadd231ps %2, %1, %0" : "+x"(sum) : "x"(weights), "x"(value));
  }
  static Float add(Float a, Float b) { return _mm256_add_ps(a, b); }
  static Float subtract(Float a, Float b) { return _mm256_sub_ps(a, b); }
  static float sum_lanes(Float a) {
    __m128 half = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    half = _mm_add_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_add_ss(half, _mm_movehdup_ps(half)));
  }
  static Float multiply(Float a, Float b) { return _mm256_mul_ps(a, b); }
  static Float divide(Float a, Float b) { return _mm256_div_ps(a, b); }
  static Float round(Float a) {
    return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
  static Float times_power_of_two(Float a, Float n) {
    const Int exponent = _mm256_slli_epi32(_mm256_cvtps_epi32(n), 23);
    return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(a), exponent));
  }
  static Float load_f16(const std::uint16_t* values) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(values)));
  }
  static Float load_bf16(const std::uint16_t* values) {
    const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(values));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
  }
  static Int load_int(const std::int32_t* values) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(values));
  }
  template <int bits>
  static Int shift_left(Int value) {
    return _mm256_slli_epi32(value, bits);
  }
  template <int bits>
  static Int shift_right(Int value) {
    return _mm256_srli_epi32(value, bits);
  }
  /// The highest byte as a signed integer.
  static Int shift_byte_down(Int value) { return _mm256_srai_epi32(value, 24); }
  // Weights are loaded again for each use: registers are full of sums, and the compiler would keep
  // the weights and spill sums.
  static Int load_again(const std::int32_t* values) {
    Int value;
    asm volatile("vmovdqu %1, %0" : "=x"(value) : "m"(*reinterpret_cast<const __m256i_u*>(values)));
    return value;
  }
  static Int load_masked(const std::int32_t* values, int mask) {
    Int value;
    asm volatile("vpand %1, %2, %0"
                 : "=x"(value)
                 : "m"(*reinterpret_cast<const __m256i_u*>(values)), "x"(_mm256_set1_epi32(mask)));
    return value;
  }
  static Int bit_and(Int value, int mask) {
    return _mm256_and_si256(value, _mm256_set1_epi32(mask));
  }
  static Int bit_or(Int a, Int b) { return _mm256_or_si256(a, b); }
  static Int broadcast_int(int value) { return _mm256_set1_epi32(value); }
  static Int add_int(Int a, Int b) { return _mm256_add_epi32(a, b); }
  static Int bits_of(Float value) { return _mm256_castps_si256(value); }
  static Float float_of(Int bits) { return _mm256_castsi256_ps(bits); }

  static constexpr int kDotRows = 4;
  static constexpr int kDotVectors = 2;
  static constexpr int kByteZero = 0;
  static constexpr bool kDotsInHalves = true;
  static void store_bytes(const float* integers, bool for_nibbles, std::int32_t* words) {
    const __m128i order = for_nibbles
                              ? _mm_setr_epi8(0, 2, 4, 6, 1, 3, 5, 7, 0, 0, 0, 0, 0, 0, 0, 0)
                              : _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 0, 0, 0, 0, 0, 0, 0, 0);
    for (int i = 0; i < kBlock; i += kLanes) {
      const __m256i wide = _mm256_cvtps_epi32(load(integers + i));
      const __m128i half =
          _mm_packs_epi32(_mm256_castsi256_si128(wide), _mm256_extracti128_si256(wide, 1));
      _mm_storel_epi64(reinterpret_cast<__m128i*>(words + i / kWordBytes),
                       _mm_shuffle_epi8(_mm_packs_epi16(half, half), order));
    }
  }
  static Int signed_bytes(Int word) { return word; }
  template <int vectors>
  static void add_dots(Int* sums, const Int* weights, const std::int32_t* x) {
    const Int value = _mm256_set1_epi32(*x);
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) {
      // At most 2 * 15 * 127 a pair, and eight pairs a block: 16 bits hold 30,480.
      sums[v] = _mm256_add_epi16(sums[v], _mm256_maddubs_epi16(weights[v], value));
    }
  }
  /// The two halves of each word, added to `start`.
  static Int whole_sums(Int halves, std::int32_t start) {
    return _mm256_add_epi32(_mm256_madd_epi16(halves, _mm256_set1_epi16(1)),
                            _mm256_set1_epi32(start));
  }
  template <int vectors>
  static void add_signed_dots(Int* sums, const Int* weights, const std::int32_t* x) {
    const Int value = _mm256_set1_epi32(*x);
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) {
      // The first operand has no sign, so the weight's goes to the other. 2 * 128 * 127 fits.
      const Int pairs =
          _mm256_maddubs_epi16(_mm256_abs_epi8(weights[v]), _mm256_sign_epi8(value, weights[v]));
      sums[v] = _mm256_add_epi32(sums[v], _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
    }
  }
  static Float to_float(Int value) { return _mm256_cvtepi32_ps(value); }
};

}  // namespace

const CpuKernels kAvx2Kernels = {
    .score_rows = score_rows_cpu<Avx2>,
    .read = read_cpu<Avx2>,
    .prepare_rows = prepare_rows_cpu<Avx2>,
    .linear_panel = linear_panel_cpu<Avx2>,
    .int8 = {prepare_int8_cpu<Avx2>, dot_panel_cpu<Avx2, Int8Sums>},
    .bf16 = {},
    .swiglu = swiglu_cpu<Avx2>,
    .attend_chunk = attend_chunk_cpu<Avx2>,
    .join_chunks = join_chunks_cpu<Avx2>,
    .rms_norm = rms_norm_cpu<Avx2>,
};

}  // namespace asdbench::kernels
