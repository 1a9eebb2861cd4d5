// Stored replies graded again: once each, in any number of sittings, and never by guessing.
#include "eval/run/grade.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "eval/core/error.h"
#include "results/tests/rows.h"

namespace asdbench {
namespace {

using ::testing::ElementsAre;

/// "yes" is right.
class YesTask final : public Task {
 public:
  TaskInfo info() const override { return {.name = "yes", .graders = {"default"}}; }
  Samples load(const DataDir&) const override { return {}; }
  Prompt prompt(const Sample&, Turns) const override { return {}; }
  std::optional<Answer> extract(const Sample&, std::string_view text) const override {
    if (text == "throw") throw DataError("this grader cannot read that");
    return Answer{std::string(text), "whole"};
  }
  Score score(const Sample&, const std::optional<Answer>& answer) const override {
    const bool right = answer->text == "yes";
    return {.verdict = right ? Verdict::kCorrect : Verdict::kIncorrect,
            .value = right ? 1 : 0,
            .answer = answer->text,
            .rule = answer->rule};
  }
};

class GradeTest : public ::testing::Test {
 protected:
  void reply(const std::string& sample, const std::string& text) {
    OutputRow row = output_row(cell_, run_, sample);
    row.completion.text = text;
    store_.save(row);
  }
  GradeResult grade(std::int64_t version, std::int64_t most = 1'000'000,
                    const std::string& unknown = "") {
    const Sample sample;
    std::int64_t asked = 0;
    return grade_stored(store_, cell_, {.task = task_, .name = "other", .version = version},
                        [&](const std::string& id) { return id == unknown ? nullptr : &sample; },
                        {.progress = [](std::int64_t, std::int64_t) {},
                         .interrupted = [&] { return asked++ == most; }});
  }
  std::string scored(std::int64_t version) {
    return value_of(store_,
                    "SELECT count(*) FROM score WHERE scorer = 'other' AND "
                    "scorer_version = " +
                        std::to_string(version));
  }

  Folder folder_;
  ResultStore store_{folder_ / "a.db", OpenMode::kReadWrite};
  std::int64_t run_ = store_.begin_run(run_row());
  std::int64_t cell_ = store_.cell(cell_row("asd"));
  YesTask task_;
};

TEST_F(GradeTest, EveryReplyOnceAndEveryVersionOfTheGrader) {
  reply("a", "yes");
  reply("b", "no");
  store_.save(failed_row(cell_, run_, "c"));
  EXPECT_EQ(grade(1).graded, 2);
  EXPECT_EQ(grade(1).graded, 0);
  EXPECT_EQ(grade(2).graded, 2);
  EXPECT_THAT(rows_of(store_,
                      "SELECT sample_id, verdict, answer FROM score JOIN output ON "
                      "output.id = output_id WHERE scorer = 'other' AND scorer_version = 2 "
                      "ORDER BY sample_id"),
              ElementsAre(ElementsAre("a", "correct", "yes"), ElementsAre("b", "incorrect", "no")));
}

TEST_F(GradeTest, InterruptedItKeepsWhatItHasAndGoesOn) {
  for (int i = 0; i < 700; ++i) reply("s" + std::to_string(i), i % 2 == 0 ? "yes" : "no");
  const GradeResult first = grade(1, 300);
  EXPECT_TRUE(first.interrupted);
  EXPECT_EQ(first.graded, 300);
  EXPECT_EQ(scored(1), "300");
  const GradeResult second = grade(1);
  EXPECT_FALSE(second.interrupted);
  EXPECT_EQ(second.graded, 400);
  EXPECT_EQ(value_of(store_, "SELECT sum(verdict = 'correct') FROM score WHERE scorer = 'other'"),
            "350");
}

TEST_F(GradeTest, ASampleThatIsNotHereIsCountedNotGuessed) {
  reply("a", "yes");
  reply("edited", "yes");
  const GradeResult result = grade(1, 1000, "edited");
  EXPECT_EQ(result.graded, 1);
  EXPECT_EQ(result.left_out, 1);
  EXPECT_FALSE(result.interrupted);
}

TEST_F(GradeTest, AGraderThatThrowsLosesNothingOfWhatWasStored) {
  for (int i = 0; i < 300; ++i) reply("s" + std::to_string(i), "yes");
  reply("t", "throw");
  EXPECT_THROW(grade(1), DataError);
  EXPECT_EQ(scored(1), "300");
}

}  // namespace
}  // namespace asdbench
