// What a reply states as its answer: specs/scoring.md, section 3.2.
#include <gtest/gtest.h>

#include "tasks/common/math/extraction.h"

namespace asdbench {
namespace {

struct Case {
  const char* reply;
  const char* answer;
  const char* rule;
};

void check(const std::vector<Case>& cases) {
  for (const Case& one : cases) {
    const auto found = math::extract_answer(one.reply);
    EXPECT_EQ(found ? found->text : "(none)", one.answer) << one.reply;
    if (found) {
      EXPECT_EQ(found->rule, one.rule) << one.reply;
    }
  }
}

TEST(MathExtraction, TheLastCompleteBoxWins) {
  check({{"First $\\boxed{\\frac{1}{2}}$.", "\\frac{1}{2}", "box"},
         {"I put it in \\boxed at the end.\n\n$\\boxed{5}$", "5", "box"},
         {"So \\boxed 5 is it.", "5", "box"},
         {"\\fbox {7}", "7", "box"},
         {"A set: \\boxed{\\{1,\\}2\\}}", "\\{1,\\}2\\}", "box"},
         {"\\boxed{3}, and then \\boxed{\\frac{1}{", "3", "box"},
         {"\\boxed{3} is wrong, the box is empty: \\boxed{ }", "3", "box"},
         {"\\boxed{\\text{Evelyn}}", "\\text{Evelyn}", "box"}});
}

TEST(MathExtraction, BoxesCloseTogetherAreOneAnswer) {
  check({{"$\\boxed{1}$ and $\\boxed{-2}$", "1, -2", "box"},
         {"$\\boxed{3}$, $\\boxed{5}$, and $\\boxed{7}$", "3, 5, 7", "box"},
         {"\\boxed{840}.\n\n**Final Answer**\n\\boxed{840}", "840", "box"},
         {"$\\boxed{(3, 3)} \\text{ for part (a) and } \\boxed{(1, 1)}$", "(3, 3), (1, 1)", "box"},
         {"\\boxed{1} no no no no no \\boxed{2}", "2", "box"},
         {"A guess is \\boxed{7}. But the last case was counted twice and, by the remark above, "
          "must go. So \\boxed{6}",
          "6", "box"}});
}

TEST(MathExtraction, PhrasesTakeWhatFollows) {
  check({{"The final answer is $24$. I hope it is correct.", "24", "phrase"},
         {"Answer: 7 would be my guess.\n\nNo.\n\nAnswer: 6", "6", "phrase"},
         {"**Final Answer:** **73**", "73", "phrase"},
         {"**Answer**: $\\frac{3}{4}$", "\\frac{3}{4}", "phrase"},
         {"The final answer is 12,000,023. I hope it is correct.", "12,000,023", "phrase"},
         {"The answer is\n\\[\n x^2 + 1\n\\]", "x^2 + 1", "phrase"},
         {"The answers are $1$, $2$ and $3$.", "1, 2, 3", "phrase"},
         {"Final Answer: The volume of $ABC$ is 120. I hope it is correct.", "120", "phrase"},
         {"The answer is x = 5 because it fits.", "x = 5", "phrase"},
         {"The answer is 5 since $2+3=5$.", "5", "phrase"},
         {"The answer is Evelyn.", "Evelyn", "phrase"},
         {"The answer is (C).", "(C)", "phrase"},
         {"So the answer is 3, 5 and 7.", "3, 5 and 7", "phrase"}});
}

TEST(MathExtraction, ThenTheLastFormulaThenTheLastNumber) {
  check({{"We find $x=3$, so it takes $\\frac{1}{2}$ of it.", "\\frac{1}{2}", "mathematics"},
         {"$1$ and $2$ or $3$", "1, 2, 3", "mathematics"},
         {"Hence $$ 9 $$", "9", "mathematics"},
         {"Hence \\( 9 \\).", "9", "mathematics"},
         {"It costs $5 and later $7 altogether", "$7", "last_number"},
         {"P(A) = 2/3. Therefore Alice wins with 2/3.", "2/3", "last_number"},
         {"Not 10, it is 1,000.99m\u00b2", "1,000.99", "last_number"},
         {"AZYUK2A", "(none)", ""},
         {"No number here.", "(none)", ""},
         {"", "(none)", ""}});
}

TEST(MathExtraction, ReasoningAndRunOnTextDoNotCount) {
  check({{"<think>\\boxed{5}? No.</think> It is $\\boxed{7}$.", "7", "box"},
         {"<think>The answer is \\boxed{5}, but let me", "(none)", ""},
         {"It is \\boxed{7}.<|im_end|>\nuser \\boxed{8}", "7", "box"},
         {"It is \\boxed{7}.\nProblem: what next?\n\\boxed{8}", "7", "box"},
         {"It is 7.\nQuestion: what next?\nThe answer is 8.", "8", "phrase"}});
}

}  // namespace
}  // namespace asdbench
