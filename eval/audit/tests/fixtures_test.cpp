// The published cases of the audit's kinds, line by line.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <string>

#include "eval/audit/published_cases.h"
#include "eval/core/error.h"
#include "eval/stats/published_cases.h"

namespace asdbench {
namespace {

TEST(AuditFixtures, EveryPublishedCaseOfOurKindsHolds) {
  // One copy of the file serves both halves of its kinds.
  std::ifstream in(ASDBENCH_SOURCE_DIR "/eval/stats/tests/data/cases.jsonl");
  std::map<std::string, int> seen;
  std::string line;
  while (std::getline(in, line)) {
    const Json row = parse_json(line);
    const auto kind = audit_case_functions().find(row.at("kind").get<std::string>());
    if (kind == audit_case_functions().end()) continue;
    ++seen[kind->first];
    const Json found = kind->second(row.at("input"));
    for (const std::string& difference :
         case_differences(row.at("expect"), found, row.value("tol", 0.0))) {
      ADD_FAILURE() << row.at("id") << " " << difference;
    }
  }
  int cases = 0;
  for (const auto& [kind, count] : seen) cases += count;
  EXPECT_EQ(seen.size(), audit_case_functions().size());
  EXPECT_EQ(cases, 28);
}

TEST(AuditFixtures, RefuseInputWithoutFieldsAndUnknownEvents) {
  for (const auto& [kind, function] : audit_case_functions()) {
    EXPECT_THROW(function(Json::object()), Json::exception) << kind;
  }
  EXPECT_THROW(audit_case_functions().at("protocol")({{"events", {{{"event", "dance"}}}}}),
               DataError);
}

}  // namespace
}  // namespace asdbench
