// MMLU: multiple-choice questions of 57 subjects. Hendrycks et al. 2021, arXiv:2009.03300.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>

#include "eval/core/error.h"
#include "tasks/common/csv.h"
#include "tasks/common/data_catalogue.h"
#include "tasks/common/letter_graders.h"
#include "tasks/common/mmlu_files.h"
#include "tasks/common/verdicts.h"
#include "tasks/task.h"

namespace asdbench {
namespace {

// The prompts: specs/scoring.md, sections 4.1 and 4.2; the limit: section 1.2.
constexpr const char* kAsk =
    "Think step by step, then finish with a last line of the form: Answer: X, where X is one of A, "
    "B, C, D.";
constexpr std::int32_t kMaxTokens = 1024;
constexpr std::int64_t kMostShots = 5;  // all that the development split has for a subject
constexpr std::array<const char*, 4> kChoices = {"A", "B", "C", "D"};
constexpr std::size_t kColumns = 6;  // question, four choices, letter

std::vector<std::string> grader_names() {
  std::vector<std::string> names;
  for (const LetterGrader& grader : letter_graders()) names.push_back(grader.name);
  return names;
}

/// Question and choices, "A) ..." or "A. ...", one a line.
std::string question_text(const Sample& sample, char mark) {
  std::string text = sample.field("question") + "\n";
  for (const char* letter : kChoices) {
    text += fmt::format("{}{} {}\n", letter, mark, sample.field(letter));
  }
  return text;
}

/// Checks that the letter is one; fields are kept as they are, outer spaces included.
Sample sample_of(const CsvRow& row) {
  const std::vector<std::string>& fields = row.fields();
  if (std::find(kChoices.begin(), kChoices.end(), fields[5]) == kChoices.end()) {
    row.fail(fmt::format("the last field is {}, expected A, B, C or D", shown(fields[5])));
  }
  Sample sample;
  sample.fields = {{"question", fields[0]}};
  for (std::size_t i = 0; i < kChoices.size(); ++i) sample.fields[kChoices[i]] = fields[i + 1];
  sample.targets = {fields[5]};
  return sample;
}

class Mmlu final : public Task {
 public:
  explicit Mmlu(const Params& params)
      : split_(params.choice("split", "test", {"test", "dev", "val", "samples"})),
        by_log_probs_(params.choice("variant", "chat", {"chat", "loglik"}) == "loglik"),
        shots_(params.integer("shots", by_log_probs_ ? kMostShots : 0, 0, kMostShots)),
        grader_(letter_grader(
            params.choice("grader", "default",
                          by_log_probs_ ? std::vector<std::string>{"default"} : grader_names()))) {
    if (shots_ > 0 && split_ == "dev") {
      params.fail("shots", "the examples are the questions of split dev; expected shots: 0");
    }
  }

  TaskInfo info() const override {
    return {.name = "mmlu",
            .version = 1,
            .metric = "accuracy",
            .split = split_,
            .max_tokens = kMaxTokens,
            .graders = by_log_probs_ ? std::vector<std::string>{"default"} : grader_names(),
            .by_log_probs = by_log_probs_};
  }

  Samples load(const DataDir& dir) const override {
    Samples samples;
    for (const MmluSubject& subject : mmlu_subjects()) load_subject(dir, subject, samples);
    if (samples.empty()) {
      throw DataError((dir.samples / "mmlu").string() +
                      ": holds no file such as test/NAME_test.csv");
    }
    return samples;
  }

  Prompt prompt(const Sample& sample, Turns /*turns*/) const override {
    const std::string head = shots_ > 0 || by_log_probs_ ? header(sample) : "";
    const std::string examples = shots_ > 0 ? sample.field("examples") : "";
    if (by_log_probs_) {
      return {.messages = {}, .text = head + examples + question_text(sample, '.') + "Answer:"};
    }
    return {.messages = {{Role::kUser, head + examples + question_text(sample, ')') + kAsk}},
            .text = ""};
  }

  std::vector<std::string> questions(const Sample& sample) const override {
    return {question_text(sample, ')')};
  }

  std::vector<std::string> continuations(const Sample& /*sample*/) const override {
    if (!by_log_probs_) return {};
    return {" A", " B", " C", " D"};
  }

  std::optional<Answer> extract(const Sample& sample, std::string_view text) const override {
    if (by_log_probs_) {  // one of the continuations
      const std::size_t letter = text.find_first_not_of(' ');
      if (letter == std::string_view::npos) return std::nullopt;
      return Answer{std::string(text.substr(letter)), "log_prob"};
    }
    std::vector<std::string> choices;
    for (const char* letter : kChoices) choices.push_back(sample.field(letter));
    return grader_.extract(text, choices);
  }

  Score score(const Sample& sample, const std::optional<Answer>& answer) const override {
    const bool correct = answer && grader_.equal(answer->text, sample.targets.front());
    return verdict_of(answer, correct);
  }

 private:
  // Our own words for what the original prompt says in its first line.
  static std::string header(const Sample& sample) {
    std::string subject = sample.cluster;
    std::replace(subject.begin(), subject.end(), '_', ' ');
    return fmt::format("Multiple-choice questions about {}, each followed by its answer.\n\n",
                       subject);
  }

  /// Our samples have few subjects; official data has all.
  static std::filesystem::path file_of(const DataDir& dir, const MmluSubject& subject,
                                       const std::string& split, bool samples) {
    if (!samples)
      return require_official(dir.data, official_file("mmlu", split + "/" + subject.name));
    std::filesystem::path file =
        dir.samples / "mmlu" / split / fmt::format("{}_{}.csv", subject.name, split);
    return std::filesystem::exists(file) ? file : "";
  }

  void load_subject(const DataDir& dir, const MmluSubject& subject, Samples& samples) const {
    const bool ours = split_ == "samples";
    const std::filesystem::path file = file_of(dir, subject, ours ? "test" : split_, ours);
    if (file.empty()) return;
    const std::string examples = shots_ > 0 ? examples_of(dir, subject, ours) : "";
    read_csv(file, kColumns, [&](const CsvRow& row) {
      Sample sample = sample_of(row);
      sample.id = fmt::format("{}/{}/{}", split_, subject.name, row.index());
      sample.cluster = subject.name;
      sample.category = subject.category;
      if (shots_ > 0) sample.fields["examples"] = examples;
      samples.push_back(std::move(sample));
    });
  }

  /// The first questions of the subject's development split, with their answers.
  std::string examples_of(const DataDir& dir, const MmluSubject& subject, bool ours) const {
    const std::filesystem::path file = file_of(dir, subject, "dev", ours);
    if (file.empty()) {
      throw DataError(fmt::format("{}: examples for {} are missing; expected shots: 0",
                                  (dir.samples / "mmlu" / "dev").string(), subject.name));
    }
    std::string text;
    std::int64_t count = 0;
    read_csv(file, kColumns, [&](const CsvRow& row) {
      if (count == shots_) return;
      const Sample example = sample_of(row);
      text += fmt::format("{}Answer: {}\n\n", question_text(example, by_log_probs_ ? '.' : ')'),
                          example.targets.front());
      ++count;
    });
    if (count < shots_) {
      throw DataError(fmt::format("{}: {} examples, expected {}", file.string(), count, shots_));
    }
    return text;
  }

  std::string split_;
  bool by_log_probs_;
  std::int64_t shots_;
  const LetterGrader& grader_;
};

}  // namespace

std::unique_ptr<Task> make_mmlu(const Params& params) { return std::make_unique<Mmlu>(params); }

}  // namespace asdbench
