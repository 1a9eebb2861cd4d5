// Errors are carried as logarithms, which is coarse and enough: they only tell values from noise.
#include <algorithm>
#include <cmath>
#include <limits>

#include "tasks/common/math/numeric_internal.h"

namespace asdbench::math {
namespace {

constexpr double kPrecision = 196;  // bits of Real, less a few
constexpr double kExact = -std::numeric_limits<double>::infinity();
constexpr std::uint64_t kCheap = 900;  // units of an addition or multiplication
constexpr std::uint64_t kTranscendental = 30'000;
constexpr std::int64_t kMaxFactorial = 2'500;
constexpr double kMaxArgument = 40;  // log2 of the largest argument of sine and cosine

double log2_of(const Real& x) {
  if (x == 0) return kExact;
  int exponent = 0;
  const Real mantissa = frexp(x, &exponent);
  return exponent + std::log2(std::abs(static_cast<double>(mantissa)));
}

// The error of a result that inherits `inherited` and is rounded once more.
Value rounded(Value value, double inherited) {
  value.error = std::max(inherited, magnitude(value) - kPrecision) + 1;
  return value;
}

Value exact(const Real& re) { return {re, 0, kExact}; }

const Real& pi() {
  static const Real kPi = acos(Real(-1));
  return kPi;
}

bool is_real(const Value& x) { return x.im == 0; }

bool is_finite(const Value& x) { return isfinite(x.re) && isfinite(x.im); }

std::optional<Value> checked(Value value) {
  if (!is_finite(value)) return std::nullopt;
  return value;
}

std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  return hash;
}

std::uint64_t mixed(std::uint64_t state) {  // the output step of SplitMix64
  state += 0x9e3779b97f4a7c15;
  state = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9;
  state = (state ^ (state >> 27)) * 0x94d049bb133111eb;
  return state ^ (state >> 31);
}

}  // namespace

double magnitude(const Value& value) { return std::max(log2_of(value.re), log2_of(value.im)); }

// Half of the points lie in (0, 1), where arcsines are defined, half in (1, 4).
Value Evaluator::variable(const std::string& name, int point) const {
  const std::uint64_t bits = mixed(hash_of(name) ^ mixed(static_cast<std::uint64_t>(point)));
  const Real unit = ldexp(Real(bits >> 11) + Real(0.5), -53);
  return exact(point % 2 == 0 ? unit : Real(1 + 3 * unit));
}

Value Evaluator::times(const Value& a, const Value& b) {
  budget_.spend(kCheap);
  Value out;
  if (is_real(a) && is_real(b)) {
    out.re = a.re * b.re;
  } else {
    budget_.spend(3 * kCheap);
    out.re = a.re * b.re - a.im * b.im;
    out.im = a.re * b.im + a.im * b.re;
  }
  const double size = magnitude(a) + magnitude(b);
  return rounded(out,
                 std::max({magnitude(a) + b.error, magnitude(b) + a.error, size - kPrecision}));
}

std::optional<Value> Evaluator::quotient(const Value& a, const Value& b) {
  budget_.spend(8 * kCheap);
  const Real square = b.re * b.re + b.im * b.im;
  if (square == 0 || magnitude(b) <= b.error) return std::nullopt;
  Value out;
  if (is_real(a) && is_real(b)) {
    out.re = a.re / b.re;
  } else {
    out.re = (a.re * b.re + a.im * b.im) / square;
    out.im = (a.im * b.re - a.re * b.im) / square;
  }
  const double size = magnitude(a) - magnitude(b);
  return checked(rounded(
      out, std::max({a.error - magnitude(b), size + b.error - magnitude(b), size - kPrecision})));
}

std::optional<Value> Evaluator::exponential(const Value& x) {
  budget_.spend(kTranscendental);
  if (abs(x.re) > 1'000'000'000 || log2_of(x.im) > kMaxArgument || x.error > 0) return std::nullopt;
  const Real size = exp(x.re);
  Value out{size, 0, 0};
  if (!is_real(x)) {
    budget_.spend(2 * kTranscendental);
    out.re = size * cos(x.im);
    out.im = size * sin(x.im);
  }
  // An argument of many digits before the point leaves fewer behind it.
  const double lost = std::max(0.0, magnitude(x));
  return checked(rounded(out, log2_of(size) + std::max(x.error, lost - kPrecision)));
}

std::optional<Value> Evaluator::logarithm(const Value& x) {
  budget_.spend(kTranscendental);
  const double size = magnitude(x);
  if (size <= x.error) return std::nullopt;
  Value out;
  if (is_real(x)) {
    out.re = log(abs(x.re));
    if (x.re < 0) out.im = pi();
  } else {
    budget_.spend(2 * kTranscendental);
    out.re = log(x.re * x.re + x.im * x.im) / 2;
    out.im = atan2(x.im, x.re);
  }
  return checked(rounded(out, std::max(x.error - size, -kPrecision)));
}

std::optional<Value> Evaluator::trigonometric(const std::string& name, const Value& x) {
  budget_.spend(kTranscendental);
  if (!is_real(x) || log2_of(x.re) > kMaxArgument || x.error > -20) return std::nullopt;
  const auto of = [&](const Real& value) {
    return rounded({value, 0, 0}, std::max({x.error, log2_of(x.re) - kPrecision, -kPrecision}));
  };
  if (name == "sinh" || name == "cosh" || name == "tanh") {
    const auto up = exponential(x);
    if (!up) return std::nullopt;
    const Value down{1 / up->re, 0, up->error - 2 * log2_of(up->re)};
    const double error = std::max(up->error, down.error);
    const Value sinh = rounded({(up->re - down.re) / 2, 0, 0}, error);
    const Value cosh = rounded({(up->re + down.re) / 2, 0, 0}, error);
    if (name == "sinh") return sinh;
    return name == "cosh" ? std::optional(cosh) : quotient(sinh, cosh);
  }
  if (name == "sin") return of(sin(x.re));
  if (name == "csc") return quotient(exact(1), of(sin(x.re)));
  if (name == "cos") return of(cos(x.re));
  if (name == "sec") return quotient(exact(1), of(cos(x.re)));
  budget_.spend(kTranscendental);
  const Value sine = of(sin(x.re));
  const Value cosine = of(cos(x.re));
  return name == "tan" ? quotient(sine, cosine) : quotient(cosine, sine);
}

std::optional<Value> Evaluator::inverse(const std::string& name, const Value& x) {
  budget_.spend(4 * kTranscendental);
  if (!is_real(x)) return std::nullopt;
  if (name == "arctan") return rounded({atan(x.re), 0, 0}, std::max(x.error, -kPrecision));
  const Real gap = 1 - x.re * x.re;
  if (gap < 0) return std::nullopt;
  // Near the ends the slope grows without bound.
  const double slope = gap == 0 ? kPrecision / 2 : -log2_of(gap) / 2;
  const Real angle = name == "arcsin" ? Real(asin(x.re)) : Real(acos(x.re));
  const double inherited = x.error == kExact ? -kPrecision : x.error + std::max(0.0, slope);
  return rounded({angle, 0, 0}, std::max(inherited, -kPrecision));
}

std::optional<Value> Evaluator::sum(const Node& node, int point) {
  Value total = exact(0);
  for (const NodePtr& child : node.children) {
    const auto term = at(*child, point);
    if (!term) return std::nullopt;
    budget_.spend(kCheap);
    const double error = std::max(
        {total.error, term->error, magnitude(total) - kPrecision, magnitude(*term) - kPrecision});
    total.re += term->re;
    total.im += term->im;
    total.error = error == kExact ? kExact : error + 1;
  }
  return checked(total);
}

std::optional<Value> Evaluator::product(const Node& node, int point) {
  Value total = exact(1);
  for (const NodePtr& child : node.children) {
    const auto factor = at(*child, point);
    if (!factor) return std::nullopt;
    total = times(total, *factor);
  }
  return checked(total);
}

std::optional<Value> Evaluator::power(const Node& node, int point) {
  const auto base = at(*node.children[0], point);
  const auto exponent = base ? at(*node.children[1], point) : std::nullopt;
  if (!exponent) return std::nullopt;
  const bool zero = base->re == 0 && base->im == 0;
  if (is_real(*exponent) && exponent->re == round(exponent->re) && abs(exponent->re) <= 10'000) {
    const int count = abs(static_cast<int>(exponent->re));
    if (zero && (count == 0 || exponent->re < 0)) return std::nullopt;
    Value result = exact(1);
    Value square = *base;
    for (int rest = count; rest > 0; rest >>= 1) {
      if ((rest & 1) != 0) result = times(result, square);
      if (rest > 1) square = times(square, square);
    }
    return exponent->re < 0 ? quotient(exact(1), result) : checked(result);
  }
  if (zero) {
    return is_real(*exponent) && exponent->re > 0 ? std::optional(exact(0)) : std::nullopt;
  }
  // The real root of a negative number where there is one, as schools take it.
  const Node& top = *node.children[1];
  const bool odd_root = is_real(*base) && base->re < 0 && top.kind == Kind::kNumber &&
                        mp::denominator(top.number) % 2 != 0;
  Value positive = *base;
  if (odd_root) positive.re = -positive.re;
  const auto log = logarithm(positive);
  if (!log) return std::nullopt;
  auto result = exponential(times(*log, *exponent));
  if (result && odd_root && mp::numerator(top.number) % 2 != 0) result->re = -result->re;
  return result;
}

std::optional<Value> Evaluator::integer_function(const Node& node, int point) {
  const auto n = at(*node.children[0], point);
  if (!n || !is_real(*n) || n->re != round(n->re) || n->re < 0 || n->re > kMaxFactorial) {
    return std::nullopt;
  }
  const int top = static_cast<int>(n->re);
  int steps = top;
  const bool choose = node.name == "binom";
  if (choose) {
    const auto k = at(*node.children[1], point);
    if (!k || !is_real(*k) || k->re != round(k->re) || k->re < 0 || k->re > n->re) {
      return std::nullopt;
    }
    steps = static_cast<int>(k->re);
  }
  budget_.spend(static_cast<std::uint64_t>(steps) * 2 * kCheap);
  Real value = 1;
  for (int i = 0; i < steps; ++i) {
    value *= top - i;
    if (choose) value /= i + 1;
  }
  return checked(rounded({value, 0, 0}, log2_of(value) - kPrecision + 12));
}

std::optional<Value> Evaluator::call(const Node& node, int point) {
  const std::string& name = node.name;
  if (name == "factorial" || name == "binom") return integer_function(node, point);
  std::vector<Value> args;
  for (const NodePtr& child : node.children) {
    const auto argument = at(*child, point);
    if (!argument) return std::nullopt;
    args.push_back(*argument);
  }
  const Value& x = args.front();
  if (name == "ln") return logarithm(x);
  if (name == "log") {
    const auto top = logarithm(x);
    const auto bottom = logarithm(args.at(1));
    return top && bottom ? quotient(*top, *bottom) : std::nullopt;
  }
  if (name == "abs") {
    if (is_real(x)) return Value{abs(x.re), 0, x.error};
    return rounded({sqrt(x.re * x.re + x.im * x.im), 0, 0}, x.error);
  }
  if (name.starts_with("arc")) return inverse(name, x);
  for (const Value& value : args) {
    if (!is_real(value)) return std::nullopt;
  }
  if (name == "floor" || name == "ceil") {
    return exact(name == "floor" ? Real(floor(x.re)) : Real(ceil(x.re)));
  }
  if (name == "max" || name == "min") {
    const auto less = [](const Value& a, const Value& b) { return a.re < b.re; };
    return name == "max" ? *std::max_element(args.begin(), args.end(), less)
                         : *std::min_element(args.begin(), args.end(), less);
  }
  if (name == "gcd" || name == "lcm") return std::nullopt;
  return trigonometric(name, x);
}

std::optional<Value> Evaluator::at(const Node& node, int point) {
  budget_.spend(300);
  switch (node.kind) {
    case Kind::kNumber: {
      const std::size_t bits = bits_of(node.number);
      budget_.spend(bits);
      const Real top(Integer(mp::numerator(node.number)));
      const Real bottom(Integer(mp::denominator(node.number)));
      return rounded({top / bottom, 0, 0}, kExact);
    }
    case Kind::kSymbol:
      if (node.name == "pi") return rounded({pi(), 0, 0}, -kPrecision);
      if (node.name == "e") {
        static const Real kEuler = exp(Real(1));
        return rounded({kEuler, 0, 0}, -kPrecision);
      }
      if (node.name == "i") return Value{0, 1, kExact};
      if (is_constant_name(node.name)) return std::nullopt;
      return variable(node.name, point);
    case Kind::kText:
      return variable("text:" + node.name, point);
    case Kind::kAdd:
      return sum(node, point);
    case Kind::kMultiply:
      return product(node, point);
    case Kind::kPower:
      return power(node, point);
    case Kind::kPercent: {
      const auto value = at(*node.children[0], point);
      return value ? quotient(*value, exact(100)) : std::nullopt;
    }
    case Kind::kDegree:
      return at(*node.children[0], point);
    case Kind::kCall:
      if (is_known_function(node.name)) return call(node, point);
      return variable(opaque_(node), point);
    default:
      return std::nullopt;
  }
}

}  // namespace asdbench::math
