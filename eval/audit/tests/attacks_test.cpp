// Every attack on a whole audit is refused, or failed, by the name that is expected.
#include "eval/audit/attacks.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>

namespace asdbench {
namespace {

namespace fs = std::filesystem;

class Attacks : public ::testing::Test {
 protected:
  // One audit for all: it takes seconds, its copies milliseconds.
  static void SetUpTestSuite() {
    std::string pattern = ::testing::TempDir() + "asdbench_range_XXXXXX";
    folder_ = mkdtemp(pattern.data());
    range_ = new AttackRange(folder_);
  }
  static void TearDownTestSuite() {
    delete range_;
    fs::remove_all(folder_);
  }
  static fs::path folder_;
  static AttackRange* range_;
};
fs::path Attacks::folder_;
AttackRange* Attacks::range_ = nullptr;

TEST_F(Attacks, TheUntouchedAuditPassesAndIsCertified) {
  const Json& certificate = range_->certificate();
  ASSERT_TRUE(certificate.is_object());
  EXPECT_EQ(certificate.at("verdict"), "pass") << certificate.at("gates").dump(1);
  EXPECT_EQ(certificate.at("format"), "asdbench certificate 1");
  EXPECT_EQ(certificate.at("figures").at("quality")[0].at("n"), 24);
  EXPECT_FALSE(certificate.at("early_stop").get<bool>());
}

TEST_F(Attacks, EachIsRefusedOrFailedByItsName) {
  std::ifstream in(ASDBENCH_TEST_DATA "/attacks.jsonl");
  std::set<std::string> tried;
  std::string line;
  while (std::getline(in, line)) {
    const Json row = parse_json(line);
    const auto name = row.at("input").at("attack").get<std::string>();
    const AttackOutcome outcome = range_->run(name);
    const Json found = {{"refused", outcome.refused},
                        {"fail", outcome.fail},
                        {"inconclusive", outcome.inconclusive}};
    EXPECT_EQ(found, row.at("expect")) << name;
    tried.insert(name);
  }
  const std::vector<std::string> all = AttackRange::names();
  EXPECT_EQ(tried, std::set<std::string>(all.begin(), all.end()));
  EXPECT_THROW(range_->run("nothing"), ConfigError);
}

}  // namespace
}  // namespace asdbench
