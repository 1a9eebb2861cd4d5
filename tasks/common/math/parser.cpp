// A recursive-descent parser whose depth is counted. From loose to tight: list, chain of relations,
// ratio, union, sum, product, power, primary.
#include <algorithm>
#include <array>

#include "tasks/common/characters.h"
#include "tasks/common/math/budget_internal.h"
#include "tasks/common/math/parser_internal.h"

namespace asdbench::math {
namespace {

// Thrown where nothing can be read; caught in parse_answer.
struct Unparsable {};

constexpr std::size_t kMaxDigits = 4000;

template <std::size_t N>
bool one_of(std::string_view name, const std::array<std::string_view, N>& names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

constexpr std::array<std::string_view, 9> kTrigonometric = {"sin", "cos",  "tan",  "cot", "sec",
                                                            "csc", "sinh", "cosh", "tanh"};
constexpr std::array<std::string_view, 18> kFunctions = {
    "sin",  "cos",  "tan",  "cot", "sec", "csc", "arcsin", "arccos", "arctan",
    "sinh", "cosh", "tanh", "log", "ln",  "exp", "max",    "min",    "gcd"};
// Commands that stand between operands, or behind the last one.
constexpr std::array<std::string_view, 24> kOperators = {
    "cup",  "cap",     "setminus", "in",       "notin", "approx", "equiv",  "sim",
    "cong", "implies", "pm",       "mp",       "over",  "rangle", "rfloor", "rceil",
    "mid",  "to",      "subset",   "subseteq", "pmod",  "bmod",   "mod",    "propto"};
// What no value can be read from.
constexpr std::array<std::string_view, 10> kUnreadable = {
    "dots", "int", "lim", "iint", "oint", "forall", "exists", "circ", "prime", "perp"};
constexpr std::array<std::string_view, 10> kAccents = {
    "overline", "vec",       "hat",       "tilde", "overrightarrow",
    "widehat",  "widetilde", "underline", "dot",   "overleftrightarrow"};
constexpr std::array<std::string_view, 7> kMatrices = {
    "matrix", "pmatrix", "bmatrix", "Bmatrix", "smallmatrix", "psmallmatrix", "array"};

Integer to_integer(std::string_view digits) {
  if (digits.size() > kMaxDigits) throw OutOfBudget{"number of thousands of digits"};
  digits.remove_prefix(std::min(digits.find_first_not_of('0'), digits.size()));
  return digits.empty() ? Integer(0) : Integer(std::string(digits));
}

Rational to_rational(std::string_view text) {
  const std::size_t point = text.find('.');
  if (point == std::string_view::npos) return Rational(to_integer(text));
  const std::string_view decimals = text.substr(point + 1);
  const Integer digits = to_integer(std::string(text.substr(0, point)) + std::string(decimals));
  return {digits, Integer(mp::pow(Integer(10), static_cast<unsigned>(decimals.size())))};
}

NodePtr degrees_to_radians(const NodePtr& node) {
  if (node->kind == Kind::kDegree) {
    return multiply_nodes(
        {node->children[0], symbol_node("pi"), number_node(Rational(1) / Rational(180))});
  }
  std::vector<NodePtr> children;
  for (const NodePtr& child : node->children) children.push_back(degrees_to_radians(child));
  auto copy = std::make_shared<Node>(*node);
  copy->children = std::move(children);
  return copy;
}

class Parser {
 public:
  enum class Reading : std::uint8_t { kAnswer, kFirstExpression };
  Parser(const Tokens& tokens, Reading reading)
      : tokens_(tokens), first_only_(reading == Reading::kFirstExpression) {}

  NodePtr answer() {
    // Of a derivation only its last statement is the answer.
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      if (tokens_[i].is_command("implies")) at_ = i + 1;
    }
    NodePtr node = over(list());
    if (!done()) throw Unparsable{};
    return node;
  }

  NodePtr first_expression() {
    NodePtr node = sum();
    const std::string next = relation();
    if (is("%") || is(":") || !(next.empty() || next == "in")) throw Unparsable{};
    return node;
  }

 private:
  class Level {
   public:
    explicit Level(int& depth) : depth_(depth) {
      if (++depth_ > kMaxDepth) {
        --depth_;
        throw Unparsable{};
      }
    }
    ~Level() { --depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    int& depth_;
  };

  bool done() const { return at_ >= tokens_.size(); }
  const Token& token(std::size_t offset = 0) const {
    static const Token kNone{TokenKind::kSymbol, "", false};
    return at_ + offset < tokens_.size() ? tokens_[at_ + offset] : kNone;
  }
  bool is(std::string_view symbol) const { return token().is(symbol); }
  bool is_kind(TokenKind kind) const { return !done() && token().kind == kind; }
  bool accept(std::string_view symbol) {
    if (!is(symbol)) return false;
    ++at_;
    return true;
  }
  bool accept_command(std::string_view name) {
    if (!token().is_command(name)) return false;
    ++at_;
    return true;
  }
  void expect(std::string_view symbol) {
    if (!accept(symbol)) throw Unparsable{};
  }

  // ---------------------------------------------------------------- lists and statements

  // "," < "and" < "or" < ";"; "" when no separator stands here.
  std::string separator() {
    if (accept(";")) return ";";
    const bool comma = accept(",");
    if (accept("and")) return "and";
    if (accept("or")) return "or";
    return comma ? "," : "";
  }

  NodePtr list() {
    const Level level(depth_);
    std::vector<std::vector<NodePtr>> groups(1);
    std::string name = ",";
    bool grouped = false;
    while (true) {
      groups.back().push_back(chain());
      const std::string found = separator();
      if (found.empty()) break;
      if (found == ";") {
        grouped = true;
        groups.emplace_back();
      } else if (found == "or" || (found == "and" && name == ",")) {
        name = found;
      }
    }
    const bool nested = grouped && std::any_of(groups.begin(), groups.end(),
                                               [](const auto& g) { return g.size() > 1; });
    std::vector<NodePtr> items;
    for (std::vector<NodePtr>& group : groups) {
      if (nested && group.size() > 1) {
        items.push_back(make_node(Kind::kTuple, std::move(group), "()"));
      } else {
        for (NodePtr& item : group) items.push_back(std::move(item));
      }
    }
    if (items.size() == 1) return items.front();
    return make_node(Kind::kList, std::move(items), name);
  }

  std::string relation() {
    for (const char* op : {"=", "<", ">", "<=", ">=", "!="}) {
      if (accept(op)) return op;
    }
    for (const char* op : {"in", "approx"}) {
      if (accept_command(op)) return op;
    }
    return "";
  }

  NodePtr chain() {
    const std::size_t begin = at_;
    NodePtr first = ratio();
    const std::size_t end = at_;
    std::string op = relation();
    if (op.empty()) return first;
    auto node = std::make_shared<Node>();
    node->kind = Kind::kChain;
    node->symbolic = only_symbols(begin, end);
    node->children.push_back(std::move(first));
    while (!op.empty()) {
      node->operators.push_back(op);
      node->children.push_back(ratio());
      op = relation();
    }
    return node;
  }

  // A left side that only names what follows: no numerals outside subscripts, no sums.
  bool only_symbols(std::size_t begin, std::size_t end) const {
    bool any = false;
    for (std::size_t i = begin; i < end; ++i) {
      const Token& t = tokens_[i];
      if (t.is("_")) {
        while (i < end && !tokens_[i].is("}")) ++i;
        continue;
      }
      if (t.kind == TokenKind::kNumber || t.is("+") || t.is("-")) return false;
      if (t.kind == TokenKind::kCommand && one_of(t.text, kOperators)) return false;
      any = any || t.kind != TokenKind::kSymbol;
    }
    return any;
  }

  NodePtr ratio() {
    NodePtr first = sets();
    if (!is(":")) return first;
    std::vector<NodePtr> parts = {std::move(first)};
    while (accept(":")) parts.push_back(sets());
    return make_node(Kind::kRatio, std::move(parts));
  }

  NodePtr sets() {
    NodePtr left = sum();
    while (true) {
      if (accept_command("cup")) {
        left = make_node(Kind::kUnion, {left, sum()});
      } else if (accept_command("cap")) {
        left = make_node(Kind::kIntersect, {left, sum()});
      } else if (accept_command("setminus")) {
        left = make_node(Kind::kDifference, {left, sum()});
      } else {
        return left;
      }
    }
  }

  // ---------------------------------------------------------------- sums and products

  struct Sign {
    bool any = false;
    bool negative = false;
    bool both = false;  // plus-minus
  };
  Sign signs() {
    Sign sign;
    while (true) {
      if (accept("-")) {
        sign.negative = !sign.negative;
      } else if (!first_only_ && accept_command("pm")) {
        sign.both = true;
      } else if (!first_only_ && accept_command("mp")) {
        sign.both = true;
        sign.negative = !sign.negative;
      } else if (!accept("+")) {
        return sign;
      }
      sign.any = true;
    }
  }
  static NodePtr with_sign(const Sign& sign, NodePtr value) {
    if (sign.negative) value = negate(std::move(value));
    if (sign.both) value = multiply_nodes({symbol_node("pm"), std::move(value)});
    return value;
  }

  NodePtr sum() {
    std::vector<NodePtr> terms;
    Sign sign = signs();
    do {
      NodePtr term = product();
      // R - {0} is a difference of sets.
      if (sign.negative && term->kind == Kind::kSet && terms.size() == 1) {
        terms = {make_node(Kind::kDifference, {terms.front(), term})};
      } else {
        terms.push_back(with_sign(sign, std::move(term)));
      }
      sign = signs();
    } while (sign.any);
    return add_nodes(std::move(terms));
  }

  bool is_name(std::string_view command) const {
    return first_only_ && (command == "pm" || command == "mp");
  }

  bool starts_factor() const {
    if (done()) return false;
    const Token& t = token();
    switch (t.kind) {
      case TokenKind::kNumber:
        return tokens_[at_ - 1].kind != TokenKind::kNumber;  // "2 3" is no product
      case TokenKind::kLetter:
      case TokenKind::kWord:
      case TokenKind::kBegin:
        return true;
      case TokenKind::kCommand:
        return !one_of(t.text, kOperators) || is_name(t.text);
      case TokenKind::kSymbol:
        return t.is("(") || t.is("[") || t.is("{") || (t.is("|") && bars_ == 0);
      default:
        return false;
    }
  }

  NodePtr product() {
    std::vector<NodePtr> factors = {power()};
    while (true) {
      skip_units(factors);
      if (accept("*")) {
        const Sign sign = signs();
        factors.push_back(with_sign(sign, power()));
      } else if (accept("/")) {
        const Sign sign = signs();
        NodePtr divisor = power();
        factors.push_back(with_sign(sign, reciprocal(divisor)));
        mark_fraction(factors);
      } else if (starts_factor()) {
        factors.push_back(power());
      } else {
        return multiply_nodes(std::move(factors));
      }
    }
  }

  // "3/4" is a number.
  static void mark_fraction(std::vector<NodePtr>& factors) {
    if (factors.size() != 2 || factors[0]->kind != Kind::kNumber) return;
    const Node& power = *factors[1];
    if (power.kind != Kind::kPower || power.children[0]->kind != Kind::kNumber) return;
    if (power.children[0]->number == 0) return;
    factors = {quotient(*factors[0], *power.children[0])};
  }
  static NodePtr quotient(const Node& numerator, const Node& denominator) {
    auto node = std::make_shared<Node>();
    node->kind = Kind::kNumber;
    node->number = numerator.number / denominator.number;
    node->fraction = is_integer(numerator.number) && is_integer(denominator.number);
    node->unreduced =
        node->fraction && abs(Rational(mp::denominator(node->number))) != abs(denominator.number);
    return node;
  }

  // Units behind a value, with their exponents, quotients and words between them.
  void skip_units(const std::vector<NodePtr>& factors) {
    while (!done() && !first_only_) {
      const Token& t = token();
      const bool degree_scale = factors.back()->kind == Kind::kDegree &&
                                t.kind == TokenKind::kLetter && (t.text == "C" || t.text == "F");
      const bool unit = t.kind == TokenKind::kText ||
                        (t.kind == TokenKind::kWord && is_unit(t.text)) || degree_scale;
      if (!unit) return;
      if (t.kind == TokenKind::kText && tells_apart(t.text)) throw Unparsable{};
      ++at_;
      if (is("^")) skip_group(1);
      const Token& next = token(1);
      if (is("/") && (next.kind == TokenKind::kText ||
                      (next.kind == TokenKind::kWord && is_unit(next.text)))) {
        ++at_;
      }
    }
  }
  // "2 p.m." is not "2 a.m.".
  static bool tells_apart(std::string_view text) {
    return text.size() >= 2 && text.size() <= 4 &&
           (to_lower(text[0]) == 'a' || to_lower(text[0]) == 'p') &&
           (text[1] == '.' || text.size() == 2) &&
           text.find_first_of("mM") != std::string_view::npos;
  }

  // Skips `offset` tokens and the group behind them.
  void skip_group(std::size_t offset) {
    at_ += offset;
    expect("{");
    for (int open = 1; open > 0; ++at_) {
      if (done()) throw Unparsable{};
      if (is("{")) ++open;
      if (is("}")) --open;
    }
  }

  NodePtr power() {
    if (!is_kind(TokenKind::kWord)) return postfixed(primary());
    // The last of several letters takes what follows: yx^2.
    const std::string word = token().text;
    ++at_;
    std::vector<NodePtr> factors;
    for (std::size_t i = 0; i + 1 < word.size(); ++i) {
      factors.push_back(symbol_node(std::string(1, word[i])));
    }
    factors.push_back(postfixed(symbol(std::string(1, word.back()))));
    return multiply_nodes(std::move(factors));
  }

  NodePtr postfixed(NodePtr base) {
    while (true) {
      if (is("^")) {
        base = raised(std::move(base));
      } else if (accept("!")) {
        base = make_node(Kind::kCall, {std::move(base)}, "factorial");
      } else if (!first_only_ && accept("%")) {
        base = make_node(Kind::kPercent, {std::move(base)});
      } else {
        return base;
      }
    }
  }

  // All exponents behind one base: "2^3^2" is 2^(3^2).
  NodePtr raised(NodePtr base) {
    const Level level(depth_);
    ++at_;
    const Token& content = token(1);
    if (is("{") && token(2).is("}")) {
      if (content.is_command("circ")) {
        at_ += 3;
        return make_node(Kind::kDegree, {std::move(base)});
      }
      if (content.kind == TokenKind::kText ||
          (content.kind == TokenKind::kWord && is_unit(content.text))) {
        at_ += 3;  // 5^{th}
        return base;
      }
      if (content.is_command("prime") && base->kind == Kind::kSymbol) {
        at_ += 3;
        return symbol_node(base->name + "'");
      }
    }
    NodePtr exponent = group();
    if (is("^")) exponent = raised(std::move(exponent));
    return power_node(std::move(base), std::move(exponent));
  }

  // ---------------------------------------------------------------- primaries

  NodePtr primary() {
    const Level level(depth_);
    if (done()) throw Unparsable{};
    const Token& t = token();
    switch (t.kind) {
      case TokenKind::kNumber:
        return number();
      case TokenKind::kLetter:
        ++at_;
        return symbol(t.text);
      case TokenKind::kCommand:
        return command();
      case TokenKind::kBegin:
        return matrix();
      case TokenKind::kText:
        ++at_;
        return make_node(Kind::kText, {}, words_of({t}));
      default:
        break;
    }
    if (is("(") || is("[")) return bracket();
    if (is("{")) return group();
    if (is("\\{")) return set();
    if (is("|")) return bars();
    throw Unparsable{};
  }

  NodePtr number() {
    const Token& t = token();
    ++at_;
    if (is("_") && first_only_) {
      skip_group(1);
    } else if (is("_")) {
      return based(t.text);
    }
    if (is(".") || token().is_command("overline")) {
      if (auto repeating = repeating_decimal(t.text)) return repeating;
    }
    auto node = std::make_shared<Node>();
    node->kind = Kind::kNumber;
    node->number = to_rational(t.text);
    node->decimal = t.text.find('.') != std::string::npos;
    if (!node->decimal && !first_only_) {
      if (auto mixed = mixed_number(node->number)) return mixed;
    }
    return node;
  }

  NodePtr based(std::string_view digits) {
    ++at_;
    expect("{");
    if (!is_kind(TokenKind::kNumber)) throw Unparsable{};
    auto node = std::make_shared<Node>();
    node->kind = Kind::kBased;
    node->name = canonical_digits(digits);
    node->number = to_rational(token().text);
    ++at_;
    expect("}");
    return node;
  }

  // "0.1\overline{6}"; nullptr when it is something else.
  NodePtr repeating_decimal(std::string_view head) {
    const std::size_t dot = is(".") ? 1 : 0;
    const bool has_point = head.find('.') != std::string_view::npos;
    if (has_point == (dot == 1) || !token(dot).is_command("overline")) return nullptr;
    if (!token(dot + 1).is("{") || token(dot + 2).kind != TokenKind::kNumber ||
        !token(dot + 3).is("}")) {
      return nullptr;
    }
    const std::string period = token(dot + 2).text;
    if (period.find('.') != std::string::npos || period.size() + head.size() > 100) return nullptr;
    at_ += dot + 4;
    const std::size_t decimals = has_point ? head.size() - head.find('.') - 1 : 0;
    const Integer nines = mp::pow(Integer(10), static_cast<unsigned>(period.size())) - 1;
    const Integer shift = mp::pow(Integer(10), static_cast<unsigned>(decimals));
    return number_node(to_rational(head) + Rational(to_integer(period), nines * shift));
  }

  // An integer with a fraction of integers right behind it; nullptr when none follows.
  NodePtr mixed_number(const Rational& whole) {
    std::size_t top = 0;
    std::size_t bottom = 2;
    std::size_t length = 3;
    if (token().is_command("frac") && token(1).is("{") && token(3).is("}") && token(4).is("{") &&
        token(6).is("}")) {
      top = 2;
      bottom = 5;
      length = 7;
    } else if (!token(1).is("/")) {
      return nullptr;
    }
    if (token(top).kind != TokenKind::kNumber || token(bottom).kind != TokenKind::kNumber) {
      return nullptr;
    }
    const Rational numerator = to_rational(token(top).text);
    const Rational denominator = to_rational(token(bottom).text);
    if (denominator == 0 || !is_integer(numerator) || !is_integer(denominator)) throw Unparsable{};
    at_ += length;
    return number_node(whole + numerator / denominator);
  }

  // A name with what belongs to it: primes, subscripts, the argument of f, g or h.
  NodePtr symbol(std::string name) {
    const std::string letter = name;
    while (true) {
      if (accept("'")) {
        name += "'";
      } else if (is("_")) {
        const std::size_t begin = at_ + 2;
        skip_group(1);
        const auto at = [&](std::size_t i) {
          return tokens_.begin() + static_cast<std::ptrdiff_t>(i);
        };
        name += "_" + canonical_text(Tokens(at(begin), at(at_ - 1)));
      } else {
        break;
      }
    }
    const bool function = first_only_ || letter == "f" || letter == "g" || letter == "h";
    if (function && is("(")) return call(name, arguments());
    if (name == "i" && (first_only_ || bound_.contains("i"))) name = "i#";
    return symbol_node(name);
  }

  static NodePtr call(const std::string& name, std::vector<NodePtr> arguments) {
    return make_node(Kind::kCall, std::move(arguments), name);
  }

  // Bracketed arguments, at least one.
  std::vector<NodePtr> arguments() {
    NodePtr content = is("{") ? group() : bracket();
    if (content->kind == Kind::kTuple) return content->children;
    return {std::move(content)};
  }

  NodePtr command() {
    const std::string name = token().text;
    if (one_of(name, kUnreadable) || (one_of(name, kOperators) && !is_name(name))) {
      throw Unparsable{};
    }
    ++at_;
    if (name == "frac") return fraction();
    if (name == "sqrt") return root();
    if (name == "binom") {
      NodePtr top = group();
      NodePtr bottom = group();
      return call("binom", {std::move(top), std::move(bottom)});
    }
    if (one_of(name, kFunctions) || name == "lcm") return function(name);
    if (name == "sum" || name == "prod") return series(name);
    if (name == "langle") return closed("rangle", "<>");
    if (name == "lfloor") return call("floor", {closed("rfloor", "")});
    if (name == "lceil") return call("ceil", {closed("rceil", "")});
    if (name == "pi" || name == "infty") return symbol_node(name);
    if (name == "emptyset") return make_node(Kind::kSet, {});
    if (one_of(name, kAccents) && is("{")) {
      const std::size_t begin = at_ + 1;
      skip_group(0);
      const auto at = [&](std::size_t i) {
        return tokens_.begin() + static_cast<std::ptrdiff_t>(i);
      };
      return symbol(name + ":" + canonical_text(Tokens(at(begin), at(at_ - 1))));
    }
    return symbol("\\" + name);
  }

  NodePtr fraction() {
    NodePtr top = group();
    NodePtr bottom = group();
    if (top->kind == Kind::kNumber && bottom->kind == Kind::kNumber && bottom->number != 0) {
      return quotient(*top, *bottom);
    }
    return multiply_nodes({std::move(top), reciprocal(std::move(bottom))});
  }

  NodePtr root() {
    NodePtr index;
    if (accept("[")) {
      index = sum();
      expect("]");
    }
    NodePtr radicand = group();
    if (!index) index = number_node(2);
    if (index->kind == Kind::kNumber && index->number != 0) {
      return power_node(std::move(radicand), number_node(1 / index->number));
    }
    return power_node(std::move(radicand), reciprocal(std::move(index)));
  }

  NodePtr function(const std::string& name) {
    NodePtr exponent, base;
    while (is("^") || (is("_") && name == "log")) {
      const bool raised_to = is("^");
      ++at_;
      (raised_to ? exponent : base) = group();
    }
    std::vector<NodePtr> args =
        is("(") || is("[") || is("{") ? arguments() : std::vector<NodePtr>{bare_argument()};
    if (one_of(name, kTrigonometric)) {
      for (NodePtr& argument : args) argument = degrees_to_radians(argument);
    }
    const bool many = name == "max" || name == "min" || name == "gcd" || name == "lcm";
    if (!many && args.size() != 1) throw Unparsable{};
    if (exponent && exponent->kind == Kind::kNumber && exponent->number == -1 &&
        (name == "sin" || name == "cos" || name == "tan")) {
      return call("arc" + name, std::move(args));
    }
    NodePtr value;
    if (name == "exp") {
      value = power_node(symbol_node("e"), args.front());
    } else if (name == "log") {
      if (!base) base = first_only_ ? symbol_node("e") : number_node(10);
      value = call("log", {args.front(), base});
    } else {
      value = call(name, std::move(args));
    }
    return exponent ? power_node(std::move(value), std::move(exponent)) : value;
  }

  // What a function without brackets applies to: the product up to the next sign, bracket or
  // function.
  NodePtr bare_argument() {
    const Level level(depth_);
    const Sign sign = signs();
    std::vector<NodePtr> factors = {power()};
    while (starts_factor() && !is("(") && !is("[") &&
           !(is_kind(TokenKind::kCommand) && one_of(token().text, kFunctions))) {
      factors.push_back(power());
    }
    return with_sign(sign, multiply_nodes(std::move(factors)));
  }

  // \sum_{k=0}^{n} and \prod; the bound name is replaced, so that it does not matter.
  NodePtr series(const std::string& name) {
    const Level level(depth_);
    if (!is("_") || token(2).kind != TokenKind::kLetter) throw Unparsable{};
    const std::string bound = token(2).text;
    const bool fresh = bound_.insert(bound).second;
    ++at_;
    const NodePtr range = group();
    if (range->kind != Kind::kChain || range->operators != std::vector<std::string>{"="} ||
        !is("^")) {
      throw Unparsable{};
    }
    ++at_;
    NodePtr upper = group();
    NodePtr body = product();
    if (fresh) bound_.erase(bound);
    const std::string inner = bound == "i" ? "i#" : bound;
    const NodePtr neutral = symbol_node("#" + std::to_string(bound_.size()));
    return call(name, {range->children[1], std::move(upper), replace_symbol(body, inner, neutral)});
  }

  // ---------------------------------------------------------------- brackets

  class Unbarred {
   public:
    explicit Unbarred(int& bars) : bars_(bars), saved_(bars) { bars_ = 0; }
    ~Unbarred() { bars_ = saved_; }
    Unbarred(const Unbarred&) = delete;
    Unbarred& operator=(const Unbarred&) = delete;

   private:
    int& bars_;
    int saved_;
  };

  NodePtr bracket() {
    const Unbarred unbarred(bars_);
    const std::string open = token().text;
    ++at_;
    NodePtr content = list();
    if (!is(")") && !is("]")) throw Unparsable{};
    const std::string close = token().text;
    ++at_;
    if (content->kind == Kind::kList) {
      return make_node(Kind::kTuple, content->children, open + close);
    }
    if ((open == "(") != (close == ")")) throw Unparsable{};
    return content;
  }

  // Up to a closing command; a tuple where `brackets` are given.
  NodePtr closed(std::string_view close, const std::string& brackets) {
    const Unbarred unbarred(bars_);
    NodePtr content = list();
    if (!accept_command(close)) throw Unparsable{};
    if (brackets.empty()) return content;
    if (content->kind != Kind::kList)
      return make_node(Kind::kTuple, {std::move(content)}, brackets);
    return make_node(Kind::kTuple, content->children, brackets);
  }

  NodePtr group() {
    const Unbarred unbarred(bars_);
    expect("{");
    NodePtr content = over(list());
    expect("}");
    if (content->kind == Kind::kList) return make_node(Kind::kSet, content->children);
    return content;
  }

  // {a \over b}
  NodePtr over(NodePtr top) {
    if (!accept_command("over")) return top;
    NodePtr bottom = list();
    return multiply_nodes({std::move(top), reciprocal(std::move(bottom))});
  }

  NodePtr set() {
    const Unbarred unbarred(bars_);
    ++at_;
    if (accept("\\}")) return make_node(Kind::kSet, {});
    NodePtr content = list();
    expect("\\}");
    if (content->kind == Kind::kList) return make_node(Kind::kSet, content->children);
    return make_node(Kind::kSet, {std::move(content)});
  }

  NodePtr bars() {
    ++at_;
    ++bars_;
    NodePtr content = sum();
    --bars_;
    expect("|");
    return call("abs", {std::move(content)});
  }

  NodePtr matrix() {
    const Unbarred unbarred(bars_);
    const std::string name = token().text;
    const bool determinant = name == "vmatrix" || name == "Vmatrix";
    if (!determinant && !one_of(name, kMatrices)) throw Unparsable{};
    ++at_;
    auto node = std::make_shared<Node>();
    node->kind = Kind::kMatrix;
    while (!is_kind(TokenKind::kEnd)) {
      std::int32_t columns = 0;
      do {
        node->children.push_back(sum());
        ++columns;
      } while (accept("&"));
      if (node->columns != 0 && node->columns != columns) throw Unparsable{};
      node->columns = columns;
      while (accept("\\\\")) {
      }
      if (done()) throw Unparsable{};
    }
    if (node->children.empty()) throw Unparsable{};
    ++at_;
    if (determinant) return call("det", {node});
    return node;
  }

  const Tokens& tokens_;
  bool first_only_;
  std::size_t at_ = 0;
  int depth_ = 0;
  int bars_ = 0;  // open absolute values
  std::set<std::string> bound_;
};

}  // namespace

NodePtr parse_answer(const Tokens& tokens) {
  if (tokens.empty()) return nullptr;
  try {
    return Parser(tokens, Parser::Reading::kAnswer).answer();
  } catch (const Unparsable&) {
    return nullptr;
  }
}

NodePtr parse_first_expression(const Tokens& tokens) {
  if (tokens.empty()) return nullptr;
  try {
    return Parser(tokens, Parser::Reading::kFirstExpression).first_expression();
  } catch (const Unparsable&) {
    return nullptr;
  }
}

}  // namespace asdbench::math
