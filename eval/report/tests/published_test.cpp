// Published figures: what is refused, and how ours are translated.
#include "eval/report/published.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "eval/core/error.h"
#include "eval/report/tests/hostile_internal.h"

namespace asdbench {
namespace {

using ::testing::HasSubstr;

const std::string kHead = "source: a paper\nreference: its table 1\ndate: 2026\n";

std::string error_of(const std::string& text) {
  try {
    parse_published(text, "p.yaml");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(PublishedTest, ErrorsNameFileLineAndKey) {
  EXPECT_THAT(error_of(kHead + "rows:\n  - {verifier: asd, metric: speed_gain_pct, vaule: 1}\n"),
              HasSubstr("p.yaml:5: rows[0]: unknown key \"vaule\""));
  EXPECT_THAT(error_of(kHead + "rows:\n  - {verifier: asd, metric: speed_gain, value: 1}\n"),
              HasSubstr("p.yaml:5: rows[0].metric: unknown value \"speed_gain\""));
  EXPECT_THAT(error_of(kHead + "rows:\n  - {verifier: asd, metric: speed_gain_pct, value: fast}\n"),
              HasSubstr("rows[0].value: found \"fast\"; expected a number"));
  EXPECT_THAT(
      error_of(kHead + "rows:\n  - {verifier: asd, metric: speed_gain_pct, value: 1, low: 0}\n"),
      HasSubstr("low and high belong together"));
  EXPECT_THAT(error_of(kHead + "convention: {accept_length: bonus}\nrows: []\n"),
              HasSubstr("p.yaml:4: convention.accept_length: unknown value \"bonus\""));
  EXPECT_THAT(error_of(kHead), HasSubstr("the key \"rows\" is missing"));
  EXPECT_THAT(error_of(""), HasSubstr("found nothing; expected a map"));
  EXPECT_THAT(error_of("rows: []\n"), HasSubstr("the key \"source\" is missing"));
}

/// The line of the comparison of one row with the filled database.
std::vector<std::string> compared(const std::string& convention, const std::string& row) {
  const Folder folder;
  ResultStore store(folder / "a.db", OpenMode::kReadWrite);
  fill(store, "");
  ReportOptions options;
  options.published.push_back(parse_published(
      kHead + "convention: {" + convention + "}\nrows: [{" + row + "}]\n", "p.yaml"));
  return table_of(section_of(make_report(store, options), "published-p")).rows.at(0);
}

TEST(PublishedTest, ConventionsOfAcceptLengthAreTranslated) {
  const std::string row =
      "task: gsm8k, drafter: ngram, target: toy, verifier: strict, metric: accept_length, value: 2";
  // Three replies of 5 tokens in 2 passes each, which kept 2 drafts and none.
  EXPECT_THAT(compared("accept_length: with_target_token", row).at(5),
              HasSubstr("2.00 [2.00, 2.00]"));
  EXPECT_EQ(compared("accept_length: drafts_only", row).at(5), "1.00");
  EXPECT_EQ(compared("first_token: counted", row).at(5), "2.50");
  EXPECT_EQ(compared("mean: per_request", row).at(5), "2.00");
  EXPECT_EQ(compared("mean: per_request, accept_length: drafts_only", row).at(5), "–");
  EXPECT_EQ(compared("accept_length: with_target_token", row).at(7), "yes");
  EXPECT_EQ(compared("accept_length: with_target_token", row).at(8), "same");
}

TEST(PublishedTest, RowsFindTheirCellsByTaskRuleAndControls) {
  const std::string row =
      "task: gsm8k, drafter: dspark, target: toy, verifier: asd, metric: speed_gain_pct, value: 10";
  const auto found = compared("", row + ", B: 8, g: 0.25, M: 2");
  EXPECT_THAT(found.at(5), HasSubstr("154"));  // sqrt(2.5 2.61 / 1.01), less 1
  EXPECT_EQ(found.at(7), "no");
  EXPECT_EQ(found.at(8), "other drafter");
  EXPECT_EQ(compared("", row + ", B: 12").at(4), "not run");
}

TEST(PublishedTest, OptionsOfTheDrafterChooseACellAndNoTaskMeansAllOfThem) {
  const std::string row = "verifier: asd, metric: speed_gain_pct, value: 10";
  EXPECT_EQ(compared("", "task: gsm8k, " + row + ", drafter_options: K=5").at(4), "not run");
  EXPECT_THAT(compared("", "task: gsm8k, " + row + ", drafter_options: K=4").at(5),
              HasSubstr("154"));
  const auto over = compared("", row);
  EXPECT_THAT(over.at(4), HasSubstr("mean of 1 tasks"));
  EXPECT_EQ(over.at(5), "154.17") << "a mean over tasks has no interval";
}

TEST(PublishedTest, EveryFileOfTheRepositoryIsRead) {
  std::size_t files = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(ASDBENCH_SOURCE_DIR "/configs/paper/published")) {
    EXPECT_FALSE(read_published(entry.path()).rows.empty()) << entry.path();
    ++files;
  }
  EXPECT_GE(files, 6U);
  EXPECT_EQ(
      read_published(ASDBENCH_SOURCE_DIR "/configs/throughput/expected/planted.yaml").rows.size(),
      3U);
  EXPECT_THROW(read_published("absent.yaml"), ConfigError);
}

}  // namespace
}  // namespace asdbench
