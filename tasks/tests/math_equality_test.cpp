// Pairs of answers for every rule of specs/scoring.md, sections 3.3 to 3.6, and hostile ones.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <ctime>
#include <map>

#include "tasks/common/jsonl.h"
#include "tasks/common/math/equality.h"
#include "tasks/common/math/tokens.h"

namespace asdbench {
namespace {

using math::compare_answers;
using math::Comparison;
using math::Equality;

// tests/data/math_pairs.jsonl names the rule of each pair.
TEST(MathEquality, EveryRuleHolds) {
  std::map<std::string, int> rules;
  read_jsonl(ASDBENCH_TEST_DATA "/math_pairs.jsonl", [&](const JsonlRow& row) {
    const std::string& answer = row.text("answer");
    const std::string& gold = row.text("gold");
    const Comparison found = compare_answers(answer, gold);
    EXPECT_EQ(found.equality == Equality::kEqual, row.object().at("equal").get<bool>())
        << row.text("rule") << ": " << answer << " against " << gold << " " << found.detail;
    const Comparison back = compare_answers(gold, answer);
    if (!found.one_way && !back.one_way) {
      EXPECT_EQ(found.equality, back.equality) << answer << " against " << gold;
    }
    ++rules[row.text("rule")];
  });
  // The 9 steps of 3.3 that pairs can show, the 15 rows of 3.4, what is not equal, 3.5 and 3.6.
  for (const char* rule : {"3.3.1 wrappers",
                           "3.3.2 synonyms",
                           "3.3.3 braceless arguments",
                           "3.3.4 thousand separators",
                           "3.3.5 text",
                           "3.3.6 units",
                           "3.3.8 digits",
                           "3.3.9 left sides",
                           "3.4 N numbers",
                           "3.4 F fractions",
                           "3.4 P percent",
                           "3.4 D degrees",
                           "3.4 E expressions",
                           "3.4 C complex",
                           "3.4 B bases",
                           "3.4 T words",
                           "3.4 O tuples",
                           "3.4 L lists",
                           "3.4 M matrices",
                           "3.4 Q equations",
                           "3.4 I inequalities",
                           "3.4 V unions",
                           "3.4 not equal",
                           "3.5 identity",
                           "3.6 mistakes"}) {
    EXPECT_GT(rules[rule], 1) << rule;
  }
  EXPECT_EQ(rules.size(), 25u);
}

TEST(MathEquality, RulesOfNamedGraders) {
  const auto equal = [](const char* answer, const char* gold, const math::EqualityRules& rules) {
    return compare_answers(answer, gold, rules).equality == Equality::kEqual;
  };
  EXPECT_TRUE(equal("52_8", "52_9", {.base_counts = false}));
  EXPECT_TRUE(equal("52_8", "52", {.base_counts = false}));
  EXPECT_FALSE(equal("53_8", "52_8", {.base_counts = false}));
  EXPECT_FALSE(equal("10\\%", "0.2", {.percent_is_value = true}));
  EXPECT_TRUE(equal("20\\%", "0.2", {.percent_is_value = true}));
  EXPECT_TRUE(equal(".0000672", ".000067", {.absolute_decimals = true}));
  EXPECT_FALSE(equal("3245/5", "649", {.arithmetic = false}));
  EXPECT_FALSE(equal("2^{10}", "1024", {.arithmetic = false}));
  EXPECT_TRUE(equal("649.0", "649", {.arithmetic = false}));
  EXPECT_TRUE(equal("\\frac{13}{4}", "3.25", {.arithmetic = false}));
  EXPECT_TRUE(equal("2+x", "x+2", {.arithmetic = false}));
}

TEST(MathEquality, DetailSaysWhatCouldNotBeReadOrDecided) {
  EXPECT_EQ(compare_answers("(1", "5").detail, "the answer could not be read");
  EXPECT_EQ(compare_answers("5", "(1").detail, "the gold could not be read");
  EXPECT_EQ(compare_answers("5", "6").detail, "");
  const Comparison undecided = compare_answers("(a+b+c+d+e+f)^{5000}", "(a+b+c+d+e+g)^{5000}");
  EXPECT_EQ(undecided.equality, Equality::kUndecided);
  EXPECT_EQ(undecided.detail.rfind("undecided: ", 0), 0u) << undecided.detail;
  EXPECT_EQ(compare_answers(std::string(200'000, '7'), "7").equality, Equality::kUndecided);
}

TEST(MathEquality, CanonicalDigitsKeepTheValue) {
  EXPECT_EQ(math::canonical_digits("007.50"), "7.5");
  EXPECT_EQ(math::canonical_digits(".0"), "0");
  EXPECT_EQ(math::canonical_digits("000"), "0");
  EXPECT_EQ(math::canonical_digits("100"), "100");
}

// ---------------------------------------------------------------------------- hostile answers

std::string repeated(std::string_view part, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += part;
  return text;
}
std::string nested(std::string_view open, std::string_view inner, std::string_view close,
                   int times) {
  return repeated(open, times) + std::string(inner) + repeated(close, times);
}
// "part(1) part(2) ...", `{}` in `part` being the number.
std::string counted(std::string_view part, int times) {
  std::string text;
  for (int i = 1; i <= times; ++i) text += fmt::format(fmt::runtime(part), i, i + 1);
  return text;
}

struct Hostile {
  std::string answer, gold;
};

std::vector<Hostile> hostile(int n) {
  const std::string square = "\\begin{pmatrix}a&b\\\\c&d\\end{pmatrix}";
  return {
      {nested("{", "1", "}", n), "1"},
      {nested("(", "x", ")", n), "x+0"},
      {nested("\\frac{1}{1+", "x", "}", n), nested("\\frac{1}{1+", "z", "}", n)},
      {nested("\\frac{1}{1+", "2", "}", n), nested("\\frac{1}{1+", "3", "}", n)},
      {nested("9^{", "9", "}", n), nested("9^{", "8", "}", n)},
      {nested("x^{", "9", "}", n), nested("x^{", "8", "}", n)},
      {nested("\\sqrt{1+", "x", "}", n), nested("\\sqrt{2+", "x", "}", n)},
      {nested("\\sqrt{1+", "2", "}", n), nested("\\sqrt{1+", "3", "}", n)},
      {repeated("\\sin ", n) + "x", repeated("\\sin ", n) + "y"},
      {repeated("-", n) + "x", "x"},
      {repeated("x+", n) + "1", repeated("x+", n) + "2"},
      {repeated("(x+1)", n), repeated("(x+2)", n)},
      {repeated("(x+y+z+1)", n), repeated("(x+y+z+2)", n)},
      {repeated("7", n), repeated("7", n) + "1"},
      {"0." + repeated("7", n), "7/9"},
      {repeated("1,", n) + "1", repeated("2, ", n) + "2"},
      {repeated("\\sin x, ", n) + "1", repeated("\\cos x, ", n) + "2"},
      {counted("\\sqrt{{{}+x}}, ", n) + "1", counted("\\sqrt{{{}+2x}}, ", n) + "1"},
      {counted("\\sqrt{{{}}}+", n) + "1", counted("\\sqrt{{{}}}+", n) + "2"},
      {counted("\\sin {}x+", n) + "1", counted("\\sin {}x+", n) + "2"},
      {counted("({},{})\\cup", n) + "(-2,-1)", "(1,2)\\cup(3,4)"},
      {"5" + repeated("!", n), "6" + repeated("!", n)},
      {"x" + repeated("^{2}", n), "x"},
      {repeated("|", n) + "x" + repeated("|", n), "x"},
      {square + "^{" + std::to_string(n) + "}", square + "^{3}"},
      {repeated(square, n), square},
      {repeated("1\\pm 2, ", n) + "3", repeated("2\\pm 1, ", n) + "4"},
      {repeated("x<", n) + "y", repeated("y<", n) + "x"},
      {repeated("x=", n) + "y", repeated("y=", n) + "x"},
      {nested("1\\frac{", "1", "}{2}", n), "1"},
      {repeated("\\sum_{k=1}^{9}", n) + "k", repeated("\\sum_{j=1}^{9}", n) + "j^2"},
      {nested("f(", "x", ")", n), nested("f(", "y", ")", n)},
      {nested("\\log_{2}{", "x", "}", n), nested("\\log_{2}{", "y", "}", n)},
      {nested("{1 \\over ", "x", "}", n), "x"},
      {repeated("1,2;", n) + "3", repeated("1,3;", n) + "3"},
      {repeated("1:", n) + "3", repeated("1:", n) + "4"},
      {"\\sin(" + nested("(", "30^\\circ", ")", n) + ")", "1/2"},
      {nested("\\text{", "x", "}", n), "x"},
      {repeated("\\begin{pmatrix}", n) + "x", "x"},
      {std::string(static_cast<std::size_t>(n), '\0') + "5", "5"},
      {repeated("\xff", n), "5"},
      {repeated("\\", n) + "5", "5"},
      {repeated("$", n) + "5", "5"},
  };
}

const std::vector<Hostile>& large_values() {
  static const std::vector<Hostile> kCases = {
      {"(a+b+c+d+e+f)^{5000}", "(a+b+c+d+e+g)^{5000}"},
      {"(x+1)^{10000}", "(x+2)^{10000}"},
      {"((2^{9999})^{9999})^{9999}", "((3^{9999})^{9999})^{9999}"},
      {"(10^{4000}+1)^{8}", "(10^{4000}+2)^{8}"},
      {"\\frac{10^{4000}+1}{10^{3999}+7}+\\frac{10^{4000}+3}{10^{3999}+9}", "1"},
      {"\\frac{3^{9000}}{2^{9000}}+\\frac{5^{6000}}{7^{5000}}+\\frac{11^{4000}}{13^{4000}}", "1"},
      {"100000!", "100001!"},
      {"10^{10^{10}}!", "1"},
      {"\\binom{2500}{1250}+\\binom{2499}{1200}", "\\binom{2500}{1249}"},
      {"\\binom{999999999}{499999999}", "1"},
      {"\\sin(10^{1000})", "\\cos(10^{1000})"},
      {"e^{e^{e^{e^{e^{x}}}}}", "e^{e^{e^{e^{e^{y}}}}}"},
      {"\\sqrt[64]{123456789123456789}", "\\sqrt[63]{12345678912345678}"},
      {"\\sum_{k=1}^{999999999}k^{99}", "5"},
  };
  return kCases;
}

double thread_ms() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
}

// The bound is 50 ms; a sanitizer makes the work between two looks at the clock several times
// slower.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(NDEBUG)
constexpr double kBound = 1'000;
#else
constexpr double kBound = 50;
#endif

TEST(MathEquality, HostileAnswersStayWithinTheirTime) {
  std::vector<Hostile> cases = large_values();
  for (const int n : {50, 150, 199, 1'000, 20'000}) {
    for (Hostile& one : hostile(n)) cases.push_back(std::move(one));
  }
  for (const Hostile& one : cases) {
    const double before = thread_ms();
    const Comparison found = compare_answers(one.answer, one.gold);
    EXPECT_LT(thread_ms() - before, kBound)
        << one.answer.substr(0, 60) << " of " << one.answer.size() << " bytes: " << found.detail;
    EXPECT_EQ(found.equality == Equality::kUndecided, found.detail.starts_with("undecided: "))
        << found.detail;
  }
}

}  // namespace
}  // namespace asdbench
