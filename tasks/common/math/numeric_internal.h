// Values of expressions with a bound on their rounding error. Source: specs/scoring.md,
// section 3.5, rule 3.
#pragma once

#include <boost/multiprecision/cpp_bin_float.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "tasks/common/math/budget_internal.h"
#include "tasks/common/math/node_internal.h"

namespace asdbench::math {

/// 60 decimal digits: 20 have to agree, so that 40 may cancel.
using Real = mp::number<mp::cpp_bin_float<60>, mp::et_off>;

/// A complex number and the binary logarithm of its absolute error; minus infinity when exact.
struct Value {
  Real re = 0;
  Real im = 0;
  double error = 0;
};

/// log2 of |value|; minus infinity for zero.
double magnitude(const Value& value);

/// Values of an expression where its variables are pseudo-random positive numbers, the same in
/// every expression of one comparison.
class Evaluator {
 public:
  /// `opaque` names what cannot be computed (unknown functions, sums), so that equal things get
  /// equal values.
  using Name = std::function<std::string(const Node&)>;
  Evaluator(Budget& budget, Name opaque) : budget_(budget), opaque_(std::move(opaque)) {}

  /// Nothing where the expression has no finite value at this point, or none that can be computed.
  std::optional<Value> at(const Node& node, int point);

 private:
  std::optional<Value> sum(const Node& node, int point);
  std::optional<Value> product(const Node& node, int point);
  std::optional<Value> power(const Node& node, int point);
  std::optional<Value> call(const Node& node, int point);
  std::optional<Value> trigonometric(const std::string& name, const Value& x);
  std::optional<Value> inverse(const std::string& name, const Value& x);
  std::optional<Value> logarithm(const Value& x);
  std::optional<Value> exponential(const Value& x);
  std::optional<Value> quotient(const Value& a, const Value& b);
  std::optional<Value> integer_function(const Node& node, int point);
  Value times(const Value& a, const Value& b);
  Value variable(const std::string& name, int point) const;

  Budget& budget_;
  Name opaque_;
};

}  // namespace asdbench::math
