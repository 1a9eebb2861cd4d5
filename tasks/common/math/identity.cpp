// Normal forms first; where they do not decide, values at twelve points.
#include <cmath>
#include <set>

#include "tasks/common/math/identity_internal.h"

namespace asdbench::math {
namespace {

constexpr int kPoints = 12;
constexpr int kEnough = 4;            // usable points
constexpr double kRelative = -66.44;  // log2 of 1e-20
constexpr double kAbsolute = -99.66;  // log2 of 1e-30

enum class Same : std::uint8_t { kYes, kNo, kUnknown };

double distance(const Value& a, const Value& b) { return magnitude({a.re - b.re, a.im - b.im, 0}); }

// Values whose rounding error hides more than the tolerance say nothing, unless both are nothing
// but error around zero.
Same compare_values(const Value& a, const Value& b) {
  const double size = std::max(magnitude(a), magnitude(b));
  const double error = std::max(a.error, b.error);
  if (magnitude(a) <= a.error && magnitude(b) <= b.error) {
    return error < kAbsolute || (a.error == b.error && std::isinf(error)) ? Same::kYes
                                                                          : Same::kUnknown;
  }
  if (distance(a, b) <= size + kRelative) {
    return error <= size + kRelative ? Same::kYes : Same::kUnknown;
  }
  return distance(a, b) > error + 1 ? Same::kNo : Same::kUnknown;
}

std::set<std::string> variables(const NodePtr& node) {
  std::set<std::string> names;
  collect_variables(*node, names);
  return names;
}

}  // namespace

Identity::Identity(Budget& budget)
    : budget_(budget), forms_(budget), evaluator_(budget, [this](const Node& node) {
        const auto name = forms_.name(node);
        return name ? *name : throw NoForm{};
      }) {}

std::optional<Form> Identity::form(const NodePtr& node) {
  try {
    return forms_.of(*node);
  } catch (const NoForm&) {
    return std::nullopt;
  }
}

bool Identity::same_values(const NodePtr& a, const NodePtr& b, bool constant) {
  const int needed = constant ? 1 : kEnough;
  int usable = 0;
  for (int point = 0; point < (constant ? 1 : kPoints); ++point) {
    const auto left = evaluator_.at(*a, point);
    const auto right = left ? evaluator_.at(*b, point) : std::nullopt;
    if (!right) continue;
    const Same same = compare_values(*left, *right);
    if (same == Same::kNo) return false;
    if (same == Same::kYes) ++usable;
  }
  return usable >= needed;
}

bool Identity::same_exact_names(const NodePtr& a, const NodePtr& b) {
  try {
    const auto left = forms_.of(*a);
    const auto right = forms_.of(*b);
    if (left && right) {
      if (forms_.equal(*left, *right)) return true;
      if (forms_.decides(*left) && forms_.decides(*right)) return false;
      // A tower of powers and the same plus one are close, and different.
      const auto difference = forms_.rational_difference(*left, *right);
      if (difference && *difference != 0) return false;
    }
    const std::set<std::string> names = variables(a);
    if (names != variables(b)) return false;
    return same_values(a, b, names.empty());
  } catch (const NoForm&) {
    return false;
  }
}

bool Identity::same(const NodePtr& a, const NodePtr& b) {
  if (same_exact_names(a, b)) return true;
  // Letters differ in case only: 3R^2 and 3r^2.
  const NodePtr left = fold_case(a);
  const NodePtr right = fold_case(b);
  if (left == a && right == b) return false;
  const bool collides = variables(left).size() != variables(a).size() ||
                        variables(right).size() != variables(b).size();
  return !collides && same_exact_names(left, right);
}

int Identity::constant_factor(const NodePtr& a, const NodePtr& b) {
  try {
    const auto left = forms_.of(*a);
    const auto right = forms_.of(*b);
    if (left && right) {
      if (left->numerator.empty() || right->numerator.empty()) {
        return left->numerator.empty() && right->numerator.empty() ? 1 : 0;
      }
      if (const auto factor = forms_.factor(*left, *right)) return *factor < 0 ? -1 : 1;
      if (forms_.decides_factor(*left) && forms_.decides_factor(*right)) return 0;
    }
    const std::set<std::string> names = variables(a);
    if (names.empty() || names != variables(b)) return 0;
    std::optional<Value> ratio;
    int usable = 0;
    for (int point = 0; point < kPoints; ++point) {
      const NodePtr quotient = multiply_nodes({a, reciprocal(b)});
      const auto here = evaluator_.at(*quotient, point);
      if (!here || here->im != 0 || magnitude(*here) <= here->error) continue;
      if (!ratio) ratio = here;
      if (compare_values(*ratio, *here) != Same::kYes) return 0;
      ++usable;
    }
    if (usable < kEnough) return 0;
    return ratio->re < 0 ? -1 : 1;
  } catch (const NoForm&) {
    return 0;
  }
}

std::optional<Rational> Identity::rational(const NodePtr& node) {
  const auto found = form(node);
  return found ? NormalForms::rational(*found) : std::nullopt;
}

std::optional<Real> Identity::real(const NodePtr& node) {
  if (!variables(node).empty()) return std::nullopt;
  try {
    const auto value = evaluator_.at(*node, 0);
    if (!value) return std::nullopt;
    // An imaginary part that is nothing but rounding is none.
    if (value->im != 0 && magnitude({value->im, 0, 0}) > value->error) return std::nullopt;
    return value->re;
  } catch (const NoForm&) {
    return std::nullopt;
  }
}

std::optional<int> Identity::compare(const NodePtr& a, const NodePtr& b) {
  if (same_exact_names(a, b)) return 0;
  const auto left = real(a);
  const auto right = real(b);
  if (!left || !right) return std::nullopt;
  return *left < *right ? -1 : 1;
}

}  // namespace asdbench::math
