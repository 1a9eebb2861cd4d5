// The one body of score_rows for every CPU instruction set.
#pragma once

#include <cstdint>
#include <limits>

#include "runners/kernels/score_rows.h"

namespace asdbench::kernels {

/// The two largest values and the smallest of a stretch of a row, and whether it holds a NaN.
template <class Simd>
struct Extremes {
  float largest;
  float second;  // equal to `largest` when two values are
  float smallest;
  bool nan;

  /// One more value for the two largest.
  void take(float value) {
    if (value > largest) {
      second = largest;
      largest = value;
    } else if (value > second) {
      second = value;
    }
  }
};

/// `count` floats at `values`, any alignment. With a NaN the two values mean nothing.
template <class Simd>
Extremes<Simd> extremes(const float* values, std::int64_t count) {
  // Four independent chains hide the latency of max and min.
  constexpr int kChains = 4;
  constexpr std::int64_t kStep = kChains * Simd::kLanes;
  constexpr std::int64_t kFloatsPerLine = 16;
  constexpr std::int64_t kAhead = 1024;  // 4 KiB: past the page at which hardware prefetch stops
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  Extremes<Simd> found{-kInfinity, -kInfinity, kInfinity, false};
  std::int64_t i = 0;
  if (count >= kStep) {
    typename Simd::Float largest[kChains];
    typename Simd::Float second[kChains];
    typename Simd::Float smallest[kChains];
    typename Simd::Mask nan[kChains];
    for (int chain = 0; chain < kChains; ++chain) {
      largest[chain] = Simd::broadcast(-kInfinity);
      second[chain] = largest[chain];
      smallest[chain] = Simd::broadcast(kInfinity);
      nan[chain] = Simd::no_lanes();
    }
    for (; i + kStep <= count; i += kStep) {
#pragma GCC unroll 4
      for (int line = 0; line < kStep / kFloatsPerLine; ++line) {
        __builtin_prefetch(values + i + kAhead + line * kFloatsPerLine);
      }
#pragma GCC unroll 4
      for (int chain = 0; chain < kChains; ++chain) {
        const typename Simd::Float value = Simd::load(values + i + chain * Simd::kLanes);
        second[chain] = Simd::max(second[chain], Simd::min(largest[chain], value));
        largest[chain] = Simd::max(largest[chain], value);
        smallest[chain] = Simd::min(smallest[chain], value);
        nan[chain] = Simd::either(nan[chain], Simd::is_nan(value));
      }
    }
    for (int chain = 1; chain < kChains; ++chain) {
      second[0] =
          Simd::max(Simd::max(second[0], second[chain]), Simd::min(largest[0], largest[chain]));
      largest[0] = Simd::max(largest[0], largest[chain]);
      smallest[0] = Simd::min(smallest[0], smallest[chain]);
      nan[0] = Simd::either(nan[0], nan[chain]);
    }
    float lane_largest[Simd::kLanes];
    float lane_second[Simd::kLanes];
    Simd::store(lane_largest, largest[0]);
    Simd::store(lane_second, second[0]);
    for (int lane = 0; lane < Simd::kLanes; ++lane) {
      found.take(lane_largest[lane]);
      // Below the lane's largest, so it can be second at most.
      if (lane_second[lane] > found.second) found.second = lane_second[lane];
    }
    found.smallest = Simd::smallest_lane(smallest[0]);
    found.nan = Simd::any_lane(nan[0]);
  }
  for (; i < count; ++i) {
    const float value = values[i];
    found.take(value);
    if (value < found.smallest) found.smallest = value;
    if (value != value) found.nan = true;
  }
  return found;
}

/// Index of the first of `count` values that equals `wanted` (== holds for -0 and +0), which is
/// among them.
template <class Simd>
std::int64_t first_equal(const float* values, std::int64_t count, float wanted) {
  const typename Simd::Float pattern = Simd::broadcast(wanted);
  std::int64_t i = 0;
  while (i + Simd::kLanes <= count &&
         !Simd::any_lane(Simd::is_equal(Simd::load(values + i), pattern))) {
    i += Simd::kLanes;
  }
  while (values[i] != wanted) ++i;
  return i;
}

/// score_rows on the host; see score_rows.h.
template <class Simd>
void score_rows_cpu(const float* logits, const TokenId* draft, std::int64_t rows,
                    std::int64_t vocab, MaskedVocab masked, RowScores out) {
  // The id is looked for once, in the first stretch that holds the maximum: the row is read from
  // memory once, and the stretch (16 KiB) a second time from a near cache.
  constexpr std::int64_t kStretch = 4096;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (std::int64_t row = 0; row < rows; ++row) {
    const float* values = logits + row * vocab;
    Extremes<Simd> total{-kInfinity, -kInfinity, kInfinity, false};
    std::int64_t best = 0;  // where that stretch begins
    for (std::int64_t begin = 0; begin < vocab; begin += kStretch) {
      const std::int64_t count = vocab - begin < kStretch ? vocab - begin : kStretch;
      const Extremes<Simd> here = extremes<Simd>(values + begin, count);
      total.nan |= here.nan;
      if (here.smallest < total.smallest) total.smallest = here.smallest;
      if (here.largest > total.largest) best = begin;
      total.take(here.largest);
      if (here.second > total.second) total.second = here.second;
    }
    const bool bad_logits = total.nan || !(total.largest > -kInfinity) ||
                            total.largest == kInfinity ||
                            (masked == MaskedVocab::kNo && total.smallest == -kInfinity);
    const std::int64_t choice =
        bad_logits ? kNoToken
                   : best + first_equal<Simd>(values + best, vocab - best, total.largest);
    const TokenId drafted = draft[row];
    const bool bad_draft = drafted != kNoToken && (drafted < 0 || drafted >= vocab);
    out.bad[row] =
        static_cast<std::uint8_t>((bad_logits ? kBadLogits : 0) | (bad_draft ? kBadDraft : 0));
    out.choice[row] = bad_logits ? kNoToken : static_cast<TokenId>(choice);
    out.choice_logit[row] = bad_logits ? kNan : values[choice];
    out.runner_up[row] = bad_logits ? kNan : total.second;
    out.draft_logit[row] = drafted == kNoToken || bad_logits || bad_draft ? kNan : values[drafted];
  }
}

}  // namespace asdbench::kernels
