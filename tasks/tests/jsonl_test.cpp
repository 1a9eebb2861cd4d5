// The JSONL reader on damaged and hostile input.
#include "tasks/common/jsonl.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "eval/core/error.h"
#include "eval/core/temporary_folder.h"

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
  const TemporaryFolder owned;
  const std::filesystem::path& folder = owned.path();
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

// Two rows, packed by gzip.
const std::string kPacked(
    "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xab\x56\x2a\x51\xb2\x52\x4a\x54\xaa\xe5"
    "\xaa\x06\xb3\x92\x80\x2c\x00\x7d\x8a\x8c\x3b\x14\x00\x00\x00",
    35);

TEST(Gzip, UnpacksOneMemberOrSeveral) {
  const std::string rows = "{\"t\":\"a\"}\n{\"t\":\"b\"}\n";
  EXPECT_EQ(gunzip(kPacked, 100, "a.gz"), rows);
  EXPECT_EQ(gunzip(kPacked + kPacked, 100, "a.gz"), rows + rows);
  EXPECT_EQ(gunzip(kPacked, rows.size(), "a.gz"), rows);
}

TEST(Gzip, RefusesWhatIsDamagedCutOrTooLarge) {
  const auto refusal = [](const std::string& bytes, std::size_t most) -> std::string {
    try {
      gunzip(bytes, most, "a.gz");
    } catch (const DataError& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_THAT(refusal(kPacked, 19), HasSubstr("a.gz: unpacks to more than the 19 bytes"));
  for (std::size_t length = 1; length < kPacked.size(); ++length) {
    EXPECT_THAT(refusal(kPacked.substr(0, length), 100), HasSubstr("it ends early")) << length;
  }
  std::string damaged = kPacked;
  damaged[kPacked.size() - 6] ^= 1;  // the checksum
  EXPECT_THAT(refusal(damaged, 100), HasSubstr("a.gz: damaged gzip data: it does not unpack"));
  EXPECT_THAT(refusal(kPacked + "x", 100), HasSubstr("damaged gzip data"));
  EXPECT_THAT(refusal("plain", 100), HasSubstr("damaged gzip data"));
}

TEST(Gzip, FilesAreRecognisedByTheirBytes) {
  const TemporaryFolder folder;
  const auto file = folder / "packed.jsonl.gz";
  std::ofstream(file, std::ios::binary) << kPacked;
  std::size_t rows = 0;
  read_jsonl(file, [&](const JsonlRow&) { ++rows; });
  EXPECT_EQ(rows, 2u);
  // A megabyte of blanks in a kilobyte: the limit holds for the unpacked bytes too.
  EXPECT_THROW(read_jsonl(ASDBENCH_SOURCE_DIR "/tasks/fuzz/corpus/jsonl/bomb.gz",
                          [](const JsonlRow&) {}, {.file_bytes = 10'000}),
               DataError);
}

TEST(JsonArray, NamesTheElementThatIsWrong) {
  const auto answer = [](std::string_view content) -> std::string {
    std::string values;
    try {
      parse_json_array(content, "a.json", [&](const JsonlRow& row) { values += row.text("t"); });
    } catch (const DataError& error) {
      return error.what();
    }
    return values;
  };
  EXPECT_EQ(answer("[{\"t\":\"a\"},\n {\"t\":\"b\"}]"), "ab");
  EXPECT_THAT(answer("[{\"t\":\"a\"},3]"), HasSubstr("a.json[1]: found number"));
  EXPECT_THAT(answer("[{\"t\":\"a\"},{}]"), HasSubstr("a.json[1]: field \"t\" is missing"));
  EXPECT_THAT(answer("[]"), HasSubstr("a.json: found an empty array"));
  EXPECT_THAT(answer("{}"), HasSubstr("a.json: found object, expected an array"));
  EXPECT_THAT(answer("[{\"t\":"), HasSubstr("a.json: "));
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
