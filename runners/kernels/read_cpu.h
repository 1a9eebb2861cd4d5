// The plain read of a buffer, whose rate is the ceiling of every kernel that is bound by memory.
#pragma once

#include <cstdint>

namespace asdbench::kernels {

/// CpuKernels::read.
template <class Simd>
std::uint64_t read_cpu(const std::uint64_t* words, std::int64_t count) {
  constexpr int kChains = 4;
  constexpr std::int64_t kStep = kChains * Simd::kWords;
  constexpr std::int64_t kWordsPerLine = 8;
  constexpr std::int64_t kAhead = 512;  // 4 KiB: past the page at which hardware prefetch stops
  typename Simd::Words sums[kChains] = {};
  for (std::int64_t i = 0; i < count; i += kStep) {
#pragma GCC unroll 4
    for (int line = 0; line < kStep / kWordsPerLine; ++line) {
      __builtin_prefetch(words + i + kAhead + line * kWordsPerLine);
    }
#pragma GCC unroll 4
    for (int chain = 0; chain < kChains; ++chain) {
      sums[chain] ^=
          *reinterpret_cast<const typename Simd::Words*>(words + i + chain * Simd::kWords);
    }
  }
  const typename Simd::Words all = (sums[0] ^ sums[1]) ^ (sums[2] ^ sums[3]);
  std::uint64_t result = 0;
  for (int lane = 0; lane < Simd::kWords; ++lane)
    result ^= static_cast<std::uint64_t>(Simd::word(all, lane));
  return result;
}

}  // namespace asdbench::kernels
