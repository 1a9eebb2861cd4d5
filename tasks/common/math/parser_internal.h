// Tokens to a tree.
#pragma once

#include "tasks/common/math/node_internal.h"
#include "tasks/common/math/tokens.h"

namespace asdbench::math {

/// Nesting of brackets, groups and arguments; deeper answers are not parsed.
constexpr int kMaxDepth = 200;

/// The tree of an answer; nullptr when it cannot be parsed (unknown structure, unbalanced brackets,
/// dots of a sequence, two numbers side by side, ...). OutOfBudget for numbers of thousands of
/// digits.
NodePtr parse_answer(const Tokens& tokens);

}  // namespace asdbench::math
