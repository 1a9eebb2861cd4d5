// The CSV reader on the quirks of official files, and on damaged and hostile input.
#include "tasks/common/csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "eval/core/error.h"

namespace asdbench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Rows = std::vector<std::vector<std::string>>;

Rows rows(std::string_view content, std::size_t columns, const CsvLimits& limits = {}) {
  Rows found;
  parse_csv(
      content, "a.csv", columns, [&](const CsvRow& row) { found.push_back(row.fields()); }, limits);
  return found;
}

std::string message(std::string_view content, std::size_t columns, const CsvLimits& limits = {}) {
  try {
    rows(content, columns, limits);
  } catch (const DataError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Csv, ReadsQuotesCommasAndLineEndsInsideFields) {
  EXPECT_EQ(rows("a,\"b,c\",\"d \"\"e\"\"\"\n\"x\ny\",\"p\r\nq\",r\n", 3),
            (Rows{{"a", "b,c", "d \"e\""}, {"x\ny", "p\r\nq", "r"}}));
}

TEST(Csv, TakesMixedLineEndsNoFinalOneAndNoHeader) {
  EXPECT_EQ(rows("a,b\r\nc,d\ne,f", 2), (Rows{{"a", "b"}, {"c", "d"}, {"e", "f"}}));
  EXPECT_EQ(rows("a,\"b\"", 2), (Rows{{"a", "b"}}));
  EXPECT_EQ(rows("a,", 2), (Rows{{"a", ""}}));
  EXPECT_EQ(rows("\"\",\n", 2), (Rows{{"", ""}}));
}

TEST(Csv, KeepsWhatIsInsideAField) {
  EXPECT_EQ(rows("\xef\xbb\xbf a ,b\xef\xbb\xbf\u00a0\tc\n", 2),
            (Rows{{" a ", "b\xef\xbb\xbf\u00a0\tc"}}));
  EXPECT_EQ(rows("say \"x\" ,5\" pipe\n", 2), (Rows{{"say \"x\" ", "5\" pipe"}}));
  EXPECT_EQ(rows("a\rb,c\n", 2), (Rows{{"a\rb", "c"}}));  // a lone return is no line end
}

TEST(Csv, NamesTheLineOnWhichARecordStarts) {
  std::vector<std::string> places;
  parse_csv("\"a\nb\",1\r\nc,2\n\"d\n\ne\",3\nf,4\n", "a.csv", 2,
            [&](const CsvRow& row) { places.push_back(row.where()); });
  EXPECT_THAT(places, ElementsAre("a.csv:1", "a.csv:3", "a.csv:4", "a.csv:7"));
}

TEST(Csv, RefusesDamagedRecords) {
  EXPECT_EQ(message("a,b\nc\n", 2), "a.csv:2: a record of 1 fields, expected 2");
  EXPECT_EQ(message("a,b,c\n", 2), "a.csv:1: a record of 3 fields, expected 2");
  EXPECT_EQ(message("a,b\n\nc,d\n", 2), "a.csv:2: a record of 1 fields, expected 2");
  EXPECT_THAT(message("a,b\nc,\"d\n", 2), HasSubstr("a.csv:2: a quoted field is not closed"));
  EXPECT_THAT(message("\"a\"b,c\n", 2), HasSubstr("after the closing quote"));
  EXPECT_THAT(message("", 2), HasSubstr("no records"));
  EXPECT_THAT(message(std::string_view("a,b\nc\0,d\n", 9), 2), HasSubstr("a.csv:2: byte 5"));
  EXPECT_THAT(message("a,\xc3\n", 2), HasSubstr("no UTF-8"));
  EXPECT_THAT(message("a,\xed\xa0\x80\n", 2), HasSubstr("no UTF-8"));
}

TEST(Csv, BoundsFilesAndRecords) {
  EXPECT_THAT(message(std::string(100, 'a'), 1, {.file_bytes = 99}), HasSubstr("100 bytes"));
  EXPECT_THAT(message("b\n" + std::string(100, 'a'), 1, {.record_bytes = 50}),
              HasSubstr("a.csv:2: a record of more than 50 bytes"));
  EXPECT_THAT(message("\"" + std::string(100, '\n') + "\"", 1, {.record_bytes = 50}),
              HasSubstr("a.csv:1: a record of more than 50 bytes"));
}

}  // namespace
}  // namespace asdbench
