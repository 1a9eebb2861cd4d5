// score_rows on CUDA: one thread block a row, reducing the pair (value, lowest id).
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>

#include "runners/kernels/launch.cuh"
#include "runners/kernels/score_rows_cuda.h"

namespace asdbench::kernels {
namespace {

constexpr int kThreads = 1024;
constexpr int kWarp = 32;
constexpr unsigned kAllLanes = 0xffffffffu;

// What a thread has seen of a row. `key` orders pairs (value, id): the value's order in the upper
// half, the complement of the id in the lower, so that the largest key is the lowest id among equal
// maxima. 0 is below every key.
struct Seen {
  std::uint64_t key = 0;
  std::uint64_t second = 0;  // the next key below
  bool bad = false;
};

// Keys are distinct, so a pair of the two largest is enough to merge what two threads saw.
__device__ void merge(Seen& seen, std::uint64_t key, std::uint64_t second) {
  if (key > seen.key) {
    seen.second = seen.key > second ? seen.key : second;
    seen.key = key;
  } else if (key > seen.second) {
    seen.second = key;
  }
}

__device__ std::uint64_t key_of(float value, std::uint32_t id) {
  const std::uint32_t bits = __float_as_uint(value + 0.0f);  // -0 becomes +0: they are equal
  const std::uint32_t ordered = (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
  return (std::uint64_t{ordered} << 32) | (0xffffffffu - id);
}

__device__ void see(Seen& seen, float value, std::uint32_t id, bool masked) {
  if (isfinite(value)) {
    merge(seen, key_of(value, id), 0);
  } else {
    seen.bad |= !(masked && value < 0);  // NaN compares false
  }
}

// Grid [rows]; logits [rows, vocab].
__global__ void score_rows_kernel(const float* logits, const TokenId* draft, std::int64_t vocab,
                                  bool masked, RowScores out) {
  const std::int64_t row = blockIdx.x;
  const float* values = logits + row * vocab;
  Seen seen;

  // Single values up to a 16-byte boundary and after the last full group of four.
  const std::int64_t misaligned = (reinterpret_cast<std::uintptr_t>(values) / sizeof(float)) % 4;
  const std::int64_t to_boundary = misaligned == 0 ? 0 : 4 - misaligned;
  const std::int64_t head = to_boundary < vocab ? to_boundary : vocab;
  const std::int64_t groups = (vocab - head) / 4;
  const std::int64_t tail = head + 4 * groups;
  if (threadIdx.x < head) see(seen, values[threadIdx.x], threadIdx.x, masked);
  if (tail + threadIdx.x < vocab) {
    see(seen, values[tail + threadIdx.x], static_cast<std::uint32_t>(tail + threadIdx.x), masked);
  }
  const float4* fours = reinterpret_cast<const float4*>(values + head);
  for (std::int64_t group = threadIdx.x; group < groups; group += kThreads) {
    const float4 four = fours[group];
    const auto id = static_cast<std::uint32_t>(head + 4 * group);
    see(seen, four.x, id, masked);
    see(seen, four.y, id + 1, masked);
    see(seen, four.z, id + 2, masked);
    see(seen, four.w, id + 3, masked);
  }

  __shared__ std::uint64_t warp_keys[kThreads / kWarp];
  __shared__ std::uint64_t warp_seconds[kThreads / kWarp];
  const bool bad_seen = __syncthreads_or(seen.bad) != 0;
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    const std::uint64_t key = __shfl_down_sync(kAllLanes, seen.key, distance);
    const std::uint64_t second = __shfl_down_sync(kAllLanes, seen.second, distance);
    merge(seen, key, second);
  }
  if (threadIdx.x % kWarp == 0) {
    warp_keys[threadIdx.x / kWarp] = seen.key;
    warp_seconds[threadIdx.x / kWarp] = seen.second;
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  Seen row_seen;
  for (int warp = 0; warp < kThreads / kWarp; ++warp) {
    merge(row_seen, warp_keys[warp], warp_seconds[warp]);
  }

  const std::uint64_t best = row_seen.key;
  const bool bad_logits = bad_seen || best == 0;
  const TokenId drafted = draft[row];
  const bool bad_draft = drafted != kNoToken && (drafted < 0 || drafted >= vocab);
  const float nan = __uint_as_float(0x7fc00000u);
  const std::uint32_t choice = 0xffffffffu - static_cast<std::uint32_t>(best);
  const std::uint32_t runner_up = 0xffffffffu - static_cast<std::uint32_t>(row_seen.second);
  const float none = __uint_as_float(0xff800000u);  // -inf: no other id has a finite logit
  out.bad[row] =
      static_cast<std::uint8_t>((bad_logits ? kBadLogits : 0) | (bad_draft ? kBadDraft : 0));
  out.choice[row] = bad_logits ? kNoToken : static_cast<TokenId>(choice);
  out.choice_logit[row] = bad_logits ? nan : values[choice];
  out.runner_up[row] = bad_logits ? nan : row_seen.second == 0 ? none : values[runner_up];
  out.draft_logit[row] = drafted == kNoToken || bad_logits || bad_draft ? nan : values[drafted];
}

}  // namespace

void score_rows_cuda(const float* logits, const TokenId* draft, std::int64_t rows,
                     std::int64_t vocab, MaskedVocab masked, RowScores out, Stream stream) {
  if (rows > std::numeric_limits<std::int32_t>::max()) {
    throw std::invalid_argument("score_rows: " + std::to_string(rows) +
                                " rows are more than a CUDA grid holds");
  }
  launch("score_rows", score_rows_kernel, dim3(static_cast<unsigned>(rows)), dim3(kThreads), 0,
         static_cast<cudaStream_t>(stream.cuda), logits, draft, vocab, masked == MaskedVocab::kYes,
         out);
}

}  // namespace asdbench::kernels
