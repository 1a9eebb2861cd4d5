// score_rows on a CUDA device; use score_rows().
#pragma once

#include "runners/kernels/score_rows.h"

namespace asdbench::kernels {

/// As score_rows; all pointers are device memory, `rows` is at least 1.
void score_rows_cuda(const float* logits, const TokenId* draft, std::int64_t rows,
                     std::int64_t vocab, MaskedVocab masked, RowScores out, Stream stream);

}  // namespace asdbench::kernels
