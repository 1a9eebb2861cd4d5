// Published subsets: how many rows, in which order, and what happens when rows are missing.
#include "tasks/common/subsets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "eval/core/error.h"

namespace asdbench {
namespace {

using ::testing::ElementsAre;

Samples samples_of(const std::string& prefix, int first, int last) {
  Samples samples;
  for (int i = first; i <= last; ++i) {
    Sample sample;
    sample.id = prefix + std::to_string(i);
    samples.push_back(sample);
  }
  return samples;
}

std::vector<std::string> first_three(Samples samples, const char* task, const char* subset,
                                     std::size_t expected) {
  take_subset(samples, task, subset);
  EXPECT_EQ(samples.size(), expected) << task << " " << subset;
  std::set<std::string> ids;
  for (const Sample& sample : samples) EXPECT_TRUE(ids.insert(sample.id).second) << sample.id;
  return {samples.at(0).id, samples.at(1).id, samples.at(2).id};
}

TEST(Subsets, AreTakenInTheOrderOfThePublishedRun) {
  const Samples gsm8k = samples_of("test/", 0, 1318);
  EXPECT_THAT(first_three(gsm8k, "gsm8k", "deepspec", 500),
              ElementsAre("test/435", "test/902", "test/303"));
  EXPECT_THAT(first_three(gsm8k, "gsm8k", "dflash", 128),
              ElementsAre("test/264", "test/725", "test/996"));
  EXPECT_THAT(first_three(gsm8k, "gsm8k", "eagle", 80),
              ElementsAre("test/30", "test/754", "test/429"));
  EXPECT_THAT(first_three(gsm8k, "gsm8k", "spec_bench", 80),
              ElementsAre("test/962", "test/372", "test/1184"));
  EXPECT_THAT(first_three(gsm8k, "gsm8k", "all", 1319), ElementsAre("test/0", "test/1", "test/2"));
  EXPECT_THAT(first_three(samples_of("HumanEval/", 0, 163), "humaneval", "eagle", 80),
              ElementsAre("HumanEval/52", "HumanEval/134", "HumanEval/51"));
  EXPECT_THAT(first_three(samples_of("HumanEval/", 0, 163), "humaneval", "deepspec", 164),
              ElementsAre("HumanEval/0", "HumanEval/1", "HumanEval/2"));
  EXPECT_THAT(first_three(samples_of("test/", 11, 510), "mbpp", "deepspec", 256),
              ElementsAre("test/171", "test/247", "test/246"));
  EXPECT_THAT(first_three(samples_of("test/", 11, 510), "mbpp", "dflash", 128),
              ElementsAre("test/475", "test/168", "test/468"));
  // Ids without a number: by place.
  EXPECT_THAT(first_three(samples_of("a/b.json", 0, 499), "math500", "dflash", 128),
              ElementsAre("a/b.json221", "a/b.json434", "a/b.json109"));
}

TEST(Subsets, MissingRowsAndUnknownNamesAreErrors) {
  Samples few = samples_of("test/", 0, 99);
  EXPECT_THROW(take_subset(few, "gsm8k", "eagle"), DataError);
  EXPECT_THROW(take_subset(few, "gsm8k", "medusa"), InternalError);
  EXPECT_THAT(subset_names("gsm8k"),
              ElementsAre("all", "deepspec", "dflash", "eagle", "spec_bench"));
  EXPECT_THAT(subset_names("mmlu"), ElementsAre("all"));
}

}  // namespace
}  // namespace asdbench
