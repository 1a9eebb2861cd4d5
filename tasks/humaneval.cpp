// HumanEval: Python functions to complete, judged by running their tests. Chen et al. 2021,
// arXiv:2107.03374. Split `plus` has EvalPlus' larger tests: Liu et al. 2023, arXiv:2305.01210.
#include <memory>

#include "tasks/common/code_grader.h"
#include "tasks/common/data_catalogue.h"
#include "tasks/common/jsonl.h"
#include "tasks/common/subsets.h"
#include "tasks/task.h"

namespace asdbench {
namespace {

// Chat, zero-shot, not primed: specs/scoring.md, section 5.1.
constexpr const char* kAsk =
    "Complete this Python function. Reply with the whole function in one Python code block.\n\n";
constexpr std::int32_t kMaxTokens = 1024;  // specs/scoring.md, section 1.2

class HumanEval final : public Task {
 public:
  explicit HumanEval(const Params& params)
      : split_(params.choice("split", "test", {"test", "plus", "samples"})),
        subset_(params.choice("subset", "all", subset_names("humaneval"))),
        limits_(code_limits_of(params, split_ == "plus" ? 60 : 10)) {
    if (split_ != "test" && subset_ != "all") {
      params.fail("subset", "published rows are of split test; expected subset: all");
    }
  }

  TaskInfo info() const override {
    return {.name = "humaneval",
            .version = 1,
            .metric = "pass@1",
            .split = split_,
            .max_tokens = kMaxTokens,
            .graders = {"default"},
            .code_limits = describe(limits_)};
  }

  Samples load(const DataDir& dir) const override {
    const std::filesystem::path file =
        split_ == "samples"
            ? dir.samples / "humaneval.jsonl"
            : require_official(
                  dir.data,
                  official_file("humaneval", split_ == "plus" ? "plus-original" : "test"));
    Samples samples;
    read_jsonl(file, [&](const JsonlRow& row) { samples.push_back(sample_of(row)); });
    refuse_duplicate_ids(samples, file.string());
    take_subset(samples, "humaneval", subset_);
    return samples;
  }

  Prompt prompt(const Sample& sample, Turns /*turns*/) const override {
    return {{{Role::kUser, kAsk + python_block(sample.field("prompt"))}}};
  }

  std::optional<Answer> extract(const Sample& /*sample*/, std::string_view text) const override {
    return Answer{.text = std::string(text), .rule = ""};
  }
  Score score(const Sample& /*sample*/, const std::optional<Answer>& /*answer*/) const override {
    return not_executed();
  }

  void grade(std::span<const TaskReply> replies, const Interrupted& interrupted,
             const Graded& graded) const override {
    grade_code(replies, interrupted, graded, [this](const TaskReply& reply) {
      const Sample& sample = *reply.sample;
      CodeJob job = completion_job(sample.field("prompt"), sample.field("entry_point"),
                                   sample.field("test"), reply.text);
      if (split_ == "plus") job.modules = {"numpy"};
      job.limits = limits_;
      return job;
    });
  }

 private:
  static Sample sample_of(const JsonlRow& row) {
    const std::string& prompt = row.text("prompt");
    const std::string& name = row.text("entry_point");
    if (!defines(prompt, name))
      row.fail("field \"prompt\" does not define \"" + name + "\", its entry point");
    Sample sample;
    sample.id = row.text("task_id");
    // The tests only define check(): the caller has to call it.
    sample.fields = {{"prompt", prompt},
                     {"entry_point", name},
                     {"solution", prompt + row.text("canonical_solution")},
                     {"test", row.text("test") + "\ncheck(" + name + ")\n"}};
    return sample;
  }

  std::string split_;
  std::string subset_;
  SandboxLimits limits_;
};

}  // namespace

std::unique_ptr<Task> make_humaneval(const Params& params) {
  return std::make_unique<HumanEval>(params);
}

}  // namespace asdbench
