// One left-to-right scan for numbers; exact rationals from Boost.Multiprecision.
#include "tasks/common/numbers.h"

#include <array>
#include <boost/multiprecision/cpp_int.hpp>

#include "tasks/common/characters.h"

namespace asdbench {
namespace {

using boost::multiprecision::cpp_int;
using boost::multiprecision::cpp_rational;

constexpr std::size_t kMaxDigits = 1000;

constexpr std::array<std::string_view, 7> kCurrencies = {"$",      "\u20ac", "\u00a3", "\u00a5",
                                                         "\u20b9", "\u20a9", "\u20bd"};
constexpr std::array<std::string_view, 3> kSeparators = {",", "{,}", ",\\!"};

// Length of the currency sign that ends at `text[end]` exclusive, an escaping backslash included; 0
// when there is none.
std::size_t currency_before(std::string_view text, std::size_t end) {
  for (const std::string_view sign : kCurrencies) {
    if (text.substr(0, end).ends_with(sign)) {
      const bool escaped = sign == "$" && end >= 2 && text[end - 2] == '\\';
      return sign.size() + (escaped ? 1 : 0);
    }
  }
  return 0;
}

std::size_t currency_after(std::string_view text) {
  if (text.starts_with("\\$")) return 2;
  for (const std::string_view sign : kCurrencies) {
    if (text.starts_with(sign)) return sign.size();
  }
  return 0;
}

// Whether the character that ends at `text[end]` exclusive is a letter: ASCII, or the two-byte
// letters of Latin, Greek and Cyrillic. Scripts without spaces between words (Chinese) set digits
// directly after a word, so their characters are not counted.
bool letter_before(std::string_view text, std::size_t end) {
  if (end == 0) return false;
  if (is_letter(text[end - 1])) return true;
  if (end < 2) return false;
  const auto lead = static_cast<unsigned char>(text[end - 2]);
  const auto trail = static_cast<unsigned char>(text[end - 1]);
  if ((trail & 0xc0) != 0x80 || lead < 0xc3 || lead > 0xd3) return false;
  return !(lead == 0xc3 && (trail == 0x97 || trail == 0xb7));  // the signs for times and divided by
}

// Whether digits at `text[start]` belong to a word. The name of a LaTeX command is none:
// "\approx18". `command_end` is where the last such name ended.
bool inside_word(std::string_view text, std::size_t start, std::size_t command_end) {
  if (start == 0 || start == command_end) return false;
  const char before = text[start - 1];
  return before == '_' || letter_before(text, start);
}

bool is_operand_end(std::string_view text, std::size_t end) {
  if (end == 0) return false;
  const char before = text[end - 1];
  return is_digit(before) || before == ')' || before == ']' || before == '}' ||
         letter_before(text, end);
}

// Extends the digits at `begin` to the left by a sign and a currency sign, in either order, but not
// to the left of `floor`, where an earlier number ended.
std::size_t with_sign(std::string_view text, std::size_t begin, std::size_t floor) {
  const auto is_sign = [&](std::size_t end) {
    return end > floor && (text[end - 1] == '-' || text[end - 1] == '+');
  };
  const auto currency = [&](std::size_t end) {
    const std::size_t length = currency_before(text, end);
    return length <= end - floor ? length : 0;
  };
  // A "$" may also close mathematics: "$16$-$3$" is a difference.
  const auto follows_operand = [&](std::size_t end) {
    return is_operand_end(text, end) || is_operand_end(text, end - currency_before(text, end));
  };
  if (is_sign(begin)) {
    const std::size_t sign = begin - 1;
    return follows_operand(sign) ? begin : sign - currency(sign);
  }
  const std::size_t money = currency(begin);
  if (money > 0 && is_sign(begin - money) && !follows_operand(begin - money - 1)) {
    return begin - money - 1;
  }
  return begin - money;
}

std::size_t digits_from(std::string_view text, std::size_t at) {
  while (at < text.size() && is_digit(text[at])) ++at;
  return at;
}

// Length of a separator with exactly three digits behind it; 0 when there is none.
std::size_t group_length(std::string_view text) {
  for (const std::string_view separator : kSeparators) {
    const std::size_t length = separator.size();
    if (text.starts_with(separator) &&
        digits_from(text.substr(0, length + 4), length) == length + 3) {
      return length + 3;
    }
  }
  return 0;
}

bool has_nonzero(std::string_view digits) {
  return digits.find_first_not_of('0') != std::string_view::npos;
}

// End of the number whose digits, or whose decimal point, stand at `begin`.
std::size_t number_end(std::string_view text, std::size_t begin) {
  std::size_t end = digits_from(text, begin);
  if (end > begin && end - begin <= 3) {
    while (const std::size_t length = group_length(text.substr(end))) end += length;
  }
  if (end < text.size() && text[end] == '.') {
    const std::size_t decimals = digits_from(text, end + 1);
    if (decimals > end + 1) end = decimals;
  }
  if (end < text.size() && text[end] == '/') {
    // A fraction over zero is no number; what stands before the stroke still is.
    const std::size_t denominator = digits_from(text, end + 1);
    if (has_nonzero(text.substr(end + 1, denominator - end - 1))) end = denominator;
  }
  return end;
}

bool starts_decimal(std::string_view text, std::size_t at) {
  if (text[at] != '.' || at + 1 >= text.size() || !is_digit(text[at + 1])) return false;
  // ".5" but not "Rs.500", "1.2.3", "...5" or "(a).5".
  return at == 0 || (text[at - 1] != '.' && !is_operand_end(text, at));
}

// `digits` without leading zeros; nullopt when too many are left.
std::optional<cpp_int> to_integer(std::string_view digits) {
  digits.remove_prefix(std::min(digits.find_first_not_of('0'), digits.size()));
  if (digits.size() > kMaxDigits) return std::nullopt;
  return digits.empty() ? cpp_int(0) : cpp_int(std::string(digits));
}

std::optional<cpp_rational> to_rational(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  if (text.ends_with('.') && text.size() > 1 && is_digit(text[text.size() - 2])) {
    text.remove_suffix(1);
  }
  bool negative = false;
  bool signed_already = false;
  bool money = false;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t currency = currency_after(text.substr(at));
    if (!signed_already && (text[at] == '-' || text[at] == '+')) {
      signed_already = true;
      negative = text[at] == '-';
      ++at;
    } else if (!money && currency > 0) {
      money = true;
      at += currency;
    } else {
      break;
    }
  }
  if (at == text.size() || !(is_digit(text[at]) || starts_decimal(text, at))) return std::nullopt;
  if (number_end(text, at) != text.size()) return std::nullopt;

  const std::string_view body = text.substr(at);
  const std::size_t stroke = body.find('/');
  const std::string_view value = body.substr(0, stroke);
  const std::size_t point = value.find('.');
  std::string digits;
  for (const char c : value.substr(0, point)) {
    if (is_digit(c)) digits += c;
  }
  std::size_t decimals = 0;
  if (point != std::string_view::npos) {
    std::string_view tail = value.substr(point + 1);
    while (tail.ends_with('0')) tail.remove_suffix(1);
    decimals = tail.size();
    digits += tail;
  }
  if (decimals > kMaxDigits) return std::nullopt;
  const std::optional<cpp_int> numerator = to_integer(digits);
  std::optional<cpp_int> denominator = cpp_int(1);
  if (stroke != std::string_view::npos) denominator = to_integer(body.substr(stroke + 1));
  if (!numerator || !denominator) return std::nullopt;
  const cpp_int scale = boost::multiprecision::pow(cpp_int(10), static_cast<unsigned>(decimals));
  const cpp_rational rational(*numerator, *denominator * scale);
  return negative ? cpp_rational(-rational) : rational;
}

std::size_t remove_factor(cpp_int& value, unsigned factor) {
  std::size_t count = 0;
  while (value % factor == 0) {
    value /= factor;
    ++count;
  }
  return count;
}

}  // namespace

std::vector<NumberSpan> find_numbers(std::string_view text) {
  std::vector<NumberSpan> numbers;
  std::size_t floor = 0;
  std::size_t command_end = std::string_view::npos;
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] == '\\' && i + 1 < text.size() && is_letter(text[i + 1])) {
      ++i;
      while (i < text.size() && is_letter(text[i])) ++i;
      command_end = i;
      continue;
    }
    if (!is_digit(text[i]) && !starts_decimal(text, i)) {
      ++i;
      continue;
    }
    const std::size_t end = number_end(text, i);
    if (!inside_word(text, i, command_end)) {
      numbers.push_back({with_sign(text, i, floor), end});
      floor = end;
    }
    i = end;
  }
  return numbers;
}

std::optional<std::string> canonical_number(std::string_view text) {
  const std::optional<cpp_rational> value = to_rational(text);
  if (!value) return std::nullopt;
  cpp_int numerator = boost::multiprecision::numerator(*value);
  const cpp_int denominator = boost::multiprecision::denominator(*value);
  cpp_int rest = denominator;
  const std::size_t twos = remove_factor(rest, 2);
  const std::size_t fives = remove_factor(rest, 5);
  if (rest != 1) return numerator.str() + "/" + denominator.str();
  const std::size_t decimals = std::max(twos, fives);
  const bool negative = numerator < 0;
  if (negative) numerator = -numerator;
  numerator = numerator * boost::multiprecision::pow(cpp_int(10), static_cast<unsigned>(decimals)) /
              denominator;
  std::string digits = numerator.str();
  if (decimals > 0) {
    if (digits.size() <= decimals) digits.insert(0, decimals + 1 - digits.size(), '0');
    digits.insert(digits.size() - decimals, ".");
  }
  return negative ? "-" + digits : digits;
}

bool same_number(std::string_view a, std::string_view b) {
  const std::optional<cpp_rational> left = to_rational(a);
  const std::optional<cpp_rational> right = to_rational(b);
  return left && right && *left == *right;
}

}  // namespace asdbench
