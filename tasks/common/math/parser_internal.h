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

/// The expression at the start as SymPy's LaTeX parser reads it, which several named graders stand
/// on: what follows it is ignored, a number before a fraction is a factor, the base of a number is
/// dropped, \log is natural and \pm a name. nullptr when there is none, or a relation follows.
NodePtr parse_first_expression(const Tokens& tokens);

}  // namespace asdbench::math
