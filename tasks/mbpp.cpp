// MBPP: short Python functions from a sentence and three asserts. Austin et al. 2021,
// arXiv:2108.07732. Split `plus` has EvalPlus' larger tests: Liu et al. 2023, arXiv:2305.01210.
#include <fmt/format.h>

#include <memory>

#include "tasks/common/characters.h"
#include "tasks/common/code_grader.h"
#include "tasks/common/data_catalogue.h"
#include "tasks/common/jsonl.h"
#include "tasks/common/reply_text.h"
#include "tasks/common/subsets.h"
#include "tasks/task.h"

namespace asdbench {
namespace {

constexpr const char* kAsk = "Reply with the whole function in one Python code block.";
constexpr std::int32_t kMaxTokens = 1024;  // specs/scoring.md, section 1.2

// Which rows of which file: specs/scoring.md, section 5.1. Published figures for "MBPP" are of
// `test` or of `sanitized`.
struct Split {
  const char* name;
  const char* file;          // in the catalogue
  std::int64_t first, last;  // task ids
};
constexpr std::int64_t kAny = 1'000'000;
constexpr Split kSplits[] = {{"test", "full", 11, 510},
                             {"train", "full", 601, 974},
                             {"all", "full", 0, kAny},
                             {"sanitized", "sanitized", 11, 510},
                             {"sanitized-all", "sanitized", 0, kAny},
                             {"plus", "plus-original", 0, kAny},
                             {"samples", "", 0, kAny}};

std::vector<std::string> split_names() {
  std::vector<std::string> names;
  for (const Split& split : kSplits) names.emplace_back(split.name);
  return names;
}

const Split& split_named(std::string_view name) {
  return *std::find_if(std::begin(kSplits), std::end(kSplits),
                       [&](const Split& split) { return split.name == name; });
}

bool is_name_part(char c) { return is_alphanumeric(c) || c == '_'; }

// The function under test: the first that an assert calls and the reference code defines. Asserts
// often wrap it, as in set(f(x)) or math.isclose(f(x), y).
std::string entry_point_of(const JsonlRow& row, const std::vector<std::string>& tests,
                           std::string_view code) {
  for (const std::string& test : tests) {
    for (std::size_t open = test.find('('); open != std::string::npos;
         open = test.find('(', open + 1)) {
      std::size_t end = open;
      while (end > 0 && test[end - 1] == ' ') --end;
      std::size_t start = end;
      while (start > 0 && is_name_part(test[start - 1])) --start;
      const std::string name = test.substr(start, end - start);
      if (!name.empty() && defines(code, name)) return name;
    }
  }
  row.fail("no function of field \"code\" is called in field \"test_list\"");
}

std::string lines_of(const std::vector<std::string>& texts) {
  std::string lines;
  for (const std::string& text : texts) lines += text + "\n";
  return lines;
}

class Mbpp final : public Task {
 public:
  explicit Mbpp(const Params& params)
      : split_(split_named(params.choice("split", "test", split_names()))),
        subset_(params.choice("subset", "all", subset_names("mbpp"))),
        limits_(code_limits_of(params, plus() ? 60 : 10)) {
    if (subset_ != "all" && std::string_view(split_.name) != "sanitized") {
      params.fail("subset", "published rows are of split sanitized; expected split: sanitized");
    }
  }

  TaskInfo info() const override {
    return {.name = "mbpp",
            .version = 1,
            .metric = "pass@1",
            .split = split_.name,
            .max_tokens = kMaxTokens,
            .graders = {"default"},
            .code_limits = describe(limits_)};
  }

  Samples load(const DataDir& dir) const override {
    const std::string_view name = split_.file;
    const std::filesystem::path file =
        name.empty() ? dir.samples / "mbpp.jsonl"
                     : require_official(dir.data, official_file("mbpp", name));
    Samples samples;
    const auto take = [&](const JsonlRow& row) {
      const std::int64_t id = row.integer("task_id");
      if (id >= split_.first && id <= split_.last) samples.push_back(sample_of(row, id));
    };
    name == "sanitized" ? read_json_array(file, take) : read_jsonl(file, take);
    refuse_duplicate_ids(samples, file.string());
    take_subset(samples, "mbpp", subset_);
    return samples;
  }

  Prompt prompt(const Sample& sample, Turns /*turns*/) const override {
    // Without the asserts a model cannot know the function's name.
    return {{{Role::kUser, sample.field("prompt") + "\n\nThe function must satisfy:\n\n" +
                               python_block(sample.field("asserts")) + "\n" + kAsk}}};
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
      CodeJob job = function_job(sample.field("entry_point"), sample.field("test"), reply.text);
      if (plus()) job.modules = {"numpy"};
      job.limits = limits_;
      return job;
    });
  }

 private:
  bool plus() const { return std::string_view(split_.name) == "plus"; }

  // The full file has `text` and `test_setup_code`, the others `prompt` and `test_imports`.
  Sample sample_of(const JsonlRow& row, std::int64_t id) const {
    const bool full = row.object().contains("text");
    const std::vector<std::string> asserts = row.texts("test_list");
    const std::string code = clean_text(row.text("code"));  // CRLF
    // Runs behind the program: it uses classes that the program has to define.
    const std::string setup =
        full ? clean_text(row.text("test_setup_code")) : lines_of(row.texts("test_imports"));
    Sample sample;
    sample.id = fmt::format("mbpp/{}", id);
    sample.fields = {{"prompt", row.text(full ? "text" : "prompt")},
                     {"asserts", lines_of(asserts)},
                     {"entry_point", entry_point_of(row, asserts, code)},
                     {"solution", code},
                     {"test", setup + "\n" + (plus() ? row.text("test") : lines_of(asserts))}};
    return sample;
  }

  const Split& split_;
  std::string subset_;
  SandboxLimits limits_;
};

}  // namespace

std::unique_ptr<Task> make_mbpp(const Params& params) { return std::make_unique<Mbpp>(params); }

}  // namespace asdbench
