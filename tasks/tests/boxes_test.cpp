// Boxes: nested, unbalanced, empty, without braces.
#include "tasks/common/boxes.h"

#include <gtest/gtest.h>

#include <string>

namespace asdbench {
namespace {

TEST(LastBox, IsTheLastCompleteOne) {
  EXPECT_EQ(last_box("\\boxed{1} then \\boxed{2}"), "2");
  EXPECT_EQ(last_box("\\boxed{\\frac{1}{2}}"), "\\frac{1}{2}");
  EXPECT_EQ(last_box("\\boxed {3} \\fbox{4}"), "4");
  EXPECT_EQ(last_box("\\boxed{5} and \\boxed{6"), "5");
  EXPECT_EQ(last_box("\\boxed{\\{7\\}}"), "\\{7\\}");
  EXPECT_EQ(last_box("\\boxed{a \\boxed{8}}"), "8");
  EXPECT_EQ(last_box("{ \\boxed{9}"), "9");
  EXPECT_EQ(last_box("} \\boxed{9}"), "9");
  EXPECT_EQ(last_box("\\\\boxed{10}"), "10");
}

TEST(LastBox, EmptyAndMissingOnesAreNone) {
  EXPECT_EQ(last_box(""), std::nullopt);
  EXPECT_EQ(last_box("boxed{1}"), std::nullopt);
  EXPECT_EQ(last_box("\\boxed{}"), std::nullopt);
  EXPECT_EQ(last_box("\\boxed{ \n}"), std::nullopt);
  EXPECT_EQ(last_box("\\boxed{18} as asked in \\boxed{}"), "18");
  EXPECT_EQ(last_box("\\boxed{18"), std::nullopt);
  EXPECT_EQ(last_box("\\boxedwidth{3}"), std::nullopt);
}

TEST(LastBox, WithoutABraceCountsOnlyWhenNoOtherExists) {
  EXPECT_EQ(last_box("$\\boxed 5$"), "5");
  EXPECT_EQ(last_box("put it in \\boxed at the end: \\boxed{18}"), "18");
  EXPECT_EQ(last_box("\\boxed{18}, as I put it in \\boxed at the end"), "18");
  EXPECT_EQ(last_box("\\boxed"), std::nullopt);
  EXPECT_EQ(last_box("\\boxed $x$"), std::nullopt);
}

TEST(LastBox, IsLinearInHostileText) {
  std::string nested;
  for (int i = 0; i < 200'000; ++i) nested += "\\boxed{";
  EXPECT_EQ(last_box(nested), std::nullopt);
  nested += "1";
  nested += std::string(200'000, '}');
  EXPECT_EQ(last_box(nested), "1");
}

}  // namespace
}  // namespace asdbench
