// Tables are an interface: exact text in every form.
#include "eval/report/table.h"

#include <gtest/gtest.h>

namespace asdbench {
namespace {

Table hostile_table() {
  return {.title = "task · \x1b[31mred",
          .columns = {{"name", Align::kLeft}, {"n", Align::kRight}},
          .rows = {{"a|b", "1"}, {"=1+1", "10"}, {"–\n", ""}}};
}

TEST(TableTest, TerminalPadsByCodePointAndShowsControlCharacters) {
  EXPECT_EQ(to_terminal(hostile_table()),
            "task · \uFFFD[31mred\n"
            "name   n\n"
            "a|b    1\n"
            "=1+1  10\n"
            "–\uFFFD\n");
}

TEST(TableTest, MarkdownEscapesWhatItWouldRead) {
  EXPECT_EQ(to_markdown(hostile_table()),
            "task · \uFFFD\\[31mred\n\n"
            "| name | n |\n"
            "| --- | ---: |\n"
            "| a\\|b | 1 |\n"
            "| =1+1 | 10 |\n"
            "| –\uFFFD |  |\n");
}

TEST(TableTest, CsvQuotesAndDisarmsFormulas) {
  const Table table{.title = "unused",
                    .columns = {{"a", Align::kLeft}, {"b", Align::kLeft}},
                    .rows = {{"=HYPERLINK(1)", "x,\"y\""}, {"-0.5", "line\nbreak"}, {"+", ""}}};
  EXPECT_EQ(to_csv(table),
            "a,b\r\n"
            "'=HYPERLINK(1),\"x,\"\"y\"\"\"\r\n"
            "-0.5,\"line\nbreak\"\r\n"
            "'+,\r\n");
}

TEST(TableTest, NumbersCarryTheirUnitAndTheUndefinedIsADash) {
  EXPECT_EQ(percent(0.1234), "12.3 %");
  EXPECT_EQ(percent(std::nullopt), "–");
  EXPECT_EQ(percent_interval(0.5, 0.25, 0.75, 0), "50 % [25, 75]");
  EXPECT_EQ(percent_interval(0.5, std::nullopt, 0.75, 0), "50 %");
  EXPECT_EQ(decimal(1.2345, 2), "1.23");
  EXPECT_EQ(decimal_interval(1.5, 1.25, 2, 2), "1.50 [1.25, 2.00]");
  EXPECT_EQ(decimal_interval(std::nullopt, std::nullopt, std::nullopt, 2), "–");
}

}  // namespace
}  // namespace asdbench
