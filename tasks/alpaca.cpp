// Alpaca: single instructions, compared in pairs by a judge. Two things bear the name: the 805
// instructions of AlpacaEval (Dubois et al. 2023, arXiv:2305.14387), and rows of the instruction
// data of Stanford Alpaca, which work on speculative decoding uses for speed.
#include <fmt/format.h>

#include <map>
#include <memory>

#include "eval/core/error.h"
#include "tasks/common/data_catalogue.h"
#include "tasks/common/jsonl.h"
#include "tasks/task.h"

namespace asdbench {
namespace {

constexpr std::int32_t kMaxTokens = 2048;  // specs/scoring.md, section 1.2

class Alpaca final : public Task {
 public:
  explicit Alpaca(const Params& params)
      : split_(params.choice("split", "test", {"test", "samples"})),
        subset_(params.choice("subset", "all", {"all", "deepspec", "dflash", "eagle"})) {
    if (subset_ == "deepspec" || subset_ == "dflash") {
      params.fail("subset", fmt::format("the rows of {} are of the 52,002 of tatsu-lab/alpaca, "
                                        "which no catalogue has by checksum; expected all or eagle",
                                        subset_));
    }
    if (split_ != "test" && subset_ != "all") {
      params.fail("subset", "published rows are of split test; expected subset: all");
    }
  }

  TaskInfo info() const override {
    return {.name = "alpaca",
            .version = 1,
            .metric = "win_rate",
            .split = split_,
            .max_tokens = kMaxTokens,
            .graders = {"default"}};
  }

  Samples load(const DataDir& dir) const override {
    Samples samples;
    if (subset_ == "eagle") {
      read_jsonl(file_of(dir), [&](const JsonlRow& row) { samples.push_back(eagle_sample(row)); });
    } else {
      read_json_array(file_of(dir), [&](const JsonlRow& row) {
        Sample sample;
        sample.id = fmt::format("{}/{}", split_, row.index());
        sample.fields = {{"instruction", row.text("instruction")}};
        if (row.object().contains("input")) sample.fields["input"] = row.text("input");
        sample.category = row.text("dataset");
        samples.push_back(std::move(sample));
      });
    }
    refuse_duplicate_ids(samples, file_of(dir).string());
    return samples;
  }

  /// The baseline of AlpacaEval 1 (text_davinci_003), in our samples answers of our own.
  std::map<std::string, std::vector<std::string>> references(const DataDir& dir) const override {
    std::map<std::string, std::vector<std::string>> texts;
    if (subset_ == "eagle") return texts;
    read_json_array(file_of(dir), [&](const JsonlRow& row) {
      texts[fmt::format("{}/{}", split_, row.index())] = {row.text("output")};
    });
    return texts;
  }

  Prompt prompt(const Sample& sample, Turns /*replies*/) const override {
    std::string text = sample.field("instruction");
    const auto input = sample.fields.find("input");
    if (input != sample.fields.end() && !input->second.empty()) {
      text += "\n\nInput:\n" + input->second;
    }
    return {.messages = {{Role::kUser, std::move(text)}}, .text = ""};
  }

  std::optional<Answer> extract(const Sample& /*sample*/,
                                std::string_view /*text*/) const override {
    return std::nullopt;
  }

  Score score(const Sample& /*sample*/, const std::optional<Answer>& /*answer*/) const override {
    return {.detail = "compared by a judge only"};
  }

 private:
  std::filesystem::path file_of(const DataDir& dir) const {
    if (split_ == "samples") return dir.samples / "alpaca" / "alpaca_eval.json";
    return require_official(dir.data,
                            official_file("alpaca", subset_ == "eagle" ? "eagle" : "test"));
  }

  // The input field was dropped from these 80 rows: 29 ask about text that is not there.
  Sample eagle_sample(const JsonlRow& row) const {
    const auto turns = row.object().find("turns");
    if (turns == row.object().end() || !turns->is_array() || turns->size() != 1 ||
        !turns->front().is_string()) {
      row.fail("field \"turns\" is missing or no list of one text");
    }
    Sample sample;
    sample.id = fmt::format("eagle/{}", row.index());
    sample.fields = {{"instruction", turns->front().get<std::string>()}};
    return sample;
  }

  std::string split_;
  std::string subset_;
};

}  // namespace

std::unique_ptr<Task> make_alpaca(const Params& params) { return std::make_unique<Alpaca>(params); }

}  // namespace asdbench
