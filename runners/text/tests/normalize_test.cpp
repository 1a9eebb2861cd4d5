// UTF-8 parts and canonical composition.
#include "runners/text/normalize.h"

#include <gtest/gtest.h>

#include "eval/core/utf8.h"

namespace asdbench {
namespace {

TEST(Utf8, ShowsEveryMaximalIllFormedPartOnce) {
  EXPECT_EQ(well_formed(""), "");
  EXPECT_EQ(well_formed("a\u00e9\u4f60\U0001F600"), "a\u00e9\u4f60\U0001F600");
  EXPECT_EQ(well_formed("\xF0\x9F\x98"), "\uFFFD");
  EXPECT_EQ(well_formed("\xF0\x9F\x98z"), "\uFFFDz");
  EXPECT_EQ(well_formed("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(well_formed("\xED\xA0"), "\uFFFD\uFFFD");
  EXPECT_EQ(well_formed("\xC0\xAF"), "\uFFFD\uFFFD");
  EXPECT_EQ(well_formed("\xE0\x80\x80"), "\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(well_formed("\xF4\x90\x80\x80"), "\uFFFD\uFFFD\uFFFD\uFFFD");
  // Unicode 16, table 3-11.
  EXPECT_EQ(well_formed("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"), "\uFFFD\uFFFD\uFFFD\uFFFD\x41");
}

TEST(Utf8, RoundTripsEveryCodePoint) {
  for (std::uint32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    std::string text;
    append_utf8(text, c);
    const Utf8Part part = utf8_part(text, 0);
    ASSERT_EQ(part.form, Utf8Form::kWellFormed) << c;
    ASSERT_EQ(part.code_point, c);
    ASSERT_EQ(part.length, text.size());
    for (std::size_t cut = 1; cut < text.size(); ++cut) {
      ASSERT_EQ(utf8_part(text.substr(0, cut), 0).form, Utf8Form::kIncomplete) << c;
    }
  }
}

TEST(Normalize, ComposesCanonically) {
  EXPECT_EQ(to_nfc("plain"), "plain");
  EXPECT_EQ(to_nfc("Cafe\u0301 na\u00efve"), "Caf\u00e9 na\u00efve");
  EXPECT_EQ(to_nfc("\u00e9\u0323"), "\u1EB9\u0301");  // reordered, then composed
  EXPECT_EQ(to_nfc("\u1112\u1161\u11AB"), "\uD55C");
  EXPECT_EQ(to_nfc("\u2126\u212B"), "\u03A9\u00C5");  // singletons
  EXPECT_EQ(to_nfc("\u0958"), "\u0915\u093C");        // excluded from composition
  EXPECT_EQ(to_nfc("\u0344"), "\u0308\u0301");
  EXPECT_EQ(to_nfc("\uFB01"), "\uFB01");  // compatibility only: stays
  EXPECT_EQ(to_nfc("a\u0316\u0300b\u0301"),
            "\u00e0\u0316"
            "b\u0301");
}

TEST(Normalize, KeepsIllFormedBytesWhereTheyStand) {
  EXPECT_EQ(to_nfc("e\xCC\x81\xCC"), "\u00e9\xCC");
  EXPECT_EQ(to_nfc("\xFF"
                   "e\u0301\x80"),
            "\xFF\u00e9\x80");
  EXPECT_EQ(to_nfc("e\xFF\u0301"), "e\xFF\u0301");  // not next to each other
  EXPECT_EQ(to_nfc("\x80\u0301"), "\x80\u0301");
  EXPECT_EQ(to_nfc("\xC3\u0301"), "\xC3\u0301");
}

TEST(Normalize, FastPathIsExactBelowU0300) {
  EXPECT_FALSE(may_change_in_nfc("plain \u00e9\u02FF"));
  EXPECT_TRUE(may_change_in_nfc("\u0300"));
  for (std::uint32_t c = 0; c < 0x300; ++c) {
    std::string text;
    append_utf8(text, c);
    ASSERT_FALSE(may_change_in_nfc(text)) << c;
    ASSERT_EQ(to_nfc(text + "\u4e2d"), text + "\u4e2d") << c;  // through the slow path
  }
}

}  // namespace
}  // namespace asdbench
