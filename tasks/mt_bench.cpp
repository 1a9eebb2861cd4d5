// MT-Bench: 80 conversations of two turns, rated by a judge. Zheng et al. 2023, arXiv:2306.05685.
#include <fmt/format.h>

#include <map>
#include <memory>

#include "eval/core/error.h"
#include "tasks/common/data_catalogue.h"
#include "tasks/common/jsonl.h"
#include "tasks/task.h"

namespace asdbench {
namespace {

constexpr std::int32_t kMaxTokens = 2048;  // a turn; specs/scoring.md, section 1.2
constexpr std::size_t kTurns = 2;

std::string question_id(const JsonlRow& row) {
  const auto id = row.object().find("question_id");
  if (id == row.object().end() || !id->is_number_unsigned()) {
    row.fail("field \"question_id\" is missing or no whole number of at least 0");
  }
  return std::to_string(id->get<std::uint64_t>());
}

/// Two texts, neither empty.
std::vector<std::string> two_turns(const JsonlRow& row, const Json& object) {
  const auto turns = object.find("turns");
  if (turns == object.end() || !turns->is_array() || turns->size() != kTurns) {
    row.fail("field \"turns\" is missing or no list of two texts");
  }
  std::vector<std::string> texts;
  for (const Json& turn : *turns) {
    if (!turn.is_string() || turn.get_ref<const std::string&>().empty()) {
      row.fail("field \"turns\" holds something else than two texts");
    }
    texts.push_back(turn.get<std::string>());
  }
  return texts;
}

/// The temperature at which the category's published answers were sampled (section 6.1).
const char* published_temperature(std::string_view category) {
  if (category == "writing" || category == "roleplay") return "0.7";
  if (category == "stem" || category == "humanities") return "0.1";
  return "0";
}

class MtBench final : public Task {
 public:
  explicit MtBench(const Params& params)
      : split_(params.choice("split", "test", {"test", "samples"})),
        subset_(
            params.choice("subset", "all", {"all", "deepspec", "dflash", "eagle", "spec_bench"})) {
    if (split_ != "test" && subset_ != "all") {
      params.fail("subset", "published rows are of split test; expected subset: all");
    }
  }

  TaskInfo info() const override {
    return {.name = "mt_bench",
            .version = 1,
            .metric = "rating",
            .split = split_,
            .max_tokens = kMaxTokens,
            .graders = {"default", "fastchat"}};
  }

  Samples load(const DataDir& dir) const override {
    const std::filesystem::path file =
        split_ == "samples" ? dir.samples / "mt_bench" / "question.jsonl"
                            : require_official(dir.data, official_file("mt_bench", split_));
    Samples samples;
    read_jsonl(file, [&](const JsonlRow& row) {
      const std::vector<std::string> turns = two_turns(row, row.object());
      Sample sample;
      sample.id = split_ + "/" + question_id(row);
      sample.fields = {{"turn_1", turns[0]}, {"turn_2", turns[1]}};
      sample.category = row.text("category");
      sample.cluster = sample.id;  // both turns are of one conversation
      if (subset_ == "deepspec" || subset_ == "dflash") misspell(sample);
      samples.push_back(std::move(sample));
    });
    refuse_duplicate_ids(samples, file.string());
    return samples;
  }

  std::map<std::string, std::vector<std::string>> references(const DataDir& dir) const override {
    const std::filesystem::path file =
        split_ == "samples" ? dir.samples / "mt_bench" / "reference_answer.jsonl"
                            : require_official(dir.data, official_file("mt_bench", "reference"));
    std::map<std::string, std::vector<std::string>> texts;
    read_jsonl(file, [&](const JsonlRow& row) {
      const auto choices = row.object().find("choices");
      if (choices == row.object().end() || !choices->is_array() || choices->empty() ||
          !choices->front().is_object()) {
        row.fail("field \"choices\" is missing or no list of objects");
      }
      const std::string id = split_ + "/" + question_id(row);
      if (!texts.emplace(id, two_turns(row, choices->front())).second) {
        row.fail("question_id " + id + " occurs twice");
      }
    });
    return texts;
  }

  Prompt prompt(const Sample& sample, Turns replies) const override {
    Prompt prompt;
    prompt.messages.push_back({Role::kUser, sample.field("turn_1")});
    if (replies.empty()) return prompt;
    prompt.messages.push_back({Role::kAssistant, replies.front()});
    prompt.messages.push_back({Role::kUser, sample.field("turn_2")});
    return prompt;
  }

  std::vector<std::string> questions(const Sample& sample) const override {
    if (turns() == 1) return {sample.field("turn_1")};
    return {sample.field("turn_1"), sample.field("turn_2")};
  }

  std::int32_t turns() const override { return subset_ == "deepspec" ? 1 : 2; }

  std::optional<Answer> extract(const Sample& /*sample*/,
                                std::string_view /*text*/) const override {
    return std::nullopt;
  }

  Score score(const Sample& sample, const std::optional<Answer>& /*answer*/) const override {
    return {.detail = fmt::format("rated by a judge only; decoded greedily, where the published "
                                  "answers to {} questions have temperature {}",
                                  sample.category, published_temperature(sample.category))};
  }

 private:
  // The copy that DeepSpec and DFlash take the questions from has a slip in question 121.
  static void misspell(Sample& sample) {
    if (sample.id != "test/121") return;
    for (auto& [name, text] : sample.fields) {
      const std::string_view right = "returns top-5 words";
      if (const auto at = text.find(right); at != std::string::npos) {
        text.replace(at, right.size(), "reprompt top-5 words");
      }
    }
  }

  std::string split_;
  std::string subset_;
};

}  // namespace

std::unique_ptr<Task> make_mt_bench(const Params& params) {
  return std::make_unique<MtBench>(params);
}

}  // namespace asdbench
