// GSM8K: grade-school word problems with integer answers. Cobbe et al. 2021, arXiv:2110.14168.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>

#include "eval/core/error.h"
#include "tasks/common/data_catalogue.h"
#include "tasks/common/jsonl.h"
#include "tasks/common/number_graders.h"
#include "tasks/common/numbers.h"
#include "tasks/common/subsets.h"
#include "tasks/common/word_problems.h"
#include "tasks/task.h"

namespace asdbench {
namespace {

// Chat, zero-shot, one user turn: specs/scoring.md, section 2.1.
constexpr const char* kAsk =
    "\nPlease reason step by step, and put your final answer within \\boxed{}.";
// For our own small problems: a small model that is told to reason step by step loses its way.
constexpr const char* kAskShortly = "\nAnswer briefly.";
constexpr std::int32_t kMaxTokens = 1024;  // specs/scoring.md, section 1.2
constexpr std::string_view kGoldMark = "#### ";
constexpr std::int64_t kMostShots = 8;

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

/// A worked solution as a reply to our prompt: without the calculator's <<marks>>, its result
/// boxed.
std::string example_reply(const JsonlRow& row) {
  const std::string& solution = row.text("answer");
  const std::string_view worked = std::string_view(solution).substr(0, solution.rfind(kGoldMark));
  std::string reply;
  for (std::size_t at = 0; at < worked.size();) {
    const std::size_t mark = std::min(worked.find("<<", at), worked.size());
    reply += worked.substr(at, mark - at);
    const std::size_t end = worked.find(">>", mark);
    at = end == std::string_view::npos ? worked.size() : end + 2;
  }
  while (reply.ends_with('\n')) reply.pop_back();
  return fmt::format("{}\nThe final answer is \\boxed{{{}}}.", reply, gold_of(row));
}

class Gsm8k final : public Task {
 public:
  explicit Gsm8k(const Params& params)
      : split_(params.choice("split", "test", {"test", "train", "samples", "synthetic"})),
        subset_(params.choice("subset", "all", subset_names("gsm8k"))),
        shots_(params.integer("shots", 0, 0, kMostShots)),
        grader_(number_grader(params.choice("grader", "default", grader_names()))) {
    if (split_ != "test" && subset_ != "all") {
      params.fail("subset", "published rows are of split test; expected subset: all");
    }
    if (split_ == "train" && shots_ > 0) {
      params.fail("shots", "the examples are the first of split train; expected shots: 0");
    }
    if (split_ != "synthetic") return;
    if (shots_ > 0) params.fail("shots", "the synthetic split has no examples; expected shots: 0");
    const std::int64_t most = word_problem_count();
    seed_ = static_cast<std::uint64_t>(
        params.integer("seed", 1, 0, std::numeric_limits<std::int64_t>::max()));
    from_ = params.integer("from", 0, 0, most - 1);
    count_ = params.integer("count", 400, 1, most - from_);
  }

  TaskInfo info() const override {
    return {.name = "gsm8k",
            .version = 1,
            .metric = "accuracy",
            .split = split_,
            .max_tokens = kMaxTokens,
            .graders = grader_names()};
  }

  Samples load(const DataDir& dir) const override {
    if (split_ == "synthetic") return synthetic();
    const std::filesystem::path file =
        split_ == "samples" ? dir.samples / "gsm8k.jsonl"
                            : require_official(dir.data, official_file("gsm8k", split_));
    const auto examples = shots_ > 0 ? examples_of(dir) : std::map<std::string, std::string>();
    Samples samples;
    read_jsonl(file, [&](const JsonlRow& row) {
      Sample sample;
      sample.id = split_ + "/" + std::to_string(row.index());
      sample.fields = {{"question", row.text("question")}, {"answer", row.text("answer")}};
      sample.fields.insert(examples.begin(), examples.end());
      sample.targets = {gold_of(row)};
      samples.push_back(std::move(sample));
    });
    refuse_duplicate_ids(samples, file.string());
    take_subset(samples, "gsm8k", subset_);
    return samples;
  }

  Prompt prompt(const Sample& sample, Turns /*turns*/) const override {
    Prompt prompt;
    for (std::int64_t shot = 1; shot <= shots_; ++shot) {
      prompt.messages.push_back(
          {Role::kUser, sample.field(fmt::format("example_{}", shot)) + kAsk});
      prompt.messages.push_back(
          {Role::kAssistant, sample.field(fmt::format("example_{}_reply", shot))});
    }
    prompt.messages.push_back({Role::kUser, sample.field("question") + ask()});
    return prompt;
  }

  std::vector<std::string> questions(const Sample& sample) const override {
    return {sample.field("question") + ask()};
  }

  std::optional<Answer> extract(const Sample& /*sample*/, std::string_view text) const override {
    return grader_.extract(text);
  }

  Score score(const Sample& sample, const std::optional<Answer>& answer) const override {
    return score_number(grader_, sample.targets, answer);
  }

 private:
  /// The first rows of the training split, or of our own few, as fields of every sample.
  std::map<std::string, std::string> examples_of(const DataDir& dir) const {
    const std::filesystem::path file =
        split_ == "samples" ? dir.samples / "gsm8k_train.jsonl"
                            : require_official(dir.data, official_file("gsm8k", "train"));
    std::map<std::string, std::string> fields;
    std::int64_t shot = 0;
    read_jsonl(file, [&](const JsonlRow& row) {
      if (shot++ >= shots_) return;
      fields[fmt::format("example_{}", shot)] = row.text("question");
      fields[fmt::format("example_{}_reply", shot)] = example_reply(row);
    });
    if (shot < shots_) {
      throw DataError(
          fmt::format("{}: {} rows, expected at least {}", file.string(), shot, shots_));
    }
    return fields;
  }

  const char* ask() const { return split_ == "synthetic" ? kAskShortly : kAsk; }

  /// Problems of ours, named by seed and index: splits with other indices are disjoint.
  Samples synthetic() const {
    Samples samples;
    for (std::int64_t index = from_; index < from_ + count_; ++index) {
      const WordProblem problem = word_problem(seed_, index);
      Sample sample;
      sample.id = "synthetic/" + std::to_string(seed_) + "/" + std::to_string(index);
      sample.fields = {{"question", problem.question}, {"answer", problem.solution}};
      sample.targets = {std::to_string(problem.answer)};
      samples.push_back(std::move(sample));
    }
    return samples;
  }

  std::string split_;
  std::string subset_;
  std::int64_t shots_;
  const NumberGrader& grader_;
  std::uint64_t seed_ = 0;
  std::int64_t from_ = 0, count_ = 0;  // of the synthetic split
};

}  // namespace

std::unique_ptr<Task> make_gsm8k(const Params& params) { return std::make_unique<Gsm8k>(params); }

}  // namespace asdbench
