// The published cases of every kind that is computed here, line by line.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <string>

#include "eval/core/error.h"
#include "eval/core/prompt_identity.h"
#include "eval/stats/published_cases.h"

namespace asdbench {
namespace {

TEST(Fixtures, EveryPublishedCaseOfOurKindsHolds) {
  std::ifstream in(ASDBENCH_TEST_DATA "/cases.jsonl");
  std::map<std::string, int> seen;
  std::string line;
  while (std::getline(in, line)) {
    const Json row = parse_json(line);
    const auto kind = case_functions().find(row.at("kind").get<std::string>());
    if (kind == case_functions().end()) continue;  // those of the audit, which has tests of its own
    ++seen[kind->first];
    const Json found = kind->second(row.at("input"));
    for (const std::string& difference :
         case_differences(row.at("expect"), found, row.value("tol", 0.0))) {
      ADD_FAILURE() << row.at("id") << " " << difference;
    }
  }
  EXPECT_EQ(seen.size(), case_functions().size());
  int cases = 0;
  for (const auto& [kind, count] : seen) cases += count;
  EXPECT_EQ(cases, 104);
}

TEST(CaseDifferences, SeesEveryKindOfDifference) {
  const Json expected = {{"a", 1.0}, {"b", {1, 2}}, {"c", "x"}, {"d", {{"e", nullptr}}}};
  EXPECT_TRUE(case_differences(expected, expected, 0).empty());
  const auto count = [&](const char* pointer, const Json& value, double tolerance) {
    Json changed = expected;
    changed[Json::json_pointer(pointer)] = value;
    return case_differences(expected, changed, tolerance).size();
  };
  EXPECT_EQ(count("/a", 1.0 + 1e-10, 0), 1u);
  EXPECT_EQ(count("/a", 1.0 + 1e-10, 1e-9), 0u);
  EXPECT_EQ(count("/a", nullptr, 1), 1u);
  EXPECT_EQ(count("/b/1", 3, 0), 1u);
  EXPECT_EQ(count("/b", {1}, 0), 1u);
  EXPECT_EQ(count("/c", "y", 1), 1u);
  EXPECT_EQ(count("/d/e", 0, 1), 1u);
  EXPECT_EQ(count("/f", 0, 0), 0u);  // more than was asked for
  EXPECT_EQ(case_differences(expected, Json::object(), 0).size(), 4u);
}

TEST(CaseFunctions, RefuseInputWithoutFieldsOrDefinition) {
  for (const auto& [kind, function] : case_functions()) {
    EXPECT_THROW(function(Json::object()), Json::exception) << kind;
  }
  EXPECT_THROW(case_functions().at("wilson")({{"k", 1}, {"n", 0}, {"confidence", 0.95}}),
               DataError);
  EXPECT_THROW(case_functions().at("bootstrap_exhaustive")(
                   {{"statistic", "median"}, {"pairs", {{1, 2}}}, {"confidence", 0.9}}),
               DataError);
}

TEST(PromptIdentity, JoinsUserMessagesAndIgnoresCaseAndSpacing) {
  const std::vector<std::string> turns = {"Hello ", "\r\nThere"};
  EXPECT_EQ(prompt_identity(turns), prompt_hash("hello there"));
  EXPECT_EQ(normalise_prompt("a\r\nb\x0b\x0c c\rD"), "a b c d");
  EXPECT_EQ(normalise_prompt("\u00c4\u00a0B"), "\u00c4\u00a0b");
  EXPECT_EQ(prompt_identity({}), prompt_hash(""));
}

}  // namespace
}  // namespace asdbench
