// The embedded model through the whole program: goldens, zero controls equal to strict, strict
// equal to plain.
#include <gmock/gmock.h>

#include <cstdlib>
#include <map>

#include "eval/cli/tests/program_internal.h"
#include "eval/core/json.h"

namespace asdbench {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing::Outcome;
using testing::ProgramTest;
using testing::write_file;

// The embedded model; scripts/test fetches it, and its absence is a failure.
class RealModelTest : public ProgramTest {
 protected:
  /// Token lists of every output of a run over our samples, by sample.
  std::map<std::string, std::vector<Json>> tokens_of(const std::string& target, int limit,
                                                     int max_tokens) {
    const fs::path path = folder_ / "real.yaml";
    write_file(path,
               fmt::format("run: {{name: real, seed: 7, phases: [quality]}}\n"
                           "matrix:\n"
                           "  task: [{{gsm8k: {{split: samples, limit: {}, max_tokens: {}}}}}]\n"
                           "  target: [{}]\n"
                           "  drafter: [none, {{ngram: {{K: 4}}}}]\n"
                           "  verifier:\n"
                           "    - strict\n"
                           "    - asd: {{B: 0, g: 0.25, M: 2}}\n"
                           "    - asd: {{B: 8, g: 0, M: 2}}\n"
                           "    - asd: {{B: 8, g: 0.25, M: 0}}\n"
                           "skip: [{{drafter: none, verifier: asd}}]\n",
                           limit, max_tokens, target));
    const Outcome outcome = run({"run", path.string(), "--db", database()});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    // Equal but for near ties, which are stored.
    EXPECT_THAT(outcome.out, HasSubstr("check greedy_outputs_equal: pass"));
    std::map<std::string, std::vector<Json>> tokens;
    std::istringstream lines(dump(database()));
    for (std::string line; std::getline(lines, line);) {
      const Json output = parse_json(line);
      // Plain decoding has another step shape; the others must be equal to the bit.
      if (output.at("cell").at("drafter") != "none") {
        tokens[output.at("sample")].push_back(output.at("tokens"));
      }
    }
    return tokens;
  }
};

TEST_F(RealModelTest, ZeroControlsEqualStrictToTheBitAndStrictEqualsPlain) {
  const auto tokens = tokens_of("{path: smollm2-135m, device: cpu, engine: native}", 3, 48);
  ASSERT_EQ(tokens.size(), 3U);
  for (const auto& [sample, lists] : tokens) {
    ASSERT_EQ(lists.size(), 4U) << sample;
    for (const Json& list : lists) EXPECT_EQ(list, lists.front()) << sample;
  }
}

#ifdef ASDBENCH_TORCH_ENGINE
TEST_F(RealModelTest, ZeroControlsEqualStrictToTheBitOnTorchToo) {
  const auto tokens = tokens_of("{path: smollm2-135m, device: cpu, engine: torch}", 1, 16);
  ASSERT_EQ(tokens.size(), 1U);
  for (const Json& list : tokens.begin()->second) EXPECT_EQ(list, tokens.begin()->second.front());
}
#endif

// Each shipped drafter, as stored and rounded: our own questions, none of which was trained on.
TEST_F(RealModelTest, ShippedDraftersBeatPromptLookupAndStrictEqualsPlainToTheBit) {
  std::string drafters;
  std::map<std::string, double> promised;  // committed per pass, by kind
  for (const auto& folder : fs::directory_iterator("runners/drafters/shipped")) {
    const Json card = parse_json(testing::read_file(folder.path() / "card.json"));
    const std::string kind = card.at("kind");
    constexpr int kDrafts = 3;
    promised[kind] = card.at("held_out").at("committed").at(kDrafts - 1).get<double>();
    for (const char* weights : {"stored", "q8_0"}) {
      drafters += fmt::format("    - {}: {{path: {}, K: {}, weights: {}}}\n", kind,
                              folder.path().filename().string(), kDrafts, weights);
    }
  }
  ASSERT_FALSE(promised.empty());
  const fs::path path = folder_ / "shipped.yaml";
  write_file(path,
             "run: {name: shipped, seed: 7, phases: [quality]}\n"
             "matrix:\n"
             "  task: [{gsm8k: {split: samples, limit: 3, max_tokens: 64}}]\n"
             "  target: [{path: smollm2-135m, device: cpu, engine: native}]\n"
             "  drafter:\n    - none\n    - {ngram: {K: 3}}\n" +
                 drafters + "  verifier: [strict]\n");
  const Outcome outcome = run({"run", path.string(), "--db", database()});
  ASSERT_EQ(outcome.code, 0) << outcome.err;

  std::map<std::string, std::vector<Json>> tokens;
  std::istringstream lines(dump(database()));
  for (std::string line; std::getline(lines, line);) {
    const Json output = parse_json(line);
    tokens[output.at("sample")].push_back(output.at("tokens"));
  }
  ASSERT_EQ(tokens.size(), 3U);
  for (const auto& [sample, lists] : tokens) {
    ASSERT_EQ(lists.size(), 2 + 2 * promised.size()) << sample;
    for (const Json& list : lists) EXPECT_EQ(list, lists.front()) << sample;
  }

  const Outcome report = run({"report", database(), "--format", "json"});
  ASSERT_EQ(report.code, 0) << report.err;
  const Json facts = parse_json(report.out);
  std::map<std::string, std::vector<double>> accepted;
  for (const Json& row : facts.at("matrix")) {
    accepted[row.at("drafter")].push_back(row.at("accept_length"));
  }
  for (const auto& [kind, committed] : promised) {
    ASSERT_EQ(accepted[kind].size(), 2U);
    for (const double length : accepted[kind]) {
      EXPECT_GT(length, accepted["ngram"].front()) << kind;
      // The card's figure is of other questions, and these are few.
      EXPECT_GT(length, 0.85 * committed) << kind;
    }
    // Rounding to bytes costs next to nothing.
    EXPECT_NEAR(accepted[kind][1], accepted[kind][0], 0.06 * accepted[kind][0]) << kind;
  }
}

TEST_F(RealModelTest, LogitsTokensAndTokenizerAreThoseOfTheReference) {
  const std::string data = std::string(ASDBENCH_TEST_DATA) + "/smollm2";
  // Without the official questions, whose rendering is then not compared.
  const Outcome model = run({"conformance", "model", data, "--data", folder_.string()});
  EXPECT_EQ(model.code, 0) << model.out << model.err;
  EXPECT_THAT(model.out, HasSubstr("36 passed, 0 failed"));
  const Outcome tokenizer = run({"conformance", "tokenizer", data});
  EXPECT_EQ(tokenizer.code, 0) << tokenizer.out << tokenizer.err;
  EXPECT_THAT(tokenizer.out, HasSubstr("117 passed, 0 failed"));
}

#ifdef ASDBENCH_TORCH_ENGINE
TEST_F(RealModelTest, ADrafterIsTrainedFromNothingAndItsCardSaysFromWhat) {
  const fs::path path = folder_ / "train.yaml";
  write_file(path,
             "train: {name: tiny, seed: 3, steps: 3, step_tokens: 20}\n"
             "target: {path: smollm2-135m, device: cpu, engine: native}\n"
             "data: [{gsm8k: {split: train, when_missing: skip}}, {prompts: {limit: 4}}]\n"
             "replies: {max_tokens: 12, batch: 4, held_out: 0.25}\n"
             "drafter: {eagle3: {draft_vocab: 64, intermediate: 32, unroll: 2}}\n");
  const char* data = std::getenv("ASDBENCH_DATA");
  const std::string before = data == nullptr ? "" : data;
  setenv("ASDBENCH_DATA", (folder_ / "none").c_str(), 1);
  const Outcome outcome = run({"train", path.string(), "--out", (folder_ / "tiny").string(),
                               "--cache", (folder_ / "replies").string()});
  setenv("ASDBENCH_DATA", before.c_str(), 1);  // empty is the same as unset
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("gsm8k train is not there and is skipped"));
  EXPECT_THAT(outcome.out, HasSubstr("committed per pass K=1"));
  const Json card = parse_json(testing::read_file(folder_ / "tiny" / "card.json"));
  EXPECT_EQ(card.at("prompts"), 4);
  EXPECT_EQ(card.at("prompt_identities").size(), 4U);
  EXPECT_EQ(card.at("data").at(0).at("skipped"), "the official file was not there");
  EXPECT_EQ(card.at("data").at(1).at("prompts"), 4);
  EXPECT_EQ(card.at("replies").at("held_out"), 2);
  EXPECT_EQ(card.at("held_out").at("committed").size(), 5U);
  EXPECT_TRUE(fs::exists(folder_ / "tiny" / "model.safetensors"));
}
#endif

}  // namespace
}  // namespace asdbench
