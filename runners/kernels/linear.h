// The linear layers of the native engine, over packed matrices.
#pragma once

#include <cstdint>
#include <span>

#include "runners/kernels/activation_type.h"
#include "runners/kernels/packed_matrix.h"
#include "runners/kernels/pool.h"
#include "runners/kernels/score_rows.h"

namespace asdbench::kernels {

/// Rows of float32 activations [rows, width]; row r begins at data + r * stride (stride >= width).
struct Rows {
  const float* data = nullptr;
  std::int64_t stride = 0;
};
struct MutableRows {
  float* data = nullptr;
  std::int64_t stride = 0;
};

/// One of the matrices that are multiplied with the same activations.
struct LinearOutput {
  const PackedMatrix* weights = nullptr;  // [outputs, inputs]
  MutableRows out;                        // [rows, outputs]
  const float* bias = nullptr;            // [outputs], or null for none
  Rows residual = {};  // [rows, outputs] added to the result; may be `out` itself
};

/// out = x W^T (+ bias) (+ residual), for each of `outputs` (Q, K and V in one round of the pool).
///
/// Shapes:  `x` [rows, inputs], the inputs of every matrix; rows >= 0. x and out must not overlap.
/// Numbers: float32. An output begins as its bias (or 0). Per block of 32 inputs, in rising order,
///          one fused multiply-add per input, also in rising order, sums activation times stored
///          integer; the sum times the block's scale is added to the output, then the offset times
///          the sum of the block's activations. Unquantised weights are one chain over all inputs.
///          The residual comes last. Nothing else enters: the bits do not depend on the other rows,
///          their number, the threads, or the matrices beside it, and are equal on AVX2 and
///          AVX-512. Plain rounds products first. Weights are exact; an activation below 2^-102
///          may lose low bits to the scaling of panel_layout.h.
/// Types:   with a `type` other than kFloat32 the same holds for the rounded activations, except
///          that dot products of Q4_0, Q4_1 and Q8_0 weights may sum a block in another order, and
///          exactly for kInt8; all types are equally independent of rows and threads.
/// Errors:  std::invalid_argument when the matrices differ in inputs or instruction set. A NaN
///          or an infinity in a row makes its outputs NaN or infinite. Allocates nothing.
void linear(Pool& pool, Rows x, std::int64_t rows, std::span<const LinearOutput> outputs,
            ActivationType type = ActivationType::kFloat32);

/// out = silu(x Wgate^T) * (x Wup^T), silu(a) = a / (1 + exp(-a)).
///
/// Shapes:  `x` [rows, inputs]; both matrices [F, inputs]; `out` [rows, F].
/// Numbers and errors: as linear; exp within 2 units in the last place.
void linear_swiglu(Pool& pool, Rows x, std::int64_t rows, const PackedMatrix& gate,
                   const PackedMatrix& up, MutableRows out,
                   ActivationType type = ActivationType::kFloat32);

/// Scores the rows of x W^T, the logits of a head, as score_rows would, without a mask: while they
/// are in the nearest cache, and on every thread of the pool.
///
/// Shapes:  `x` [rows, inputs]; weights [vocab, inputs]; `draft` [rows], -1 for none; `out` fields
///          [rows]; `logits` [rows, vocab] receives the logits themselves unless its data is null.
/// Numbers: the bits of linear() followed by score_rows().
/// Errors:  as linear and score_rows.
void linear_scores(Pool& pool, Rows x, std::int64_t rows, const PackedMatrix& weights,
                   const TokenId* draft, RowScores out, MutableRows logits = {},
                   ActivationType type = ActivationType::kFloat32);

}  // namespace asdbench::kernels
