// Sections from views, every format, and text that tries to be more than text.
#include <gmock/gmock.h>

#include <fstream>
#include <regex>
#include <sstream>

#include "eval/core/error.h"
#include "eval/report/facts.h"
#include "eval/report/svg.h"
#include "eval/report/tests/hostile_internal.h"

namespace asdbench {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

struct Filled {
  explicit Filled(const std::string& text) { fill(store, text); }
  Folder folder;
  ResultStore store{folder / "a.db", OpenMode::kReadWrite};
  Report report() const { return make_report(store, {}); }
};

TEST(ReportTest, SectionsHoldWhatTheRowsSay) {
  const Filled filled("");
  const Report report = filled.report();
  EXPECT_EQ(report.all_cells.rows.size(), 3U);
  const Table& quality = table_of(section_of(report, "quality"));
  // ASD against strict: b = 0, c = 1 of 3 pairs, two of them diverged.
  EXPECT_EQ(quality.rows.at(1).at(2), "strict");
  EXPECT_THAT(quality.rows.at(1).at(6), HasSubstr("-33.33 ["));
  EXPECT_EQ(quality.rows.at(1).at(8), "1 / 2 of 2");
  const Table& divergence = table_of(section_of(report, "divergence"));
  EXPECT_THAT(divergence.rows.at(1).at(4), HasSubstr("66.7 %"));
  EXPECT_EQ(divergence.rows.at(1).at(8), "2") << "median of the first differences";
  EXPECT_EQ(divergence.rows.at(0).at(4).substr(0, 5), "0.0 %") << "strict equals plain";
  const Table& ledger = table_of(section_of(report, "regret"));
  ASSERT_EQ(ledger.rows.size(), 1U);
  EXPECT_EQ(ledger.rows[0][4], "3");
  EXPECT_EQ(ledger.rows[0][10], "100.0 %") << "block position 1 of 2 kept: nothing behind it";
  EXPECT_EQ(section_of(report, "examples").blocks.size(), 2U);
}

TEST(ReportTest, FlagsNameImpossibleGainsDriftAndFailures) {
  const Filled filled("");
  const Table& flags = table_of(section_of(filled.report(), "flags"));
  std::vector<std::string> what;
  for (const auto& row : flags.rows) what.push_back(row[0]);
  EXPECT_THAT(what, Contains("failed samples"));
  EXPECT_THAT(what, Contains("gain above its bound: unequal work or a fault of the clock"));
  EXPECT_THAT(what, Contains("drift"));
  EXPECT_THAT(what, Not(Contains("unequal work")));
}

TEST(ReportTest, UnequalWorkHasNoRatioAndIsFlagged) {
  Filled filled("");
  std::vector<SpeedSlotRow> slots = group_rows(1, "set", 3, {2, 3, 3, 2}, {2, 1, 1, 2});
  slots[1].tokens += 1;
  filled.store.save_group(slots);
  const Table& flags = table_of(section_of(filled.report(), "flags"));
  const auto unequal = std::find_if(flags.rows.begin(), flags.rows.end(),
                                    [](const auto& row) { return row[0] == "unequal work"; });
  ASSERT_NE(unequal, flags.rows.end());
  EXPECT_THAT((*unequal)[2], HasSubstr("group 3"));
}

TEST(ReportTest, AnEmptyDatabaseGivesEveryFormat) {
  const Folder folder;
  const ResultStore store(folder / "a.db", OpenMode::kReadWrite);
  const Report report = make_report(store, {});
  for (const std::string& format : reporter_names()) {
    const std::string text = make_reporter(format)->render(report);
    EXPECT_THAT(text, Not(IsEmpty())) << format;
    EXPECT_THAT(text, Not(HasSubstr("nan"))) << format;
  }
  EXPECT_EQ(make_reporter("terminal")->render(report), "the database holds no cells yet\n");
}

TEST(ReportTest, OneArmAloneAndAllFailedAreDashes) {
  const Folder folder;
  ResultStore store(folder / "a.db", OpenMode::kReadWrite);
  const std::int64_t run = store.begin_run(run_row());
  const std::int64_t cell = store.cell(cell_row("asd"));
  for (const char* sample : {"a", "b"}) store.save(failed_row(cell, run, sample));
  const Report report = make_report(store, {});
  ASSERT_EQ(report.all_cells.rows.size(), 1U);
  EXPECT_EQ(report.all_cells.rows[0][5], "–");
  EXPECT_EQ(report.all_cells.rows[0][8], "–");
  EXPECT_THAT(section_of(report, "quality").blocks, IsEmpty());
  for (const std::string& format : reporter_names()) {
    const std::string text = make_reporter(format)->render(report);
    EXPECT_THAT(text, Not(HasSubstr(">nan"))) << format;
    EXPECT_THAT(text, Not(HasSubstr(" inf"))) << format;
  }
}

TEST(ReportTest, TheTerminalShowsNoControlCharacters) {
  const Filled filled(kHostile);
  const std::string text = make_reporter("terminal")->render(filled.report());
  for (const char* steering : {"\x1b", "\xc2\x9b", "\xe2\x80\xae", "\xff"}) {
    EXPECT_THAT(text, Not(HasSubstr(steering)));
  }
}

TEST(ReportTest, MarkdownAndLatexReadNothingOfForeignText) {
  const Filled filled(kHostile);
  const Report report = filled.report();
  const std::string markdown = make_reporter("md")->render(report);
  // The replies stand in indented blocks; everywhere else brackets are escaped.
  std::istringstream lines(markdown);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("    ")) continue;
    static const std::regex kUnescaped(R"re((^|[^\\])(<script|\[a|`))re");
    EXPECT_FALSE(std::regex_search(line, kUnescaped)) << line;
  }
  const std::string latex = make_reporter("latex")->render(report);
  EXPECT_THAT(latex, Not(HasSubstr("\\input{x}")));
  EXPECT_THAT(latex, HasSubstr("\\textbackslash{}input\\{x\\}\\%\\&\\#\\_"));
}

TEST(ReportTest, CsvOfAViewDisarmsFormulasAndKeepsNumbers) {
  const Filled filled("=HYPERLINK(\"x\")");
  const std::string csv = view_csv(filled.store, "cell");
  EXPECT_EQ(csv.substr(0, 12), "id,key,ident");
  Folder folder;
  ResultStore store(folder / "a.db", OpenMode::kReadWrite);
  CellRow cell = cell_row("asd");
  cell.task = "=1+1";
  cell.regret_budget = std::numeric_limits<double>::infinity();
  store.cell(cell);
  EXPECT_THAT(view_csv(store, "cell"), HasSubstr(",'=1+1,"));
  EXPECT_THAT(view_csv(store, "cell"), HasSubstr(",inf,0.25,2"));
  EXPECT_THROW(view_csv(store, "cells"), ConfigError);
  EXPECT_EQ(view_csv(store, "near_tie"), "output_id,output_position,gap\r\n");
}

TEST(ReportTest, TheSchemaDescribesEveryView) {
  const Filled filled("");
  const std::string schema = schema_text(filled.store);
  for (const std::string& name : view_names(filled.store)) {
    EXPECT_THAT(schema, HasSubstr(" " + name + "\n\n|"));
  }
}

// Golden text of every format, without the section that holds times and places.
TEST(ReportTest, GoldenTextOfEveryFormat) {
  const Filled filled("");
  Report report = filled.report();
  report.sections.pop_back();
  for (const std::string& format : reporter_names()) {
    const std::string text = make_reporter(format)->render(report);
    std::ifstream in(std::string(ASDBENCH_TEST_DATA) + "/report." + format, std::ios::binary);
    std::ostringstream golden;
    golden << in.rdbuf();
    if (text == golden.str()) continue;
    const std::string found = ::testing::TempDir() + "report." + format;
    std::ofstream(found, std::ios::binary) << text;
    ADD_FAILURE() << format << ": differs from the golden text; found is in " << found;
  }
}

}  // namespace
}  // namespace asdbench
