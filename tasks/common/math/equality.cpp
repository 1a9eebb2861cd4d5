// The rules of section 3.4, from strings to sets.
#include "tasks/common/math/equality.h"

#include <algorithm>
#include <limits>
#include <set>

#include "tasks/common/characters.h"
#include "tasks/common/math/identity_internal.h"
#include "tasks/common/math/matrix_internal.h"
#include "tasks/common/math/parser_internal.h"
#include "tasks/common/math/real_set_internal.h"
#include "tasks/common/math/tokens.h"

namespace asdbench::math {
namespace {

/// One member of an answer: a value, an assignment "symbol = value", or another statement.
struct Item {
  NodePtr whole;
  NodePtr value;   // nullptr for a statement
  NodePtr symbol;  // nullptr unless an assignment
};

constexpr std::size_t kMaxBytes = 100'000;

NodePtr equation(NodePtr left, NodePtr right) {
  auto node = std::make_shared<Node>();
  node->kind = Kind::kChain;
  node->children = {std::move(left), std::move(right)};
  node->operators = {"="};
  return node;
}

bool has_variables(const Node& node) {
  std::set<std::string> names;
  collect_variables(node, names);
  return !names.empty();
}

// "x = 1 + 1 = 2 \approx 2.0": the value is the last exact member.
Item item_of(const NodePtr& node) {
  if (node->kind != Kind::kChain) return {node, node, nullptr};
  if (node->operators == std::vector<std::string>{"in"} && node->symbolic) {
    return {node, node->children[1], node->children[0]};
  }
  std::size_t members = 1;
  for (const std::string& op : node->operators) {
    if (op == "approx") break;
    if (op != "=") return {node, nullptr, nullptr};
    ++members;
  }
  const NodePtr& first = node->children[0];
  if (node->symbolic) {
    const NodePtr& value = node->children[members >= 2 ? members - 1 : 1];
    return {equation(first, value), value, first};
  }
  const NodePtr& last = node->children[members - 1];
  if (members == 1) return {first, first, nullptr};
  if (!has_variables(*node)) return {last, last, nullptr};
  return {equation(first, last), nullptr, nullptr};
}

std::vector<Item> items_of(const std::vector<NodePtr>& nodes) {
  std::vector<Item> items;
  for (const NodePtr& node : nodes) {
    if (contains_symbol(*node, "pm") && node->kind != Kind::kSet) {
      for (const int sign : {1, -1}) {
        items.push_back(item_of(replace_symbol(node, "pm", number_node(sign))));
      }
    } else {
      items.push_back(item_of(node));
    }
  }
  return items;
}

std::vector<Item> items_of(const NodePtr& node) {
  if (node->kind == Kind::kList) return items_of(node->children);
  return items_of(std::vector<NodePtr>{node});
}

bool round_brackets(const Node& tuple) { return tuple.name == "()" || tuple.name == "<>"; }

// The letters of a word that was read as a product.
std::string spelled(const Node& node) {
  if (node.kind == Kind::kText) return node.name;
  if (node.kind == Kind::kSymbol && node.name.size() == 1) {
    return std::string(1, to_lower(node.name[0]));
  }
  if (node.kind != Kind::kMultiply) return "";
  std::string word;
  for (const NodePtr& child : node.children) {
    const std::string part = spelled(*child);
    if (part.empty()) return "";
    word += part;
  }
  return word;
}

// p for p %; nullptr without a percent sign.
NodePtr percentage(const NodePtr& node) {
  if (node->kind == Kind::kPercent) return node->children[0];
  if (node->kind == Kind::kMultiply && node->children.size() == 2 &&
      node->children[0]->kind == Kind::kNumber && node->children[1]->kind == Kind::kPercent) {
    return multiply_nodes({node->children[0], node->children[1]->children[0]});
  }
  return nullptr;
}

bool has_finite_decimals(const Rational& value) {
  Integer rest = mp::denominator(value);
  for (const unsigned factor : {2U, 5U}) {
    while (rest % factor == 0) rest /= factor;
  }
  return rest == 1;
}

class Comparer {
 public:
  Comparer(Budget& budget, const EqualityRules& rules)
      : budget_(budget), identity_(budget), rules_(rules) {}

  bool one_way() const { return one_way_; }

  bool answers(const NodePtr& gold, const NodePtr& answer) {
    const std::vector<Item> wanted = items_of(gold);
    const std::vector<Item> given = items_of(answer);
    if (wanted.size() == 1 && given.size() == 1) return items(wanted[0], given[0]);
    if (wanted.size() == 1 && collection(wanted[0], given)) return true;
    if (given.size() == 1 && collection(given[0], wanted)) return true;
    if (given.size() == 1 && given[0].value && solves(gold, given[0])) return true;
    const bool ordered = named(wanted) != named(given) && (plain(wanted) || plain(given));
    return ordered ? in_order(wanted, given) : in_any_order(wanted, given);
  }

 private:
  // ---------------------------------------------------------------- lists

  // Assignments to different names, whose order tells which value belongs to which.
  bool named(const std::vector<Item>& items) {
    for (const Item& item : items) {
      if (!item.symbol) return false;
    }
    return std::any_of(items.begin() + 1, items.end(), [&](const Item& item) {
      return !values(items.front().symbol, item.symbol);
    });
  }
  static bool plain(const std::vector<Item>& items) {
    return std::none_of(items.begin(), items.end(),
                        [](const Item& item) { return item.symbol != nullptr; });
  }

  bool in_order(const std::vector<Item>& wanted, const std::vector<Item>& given) {
    if (wanted.size() != given.size()) return false;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      if (!items(wanted[i], given[i])) return false;
    }
    return true;
  }

  bool in_any_order(const std::vector<Item>& wanted, const std::vector<Item>& given) {
    const auto covers = [&](const std::vector<Item>& all, const std::vector<Item>& by, bool gold) {
      return std::all_of(all.begin(), all.end(), [&](const Item& x) {
        return std::any_of(by.begin(), by.end(),
                           [&](const Item& y) { return gold ? items(x, y) : items(y, x); });
      });
    };
    return covers(wanted, given, true) && covers(given, wanted, false);
  }

  // A tuple, point or set against a bare list.
  bool collection(const Item& single, const std::vector<Item>& list) {
    if (!single.value) return false;
    const Node& node = *single.value;
    if (node.kind == Kind::kTuple && round_brackets(node)) {
      return in_order(items_of(node.children), list);
    }
    return node.kind == Kind::kSet && in_any_order(items_of(node.children), list);
  }

  // ---------------------------------------------------------------- members

  bool items(const Item& gold, const Item& answer) {
    budget_.spend(1000);
    if (gold.symbol && answer.symbol && values(gold.symbol, answer.symbol) &&
        values(gold.value, answer.value)) {
      return true;
    }
    const bool statements = gold.whole->kind == Kind::kChain && answer.whole->kind == Kind::kChain;
    if (statements && relations(*gold.whole, *answer.whole)) return true;
    if (statements) return answer.value && solves(gold.whole, answer);
    if (gold.value && answer.value) return values(gold.value, answer.value);
    return answer.value && solves(gold.whole, answer);
  }

  // Rule I: an interval answers a gold inequality, not the other way round.
  bool solves(const NodePtr& gold, const Item& answer) {
    if (!is_set_form(*answer.value)) return false;
    const auto wanted = solutions(gold, identity_);
    if (!wanted) return false;
    if (answer.symbol && answer.symbol->name != wanted->variable) return false;
    const auto given = real_set(answer.value, identity_);
    if (!given || !same_set(wanted->set, *given, identity_)) return false;
    one_way_ = true;
    return true;
  }

  struct Condition {
    std::string op;  // ">", ">=", "!=", "=" against zero
    NodePtr difference;
  };
  static std::optional<std::vector<Condition>> conditions(const Node& chain) {
    std::vector<Condition> out;
    for (std::size_t i = 0; i < chain.operators.size(); ++i) {
      const NodePtr& left = chain.children[i];
      const NodePtr& right = chain.children[i + 1];
      const std::string& op = chain.operators[i];
      if (op == "in" || op == "approx") return std::nullopt;
      if (op == "<" || op == "<=") {
        out.push_back({op == "<" ? ">" : ">=", subtract(right, left)});
      } else {
        out.push_back({op, subtract(left, right)});
      }
    }
    return out;
  }
  bool same_condition(const Condition& a, const Condition& b) {
    if (a.op != b.op) return false;
    const int factor = identity_.constant_factor(a.difference, b.difference);
    return a.op == "=" || a.op == "!=" ? factor != 0 : factor > 0;
  }

  // Rules Q and I.
  bool relations(const Node& gold, const Node& answer) {
    if (gold.operators == answer.operators && gold.children.size() == answer.children.size()) {
      bool same = true;
      for (std::size_t i = 0; same && i < gold.children.size(); ++i) {
        same = values(gold.children[i], answer.children[i]);
      }
      if (same) return true;
    }
    const auto wanted = conditions(gold);
    const auto given = conditions(answer);
    if (!wanted || !given) return false;
    const auto covers = [&](const auto& all, const auto& by) {
      return std::all_of(all.begin(), all.end(), [&](const Condition& x) {
        return std::any_of(by.begin(), by.end(),
                           [&](const Condition& y) { return same_condition(x, y); });
      });
    };
    return covers(*wanted, *given) && covers(*given, *wanted);
  }

  // ---------------------------------------------------------------- values

  bool values(const NodePtr& gold, const NodePtr& answer) {
    budget_.spend(1000);
    const Kind g = gold->kind;
    const Kind a = answer->kind;
    if (g == Kind::kText || a == Kind::kText) {
      const std::string word = spelled(*gold);
      return !word.empty() && word == spelled(*answer);
    }
    if (g == Kind::kChain || a == Kind::kChain) return items(item_of(gold), item_of(answer));
    if (g == Kind::kTuple && a == Kind::kTuple) return tuples(*gold, *answer);
    if (is_set_form(*gold) && is_set_form(*answer)) return sets(gold, answer);
    if (g == Kind::kSet || a == Kind::kSet) return finite_sets(*gold, *answer, gold, answer);
    if (g == Kind::kRatio || a == Kind::kRatio) {
      return g == a && in_order(items_of(gold->children), items_of(answer->children));
    }
    if (g == Kind::kBased || a == Kind::kBased) return based(*gold, *answer);
    if (g == Kind::kTuple || a == Kind::kTuple) return false;
    if (has_matrix(*gold) || has_matrix(*answer)) return matrices(gold, answer);
    return scalars(gold, answer);
  }

  bool tuples(const Node& gold, const Node& answer) {
    if (gold.children.size() != answer.children.size()) return false;
    // Brackets tell intervals apart; three entries are no interval.
    const auto kind = [](const Node& tuple) { return tuple.name == "<>" ? "()" : tuple.name; };
    if (gold.children.size() == 2 && kind(gold) != kind(answer)) return false;
    return in_order(items_of(gold.children), items_of(answer.children));
  }

  bool sets(const NodePtr& gold, const NodePtr& answer) {
    const auto wanted = real_set(gold, identity_);
    const auto given = wanted ? real_set(answer, identity_) : std::nullopt;
    if (wanted && given) return same_set(*wanted, *given, identity_);
    if (gold->kind != answer->kind || gold->children.size() != answer->children.size()) {
      return false;
    }
    // Ends with letters: member by member.
    if (gold->kind == Kind::kUnion || gold->kind == Kind::kIntersect) {
      return in_any_order(members(gold), members(answer));
    }
    return in_order(items_of(gold->children), items_of(answer->children));
  }
  // The members of nested unions.
  static std::vector<Item> members(const NodePtr& node) {
    std::vector<NodePtr> out;
    std::vector<NodePtr> todo = {node};
    while (!todo.empty()) {
      const NodePtr next = todo.back();
      todo.pop_back();
      if (next->kind == node->kind) {
        todo.insert(todo.end(), next->children.begin(), next->children.end());
      } else {
        out.push_back(next);
      }
    }
    return items_of(out);
  }

  bool finite_sets(const Node& gold, const Node& answer, const NodePtr& g, const NodePtr& a) {
    if (gold.kind == Kind::kSet && answer.kind == Kind::kSet) {
      return in_any_order(items_of(gold.children), items_of(answer.children));
    }
    const Node& set = gold.kind == Kind::kSet ? gold : answer;
    const Node& other = gold.kind == Kind::kSet ? answer : gold;
    if (other.kind == Kind::kTuple && round_brackets(other)) {
      return in_order(items_of(gold.children), items_of(answer.children));
    }
    if (set.children.size() != 1 || is_set_form(other)) return false;
    return gold.kind == Kind::kSet ? values(set.children[0], a) : values(g, set.children[0]);
  }

  bool based(const Node& gold, const Node& answer) {
    if (gold.kind == Kind::kBased && answer.kind == Kind::kBased) {
      return gold.name == answer.name && (gold.number == answer.number || !rules_.base_counts);
    }
    if (rules_.base_counts) return false;
    const Node& number = gold.kind == Kind::kBased ? answer : gold;
    const Node& digits = gold.kind == Kind::kBased ? gold : answer;
    return number.kind == Kind::kNumber && number.number.str() == digits.name;
  }

  bool matrices(const NodePtr& gold, const NodePtr& answer) {
    const NodePtr wanted = evaluate_matrices(gold, budget_);
    const NodePtr given = wanted ? evaluate_matrices(answer, budget_) : nullptr;
    if (!given || (wanted->kind == Kind::kMatrix) != (given->kind == Kind::kMatrix)) return false;
    if (wanted->kind != Kind::kMatrix) return scalars(wanted, given);
    return wanted->columns == given->columns &&
           in_order(items_of(wanted->children), items_of(given->children));
  }

  bool scalars(const NodePtr& gold, const NodePtr& answer) {
    const NodePtr gold_percent = percentage(gold);
    const NodePtr answer_percent = percentage(answer);
    if (gold_percent && answer_percent) return scalars(gold_percent, answer_percent);
    if (gold_percent || answer_percent) {
      const NodePtr plain = gold_percent ? answer : gold;
      const NodePtr percent = gold_percent ? gold_percent : answer_percent;
      if (!rules_.percent_is_value && identity_.same(percent, plain)) return true;
      return identity_.same(make_node(Kind::kPercent, {percent}), plain);
    }
    if (!rules_.arithmetic && calculates(*gold) != calculates(*answer)) return false;
    return identity_.same(gold, answer) || decimals(*gold, answer) || decimals(*answer, gold);
  }

  // A constant that is no plain number: something is left to be worked out.
  static bool calculates(const Node& node) {
    if (node.kind == Kind::kNumber) return node.unreduced;
    return !has_variables(node);
  }

  // Rule N: a decimal for a value without finite decimals.
  bool decimals(const Node& decimal, const NodePtr& other) {
    if (decimal.kind != Kind::kNumber || !decimal.decimal || has_variables(*other)) return false;
    static const Real kHalfPlace = Real(5) / 10'000'000;
    static const Real kRelative = Real(1) / 1'000'000;
    const auto rational = identity_.rational(other);
    if (rational && has_finite_decimals(*rational) && !rules_.absolute_decimals) return false;
    const auto value = identity_.real(other);
    if (!value) return false;
    const auto written = identity_.real(number_node(decimal.number));
    if (!written) return false;
    const Real gap = abs(*written - *value);
    if (gap > kHalfPlace) return false;
    return rules_.absolute_decimals || gap < kRelative * abs(*value);
  }

  Budget& budget_;
  Identity identity_;
  EqualityRules rules_;
  bool one_way_ = false;
};

}  // namespace

Comparison compare_answers(std::string_view answer, std::string_view gold,
                           const EqualityRules& rules) {
  if (!answer.empty() && answer == gold) return {Equality::kEqual, "", false};
  if (std::max(answer.size(), gold.size()) > kMaxBytes) {
    return {Equality::kUndecided, "undecided: an answer of more than 100000 bytes", false};
  }
  Budget budget;
  const Tokenized given = tokenize(answer);
  const Tokenized wanted = tokenize(gold);
  if (given.too_long || wanted.too_long) {
    return {Equality::kUndecided, "undecided: an answer of more than 4000 symbols", false};
  }
  const std::string text = canonical_text(wanted.tokens);
  const auto has_percent = [](const Tokens& tokens) {
    return std::any_of(tokens.begin(), tokens.end(), [](const Token& t) { return t.is("%"); });
  };
  // Canonical texts have lost their percent sign.
  const bool other_unit =
      rules.percent_is_value && has_percent(given.tokens) != has_percent(wanted.tokens);
  if (!other_unit && !text.empty() && text == canonical_text(given.tokens))
    return {Equality::kEqual, "", false};
  const std::string words = words_of(wanted.tokens);
  if (!words.empty() && words == words_of(given.tokens)) return {Equality::kEqual, "", false};
  try {
    const NodePtr gold_node = parse_answer(wanted.tokens);
    if (!gold_node) return {Equality::kDifferent, "the gold could not be read", false};
    const NodePtr answer_node = parse_answer(given.tokens);
    if (!answer_node) return {Equality::kDifferent, "the answer could not be read", false};
    Comparer comparer(budget, rules);
    const bool equal = comparer.answers(gold_node, answer_node);
    return {equal ? Equality::kEqual : Equality::kDifferent, "", comparer.one_way()};
  } catch (const OutOfBudget& out) {
    return {Equality::kUndecided, std::string("undecided: ") + out.why, false};
  }
}

namespace {

// What SymPy's LaTeX parser does not know and our tokenizer reads all the same.
bool unknown_to_sympy(std::string_view text) {
  for (const char* command : {"\\math", "\\cfrac", "\\boxed", "\\fbox", "\\textbf", "\\textnormal",
                              "\\operatorname", "\\degree", "\\(", "{,}"}) {
    if (text.find(command) != std::string_view::npos) return true;
  }
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool stray = text[i] == '\\' && (i + 1 == text.size() || is_digit(text[i + 1]));
    if (stray || static_cast<unsigned char>(text[i]) >= 0x80) return true;
  }
  return text.starts_with('.');
}

// Words without a backslash are products of their letters to it: "pi" is p times i.
std::string apart(std::string_view text) {
  std::string out;
  bool command = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    command = is_letter(text[i]) ? command : text[i] == '\\';
    if (!command && i > 0 && is_letter(text[i]) && is_letter(text[i - 1])) out += ' ';
    out += text[i];
  }
  return out;
}

// Runs `question` on both trees; false where one cannot be read or a limit is hit.
template <typename Question>
bool ask(std::string_view a, std::string_view b, ExpressionReading reading,
         const Question& question) {
  const bool whole = reading == ExpressionReading::kWhole;
  if (!whole && (unknown_to_sympy(a) || unknown_to_sympy(b))) return false;
  const Tokenized left = whole ? tokenize(a) : tokenize(apart(a));
  const Tokenized right = whole ? tokenize(b) : tokenize(apart(b));
  if (left.too_long || right.too_long) return false;
  const auto parse = [&](const Tokens& tokens) {
    return whole ? parse_answer(tokens) : parse_first_expression(tokens);
  };
  try {
    Budget budget;
    const NodePtr x = parse(left.tokens);
    const NodePtr y = x ? parse(right.tokens) : nullptr;
    if (!y) return false;
    Identity identity(budget);
    return question(identity, x, y);
  } catch (const OutOfBudget&) {
    return false;
  }
}

}  // namespace

bool same_expression(std::string_view a, std::string_view b, ExpressionReading reading) {
  return ask(a, b, reading, [](Identity& identity, const NodePtr& x, const NodePtr& y) {
    return identity.same_exact_names(x, y);
  });
}

bool close_values(std::string_view a, std::string_view b, double relative,
                  ExpressionReading reading) {
  return ask(a, b, reading, [&](Identity& identity, const NodePtr& x, const NodePtr& y) {
    const auto left = identity.real(x);
    const auto right = left ? identity.real(y) : std::nullopt;
    if (!right) return false;
    const Real larger = std::max(Real(abs(*left)), Real(abs(*right)));
    // Beyond the range of a double both are infinite to the graders that ask.
    const bool beyond =
        std::min(Real(abs(*left)), Real(abs(*right))) > Real(std::numeric_limits<double>::max());
    if (beyond) return (*left > 0) == (*right > 0);
    return abs(*left - *right) <= Real(relative) * larger;
  });
}

}  // namespace asdbench::math
