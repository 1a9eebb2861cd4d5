// GSM8K: grade-school word problems with integer answers. Cobbe et al. 2021, arXiv:2110.14168.
#include <memory>

#include "tasks/common/data_catalogue.h"
#include "tasks/common/jsonl.h"
#include "tasks/common/number_graders.h"
#include "tasks/common/numbers.h"
#include "tasks/task.h"

namespace asdbench {
namespace {

// Chat, zero-shot, one user turn: specs/scoring.md, section 2.1.
constexpr const char* kAsk =
    "\nPlease reason step by step, and put your final answer within \\boxed{}.";
constexpr std::int32_t kMaxTokens = 1024;  // specs/scoring.md, section 1.2
constexpr std::string_view kGoldMark = "#### ";

std::vector<std::string> grader_names() {
  std::vector<std::string> names;
  for (const NumberGrader& grader : number_graders()) names.push_back(grader.name);
  return names;
}

// The gold stands behind the last "#### " of the worked solution, on its last line.
std::string gold_of(const JsonlRow& row) {
  const std::string& solution = row.text("answer");
  const std::size_t mark = solution.rfind(kGoldMark);
  if (mark == std::string::npos) row.fail("field \"answer\" has no \"#### \" before its result");
  const std::string gold = solution.substr(mark + kGoldMark.size());
  if (!canonical_number(gold)) {
    row.fail("field \"answer\" ends in \"" + gold + "\", expected a number behind \"#### \"");
  }
  return gold;
}

class Gsm8k final : public Task {
 public:
  explicit Gsm8k(const Params& params)
      : split_(params.choice("split", "test", {"test", "train", "samples"})),
        grader_(number_grader(params.choice("grader", "default", grader_names()))) {}

  TaskInfo info() const override {
    return {.name = "gsm8k",
            .version = 1,
            .metric = "accuracy",
            .split = split_,
            .max_tokens = kMaxTokens,
            .graders = grader_names()};
  }

  Samples load(const DataDir& dir) const override {
    const std::filesystem::path file =
        split_ == "samples" ? dir.samples / "gsm8k.jsonl"
                            : require_official(dir.data, official_file("gsm8k", split_));
    Samples samples;
    read_jsonl(file, [&](const JsonlRow& row) {
      Sample sample;
      sample.id = split_ + "/" + std::to_string(row.index());
      sample.fields = {{"question", row.text("question")}, {"answer", row.text("answer")}};
      sample.targets = {gold_of(row)};
      samples.push_back(std::move(sample));
    });
    refuse_duplicate_ids(samples, file.string());
    return samples;
  }

  Prompt prompt(const Sample& sample, Turns /*turns*/) const override {
    return {{{Role::kUser, sample.field("question") + kAsk}}};
  }

  std::optional<Answer> extract(const Sample& /*sample*/, std::string_view text) const override {
    return grader_.extract(text);
  }

  Score score(const Sample& sample, const std::optional<Answer>& answer) const override {
    return score_number(grader_, sample.targets, answer);
  }

 private:
  std::string split_;
  const NumberGrader& grader_;
};

}  // namespace

std::unique_ptr<Task> make_gsm8k(const Params& params) { return std::make_unique<Gsm8k>(params); }

}  // namespace asdbench
