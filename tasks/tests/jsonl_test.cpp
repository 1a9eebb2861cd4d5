// The JSONL reader on damaged and hostile input.
#include "tasks/common/jsonl.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "eval/core/error.h"

namespace asdbench {
namespace {

using ::testing::HasSubstr;

std::vector<std::string> texts(std::string_view content, const JsonlLimits& limits = {}) {
  std::vector<std::string> values;
  parse_jsonl(
      content, "a.jsonl", [&](const JsonlRow& row) { values.push_back(row.text("t")); }, limits);
  return values;
}

std::string message(std::string_view content, const JsonlLimits& limits = {}) {
  try {
    texts(content, limits);
  } catch (const DataError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Jsonl, SplitsAtLineFeedBytesOnly) {
  // U+2028 and U+0085 are line ends for splitters of decoded text.
  EXPECT_EQ(texts("{\"t\":\"a\u2028b\u0085c\"}\n{\"t\":\"d\"}"),
            (std::vector<std::string>{"a\u2028b\u0085c", "d"}));
  EXPECT_EQ(texts("\xef\xbb\xbf{\"t\":\"a\"}\r\n{\"t\":\"b\"}\r\n"),
            (std::vector<std::string>{"a", "b"}));
}

TEST(Jsonl, NamesFileAndLineOfWhatIsWrong) {
  EXPECT_THAT(message("{\"t\":\"a\"}\n{\"t\":"), HasSubstr("a.jsonl:2: "));
  EXPECT_THAT(message("{\"t\":\"a\"}\n\n{\"t\":\"b\"}"), HasSubstr("a.jsonl:2: empty line"));
  EXPECT_THAT(message("{\"t\":\"\xff\"}"), HasSubstr("a.jsonl:1: "));
  EXPECT_THAT(message("[1]"), HasSubstr("a.jsonl:1: found array, expected a JSON object"));
  EXPECT_THAT(message("{\"u\":\"a\",\"v\":1}"),
              HasSubstr("a.jsonl:1: field \"t\" is missing\n  found: u, v"));
  EXPECT_THAT(message("{\"t\":5}"),
              HasSubstr("a.jsonl:1: field \"t\" is a number, expected a string"));
  EXPECT_THAT(message("{\"t\":\"a\",\"t\":\"b\"}"), HasSubstr("a.jsonl:1: "));
  EXPECT_THAT(message(""), HasSubstr("no rows"));
  EXPECT_THAT(message(std::string(200, '[')), HasSubstr("a.jsonl:1: "));
}

TEST(Jsonl, BoundsFileAndLine) {
  EXPECT_THAT(message("{\"t\":\"aaaa\"}\n", {.file_bytes = 5, .line_bytes = 100}),
              HasSubstr("a.jsonl: 13 bytes, expected at most 5"));
  EXPECT_THAT(message("{\"t\":\"a\"}\n{\"t\":\"aaaa\"}\n", {.file_bytes = 100, .line_bytes = 10}),
              HasSubstr("a.jsonl:2: line of 12 bytes, expected at most 10"));
}

TEST(Jsonl, ReportsFilesThatCannotBeRead) {
  const auto folder = std::filesystem::path(::testing::TempDir()) / "jsonl_test";
  std::filesystem::create_directories(folder);
  const auto ignore = [](const JsonlRow&) {};
  EXPECT_THROW(read_jsonl(folder / "absent.jsonl", ignore), DataError);
  EXPECT_THROW(read_jsonl(folder, ignore), DataError);
  std::ofstream(folder / "big.jsonl") << "{\"t\":\"a\"}\n";
  EXPECT_THROW(read_jsonl(folder / "big.jsonl", ignore, {.file_bytes = 3}), DataError);
  std::size_t rows = 0;
  read_jsonl(folder / "big.jsonl", [&](const JsonlRow& row) {
    ++rows;
    EXPECT_EQ(row.index(), 0u);
    EXPECT_THAT(row.where(), HasSubstr("big.jsonl:1"));
  });
  EXPECT_EQ(rows, 1u);
}

TEST(DuplicateIds, AreRefusedWithBothRows) {
  Samples samples(3);
  samples[0].id = "test/0";
  samples[1].id = "test/1";
  samples[2].id = "test/2";
  EXPECT_NO_THROW(refuse_duplicate_ids(samples, "a.jsonl"));
  samples[2].id = "test/0";
  try {
    refuse_duplicate_ids(samples, "a.jsonl");
    FAIL() << "no error";
  } catch (const DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("a.jsonl: id \"test/0\" occurs in rows 1 and 3"));
  }
}

}  // namespace
}  // namespace asdbench
