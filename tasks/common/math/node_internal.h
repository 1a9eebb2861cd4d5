// The tree of a parsed answer.
#pragma once

#include <boost/multiprecision/cpp_int.hpp>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace asdbench::math {

namespace mp = boost::multiprecision;
using Integer = mp::number<mp::cpp_int_backend<>, mp::et_off>;
using Rational = mp::number<mp::rational_adaptor<mp::cpp_int_backend<>>, mp::et_off>;

enum class Kind : std::uint8_t {
  // values
  kNumber,    // number; decimal: written with a point
  kSymbol,    // name: a variable, "pi", "e", "i", "infty", "pm" (+1 or -1, expanded later)
  kText,      // name: words in lower case without spaces
  kAdd,       // children
  kMultiply,  // children
  kPower,     // base, exponent; a root has exponent 1/n
  kCall,      // name(children): "sin", "abs", "log" (argument, base), "factorial", "det", "f", ...
  kPercent,   // child
  kDegree,    // child
  kBased,     // name: digits; number: the base
  kMatrix,    // children row by row, `columns` of them in each row
  // collections and statements
  kTuple,       // name: its brackets, "()", "[)", "<>"; children in order
  kSet,         // children
  kList,        // children; name: "," or "and" or "or"
  kUnion,       // left, right
  kIntersect,   // left, right
  kDifference,  // left, right
  kRatio,       // children
  kChain,       // children with `operators` between them; symbolic: the first is only a name
};

struct Node;
using NodePtr = std::shared_ptr<const Node>;

struct Node {
  Kind kind;
  std::string name;
  std::vector<NodePtr> children;
  Rational number;
  bool decimal = false;
  bool fraction = false;   // a number written as a fraction of two integers
  bool unreduced = false;  // such a fraction, not in lowest terms
  bool symbolic = false;
  std::int32_t columns = 0;
  std::vector<std::string> operators;
};

NodePtr number_node(const Rational& value);
NodePtr symbol_node(const std::string& name);
NodePtr make_node(Kind kind, std::vector<NodePtr> children, const std::string& name = "");
NodePtr add_nodes(std::vector<NodePtr> terms);         // flat; one term is itself
NodePtr multiply_nodes(std::vector<NodePtr> factors);  // likewise
NodePtr power_node(NodePtr base, NodePtr exponent);
NodePtr negate(NodePtr value);
NodePtr subtract(NodePtr left, NodePtr right);
NodePtr reciprocal(NodePtr value);

bool is_integer(const Rational& value);
/// Bits of the larger of numerator and denominator.
std::size_t bits_of(const Rational& value);
std::size_t bits_of(const Integer& value);

/// Whether a node of this kind, or a symbol of this name, stands anywhere in the tree.
bool contains_kind(const Node& node, Kind kind);
bool contains_symbol(const Node& node, std::string_view name);

/// Names of variables; functions without a known meaning count as well. Constants do not.
void collect_variables(const Node& node, std::set<std::string>& names);
bool is_constant_name(std::string_view name);
/// Functions that can be evaluated; all others are opaque.
bool is_known_function(std::string_view name);

/// A copy with every `from` symbol replaced.
NodePtr replace_symbol(const NodePtr& node, std::string_view from, const NodePtr& to);
/// A copy with the names of variables in lower case.
NodePtr fold_case(const NodePtr& node);

}  // namespace asdbench::math
