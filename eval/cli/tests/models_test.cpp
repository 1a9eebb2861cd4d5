// Models and drafters from outside: recorded vectors, headers of published sizes, refusals.
#include <gmock/gmock.h>
#include <sys/resource.h>

#include "eval/cli/tests/fake_checkpoint_internal.h"
#include "eval/cli/tests/program_internal.h"

namespace asdbench {
namespace {

using testing::FakeModel;
namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing::Outcome;
using testing::ProgramTest;
using testing::published_models;
using testing::read_file;
using testing::write_fake_model;
using testing::write_file;

constexpr const char* kDrafters = "runners/drafters/tests/data";

using ModelsTest = ProgramTest;

TEST_F(ModelsTest, DraftersReproduceTheirRecordedRounds) {
  std::vector<std::string> engines = {"native"};
#ifdef ASDBENCH_TORCH_ENGINE
  engines.emplace_back("torch");
#endif
  for (const std::string& engine : engines) {
    const Outcome outcome = run({"conformance", "drafter", kDrafters, "--engine", engine});
    EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr(" passed, 0 failed")) << engine;
  }
}

TEST_F(ModelsTest, DamagedCheckpointsAreRefusedByKind) {
  const Outcome outcome = run({"conformance", "model", "runners/checkpoint/tests/data/bad"});
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("68 passed, 0 failed"));
}

/// Pages that programs which ended were given, files they looked into included.
long pages_of_children() {
  rusage usage{};
  ::getrusage(RUSAGE_CHILDREN, &usage);
  return usage.ru_minflt + usage.ru_majflt;
}

TEST_F(ModelsTest, PublishedSizesAreInspectedFromHeadersAlone) {
  for (const FakeModel& model : published_models()) {
    const fs::path folder = folder_ / model.name;
    write_fake_model(folder, model);
    const long before = pages_of_children();
    const Outcome outcome = run({"model", "inspect", folder.string(), "--json"});
    const long touched = pages_of_children() - before;
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    const Json facts = parse_json(outcome.out);
    EXPECT_EQ(facts.at("parameters"), std::to_string(model.parameters));
    EXPECT_EQ(facts.at("tensor bytes"), std::to_string(2 * model.parameters));
    EXPECT_EQ(facts.at("tensors"), fmt::format("{0} ({0} BF16)", model.tensors));
    EXPECT_EQ(facts.at("context"), std::to_string(model.positions));
    // Some thousands for the program itself; the weights are more than a million.
    EXPECT_LT(touched, 100'000) << model.name;
  }
}

TEST_F(ModelsTest, ConfigurationsOfPublishedTargetsCanBePlanned) {
  for (const FakeModel& model : published_models()) {
    const fs::path folder = folder_ / model.name;
    write_fake_model(folder, model);
    const Outcome outcome = run({"plan", "configs/targets/" + model.name + ".yaml", "--set",
                                 "matrix.task[0].gsm8k.split=samples", "--set",
                                 "matrix.target[0].path=" + folder.string()});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("cells. `at most` is an estimate")) << model.name;
    EXPECT_THAT(outcome.out, HasSubstr("eagle3")) << model.name;
  }
}

TEST_F(ModelsTest, InspectSaysWhetherADrafterFits) {
  const std::string drafter = std::string(kDrafters) + "/eagle3_safeailab_reduced";
  const Outcome fits =
      run({"model", "inspect", drafter, "--target", std::string(kDrafters) + "/targets/llama_a"});
  EXPECT_EQ(fits.code, 0) << fits.err;
  EXPECT_THAT(fits.out, HasSubstr("SafeAILab"));
  EXPECT_THAT(fits.out, HasSubstr("112 of 320"));
  EXPECT_THAT(fits.out, HasSubstr("yes"));
  const Outcome other =
      run({"model", "inspect", drafter, "--target", std::string(kDrafters) + "/targets/qwen3_a"});
  EXPECT_EQ(other.code, 1);
  EXPECT_THAT(other.out, HasSubstr("no: "));
  EXPECT_THAT(other.out, HasSubstr("a vocabulary of 320, this one has 384"));
  const Outcome alone =
      run({"model", "inspect", std::string(kDrafters) + "/targets/llama_a", "--target", "x"});
  EXPECT_EQ(alone.code, 2);
  EXPECT_THAT(alone.err, HasSubstr("is no drafter"));
}

TEST_F(ModelsTest, TokenizePrintsIdsOfJsonStrings) {
  const std::string tokenizer = "runners/text/tests/data/tokenizers/qwen3/tokenizer.json";
  write_file(folder_ / "in", "\"2 + 2\"\n\"\"\n\"a\\nb\"\n");
  const Outcome outcome = run({"model", "tokenize", tokenizer}, folder_ / "in");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, ::testing::MatchesRegex("\\[[0-9,]+\\]\n\\[\\]\n\\[[0-9,]+\\]\n"));
  write_file(folder_ / "bad", "\"good\"\n17\n");
  const Outcome bad = run({"model", "tokenize", tokenizer}, folder_ / "bad");
  EXPECT_EQ(bad.code, 3);
  EXPECT_THAT(bad.err, HasSubstr("stdin:2"));
}

}  // namespace
}  // namespace asdbench
