// Argmax, its logit and the draft's logit for each row of logits.
#pragma once

#include <cstdint>

#include "eval/core/token_id.h"

namespace asdbench::kernels {

/// Why a row cannot be judged; flags of RowScores::bad.
inline constexpr std::uint8_t kBadLogits = 1;  // NaN, +inf, -inf without a mask, nothing finite
inline constexpr std::uint8_t kBadDraft = 2;   // neither kNoToken nor an id of the vocabulary

/// Output arrays of score_rows, each [rows].
struct RowScores {
  TokenId* choice;      // kNoToken under kBadLogits
  float* choice_logit;  // NaN under kBadLogits
  float* runner_up;     // largest logit of all other ids: equal to the choice's at a tie; -inf when
                        // there is no other, NaN under kBadLogits
  float* draft_logit;   // NaN without a draft and when the row is bad
  std::uint8_t* bad;    // 0, or the flags above
};

/// What a -inf means.
enum class MaskedVocab : std::uint8_t { kNo, kYes };

/// An execution stream: the host unless `on_device`, then the cudaStream_t in `cuda` (null: the
/// default stream).
struct Stream {
  void* cuda = nullptr;
  bool on_device = false;
};

/// For each row: the target's choice (lowest id among equal maxima), its logit, the runner-up's,
/// the draft's.
///
/// Shapes:  `logits` [rows, vocab], row-major; `draft` [rows], -1 for none; `out` fields [rows].
/// Units:   logits as given (nats up to a row constant); nothing is normalised.
/// Errors:  NaN, +inf, a -inf where no mask is allowed, no finite value, or a draft outside the
///          vocabulary (other than -1) sets `out.bad[row]`; other rows are not touched by it.
///          std::invalid_argument for negative sizes or a vocabulary beyond TokenId; CudaError when
///          the launch fails or the build has no CUDA kernels; IsaError (see isa.h).
/// Order:   asynchronous on `stream` for CUDA, complete on return for CPU; same bits on both.
/// Source:  specs/asd.md, sections 2 and 10.
void score_rows(const float* logits, const TokenId* draft, std::int64_t rows, std::int64_t vocab,
                MaskedVocab masked, RowScores out, Stream stream = {});

}  // namespace asdbench::kernels
