// Fences, candidates and bodies of replies, without running any of them.
#include "tasks/common/code_reply.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace asdbench {
namespace {

using namespace std::string_view_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> blocks(std::string_view text) {
  std::vector<std::string> found;
  for (const CodeBlock& block : split_fences(text).blocks) found.push_back(block.text);
  return found;
}

TEST(Fences, OfEveryKindAreFound) {
  EXPECT_THAT(blocks("```python\na\n```\n"), ElementsAre("a\n"));
  EXPECT_THAT(blocks("```\na\n```"), ElementsAre("a\n"));
  EXPECT_THAT(blocks("``` Python3 title=\"a.py\"\na\n```"), ElementsAre("a\n"));
  EXPECT_THAT(blocks("```{.python}\na\n```"), ElementsAre("a\n"));
  EXPECT_THAT(blocks("~~~py\na\n~~~"), ElementsAre("a\n"));
  EXPECT_THAT(blocks("````\na\n```\nb\n````\n"), ElementsAre("a\n```\nb\n"));
  EXPECT_THAT(blocks("```\na\n````\nb"), ElementsAre("a\n")) << "a longer fence closes";
  EXPECT_THAT(blocks("```\na\n~~~\n"), ElementsAre("a\n~~~\n")) << "another mark does not";
  EXPECT_THAT(blocks("``\na\n``"), IsEmpty());
  EXPECT_THAT(blocks("```f(x)``` is inline\n"), IsEmpty());
  EXPECT_THAT(blocks(""), IsEmpty());
}

TEST(Fences, OfOtherLanguagesAreNoCandidates) {
  EXPECT_THAT(blocks("```bash\na\n```\n```text\nb\n```\n```json\nc\n```\n```py\nd\n```"),
              ElementsAre("d\n"));
  EXPECT_THAT(blocks("```pycon\n>>> a\n```"), IsEmpty());
}

TEST(Fences, MayStayOpenOrCloseAtTheEndOfALine) {
  EXPECT_THAT(blocks("```python\na\nb"), ElementsAre("a\nb\n"));
  EXPECT_FALSE(split_fences("```python\na").blocks[0].closed);
  EXPECT_THAT(blocks("```python\na\nreturn b```\nc"), ElementsAre("a\nreturn b\n"));
  EXPECT_THAT(blocks("```python\n\"\"\"A ``` inside.\"\"\"\na\n```"),
              ElementsAre("\"\"\"A ``` inside.\"\"\"\na\n"));
}

TEST(Fences, LoseTheirIndentationIfEveryLineHasIt) {
  EXPECT_THAT(blocks("  ```python\n  a\n\n    b\n  ```"), ElementsAre("a\n\n  b\n"));
  EXPECT_THAT(blocks("  ```python\na\n  b\n  ```"), ElementsAre("a\n  b\n"));
}

TEST(Fences, TextOutsideIsNeverJoinedAcrossABlock) {
  const FencedText fenced = split_fences("a\n```bash\nb\n```\nc\n");
  EXPECT_EQ(fenced.outside, "a\n```\nc\n");
  EXPECT_EQ(fenced.before, "a\n");
  EXPECT_EQ(split_fences("a\nb").before, "a\nb");
  EXPECT_EQ(split_fences("```\na").before, "");
}

TEST(Defines, ByDefOrAssignmentAtTheMargin) {
  EXPECT_TRUE(defines("def f(x):", "f"));
  EXPECT_TRUE(defines("x = 1\ndef  f (x):\n", "f"));
  EXPECT_TRUE(defines("f = lambda x: x", "f"));
  EXPECT_FALSE(defines("f == 1", "f"));
  EXPECT_FALSE(defines(" def f(x):", "f"));
  EXPECT_FALSE(defines("def ff(x):\ndef f2(x):\nfx = 1", "f"));
  EXPECT_FALSE(defines("async def f(x):", "f"));
  EXPECT_FALSE(defines("define f(x):", "f"));
}

TEST(Preamble, IsWhatStandsBeforeTheEntryPoint) {
  EXPECT_EQ(preamble_of("import math\n\ndef f(x):\n  1\n", "f"), "import math\n\n");
  EXPECT_EQ(preamble_of("def helper(x):\n  def f(x): 1\ndef f(x):\n", "f"),
            "def helper(x):\n  def f(x): 1\n");
  EXPECT_EQ(preamble_of("def f2(x):\n  1\n", "f"), "");
  EXPECT_EQ(preamble_of("Write a function.", "f"), "");
}

TEST(BodyPart, EndsWhereTheFunctionDoes) {
  EXPECT_EQ(body_part("  a\n  b\n\nclass C:\n"), "  a\n  b\n");
  for (const char* end : {"def g():", "# Test", "@a", "print(1)", "if a:", "assert a", "class A"}) {
    EXPECT_EQ(body_part("  a\n" + std::string(end)), "  a") << end;
  }
  EXPECT_EQ(body_part("  a<|endoftext|>b"), "  a");
}

TEST(Candidates, PreferBlocksThatDefineTheEntryPoint) {
  const CodeCandidates found = code_candidates(
      "Call:\n```\nf(1)\n```\n```python\ndef f(x): 1\n```\n```\nf = g\n```\n", "f", Bodies::kNone);
  EXPECT_THAT(found.blocks, ElementsAre("def f(x): 1\n", "f = g\n"));
  EXPECT_EQ(found.outside, "");
  EXPECT_THAT(found.bodies, IsEmpty());
  EXPECT_TRUE(code_candidates("No.", "f", Bodies::kNone).empty());
}

TEST(Candidates, BlocksIndentedAsAWholeAreMovedToTheMargin) {
  EXPECT_THAT(code_candidates("```\n    def f(x):\n        1\n```", "f", Bodies::kNone).blocks,
              ElementsAre("def f(x):\n    1\n"));
}

TEST(Candidates, ReasoningSpecialTokensAndMarkersAreCut) {
  const auto outside = [](std::string_view reply) {
    return code_candidates(reply, "f", Bodies::kNone).outside;
  };
  EXPECT_EQ(outside("<think>\ndef f(x): 1\n</think>\ndef f(x): 2"), "\ndef f(x): 2\n");
  EXPECT_TRUE(code_candidates("<think>\ndef f(x): 1", "f", Bodies::kAllowed).empty());
  EXPECT_EQ(outside("def f(x): 1<|im_end|>\ndef g"), "def f(x): 1\n");
  EXPECT_EQ(outside("Sure.\n[BEGIN]\ndef f(x): 1\n[DONE]\ndef f(x): 2"), "\ndef f(x): 1\n");
  EXPECT_EQ(outside("def f(x):\r\n\u00a0\u00a01\r\n"), "def f(x):\n  1\n");
}

TEST(Candidates, BodiesComeFromTheFirstBlockOrTheTextBeforeIt) {
  const auto bodies = [](std::string_view reply) {
    return code_candidates(reply, "f", Bodies::kAllowed).bodies;
  };
  EXPECT_THAT(bodies("    return 1\n\ndef g():\n"), ElementsAre("    return 1\n"));
  EXPECT_THAT(bodies("Here:\n```python\n    return 1\n```"),
              ElementsAre("    return 1\n", "Here:\n"));
  EXPECT_THAT(bodies("    return 1\n```\nThis returns one."),
              ElementsAre("    return 1\n", "This returns one.\n"));
  EXPECT_THAT(bodies("  \n"), IsEmpty());
}

// A megabyte each: anything quadratic would take minutes.
TEST(Candidates, HostileRepliesAreReadInLinearTime) {
  constexpr std::size_t kSize = 1'000'000;
  const auto repeated = [&](std::string_view unit) {
    std::string text;
    while (text.size() < kSize) text += unit;
    return text;
  };
  for (const std::string_view unit :
       {"```\n"sv, "`"sv, "~~~\n```\n"sv, "def f("sv, "\ndef f(x):"sv, "    \n"sv, "<think>"sv,
        "[BEGIN]"sv, "[DONE]"sv, "\0x"sv, "\xff\xfe"sv, "```python\nf =\n```\n"sv,
        "\u202edef f(x): 1\n"sv, "\r"sv}) {
    code_candidates(repeated(unit), "f", Bodies::kAllowed);
    preamble_of(repeated(unit), "f");
  }
}

}  // namespace
}  // namespace asdbench
