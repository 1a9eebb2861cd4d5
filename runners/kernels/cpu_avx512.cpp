// The CPU kernels for AVX-512 F, BW, DQ and VL. This file alone is compiled for them: it must not
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
  static constexpr int kOneByOneRows = 0;

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
  static Int broadcast_int(int value) { return _mm512_set1_epi32(value); }
  static Int add_int(Int a, Int b) { return _mm512_add_epi32(a, b); }
  static Int bits_of(Float value) { return _mm512_castps_si512(value); }
  static Float float_of(Int bits) { return _mm512_castsi512_ps(bits); }

  static constexpr int kDotRows = 8;
  static constexpr int kDotVectors = 3;
  static constexpr int kByteZero = 128;  // the instruction takes weights without a sign
  static constexpr bool kDotsInHalves = false;
  static void store_bytes(const float* integers, bool for_nibbles, std::int32_t* words) {
    const __m128i order = for_nibbles
                              ? _mm_setr_epi8(0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15)
                              : _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    for (int i = 0; i < kBlock; i += kLanes) {
      const __m128i bytes = _mm512_cvtsepi32_epi8(_mm512_cvtps_epi32(load(integers + i)));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(words + i / kWordBytes),
                       _mm_shuffle_epi8(bytes, order));
    }
  }
  static void store_pairs(const float* values, bool for_nibbles, std::int32_t* words) {
    const Int first =
        for_nibbles ? _mm512_setr_epi32(0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27)
                    : _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const Int second = add_int(first, broadcast_int(for_nibbles ? kNibbles / 2 : 1));
    const Int low = bits_of(load(values));
    const Int high = bits_of(load(values + kLanes));
    const Int a = shift_right<16>(_mm512_permutex2var_epi32(low, first, high));
    const Int b = bit_and(_mm512_permutex2var_epi32(low, second, high), ~0xffff);
    _mm512_storeu_si512(words, bit_or(a, b));
  }
  static Int signed_bytes(Int word) {
    return _mm512_xor_si512(word, _mm512_set1_epi32(static_cast<int>(0x80808080u)));
  }
  template <int vectors>
  static void add_dots(Int* sums, const Int* weights, const std::int32_t* x) {
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) {
      asm volatile("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(sums[v]) : "v"(weights[v]), "m"(*x));
    }
  }
  template <int vectors>
  static void add_signed_dots(Int* sums, const Int* weights, const std::int32_t* x) {
    add_dots<vectors>(sums, weights, x);
  }
  /// Nibbles `place` and `place` + 4 of each word as bf16.
  template <int place>
  static Int nibble_pairs(Int word) {
    // A table of 0 to 15, twice, since the look-up reads five bits of each half of a word.
    alignas(64) static constexpr std::uint16_t kTable[32] = {
        0x0000, 0x3f80, 0x4000, 0x4040, 0x4080, 0x40a0, 0x40c0, 0x40e0, 0x4100, 0x4110, 0x4120,
        0x4130, 0x4140, 0x4150, 0x4160, 0x4170, 0x0000, 0x3f80, 0x4000, 0x4040, 0x4080, 0x40a0,
        0x40c0, 0x40e0, 0x4100, 0x4110, 0x4120, 0x4130, 0x4140, 0x4150, 0x4160, 0x4170};
    return _mm512_permutexvar_epi16(_mm512_srli_epi16(word, 4 * place), _mm512_load_si512(kTable));
  }
  /// Bytes 2 * `place` and 2 * `place` + 1 of each word as bf16, which holds them exactly.
  template <int place>
  static Int byte_pairs(Int word) {
    const Float low = to_float(shift_byte_down(shift_left<24 - 16 * place>(word)));
    const Float high = to_float(shift_byte_down(shift_left<16 - 16 * place>(word)));
    return _mm512_or_si512(shift_right<16>(bits_of(low)), bit_and(bits_of(high), ~0xffff));
  }
  template <int rows, int vectors>
  static void add_pairs(Float* sums, const Int* weights, const std::int32_t* x) {
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) {
      asm volatile("vdpbf16ps %2%{1to16%}, %1, %0" : "+v"(sums[v]) : "v"(weights[v]), "m"(*x));
    }
  }
  static Float to_float(Int value) { return _mm512_cvtepi32_ps(value); }
};

}  // namespace

const CpuKernels kAvx512Kernels = {
    .score_rows = score_rows_cpu<Avx512>,
    .read = read_cpu<Avx512>,
    .prepare_rows = prepare_rows_cpu<Avx512>,
    .linear_panel = linear_panel_cpu<Avx512>,
    .int8 = {prepare_int8_cpu<Avx512>, dot_panel_cpu<Avx512, Int8Sums>},
    .bf16 = {prepare_bf16_cpu<Avx512>, dot_panel_cpu<Avx512, Bf16Sums>},
    .swiglu = swiglu_cpu<Avx512>,
    .attend_chunk = attend_chunk_cpu<Avx512>,
    .join_chunks = join_chunks_cpu<Avx512>,
    .rms_norm = rms_norm_cpu<Avx512>,
};

}  // namespace asdbench::kernels
