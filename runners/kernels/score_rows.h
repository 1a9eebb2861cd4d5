// Argmax, its logit and the draft's logit for each row of logits.
#pragma once

#include <cstdint>

#include "eval/core/token_id.h"

namespace asdbench::kernels {

/// Output arrays of score_rows, each [rows].
struct RowScores {
  TokenId* choice;
  float* choice_logit;
  float* draft_logit;
  std::uint8_t* bad;
};

/// What a -inf means.
enum class MaskedVocab : std::uint8_t { kNo, kYes };

/// An execution stream: null is the host; otherwise a cudaStream_t.
struct Stream {
  void* cuda = nullptr;
  bool on_device = false;
};

/// For each row: the target's choice (lowest id among equal maxima), its logit, the draft's logit.
///
/// Shapes:  `logits` [rows, vocab], row-major; `draft` [rows], -1 for none; `out` fields [rows].
/// Units:   logits as given (nats up to a row constant); nothing is normalised.
/// Errors:  NaN, +inf, a -inf where no mask is allowed, no finite value, or a draft outside the
/// vocabulary (other than
///          -1) sets `out.bad[row]`; DeviceError-like exception when the launch fails.
/// Order:   asynchronous on `stream` for CUDA, complete on return for CPU; same bits on both.
/// Source:  specs/asd.md, sections 2 and 10.
void score_rows(const float* logits, const TokenId* draft, std::int64_t rows, std::int64_t vocab,
                MaskedVocab masked, RowScores out, Stream stream = {});

}  // namespace asdbench::kernels
