// Unions of intervals of real numbers with constant ends.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tasks/common/math/identity_internal.h"
#include "tasks/common/math/node_internal.h"

namespace asdbench::math {

struct Interval {
  NodePtr low, high;  // nullptr: infinite
  bool low_closed = false;
  bool high_closed = false;
};
/// Disjoint, not touching, ascending.
using RealSet = std::vector<Interval>;

/// What an interval, a union, a difference, a finite set or the reals hold; absent when an end is
/// no real constant, or the node is none of these.
std::optional<RealSet> real_set(const NodePtr& node, Identity& identity);
bool same_set(const RealSet& a, const RealSet& b, Identity& identity);

/// Solutions of an inequality, or of several joined by "and" or "or", that compare one variable
/// with constants.
struct Solutions {
  std::string variable;
  RealSet set;
};
std::optional<Solutions> solutions(const NodePtr& node, Identity& identity);

/// Whether the node is a set of reals by its form: an interval, a union, a difference, the reals.
bool is_set_form(const Node& node);

}  // namespace asdbench::math
