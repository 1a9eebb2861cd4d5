// Entries stay trees; their total size is what is bounded.
#include <algorithm>

#include "tasks/common/math/matrix_internal.h"

namespace asdbench::math {
namespace {

constexpr std::int64_t kMaxPower = 16;
constexpr std::size_t kMaxDeterminant = 6;
constexpr std::size_t kMaxNodes = 20'000;

/// Shapes that do not fit.
struct Misfit {};

std::size_t size_of(const Node& node, std::size_t limit) {
  std::size_t size = 1;
  for (const NodePtr& child : node.children) {
    if (size > limit) break;
    size += size_of(*child, limit - std::min(limit, size));
  }
  return size;
}

NodePtr matrix_of(std::vector<NodePtr> entries, std::int32_t columns) {
  auto node = std::make_shared<Node>();
  node->kind = Kind::kMatrix;
  node->children = std::move(entries);
  node->columns = columns;
  return node;
}

class Matrices {
 public:
  explicit Matrices(Budget& budget) : budget_(budget) {}

  NodePtr evaluate(const NodePtr& node) {
    budget_.spend(200);
    if (!has_matrix(*node)) return node;
    switch (node->kind) {
      case Kind::kMatrix:
        for (const NodePtr& entry : node->children) {
          if (has_matrix(*entry)) throw Misfit{};
        }
        return node;
      case Kind::kAdd: {
        NodePtr total = evaluate(node->children[0]);
        for (std::size_t i = 1; i < node->children.size(); ++i) {
          total = sum(total, evaluate(node->children[i]));
        }
        return total;
      }
      case Kind::kMultiply: {
        NodePtr total = evaluate(node->children[0]);
        for (std::size_t i = 1; i < node->children.size(); ++i) {
          total = product(total, evaluate(node->children[i]));
        }
        return total;
      }
      case Kind::kPower:
        return power(*node);
      case Kind::kCall:
        if (node->name == "det" || node->name == "abs") {
          const NodePtr matrix = evaluate(node->children[0]);
          if (matrix->kind == Kind::kMatrix) return determinant(*matrix);
        }
        throw Misfit{};
      default:
        throw Misfit{};
    }
  }

 private:
  static std::int32_t rows(const Node& matrix) {
    return static_cast<std::int32_t>(matrix.children.size()) / matrix.columns;
  }
  static const NodePtr& entry(const Node& matrix, std::int32_t row, std::int32_t column) {
    return matrix.children[static_cast<std::size_t>(row * matrix.columns + column)];
  }
  NodePtr bounded(NodePtr node) {
    const std::size_t size = size_of(*node, kMaxNodes);
    budget_.spend(size * 20);
    if (size > kMaxNodes) throw OutOfBudget{"matrix too large"};
    return node;
  }

  NodePtr sum(const NodePtr& a, const NodePtr& b) {
    if (a->kind != Kind::kMatrix || b->kind != Kind::kMatrix || a->columns != b->columns ||
        a->children.size() != b->children.size()) {
      throw Misfit{};
    }
    std::vector<NodePtr> entries;
    for (std::size_t i = 0; i < a->children.size(); ++i) {
      entries.push_back(add_nodes({a->children[i], b->children[i]}));
    }
    return bounded(matrix_of(std::move(entries), a->columns));
  }

  NodePtr product(const NodePtr& a, const NodePtr& b) {
    if (a->kind != Kind::kMatrix && b->kind != Kind::kMatrix) return multiply_nodes({a, b});
    std::vector<NodePtr> entries;
    if (a->kind != Kind::kMatrix || b->kind != Kind::kMatrix) {
      const Node& matrix = a->kind == Kind::kMatrix ? *a : *b;
      const NodePtr& scalar = a->kind == Kind::kMatrix ? b : a;
      for (const NodePtr& value : matrix.children)
        entries.push_back(multiply_nodes({scalar, value}));
      return bounded(matrix_of(std::move(entries), matrix.columns));
    }
    if (a->columns != rows(*b)) throw Misfit{};
    for (std::int32_t row = 0; row < rows(*a); ++row) {
      for (std::int32_t column = 0; column < b->columns; ++column) {
        std::vector<NodePtr> terms;
        for (std::int32_t k = 0; k < a->columns; ++k) {
          budget_.spend(200);
          terms.push_back(multiply_nodes({entry(*a, row, k), entry(*b, k, column)}));
        }
        entries.push_back(add_nodes(std::move(terms)));
      }
    }
    return bounded(matrix_of(std::move(entries), b->columns));
  }

  NodePtr power(const Node& node) {
    const NodePtr base = evaluate(node.children[0]);
    const NodePtr& exponent = node.children[1];
    if (base->kind != Kind::kMatrix) return power_node(base, exponent);
    if (exponent->kind != Kind::kNumber || !is_integer(exponent->number) || exponent->number < 1 ||
        exponent->number > kMaxPower) {
      throw Misfit{};
    }
    NodePtr result = base;
    for (auto left = static_cast<int>(exponent->number); left > 1; --left) {
      result = product(result, base);
    }
    return result;
  }

  // Expansion along the first row.
  NodePtr determinant(const Node& matrix) {
    const std::int32_t size = matrix.columns;
    if (rows(matrix) != size || static_cast<std::size_t>(size) > kMaxDeterminant) throw Misfit{};
    if (size == 1) return matrix.children[0];
    std::vector<NodePtr> terms;
    for (std::int32_t column = 0; column < size; ++column) {
      std::vector<NodePtr> minor;
      for (std::int32_t row = 1; row < size; ++row) {
        for (std::int32_t k = 0; k < size; ++k) {
          if (k != column) minor.push_back(entry(matrix, row, k));
        }
      }
      budget_.spend(1000);
      NodePtr term = multiply_nodes(
          {entry(matrix, 0, column), determinant(*matrix_of(std::move(minor), size - 1))});
      terms.push_back(column % 2 == 0 ? std::move(term) : negate(std::move(term)));
    }
    return bounded(add_nodes(std::move(terms)));
  }

  Budget& budget_;
};

}  // namespace

bool has_matrix(const Node& node) { return contains_kind(node, Kind::kMatrix); }

NodePtr evaluate_matrices(const NodePtr& node, Budget& budget) {
  try {
    return Matrices(budget).evaluate(node);
  } catch (const Misfit&) {
    return nullptr;
  }
}

}  // namespace asdbench::math
