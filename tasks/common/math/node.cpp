// Building and walking trees. Their depth is bounded by the parser, so these recursions are too.
#include <algorithm>
#include <array>

#include "tasks/common/characters.h"
#include "tasks/common/math/node_internal.h"

namespace asdbench::math {
namespace {

NodePtr flat(Kind kind, std::vector<NodePtr> children) {
  if (children.size() == 1) return children.front();
  return make_node(kind, std::move(children));
}

template <typename Change>
NodePtr rebuild(const NodePtr& node, const Change& change) {
  std::vector<NodePtr> children;
  bool changed = false;
  for (const NodePtr& child : node->children) {
    children.push_back(change(child));
    changed = changed || children.back() != child;
  }
  if (!changed) return node;
  auto copy = std::make_shared<Node>(*node);
  copy->children = std::move(children);
  return copy;
}

}  // namespace

NodePtr make_node(Kind kind, std::vector<NodePtr> children, const std::string& name) {
  auto node = std::make_shared<Node>();
  node->kind = kind;
  node->children = std::move(children);
  node->name = name;
  return node;
}

NodePtr number_node(const Rational& value) {
  auto node = std::make_shared<Node>();
  node->kind = Kind::kNumber;
  node->number = value;
  return node;
}

NodePtr symbol_node(const std::string& name) { return make_node(Kind::kSymbol, {}, name); }
NodePtr add_nodes(std::vector<NodePtr> terms) { return flat(Kind::kAdd, std::move(terms)); }
NodePtr multiply_nodes(std::vector<NodePtr> factors) {
  return flat(Kind::kMultiply, std::move(factors));
}
NodePtr power_node(NodePtr base, NodePtr exponent) {
  return make_node(Kind::kPower, {std::move(base), std::move(exponent)});
}

NodePtr negate(NodePtr value) {
  if (value->kind == Kind::kNumber) {
    auto copy = std::make_shared<Node>(*value);
    copy->number = -copy->number;
    return copy;
  }
  return make_node(Kind::kMultiply, {number_node(-1), std::move(value)});
}

NodePtr subtract(NodePtr left, NodePtr right) {
  return make_node(Kind::kAdd, {std::move(left), negate(std::move(right))});
}

NodePtr reciprocal(NodePtr value) { return power_node(std::move(value), number_node(-1)); }

bool is_integer(const Rational& value) { return mp::denominator(value) == 1; }

std::size_t bits_of(const Integer& value) {
  if (value == 0) return 0;
  return mp::msb(value < 0 ? Integer(-value) : value) + 1;
}

std::size_t bits_of(const Rational& value) {
  return std::max(bits_of(Integer(mp::numerator(value))), bits_of(Integer(mp::denominator(value))));
}

bool contains_kind(const Node& node, Kind kind) {
  return node.kind == kind ||
         std::any_of(node.children.begin(), node.children.end(),
                     [&](const NodePtr& child) { return contains_kind(*child, kind); });
}

bool contains_symbol(const Node& node, std::string_view name) {
  return (node.kind == Kind::kSymbol && node.name == name) ||
         std::any_of(node.children.begin(), node.children.end(),
                     [&](const NodePtr& child) { return contains_symbol(*child, name); });
}

bool is_constant_name(std::string_view name) {
  return name == "pi" || name == "e" || name == "i" || name == "infty" || name == "pm";
}

bool is_known_function(std::string_view name) {
  static constexpr std::array<std::string_view, 24> kKnown = {
      "sin",    "cos",  "tan",  "cot",  "sec", "csc", "arcsin", "arccos",
      "arctan", "sinh", "cosh", "tanh", "ln",  "log", "exp",    "abs",
      "floor",  "ceil", "max",  "min",  "gcd", "lcm", "binom",  "factorial"};
  return std::find(kKnown.begin(), kKnown.end(), name) != kKnown.end();
}

void collect_variables(const Node& node, std::set<std::string>& names) {
  if (node.kind == Kind::kSymbol && !is_constant_name(node.name)) names.insert(node.name);
  if (node.kind == Kind::kText) names.insert("text:" + node.name);
  if (node.kind == Kind::kCall && !is_known_function(node.name)) names.insert(node.name + "()");
  for (const NodePtr& child : node.children) collect_variables(*child, names);
}

NodePtr replace_symbol(const NodePtr& node, std::string_view from, const NodePtr& to) {
  if (node->kind == Kind::kSymbol && node->name == from) return to;
  return rebuild(node, [&](const NodePtr& child) { return replace_symbol(child, from, to); });
}

NodePtr fold_case(const NodePtr& node) {
  if (node->kind == Kind::kSymbol && !is_constant_name(node->name) && node->name.size() == 1) {
    // "E" must not become the constant e, nor "I" the imaginary unit.
    const std::string folded(1, to_lower(node->name[0]));
    return is_constant_name(folded) ? node : symbol_node(folded);
  }
  return rebuild(node, [](const NodePtr& child) { return fold_case(child); });
}

}  // namespace asdbench::math
