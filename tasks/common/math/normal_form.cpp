// Expansion with every size bounded before it is built.
#include <algorithm>
#include <numeric>
#include <utility>

#include "tasks/common/math/normal_form_internal.h"

namespace asdbench::math {
namespace {

constexpr std::int64_t kMaxExponent = 10'000;  // specs/scoring.md, section 3.5
constexpr std::size_t kMaxBits = 32'768;       // of one coefficient
constexpr std::size_t kMaxTerms = 3'000;
constexpr std::int64_t kMaxFactorial = 2'500;  // fits kMaxBits
constexpr std::int32_t kMaxRootIndex = 64;
constexpr std::size_t kMaxKey = 20'000;

/// Too large to be expanded; nothing is known then.
struct TooLarge {};

const Polynomial& one() {
  static const Polynomial kOne = {{Monomial{}, Rational(1)}};
  return kOne;
}

Form constant(const Rational& value) {
  Form form{.numerator = {}, .denominator = one()};
  if (value != 0) form.numerator.emplace(Monomial{}, value);
  return form;
}

bool is_one(const Polynomial& p) {
  return p.size() == 1 && p.begin()->first.empty() && p.begin()->second == 1;
}

Monomial merge(const Monomial& a, const Monomial& b) {
  Monomial out;
  out.reserve(a.size() + b.size());
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < a.size() || j < b.size()) {
    if (j == b.size() || (i < a.size() && a[i].first < b[j].first)) {
      out.push_back(a[i++]);
    } else if (i == a.size() || b[j].first < a[i].first) {
      out.push_back(b[j++]);
    } else {
      const std::int32_t exponent = a[i].second + b[j].second;
      if (std::abs(static_cast<std::int64_t>(exponent)) > 100 * kMaxExponent) throw TooLarge{};
      if (exponent != 0) out.emplace_back(a[i].first, exponent);
      ++i;
      ++j;
    }
  }
  return out;
}

Rational rational_power(const Rational& base, std::int64_t exponent) {
  const std::int64_t size = std::abs(exponent);
  if (bits_of(base) * static_cast<std::size_t>(std::max<std::int64_t>(size, 1)) > kMaxBits) {
    throw TooLarge{};
  }
  const auto unsigned_exponent = static_cast<unsigned>(size);
  const Integer top = mp::pow(Integer(mp::numerator(base)), unsigned_exponent);
  const Integer bottom = mp::pow(Integer(mp::denominator(base)), unsigned_exponent);
  if (exponent >= 0) return {top, bottom};
  if (top == 0) throw NoForm{};
  return {bottom, top};
}

// value as int64 when it is a small integer.
std::optional<std::int64_t> small_integer(const Rational& value) {
  if (!is_integer(value) || abs(value) > Rational(1'000'000)) return std::nullopt;
  return static_cast<std::int64_t>(Integer(mp::numerator(value)));
}

}  // namespace

std::int32_t Atoms::find_or_add(const std::string& key, Atom atom) {
  const auto [at, added] = ids_.emplace(key, static_cast<std::int32_t>(atoms_.size()));
  if (added) atoms_.push_back(std::move(atom));
  return at->second;
}

// ---------------------------------------------------------------------------- arithmetic

void NormalForms::spend_on(const Rational& value) {
  const std::size_t bits = bits_of(value);
  if (bits > kMaxBits) throw TooLarge{};
  // Lowest terms cost the square of the length.
  const std::uint64_t limbs = bits / 64 + 1;
  budget_.spend(200 + 60 * limbs * limbs);
}

// i^2 = -1, and powers of roots that are rational.
void NormalForms::reduce(Monomial& monomial, Rational& coefficient) {
  bool any = false;
  for (auto& [id, exponent] : monomial) {
    const Atoms::Atom& atom = atoms_[id];
    if (atom.nature == Atoms::Nature::kImaginary) {
      const std::int32_t turns = ((exponent % 4) + 4) % 4;
      if (turns >= 2) coefficient = -coefficient;
      exponent = turns % 2;
    } else if (atom.nature == Atoms::Nature::kRoot) {
      const std::int32_t rest = ((exponent % atom.index) + atom.index) % atom.index;
      const std::int32_t whole = (exponent - rest) / atom.index;
      if (whole != 0) coefficient *= rational_power(Rational(atom.radicand), whole);
      exponent = rest;
    }
    any = any || exponent == 0;
  }
  if (any) std::erase_if(monomial, [](const auto& power) { return power.second == 0; });
}

void NormalForms::add_term(Polynomial& sum, Monomial monomial, Rational coefficient) {
  reduce(monomial, coefficient);
  if (coefficient == 0) return;
  spend_on(coefficient);
  const auto [at, added] = sum.try_emplace(std::move(monomial), coefficient);
  if (added) {
    if (sum.size() > kMaxTerms) throw TooLarge{};
    return;
  }
  at->second += coefficient;
  if (at->second == 0) sum.erase(at);
}

Polynomial NormalForms::product(const Polynomial& a, const Polynomial& b) {
  Polynomial out;
  for (const auto& [left, x] : a) {
    for (const auto& [right, y] : b) {
      budget_.spend(600);
      add_term(out, merge(left, right), x * y);
    }
  }
  return out;
}

Form NormalForms::add(Form a, const Form& b) {
  if (a.denominator == b.denominator) {
    for (const auto& [monomial, coefficient] : b.numerator) {
      add_term(a.numerator, monomial, coefficient);
    }
    return a;
  }
  Form out{.numerator = product(a.numerator, b.denominator),
           .denominator = product(a.denominator, b.denominator)};
  for (const auto& [monomial, coefficient] : product(b.numerator, a.denominator)) {
    add_term(out.numerator, monomial, coefficient);
  }
  return out;
}

Form NormalForms::multiply(const Form& a, const Form& b) {
  // A factor that is the other's denominator cancels.
  if (!is_one(a.denominator) && a.denominator == b.numerator) return {a.numerator, b.denominator};
  if (!is_one(b.denominator) && b.denominator == a.numerator) return {b.numerator, a.denominator};
  return {product(a.numerator, b.numerator), product(a.denominator, b.denominator)};
}

Form NormalForms::invert(const Form& a) {
  if (a.numerator.empty()) throw NoForm{};
  if (a.numerator.size() > 1) return {a.denominator, a.numerator};
  const auto& [monomial, coefficient] = *a.numerator.begin();
  Monomial inverse = monomial;
  for (auto& power : inverse) power.second = -power.second;
  Polynomial factor;
  add_term(factor, std::move(inverse), 1 / coefficient);
  return {product(a.denominator, factor), one()};
}

Form NormalForms::integer_power(const Form& base, std::int64_t exponent) {
  if (exponent < 0) return integer_power(invert(base), -exponent);
  if (exponent == 0) {
    if (base.numerator.empty()) throw NoForm{};  // 0^0
    return constant(1);
  }
  if (exponent > kMaxExponent) throw TooLarge{};
  if (base.numerator.size() == 1 && is_one(base.denominator)) {
    const auto& [monomial, coefficient] = *base.numerator.begin();
    Monomial raised = monomial;
    for (auto& power : raised) {
      const std::int64_t product = power.second * exponent;
      if (std::abs(product) > 100 * kMaxExponent) throw TooLarge{};
      power.second = static_cast<std::int32_t>(product);
    }
    Form out{.numerator = {}, .denominator = one()};
    add_term(out.numerator, std::move(raised), rational_power(coefficient, exponent));
    return out;
  }
  Form result = constant(1);
  Form square = base;
  for (std::int64_t rest = exponent; rest > 0; rest >>= 1) {
    if ((rest & 1) != 0) result = multiply(result, square);
    if (rest > 1) square = multiply(square, square);
  }
  return result;
}

// ---------------------------------------------------------------------------- nodes to forms

Form NormalForms::atom(const std::string& key, Atoms::Atom kind, std::int32_t exponent) {
  if (key.size() > kMaxKey) throw TooLarge{};
  const std::int32_t id = atoms_.find_or_add(key, std::move(kind));
  Form form{.numerator = {}, .denominator = one()};
  add_term(form.numerator, {{id, exponent}}, 1);
  return form;
}

Form NormalForms::symbol(const std::string& name) {
  if (name == "i") return atom("i", {Atoms::Nature::kImaginary, 2, 0});
  if (name == "pi" || name == "e") return atom("const:" + name, {Atoms::Nature::kConstant, 0, 0});
  if (name == "infty") return opaque("infty");
  if (name == "pm") throw NoForm{};
  return atom("var:" + name, {Atoms::Nature::kVariable, 0, 0});
}

// base^(p/q) for a rational base: prime factors leave the root as far as they can.
Form NormalForms::rational_root(const Rational& base, const Rational& exponent) {
  const Integer index_integer = mp::denominator(exponent);
  const auto power = small_integer(Rational(Integer(mp::numerator(exponent))));
  if (index_integer > kMaxRootIndex || !power) throw TooLarge{};
  const auto index = static_cast<std::int32_t>(index_integer);
  if (base == 0) {
    if (*power <= 0) throw NoForm{};
    return constant(0);
  }
  Form result = constant(1);
  if (base < 0) {
    if (index == 2) {
      result = atom("i", {Atoms::Nature::kImaginary, 2, 0});
    } else if (index % 2 == 1) {
      result = constant(-1);  // the real root
    } else {
      throw TooLarge{};
    }
  }
  // (a/b)^(1/q) = (a b^(q-1))^(1/q) / b
  const Rational size = abs(base);
  const Integer bottom = mp::denominator(size);
  if (bits_of(size) * static_cast<std::size_t>(index) > 2048) throw TooLarge{};
  Integer rest = Integer(mp::numerator(size)) * mp::pow(bottom, static_cast<unsigned>(index - 1));
  result = multiply(result, constant(Rational(1, bottom)));
  const auto take = [&](const Integer& prime, std::int32_t count) {
    const std::int32_t inside = count % index;
    if (count >= index) {
      result = multiply(result, constant(rational_power(Rational(prime), count / index)));
    }
    if (inside == 0) return;
    const std::int32_t common = std::gcd(inside, index);
    const std::int32_t own_index = index / common;
    result = multiply(result, atom("root:" + std::to_string(own_index) + ":" + prime.str(),
                                   {Atoms::Nature::kRoot, own_index, prime}, inside / common));
  };
  constexpr unsigned kTrial = 1'000;
  for (unsigned divisor = 2; divisor < kTrial && rest > 1; ++divisor) {
    budget_.spend(20 + bits_of(rest) / 16);
    std::int32_t count = 0;
    while (rest % divisor == 0) {
      rest /= divisor;
      ++count;
    }
    if (count > 0) take(Integer(divisor), count);
  }
  if (rest > 1) {
    const Integer root = mp::sqrt(rest);
    if (root * root == rest) {
      take(root, 2);
    } else {
      take(rest, 1);
    }
  }
  return integer_power(result, *power);
}

Form NormalForms::power(const Node& node) {
  const Form exponent = form(*node.children[1]);
  const std::optional<Rational> rational_exponent = rational(exponent);
  // A tower is looked at from the top: its base is not expanded when the exponent is too large.
  const Form base = form(*node.children[0]);
  if (rational_exponent) {
    if (const auto integer = small_integer(*rational_exponent)) {
      if (std::abs(*integer) <= kMaxExponent) return integer_power(base, *integer);
    } else if (const auto rational_base = rational(base);
               rational_base && !is_integer(*rational_exponent)) {
      return rational_root(*rational_base, *rational_exponent);
    }
  }
  return opaque("pow(" + key(base) + "," + key(exponent) + ")");
}

// Arguments are taken once: nested calls would double the work at each level.
Form NormalForms::call(const Node& node) {
  std::vector<Form> arguments;
  std::vector<std::optional<Rational>> rationals;
  for (const NodePtr& child : node.children) {
    arguments.push_back(form(*child));
    rationals.push_back(rational(arguments.back()));
  }
  if (node.name == "abs" && rationals[0]) return constant(abs(*rationals[0]));
  const bool choose = node.name == "binom";
  if ((choose || node.name == "factorial") && rationals[0]) {
    const auto top = small_integer(*rationals[0]);
    const auto chosen = choose && rationals[1] ? small_integer(*rationals[1]) : std::nullopt;
    if (top && *top >= 0 && *top <= kMaxFactorial && (chosen || !choose)) {
      return constant(Rational(falling_product(*top, chosen)));
    }
  }
  std::vector<std::string> keys;
  for (const Form& argument : arguments) keys.push_back(key(argument));
  const bool unordered =
      node.name == "max" || node.name == "min" || node.name == "gcd" || node.name == "lcm";
  if (unordered) std::sort(keys.begin(), keys.end());
  std::string text = node.name + "(";
  for (const std::string& part : keys) text += part + ";";
  return opaque(text + ")");
}

// top!, or the binomial coefficient of top and `chosen`.
Integer NormalForms::falling_product(std::int64_t top, std::optional<std::int64_t> chosen) {
  if (chosen && (*chosen < 0 || *chosen > top)) return 0;
  const std::int64_t steps = chosen ? std::min(*chosen, top - *chosen) : top;
  Integer value = 1;
  for (std::int64_t i = 0; i < steps; ++i) {
    budget_.spend(20 + bits_of(value) / 16);
    value *= top - i;
    if (chosen) value /= i + 1;
  }
  return value;
}

Form NormalForms::form(const Node& node) {
  budget_.spend(1000);
  switch (node.kind) {
    case Kind::kNumber:
      spend_on(node.number);
      return constant(node.number);
    case Kind::kSymbol:
      return symbol(node.name);
    case Kind::kText:
      return atom("text:" + node.name, {Atoms::Nature::kVariable, 0, 0});
    case Kind::kBased:
      return atom("based:" + node.name + "_" + node.number.str(), {Atoms::Nature::kVariable, 0, 0});
    case Kind::kAdd: {
      Form sum = constant(0);
      for (const NodePtr& child : node.children) sum = add(std::move(sum), form(*child));
      return sum;
    }
    case Kind::kMultiply: {
      Form product = constant(1);
      for (const NodePtr& child : node.children) product = multiply(product, form(*child));
      return product;
    }
    case Kind::kPower:
      return power(node);
    case Kind::kPercent:
      return multiply(form(*node.children[0]), constant(Rational(1) / Rational(100)));
    case Kind::kDegree:
      return form(*node.children[0]);
    case Kind::kCall:
      return call(node);
    default:
      throw NoForm{};
  }
}

std::optional<Form> NormalForms::of(const Node& node) {
  try {
    return form(node);
  } catch (const TooLarge&) {
    return std::nullopt;
  }
}

std::optional<std::string> NormalForms::name(const Node& node) {
  try {
    return key(form(node));
  } catch (const TooLarge&) {
    return std::nullopt;
  }
}

// ---------------------------------------------------------------------------- questions

bool NormalForms::equal(const Form& a, const Form& b) {
  if (a.denominator == b.denominator) return a.numerator == b.numerator;
  try {
    return product(a.numerator, b.denominator) == product(b.numerator, a.denominator);
  } catch (const TooLarge&) {
    return false;
  }
}

std::optional<Rational> NormalForms::rational_difference(const Form& a, const Form& b) {
  try {
    return rational(add(a, multiply(b, constant(-1))));
  } catch (const TooLarge&) {
    return std::nullopt;
  }
}

std::optional<Rational> NormalForms::factor(const Form& a, const Form& b) {
  try {
    const Polynomial left = product(a.numerator, b.denominator);
    const Polynomial right = product(b.numerator, a.denominator);
    if (left.empty() && right.empty()) return Rational(1);
    if (left.size() != right.size()) return std::nullopt;
    const Rational ratio = left.begin()->second / right.begin()->second;
    for (auto x = left.begin(), y = right.begin(); x != left.end(); ++x, ++y) {
      budget_.spend(100);
      if (x->first != y->first || x->second != ratio * y->second) return std::nullopt;
    }
    return ratio;
  } catch (const TooLarge&) {
    return std::nullopt;
  }
}

bool NormalForms::decides(const Form& form) const {
  const auto independent = [&](const Polynomial& polynomial) {
    for (const auto& [monomial, coefficient] : polynomial) {
      for (const auto& [id, exponent] : monomial) {
        const Atoms::Atom& atom = atoms_[id];
        // Square roots of different primes are independent; other roots may not be.
        const bool prime_root =
            atom.nature == Atoms::Nature::kRoot && atom.index == 2 && atom.radicand < 1'000'000;
        if (atom.nature == Atoms::Nature::kOpaque ||
            (atom.nature == Atoms::Nature::kRoot && !prime_root)) {
          return false;
        }
      }
    }
    return true;
  };
  return independent(form.numerator) && independent(form.denominator);
}

bool NormalForms::decides_factor(const Form& form) const {
  const auto only_variables = [&](const Polynomial& polynomial) {
    return std::all_of(polynomial.begin(), polynomial.end(), [&](const auto& term) {
      return std::all_of(term.first.begin(), term.first.end(), [&](const auto& power) {
        return atoms_[power.first].nature == Atoms::Nature::kVariable;
      });
    });
  };
  return only_variables(form.numerator) && only_variables(form.denominator);
}

std::optional<Rational> NormalForms::rational(const Form& form) {
  if (!is_one(form.denominator) || form.numerator.size() > 1) return std::nullopt;
  if (form.numerator.empty()) return Rational(0);
  const auto& [monomial, coefficient] = *form.numerator.begin();
  if (!monomial.empty()) return std::nullopt;
  return coefficient;
}

std::string NormalForms::key(const Form& form) {
  // Scaled so that the first coefficient of the denominator is 1.
  const Rational scale = form.denominator.begin()->second;
  std::string text;
  const auto write = [&](const Polynomial& polynomial) {
    for (const auto& [monomial, coefficient] : polynomial) {
      const Rational scaled = coefficient / scale;
      spend_on(scaled);
      budget_.spend(bits_of(scaled) * bits_of(scaled) / 64);  // to decimal
      text += scaled.str();
      for (const auto& [id, exponent] : monomial) {
        text += "." + std::to_string(id) + "^" + std::to_string(exponent);
      }
      text += "+";
      if (text.size() > kMaxKey) throw TooLarge{};
    }
  };
  write(form.numerator);
  if (!is_one(form.denominator)) {
    text += "/";
    write(form.denominator);
  }
  return text;
}

}  // namespace asdbench::math
