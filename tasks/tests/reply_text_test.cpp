// The steps between a raw reply and the text in which an answer is looked for.
#include "tasks/common/reply_text.h"

#include <gtest/gtest.h>

#include <string>

namespace asdbench {
namespace {

TEST(SpecialTokens, EndTheReplyAtTheFirstOne) {
  EXPECT_EQ(before_special_tokens("18<|im_end|>\n19</s>"), "18");
  EXPECT_EQ(before_special_tokens("a</s>b<|eot_id|>c"), "a");
  EXPECT_EQ(before_special_tokens("x<|endoftext|>"), "x");
  EXPECT_EQ(before_special_tokens("</s>"), "");
  EXPECT_EQ(before_special_tokens("<|im_start|> 1 < 2"), "<|im_start|> 1 < 2");
  EXPECT_EQ(before_special_tokens(""), "");
}

TEST(Reasoning, OnlyWhatFollowsTheLastClosingTagCounts) {
  EXPECT_EQ(after_reasoning("<think>1</think>2<think>3</think> 4"), " 4");
  EXPECT_EQ(after_reasoning("in the template</think>5"), "5");
  EXPECT_EQ(after_reasoning("<think>6"), std::nullopt);
  EXPECT_EQ(after_reasoning("7"), "7");
  EXPECT_EQ(after_reasoning("<think></think>"), "");
  EXPECT_EQ(after_reasoning("<reason>8</reason>9", "reason"), "9");
  EXPECT_EQ(after_reasoning("<think>8", "reason"), "<think>8");
}

TEST(CleanText, NormalisesLineEndsSpacesAndMinus) {
  EXPECT_EQ(clean_text("a\r\nb\rc\n"), "a\nb\nc\n");
  EXPECT_EQ(clean_text("\ufeff1\u00a02\u20093\u22124"), "1 2 3-4");
  EXPECT_EQ(clean_text("  indented"), "  indented");
  EXPECT_EQ(clean_text(std::string("a\0b", 3)), std::string("a\0b", 3));
  EXPECT_EQ(clean_text("\xff\xe2\x88"), "\xff\xe2\x88");
}

TEST(CleanText, DropsTerminalEscapes) {
  EXPECT_EQ(clean_text("\x1b[1;31m18\x1b[0m"), "18");
  EXPECT_EQ(clean_text("\x1b]0;title\a18"), "18");
  EXPECT_EQ(clean_text("\x1b]8;;http://a\x1b\\18"), "18");
  EXPECT_EQ(clean_text("\x1b]never closed 18"), "]never closed 18");
  EXPECT_EQ(clean_text("18\x1b"), "18");
  EXPECT_EQ(clean_text("\x1b[12"), "");
  EXPECT_EQ(clean_text("\x1b[\n18"), "\n18");
}

TEST(Emphasis, GoesUnlessItPartsTwoWords) {
  EXPECT_EQ(without_emphasis("**Answer:** `18` _eggs_"), "Answer: 18 eggs");
  EXPECT_EQ(without_emphasis("9*2 = 18"), "9*2 = 18");
  EXPECT_EQ(without_emphasis("9 * 2"), "9  2");
  EXPECT_EQ(without_emphasis("row_18"), "row_18");
  EXPECT_EQ(without_emphasis("***"), "");
}

TEST(RunOn, StartsAtALineAfterSomeText) {
  EXPECT_EQ(run_on_start("18\nQuestion: b"), 3u);
  EXPECT_EQ(run_on_start("18\n\n  Q: b"), 4u);
  EXPECT_EQ(run_on_start("18\nProblem: b\nQ: c"), 3u);
  EXPECT_EQ(run_on_start("Question: a\n18"), std::nullopt);
  EXPECT_EQ(run_on_start("\n \nQuestion: a\n18"), std::nullopt);
  EXPECT_EQ(run_on_start("The Question: a"), std::nullopt);
  EXPECT_EQ(run_on_start("18\nQuestionable"), std::nullopt);
  EXPECT_EQ(run_on_start(""), std::nullopt);
}

}  // namespace
}  // namespace asdbench
