// Numbers in text: what is one, what is not, and when two are equal.
#include "tasks/common/numbers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <string>
#include <vector>

namespace asdbench {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> numbers(std::string_view text) {
  std::vector<std::string> found;
  for (const NumberSpan span : find_numbers(text)) {
    found.emplace_back(text.substr(span.begin, span.end - span.begin));
  }
  return found;
}

TEST(FindNumbers, ReadsSignCurrencySeparatorsDecimalsAndFractions) {
  EXPECT_THAT(numbers("-3 +4 $5 -$6 $-7 \\$8 -\\$9"),
              ElementsAre("-3", "+4", "$5", "-$6", "$-7", "\\$8", "-\\$9"));
  EXPECT_THAT(numbers("\u20ac45 and -\u00a37"), ElementsAre("\u20ac45", "-\u00a37"));
  EXPECT_THAT(numbers("1,234 1,234,567 1{,}234 1,\\!234"),
              ElementsAre("1,234", "1,234,567", "1{,}234", "1,\\!234"));
  EXPECT_THAT(numbers("12.50 .5 3/4 $.25 1,234.5/2"),
              ElementsAre("12.50", ".5", "3/4", "$.25", "1,234.5/2"));
}

TEST(FindNumbers, LeavesPunctuationAndUnitsOut) {
  EXPECT_THAT(numbers("29. 72, 25% 18! 5kg 3rd \"18\" (20)."),
              ElementsAre("29", "72", "25", "18", "5", "3", "18", "20"));
  EXPECT_THAT(numbers("... , . $ - + / ,.,"), IsEmpty());
  EXPECT_THAT(numbers("18..."), ElementsAre("18"));
  EXPECT_THAT(numbers("...5"), ElementsAre("5"));
}

TEST(FindNumbers, MalformedSeparatorsPartNumbers) {
  EXPECT_THAT(numbers("1,23"), ElementsAre("1", "23"));
  EXPECT_THAT(numbers("1234,567"), ElementsAre("1234", "567"));
  EXPECT_THAT(numbers("12,3456"), ElementsAre("12", "3456"));
  EXPECT_THAT(numbers("1, 234"), ElementsAre("1", "234"));
  EXPECT_THAT(numbers("1,2,3"), ElementsAre("1", "2", "3"));
}

TEST(FindNumbers, MinusAfterAnOperandIsAnOperator) {
  EXPECT_THAT(numbers("10-3"), ElementsAre("10", "3"));
  EXPECT_THAT(numbers("x-3"), ElementsAre("3"));
  EXPECT_THAT(numbers("(4)-3 [4]-3 {4}-3"), ElementsAre("4", "3", "4", "3", "4", "3"));
  EXPECT_THAT(numbers("10 -3"), ElementsAre("10", "-3"));
  EXPECT_THAT(numbers("=-3"), ElementsAre("-3"));
  EXPECT_THAT(numbers("$16$-$3$"), ElementsAre("$16", "$3"));
  EXPECT_THAT(numbers("3+4"), ElementsAre("3", "4"));
  EXPECT_THAT(numbers("\u00e9-3 \u662f-3"), ElementsAre("3", "-3"));
}

TEST(FindNumbers, DigitsInsideAWordAreNone) {
  EXPECT_THAT(numbers("XDY2K A1 x2.5 caf\u00e92 row_18"), IsEmpty());
  EXPECT_THAT(numbers("\u7b54\u6848\u662f18"), ElementsAre("18"));
  EXPECT_THAT(numbers("9\u00d72"), ElementsAre("9", "2"));
  EXPECT_THAT(numbers("\\approx18"), ElementsAre("18"));
  EXPECT_THAT(numbers("Rs.500"), ElementsAre("500"));
}

TEST(FindNumbers, ZeroDenominatorIsNoFraction) {
  EXPECT_THAT(numbers("5/0"), ElementsAre("5", "0"));
  EXPECT_THAT(numbers("5/00"), ElementsAre("5", "00"));
  EXPECT_THAT(numbers("5/x"), ElementsAre("5"));
}

TEST(CanonicalNumber, IsOneSpellingPerValue) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"18", "18"},         {"+18.", "18"},   {" $1,080.00 ", "1080"},
      {"-0", "0"},          {"0.50", "0.5"},  {".5", "0.5"},
      {"-$.05", "-0.05"},   {"6/4", "1.5"},   {"7/3", "7/3"},
      {"-14/6", "-7/3"},    {"007", "7"},     {"1{,}234,\\!567", "1234567"},
      {"0.000", "0"},       {"2.5/5", "0.5"}, {"100", "100"},
      {"\\$29.", "29"},     {"1/8", "0.125"}, {"0.30", "0.3"},
      {"\u20ac-45", "-45"},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(canonical_number(text), expected) << text;
}

TEST(CanonicalNumber, RefusesWhatIsNoNumber) {
  for (const char* text : {"", " ", ".", "-", "$", "--5", "5 6", "5%", "1,23", "eighteen", "1/0",
                           "$$5", "0x12", "1e5", "5..", "inf", "nan", "1.2.3", "5-"}) {
    EXPECT_EQ(canonical_number(text), std::nullopt) << text;
  }
}

TEST(SameNumber, ComparesExactlyAndWithoutTolerance) {
  EXPECT_TRUE(same_number("29.00", "29"));
  EXPECT_TRUE(same_number("$29", "29."));
  EXPECT_TRUE(same_number("1,200", "1200"));
  EXPECT_FALSE(same_number("29.5", "29"));
  EXPECT_FALSE(same_number("9999999999999999", "10000000000000000"));
  EXPECT_FALSE(same_number("0.3333333333333333333333", "1/3"));
  EXPECT_TRUE(same_number("2/6", "1/3"));
  EXPECT_FALSE(same_number("x", "x"));
}

TEST(SameNumber, NumbersOfMegabytesCostLittle) {
  const std::string digits(4'000'000, '7');
  const std::string zeros(4'000'000, '0');
  const std::clock_t start = std::clock();    // processor time: other programs do not count
  EXPECT_FALSE(same_number(digits, digits));  // beyond the limit: equal to nothing
  EXPECT_FALSE(same_number("1/" + digits, "1"));
  EXPECT_FALSE(same_number("0." + digits, "1"));
  EXPECT_TRUE(same_number(zeros + "18." + zeros, "18"));
  EXPECT_EQ(canonical_number(std::string(1000, '9'))->size(), 1000u);
  // Generous: quadratic arithmetic on such numbers takes hours.
  EXPECT_LT(std::clock() - start, 20 * CLOCKS_PER_SEC);
}

}  // namespace
}  // namespace asdbench
