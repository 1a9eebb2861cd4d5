// Whether two expressions are the same function. Source: specs/scoring.md, section 3.5.
#pragma once

#include <optional>

#include "tasks/common/math/budget_internal.h"
#include "tasks/common/math/normal_form_internal.h"
#include "tasks/common/math/numeric_internal.h"

namespace asdbench::math {

/// Questions about expressions within one comparison; OutOfBudget from any of them.
class Identity {
 public:
  explicit Identity(Budget& budget);

  /// Identical functions of the same variables, whose letters may differ in case.
  bool same(const NodePtr& a, const NodePtr& b);
  /// The same with case.
  bool same_exact_names(const NodePtr& a, const NodePtr& b);
  /// a = c b for a constant c: positive or negative (+1, -1); 0 when there is none.
  int constant_factor(const NodePtr& a, const NodePtr& b);
  /// The exact rational that an expression without variables is; absent for all others.
  std::optional<Rational> rational(const NodePtr& node);
  /// The value of an expression without variables; absent when it is not real or not finite.
  std::optional<Real> real(const NodePtr& node);
  /// -1, 0, +1 for a < b, a = b, a > b; absent unless both are real.
  std::optional<int> compare(const NodePtr& a, const NodePtr& b);

 private:
  std::optional<Form> form(const NodePtr& node);
  bool same_values(const NodePtr& a, const NodePtr& b, bool constant);

  Budget& budget_;
  NormalForms forms_;
  Evaluator evaluator_;
};

}  // namespace asdbench::math
