// Sums, products, scalar multiples and determinants of matrices. Source: specs/scoring.md,
// section 3.4, rule M.
#pragma once

#include "tasks/common/math/budget_internal.h"
#include "tasks/common/math/node_internal.h"

namespace asdbench::math {

bool has_matrix(const Node& node);

/// A tree that is one matrix of scalars, or a scalar without matrices; nullptr when shapes do not
/// fit or an operation is unknown.
NodePtr evaluate_matrices(const NodePtr& node, Budget& budget);

}  // namespace asdbench::math
