// Ends are compared exactly where they are rational, by value elsewhere.
#include <algorithm>

#include "tasks/common/math/real_set_internal.h"

namespace asdbench::math {
namespace {

constexpr const char* kReals = "\\mathbb{R}";
constexpr std::size_t kMaxIntervals = 100;

/// Ends that cannot be ordered.
struct Unordered {};

// +1 or -1 for an infinity, 0 for anything else.
int infinite(const Node& node) {
  if (node.kind == Kind::kSymbol) return node.name == "infty" ? 1 : 0;
  if (node.kind == Kind::kMultiply && node.children.size() == 2 &&
      node.children[0]->kind == Kind::kNumber && node.children[0]->number == -1) {
    return -infinite(*node.children[1]);
  }
  return 0;
}

class Sets {
 public:
  explicit Sets(Identity& identity) : identity_(identity) {}

  int order(const NodePtr& a, const NodePtr& b) {
    const auto result = identity_.compare(a, b);
    if (!result) throw Unordered{};
    return *result;
  }
  // Orders of low and high ends, where nullptr stands for minus and plus infinity.
  int order_low(const Interval& a, const Interval& b) {
    if (!a.low || !b.low) return (a.low ? 1 : 0) - (b.low ? 1 : 0);
    const int result = order(a.low, b.low);
    return result != 0 ? result : (b.low_closed ? 1 : 0) - (a.low_closed ? 1 : 0);
  }
  int order_high(const Interval& a, const Interval& b) {
    if (!a.high || !b.high) return (b.high ? 1 : 0) - (a.high ? 1 : 0);
    const int result = order(a.high, b.high);
    return result != 0 ? result : (a.high_closed ? 1 : 0) - (b.high_closed ? 1 : 0);
  }
  bool empty(const Interval& x) {
    if (!x.low || !x.high) return false;
    const int result = order(x.low, x.high);
    return result > 0 || (result == 0 && !(x.low_closed && x.high_closed));
  }
  // Whether b, which does not start before a, overlaps or touches it.
  bool joins(const Interval& a, const Interval& b) {
    if (!a.high || !b.low) return true;
    const int result = order(a.high, b.low);
    return result > 0 || (result == 0 && (a.high_closed || b.low_closed));
  }

  RealSet united(RealSet parts) {
    if (parts.size() > kMaxIntervals) throw OutOfBudget{"too many intervals"};
    std::sort(parts.begin(), parts.end(),
              [&](const Interval& a, const Interval& b) { return order_low(a, b) < 0; });
    RealSet out;
    for (Interval& part : parts) {
      if (!out.empty() && joins(out.back(), part)) {
        if (order_high(out.back(), part) < 0) {
          out.back().high = part.high;
          out.back().high_closed = part.high_closed;
        }
      } else {
        out.push_back(std::move(part));
      }
    }
    return out;
  }

  RealSet intersected(const RealSet& a, const RealSet& b) {
    RealSet out;
    for (const Interval& x : a) {
      for (const Interval& y : b) {
        Interval both = order_low(x, y) >= 0 ? x : y;
        const Interval& end = order_high(x, y) <= 0 ? x : y;
        both.high = end.high;
        both.high_closed = end.high_closed;
        if (!empty(both)) out.push_back(both);
      }
    }
    return united(std::move(out));
  }

  RealSet complement(const RealSet& set) {
    RealSet out;
    Interval gap;
    bool open = true;  // a gap lies to the left
    for (const Interval& part : set) {
      if (part.low) {
        gap.high = part.low;
        gap.high_closed = !part.low_closed;
        out.push_back(gap);
      }
      gap = {part.high, nullptr, !part.high_closed, false};
      open = part.high != nullptr;
    }
    if (open) out.push_back(gap);
    return out;
  }

  std::optional<RealSet> of(const NodePtr& node) {
    switch (node->kind) {
      case Kind::kSymbol:
        if (node->name == kReals) return RealSet{Interval{}};
        return std::nullopt;
      case Kind::kTuple:
        return interval(*node);
      case Kind::kSet: {
        RealSet points;
        for (const NodePtr& child : node->children) {
          if (!identity_.real(child)) return std::nullopt;
          points.push_back({child, child, true, true});
        }
        return united(std::move(points));
      }
      case Kind::kUnion:
      case Kind::kIntersect:
      case Kind::kDifference: {
        auto left = of(node->children[0]);
        auto right = left ? of(node->children[1]) : std::nullopt;
        if (!right) return std::nullopt;
        if (node->kind == Kind::kIntersect) return intersected(*left, *right);
        if (node->kind == Kind::kDifference) return intersected(*left, complement(*right));
        left->insert(left->end(), right->begin(), right->end());
        return united(std::move(*left));
      }
      default:
        return std::nullopt;
    }
  }

 private:
  std::optional<RealSet> interval(const Node& node) {
    if (node.children.size() != 2 || node.name == "<>") return std::nullopt;
    Interval out{node.children[0], node.children[1], node.name[0] == '[', node.name[1] == ']'};
    if (infinite(*out.low) < 0) {
      out.low = nullptr;
      out.low_closed = false;
    } else if (!identity_.real(out.low)) {
      return std::nullopt;
    }
    if (infinite(*out.high) > 0) {
      out.high = nullptr;
      out.high_closed = false;
    } else if (!identity_.real(out.high)) {
      return std::nullopt;
    }
    if (empty(out)) return std::nullopt;
    return RealSet{out};
  }

  Identity& identity_;
};

// The solutions of `variable op bound`.
std::optional<RealSet> half_line(const std::string& op, const NodePtr& bound, Sets& sets) {
  Interval line;
  if (op == "<" || op == "<=") {
    line.high = bound;
    line.high_closed = op == "<=";
  } else if (op == ">" || op == ">=") {
    line.low = bound;
    line.low_closed = op == ">=";
  } else if (op == "!=") {
    return sets.complement({{bound, bound, true, true}});
  } else {
    return std::nullopt;
  }
  return RealSet{line};
}

std::string flipped(const std::string& op) {
  if (op == "<") return ">";
  if (op == ">") return "<";
  if (op == "<=") return ">=";
  return op == ">=" ? "<=" : op;
}

bool is_variable(const Node& node) {
  return node.kind == Kind::kSymbol && !is_constant_name(node.name) && node.name != kReals;
}

std::optional<Solutions> chain_solutions(const Node& chain, Sets& sets, Identity& identity) {
  Solutions out{.variable = "", .set = {Interval{}}};
  for (std::size_t i = 0; i < chain.operators.size(); ++i) {
    NodePtr variable = chain.children[i];
    NodePtr bound = chain.children[i + 1];
    std::string op = chain.operators[i];
    if (!is_variable(*variable)) {
      std::swap(variable, bound);
      op = flipped(op);
    }
    if (!is_variable(*variable)) return std::nullopt;
    if (!out.variable.empty() && out.variable != variable->name) return std::nullopt;
    out.variable = variable->name;
    const int end = infinite(*bound);
    if (end != 0) {
      if ((end > 0) != (op == "<" || op == "<=")) return std::nullopt;
      continue;
    }
    if (!identity.real(bound)) return std::nullopt;
    const auto line = half_line(op, bound, sets);
    if (!line) return std::nullopt;
    out.set = sets.intersected(out.set, *line);
  }
  return out;
}

}  // namespace

std::optional<RealSet> real_set(const NodePtr& node, Identity& identity) {
  try {
    return Sets(identity).of(node);
  } catch (const Unordered&) {
    return std::nullopt;
  }
}

bool same_set(const RealSet& a, const RealSet& b, Identity& identity) {
  if (a.size() != b.size()) return false;
  const auto same_end = [&](const NodePtr& x, const NodePtr& y) {
    return (!x && !y) || (x && y && identity.compare(x, y) == 0);
  };
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].low_closed != b[i].low_closed || a[i].high_closed != b[i].high_closed ||
        !same_end(a[i].low, b[i].low) || !same_end(a[i].high, b[i].high)) {
      return false;
    }
  }
  return true;
}

std::optional<Solutions> solutions(const NodePtr& node, Identity& identity) {
  try {
    Sets sets(identity);
    if (node->kind == Kind::kChain) return chain_solutions(*node, sets, identity);
    if (node->kind != Kind::kList || node->name == ",") return std::nullopt;
    std::optional<Solutions> out;
    for (const NodePtr& child : node->children) {
      if (child->kind != Kind::kChain) return std::nullopt;
      auto part = chain_solutions(*child, sets, identity);
      if (!part || (out && out->variable != part->variable)) return std::nullopt;
      if (!out) {
        out = std::move(part);
      } else if (node->name == "and") {
        out->set = sets.intersected(out->set, part->set);
      } else {
        out->set.insert(out->set.end(), part->set.begin(), part->set.end());
        out->set = sets.united(std::move(out->set));
      }
    }
    return out;
  } catch (const Unordered&) {
    return std::nullopt;
  }
}

bool is_set_form(const Node& node) {
  switch (node.kind) {
    case Kind::kUnion:
    case Kind::kIntersect:
    case Kind::kDifference:
      return true;
    case Kind::kTuple:
      return node.children.size() == 2 && node.name != "<>";
    case Kind::kSymbol:
      return node.name == kReals;
    default:
      return false;
  }
}

}  // namespace asdbench::math
