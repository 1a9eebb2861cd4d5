// Quotients of polynomials over atoms: the normal form of an expression. Source:
// specs/scoring.md, section 3.5, rule 2.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tasks/common/math/budget_internal.h"
#include "tasks/common/math/node_internal.h"

namespace asdbench::math {

/// Thrown for a division by zero, and for what has no normal form (a set inside a sum, ...).
struct NoForm {};

/// (atom, exponent), ascending atoms, no zero exponents; a negative exponent is a denominator.
using Monomial = std::vector<std::pair<std::int32_t, std::int32_t>>;
/// No zero coefficients.
using Polynomial = std::map<Monomial, Rational>;

struct Form {
  Polynomial numerator;
  Polynomial denominator;  // 1, or several terms
};

/// What polynomials are made of. Atoms of one comparison share a table, so that equal atoms have
/// equal numbers.
class Atoms {
 public:
  enum class Nature : std::uint8_t {
    kVariable,   // independent of everything
    kConstant,   // pi, e: no relation to other atoms is assumed to exist
    kImaginary,  // its square is -1
    kRoot,       // its `index`-th power is the rational `radicand`
    kOpaque,     // functions and powers: identities between them are not known here
  };
  struct Atom {
    Nature nature;
    std::int32_t index = 0;
    Integer radicand;
  };

  std::int32_t find_or_add(const std::string& key, Atom atom);
  const Atom& operator[](std::int32_t id) const { return atoms_[static_cast<std::size_t>(id)]; }

 private:
  std::map<std::string, std::int32_t> ids_;
  std::vector<Atom> atoms_;
};

class NormalForms {
 public:
  explicit NormalForms(Budget& budget) : budget_(budget) {}

  /// NoForm; OutOfBudget. Absent where the form would be too large: then nothing is known.
  std::optional<Form> of(const Node& node);
  bool equal(const Form& a, const Form& b);
  /// The rational c with a = c b, c != 0; absent when there is none.
  std::optional<Rational> factor(const Form& a, const Form& b);
  /// The difference where it is a rational number, whatever the atoms are.
  std::optional<Rational> rational_difference(const Form& a, const Form& b);
  /// Whether unequal forms mean different values: every atom is free of relations to the others.
  bool decides(const Form& form) const;
  /// `decides`, and no constants but rational ones: factors between such forms are rational.
  bool decides_factor(const Form& form) const;
  /// The rational that a form is; absent when it is none.
  static std::optional<Rational> rational(const Form& form);
  /// One string for one form; equal functions may still have different ones. Absent where it would
  /// be too long.
  std::optional<std::string> name(const Node& node);

 private:
  std::string key(const Form& form);
  Form form(const Node& node);
  Form power(const Node& node);
  Form integer_power(const Form& base, std::int64_t exponent);
  Form rational_root(const Rational& base, const Rational& exponent);
  Form call(const Node& node);
  Form atom(const std::string& key, Atoms::Atom atom, std::int32_t exponent = 1);
  Form opaque(const std::string& key) { return atom(key, {Atoms::Nature::kOpaque, 0, 0}); }
  Form symbol(const std::string& name);
  Integer falling_product(std::int64_t top, std::optional<std::int64_t> chosen);

  Form add(Form a, const Form& b);
  Form multiply(const Form& a, const Form& b);
  Form invert(const Form& a);
  Polynomial product(const Polynomial& a, const Polynomial& b);
  void add_term(Polynomial& sum, Monomial monomial, Rational coefficient);
  void reduce(Monomial& monomial, Rational& coefficient);
  void spend_on(const Rational& value);

  Budget& budget_;
  Atoms atoms_;
};

}  // namespace asdbench::math
