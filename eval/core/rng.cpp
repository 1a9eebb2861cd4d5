// Philox 4x32-10.
#include "eval/core/rng.h"

namespace asdbench {
namespace {

// FNV-1a, to turn names into key material; not a security boundary.
std::uint64_t hash_text(std::uint64_t state, std::string_view text) {
  for (const char c : text) state = (state ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return (state ^ 0xff) * 0x100000001b3ULL;  // so that ("ab", "c") differs from ("a", "bc")
}

}  // namespace

Rng::Rng(std::uint64_t seed, std::string_view sample_id, std::string_view purpose)
    : key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)} {
  const std::uint64_t stream = hash_text(hash_text(0xcbf29ce484222325ULL, sample_id), purpose);
  stream_ = {static_cast<std::uint32_t>(stream), static_cast<std::uint32_t>(stream >> 32)};
}

std::array<std::uint32_t, 4> Rng::words(std::uint64_t position) const {
  // Multipliers and Weyl constants of Salmon et al. 2011, table 2.
  constexpr std::uint64_t kMultiplier0 = 0xD2511F53;
  constexpr std::uint64_t kMultiplier1 = 0xCD9E8D57;
  constexpr std::uint32_t kWeyl0 = 0x9E3779B9;
  constexpr std::uint32_t kWeyl1 = 0xBB67AE85;
  constexpr int kRounds = 10;
  std::array<std::uint32_t, 4> counter = {static_cast<std::uint32_t>(position),
                                          static_cast<std::uint32_t>(position >> 32), stream_[0],
                                          stream_[1]};
  std::uint32_t key0 = key_[0];
  std::uint32_t key1 = key_[1];
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t product0 = kMultiplier0 * counter[0];
    const std::uint64_t product1 = kMultiplier1 * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key0,
               static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key1,
               static_cast<std::uint32_t>(product0)};
    key0 += kWeyl0;
    key1 += kWeyl1;
  }
  return counter;
}

double Rng::uniform(std::uint64_t position) const {
  const auto w = words(position);
  const std::uint64_t bits = (std::uint64_t{w[0]} << 32 | w[1]) >> 11;
  return static_cast<double>(bits) * 0x1.0p-53;
}

}  // namespace asdbench
