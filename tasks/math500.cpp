// MATH-500: competition problems with LaTeX answers. Hendrycks et al. 2021, arXiv:2103.03874; the
// 500 of Lightman et al. 2023, arXiv:2305.20050.
#include <memory>

#include "tasks/common/data_catalogue.h"
#include "tasks/common/jsonl.h"
#include "tasks/common/math_graders.h"
#include "tasks/common/subsets.h"
#include "tasks/common/verdicts.h"
#include "tasks/task.h"

namespace asdbench {
namespace {

// Chat, zero-shot, one user turn: specs/scoring.md, section 3.1; the limit: section 1.2.
constexpr const char* kAsk =
    "\nPlease reason step by step, and put your final answer within \\boxed{}.";
constexpr std::int32_t kMaxTokens = 4096;

std::vector<std::string> grader_names() {
  std::vector<std::string> names;
  for (const MathGrader& grader : math_graders()) names.push_back(grader.name);
  return names;
}

class Math500 final : public Task {
 public:
  explicit Math500(const Params& params)
      : split_(params.choice("split", "test", {"test", "samples"})),
        subset_(params.choice("subset", "all", subset_names("math500"))),
        grader_(math_grader(params.choice("grader", "default", grader_names()))) {
    if (split_ != "test" && subset_ != "all") {
      params.fail("subset", "published rows are of split test; expected subset: all");
    }
  }

  TaskInfo info() const override {
    return {.name = "math500",
            .version = 1,
            .metric = "accuracy",
            .split = split_,
            .max_tokens = kMaxTokens,
            .graders = grader_names()};
  }

  Samples load(const DataDir& dir) const override {
    const std::filesystem::path file =
        split_ == "samples" ? dir.samples / "math500.jsonl"
                            : require_official(dir.data, official_file("math500", split_));
    Samples samples;
    read_jsonl(file, [&](const JsonlRow& row) {
      if (row.text("answer").empty()) row.fail("field \"answer\" is empty");
      Sample sample;
      sample.id = split_ + "/" + std::to_string(row.index());
      sample.fields = {{"problem", row.text("problem")}, {"solution", row.text("solution")}};
      sample.targets = {row.text("answer")};
      sample.category = row.text("subject");
      samples.push_back(std::move(sample));
    });
    take_subset(samples, "math500", subset_);
    return samples;
  }

  Prompt prompt(const Sample& sample, Turns /*turns*/) const override {
    return {{{Role::kUser, sample.field("problem") + kAsk}}};
  }

  std::optional<Answer> extract(const Sample& /*sample*/, std::string_view text) const override {
    return grader_.extract(text);
  }

  Score score(const Sample& sample, const std::optional<Answer>& answer) const override {
    if (!answer) return verdict_of(answer, false);
    const MathVerdict verdict = grader_.compare(answer->text, sample.targets.front());
    Score score = verdict_of(answer, verdict.equal);
    score.detail = verdict.detail;
    return score;
  }

 private:
  std::string split_;
  std::string subset_;
  const MathGrader& grader_;
};

}  // namespace

std::unique_ptr<Task> make_math500(const Params& params) {
  return std::make_unique<Math500>(params);
}

}  // namespace asdbench
