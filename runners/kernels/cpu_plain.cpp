// The CPU kernels in C++ without intrinsics: the fallback, and what the other sets are compared to.
#include <bit>
#include <cstdint>

#include "runners/kernels/cpu_kernels.h"
#include "runners/kernels/dot_cpu.h"
#include "runners/kernels/half.h"
#include "runners/kernels/linear_cpu.h"
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
  static Float load_once(const float* values) { return *values; }
  static void store(float* values, Float value) { *values = value; }
  // With a NaN both return the second operand, like the instructions of the other sets.
  static Float max(Float a, Float b) { return a > b ? a : b; }
  static Float min(Float a, Float b) { return a < b ? a : b; }
  static float largest_lane(Float value) { return value; }
  static float smallest_lane(Float value) { return value; }
  static Mask no_lanes() { return false; }
  static Mask is_equal(Float a, Float b) { return a == b; }
  static Mask is_nan(Float value) { return value != value; }
  static Mask either(Mask a, Mask b) { return a || b; }
  static bool any_lane(Mask mask) { return mask; }
  static std::uint64_t word(Words words, int) { return words; }

  using Int = std::int32_t;
  static constexpr int kTileRows = 1;
  static constexpr int kChains = 2 * kPanel;
  static constexpr int kOneByOneRows = 0;

  static Float fma(Float a, Float b, Float c) { return a * b + c; }
  /// sums[v] += weights[v] * *x.
  template <int rows, int vectors>
  static void add_products(Float* sums, const Float* weights, const float* x) {
    const Float value = broadcast(*x);
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) sums[v] = fma(weights[v], value, sums[v]);
  }
  static Float add(Float a, Float b) { return a + b; }
  static Float subtract(Float a, Float b) { return a - b; }
  static float sum_lanes(Float a) { return a; }
  static Float multiply(Float a, Float b) { return a * b; }
  static Float divide(Float a, Float b) { return a / b; }
  static Float round(Float a) { return __builtin_nearbyintf(a); }
  static Float times_power_of_two(Float a, Float n) {
    if (n != n) return n;
    return a * std::bit_cast<float>((static_cast<std::int32_t>(n) + 127) << 23);
  }
  static Float load_f16(const std::uint16_t* values) { return half_to_float(*values); }
  static Float load_bf16(const std::uint16_t* values) { return bf16_to_float(*values); }
  static Int load_int(const std::int32_t* values) { return *values; }
  template <int bits>
  static Int shift_left(Int value) {
    return static_cast<Int>(static_cast<std::uint32_t>(value) << bits);
  }
  template <int bits>
  static Int shift_right(Int value) {
    return static_cast<Int>(static_cast<std::uint32_t>(value) >> bits);
  }
  static Int shift_byte_down(Int value) { return value >> 24; }
  static Int load_again(const std::int32_t* values) { return *values; }
  static Int load_masked(const std::int32_t* values, int mask) { return *values & mask; }
  static Int bit_and(Int value, int mask) { return value & mask; }
  static Int bit_or(Int a, Int b) { return a | b; }
  static Int broadcast_int(int value) { return value; }
  static Int add_int(Int a, Int b) { return a + b; }
  static Int bits_of(Float value) { return std::bit_cast<Int>(value); }
  static Float float_of(Int bits) { return std::bit_cast<Float>(bits); }

  static constexpr int kDotRows = 1;
  static constexpr int kDotVectors = kPanel;
  static constexpr int kByteZero = 0;
  static constexpr bool kDotsInHalves = false;
  static void store_bytes(const float* integers, bool for_nibbles, std::int32_t* words) {
    std::int8_t values[kBlock];
    for (int i = 0; i < kBlock; ++i) {
      // 0, 2, 4, 6, 1, 3, 5, 7 of each eight.
      const int from = for_nibbles ? i / 8 * 8 + i % 4 * 2 + i / 4 % 2 : i;
      // A NaN comes with a scale that makes every result NaN.
      const float value = integers[from];
      values[i] = value == value ? static_cast<std::int8_t>(value) : std::int8_t{0};
    }
    __builtin_memcpy(words, values, sizeof(values));
  }
  static Int signed_bytes(Int word) { return word; }
  template <int vectors>
  static void add_dots(Int* sums, const Int* weights, const std::int32_t* x) {
    for (int v = 0; v < vectors; ++v) {
      for (int shift = 0; shift < 32; shift += 8) {
        sums[v] += std::int32_t{static_cast<std::int8_t>(weights[v] >> shift)} *
                   static_cast<std::int8_t>(*x >> shift);
      }
    }
  }
  template <int vectors>
  static void add_signed_dots(Int* sums, const Int* weights, const std::int32_t* x) {
    add_dots<vectors>(sums, weights, x);
  }
  static Float to_float(Int value) { return static_cast<float>(value); }
};

}  // namespace

const CpuKernels kPlainKernels = {
    .score_rows = score_rows_cpu<Plain>,
    .read = read_cpu<Plain>,
    .prepare_rows = prepare_rows_cpu<Plain>,
    .linear_panel = linear_panel_cpu<Plain>,
    .int8 = {prepare_int8_cpu<Plain>, dot_panel_cpu<Plain, Int8Sums>},
    .bf16 = {},
    .swiglu = swiglu_cpu<Plain>,
    .attend_chunk = attend_chunk_cpu<Plain>,
    .join_chunks = join_chunks_cpu<Plain>,
    .rms_norm = rms_norm_cpu<Plain>,
};

}  // namespace asdbench::kernels
