// Random numbers: a counter-based generator for decoding, SplitMix64 for resampling.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace asdbench {

/// Philox 4x32-10 (Salmon et al. 2011). Keyed by seed, sample, and purpose, counted by position, so
/// that a draw never depends on batch or order.
class Rng {
 public:
  Rng() : Rng(0, "", "") {}
  Rng(std::uint64_t seed, std::string_view sample_id, std::string_view purpose);

  /// Four 32-bit words for `position`; the same arguments always give the same words.
  std::array<std::uint32_t, 4> words(std::uint64_t position) const;
  /// A number in [0, 1) with 53 bits for `position`.
  double uniform(std::uint64_t position) const;

 private:
  std::array<std::uint32_t, 2> key_;
  std::array<std::uint32_t, 2> stream_;
};

/// The generator of measurement.md section 3: index = floor((u >> 11) * 2^-53 * n).
class SplitMix64 {
 public:
  explicit SplitMix64(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
  std::uint64_t index(std::uint64_t n) {
    return static_cast<std::uint64_t>(uniform() * static_cast<double>(n));
  }

 private:
  std::uint64_t state_;
};

}  // namespace asdbench
