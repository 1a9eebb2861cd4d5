// Every published ASD case, and cases damaged on purpose.
#include <gtest/gtest.h>

#include "eval/core/error.h"
#include "runners/verifiers/common/vectors.h"

namespace asdbench {
namespace {

const std::vector<Json>& cases() {
  static const std::vector<Json> rows = read_vectors(ASDBENCH_TEST_DATA "/asd_vectors.jsonl");
  return rows;
}

const Json& case_named(const std::string& id) {
  for (const Json& row : cases()) {
    if (row.at("id") == id) return row;
  }
  throw InternalError("no case " + id);
}

TEST(AsdVectorsTest, AllHoldUnderBothTiePolicies) {
  ASSERT_EQ(cases().size(), 378U);
  for (const Json& row : cases()) {
    const auto mismatch = check_asd_vector(row);
    EXPECT_FALSE(mismatch) << row.at("id") << "\nexpected " << mismatch->expected << "\ngot      "
                           << mismatch->got;
  }
}

TEST(AsdVectorsTest, AWrongExpectationIsSeen) {
  for (const char* key :
       {"mask_len", "accepted", "strict_accepted", "charged", "spent_after", "reused"}) {
    Json row = case_named("w03");
    row["expect"][key] = row["expect"][key].get<double>() + 1.0 / 64;
    EXPECT_TRUE(check_asd_vector(row)) << key;
  }
  Json row = case_named("w08");
  row["expect"]["blocked_by"] = {"gate"};
  EXPECT_TRUE(check_asd_vector(row));
  row = case_named("w11");
  row["expect_literal"] = row["expect"];
  EXPECT_TRUE(check_asd_vector(row));
  row = case_named("q0001");
  row["expect"][1]["committed"][0] = 0;
  EXPECT_TRUE(check_asd_vector(row));
  row = case_named("q0001");
  row["expect_exceptions"] = 3;
  EXPECT_TRUE(check_asd_vector(row));
}

TEST(AsdVectorsTest, UnknownFieldsKindsAndShapesAreMismatches) {
  Json row = case_named("w03");
  row["temperature"] = 1;
  EXPECT_TRUE(check_asd_vector(row));
  row = case_named("w03");
  row["kind"] = "tree";
  EXPECT_TRUE(check_asd_vector(row));
  row = case_named("w03");
  row["expect"]["speed"] = 1;
  EXPECT_TRUE(check_asd_vector(row));
  row = case_named("w03");
  row["K"] = 4;
  EXPECT_TRUE(check_asd_vector(row));
  row = case_named("w03");
  row["logits"][1].push_back(0);
  EXPECT_TRUE(check_asd_vector(row));
  row = case_named("w03");
  row["eos_mode"] = "sometimes";
  EXPECT_TRUE(check_asd_vector(row));
  EXPECT_TRUE(check_asd_vector(Json::object()));
  row = case_named("f001");  // rows that float32 cannot hold, and a draft outside them
  row["draft"][0] = 1'000'000;
  EXPECT_TRUE(check_asd_vector(row));
  row["expect"] = {{"status", "error"}, {"error", "token_out_of_range"}};
  EXPECT_FALSE(check_asd_vector(row));
}

}  // namespace
}  // namespace asdbench
