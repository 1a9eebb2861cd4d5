// Where the three scanners cut.
#include "runners/text/pre_tokenize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runners/text/unicode_table.h"

namespace asdbench {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> cut(PreTokenizer kind, std::string_view text) {
  std::vector<std::string> out;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = pre_token_end(kind, text, begin);
    if (end <= begin || end > text.size()) {
      ADD_FAILURE() << "no progress at " << begin;
      return out;
    }
    out.emplace_back(text.substr(begin, end - begin));
    begin = end;
  }
  return out;
}

std::vector<std::string> qwen(std::string_view text) { return cut(PreTokenizer::kQwen2, text); }
std::vector<std::string> llama(std::string_view text) { return cut(PreTokenizer::kLlama3, text); }
std::vector<std::string> smol(std::string_view text) { return cut(PreTokenizer::kSmolLm, text); }

TEST(PreTokenizer, CutsContractions) {
  EXPECT_THAT(qwen("I'VE he's"), ElementsAre("I", "'VE", " he", "'s"));
  EXPECT_THAT(smol("I'VE he's"), ElementsAre("I", "'", "VE", " he", "'s"));
  EXPECT_THAT(qwen("'lLx 'rx"), ElementsAre("'lL", "x", " '", "rx"));
  EXPECT_THAT(qwen("'rx"), ElementsAre("'rx"));  // an apostrophe may precede a word
  EXPECT_THAT(smol("'rx"), ElementsAre("'", "rx"));
}

TEST(PreTokenizer, FoldsLongS) {
  EXPECT_THAT(llama("'\u017Fx"), ElementsAre("'\u017F", "x"));
  EXPECT_THAT(smol("'\u017Fx"), ElementsAre("'", "\u017Fx"));
}

TEST(PreTokenizer, CutsNumbers) {
  EXPECT_THAT(qwen("a 123"), ElementsAre("a", " ", "1", "2", "3"));
  EXPECT_THAT(llama("a 12345"), ElementsAre("a", " ", "123", "45"));
  EXPECT_THAT(smol("a 12"), ElementsAre("a", " ", "1", "2"));
  EXPECT_THAT(smol("a  12"), ElementsAre("a", "  ", "1", "2"));  // the piece ends at the digit
  EXPECT_THAT(qwen("a  12"), ElementsAre("a", " ", " ", "1", "2"));
  EXPECT_THAT(llama("\u0663\u00BD\u2167\u4E00"), ElementsAre("\u0663\u00BD\u2167", "\u4E00"));
}

TEST(PreTokenizer, CutsSpaceAndNewlines) {
  EXPECT_THAT(qwen("a \n \n  b"), ElementsAre("a", " \n \n", " ", " b"));
  EXPECT_THAT(smol("a \n \n  b"), ElementsAre("a", " \n \n ", " b"));
  EXPECT_THAT(qwen("x!\r\n\r\n y"), ElementsAre("x", "!\r\n\r\n", " y"));
  EXPECT_THAT(qwen("\tx"), ElementsAre("\tx"));
  EXPECT_THAT(smol("\tx"), ElementsAre("\t", "x"));
  EXPECT_THAT(qwen("\nx"), ElementsAre("\n", "x"));
  EXPECT_THAT(qwen("x   "), ElementsAre("x", "   "));
  EXPECT_THAT(qwen("\u3000\u3000x"), ElementsAre("\u3000", "\u3000x"));
  EXPECT_THAT(qwen(" ?!\n\nx"), ElementsAre(" ?!\n\n", "x"));
}

TEST(PreTokenizer, TakesStrayBytesAsPunctuation) {
  EXPECT_THAT(qwen("a\xFF\x80 b"), ElementsAre("a", "\xFF\x80", " b"));
  EXPECT_THAT(qwen("\xE4\xB8x"), ElementsAre("\xE4\xB8", "x"));
  EXPECT_THAT(smol(" \xC3"), ElementsAre(" \xC3"));
}

TEST(UnicodeTable, IsOfVersion16) {
  const CharClass* classes = char_classes();
  EXPECT_EQ(classes['a'], CharClass::kLetter);
  EXPECT_EQ(classes['0'], CharClass::kNumber);
  EXPECT_EQ(classes['_'], CharClass::kOther);
  EXPECT_EQ(classes[0x301], CharClass::kOther);    // marks are no letters
  EXPECT_EQ(classes[0x1C89], CharClass::kLetter);  // new in 16.0
  EXPECT_EQ(classes[0x323AF], CharClass::kLetter);
  EXPECT_EQ(classes[0x10D40], CharClass::kNumber);  // new in 16.0
  EXPECT_EQ(classes[0x10FFFF], CharClass::kOther);
  int spaces = 0;
  for (std::uint32_t c = 0; c < kCodePointLimit; ++c) spaces += classes[c] == CharClass::kSpace;
  EXPECT_EQ(spaces, 25);
  EXPECT_EQ(classes[0x200B], CharClass::kOther);
  EXPECT_EQ(classes[0x1C], CharClass::kOther);
}

}  // namespace
}  // namespace asdbench
