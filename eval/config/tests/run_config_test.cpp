// Configurations as a user writes them: what is read, and the exact words of every refusal.
#include "eval/config/run_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "eval/core/error.h"
#include "eval/core/temporary_folder.h"

namespace asdbench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const KnownNames& known() {
  static const KnownNames kNames = {.tasks = {"gsm8k", "math500", "mmlu"},
                                    .targets = {"planted", "smollm2-135m", "toy"},
                                    .drafters = {"eagle3", "ngram", "none"},
                                    .verifiers = {"asd", "mars", "strict", "top_k", "typical"}};
  return kNames;
}

RunConfig parse(const std::string& text, const std::vector<Override>& overrides = {}) {
  return parse_config(text, "configs/study.yaml", known(), overrides);
}

std::string error_of(const std::string& text, const std::vector<Override>& overrides = {}) {
  try {
    parse(text, overrides);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

// The example of the architecture page, section 4.
constexpr const char* kExample =
    R"(run: {name: gsm8k-asd, seed: 7, phases: [quality, speed], max_failed_samples: 0}
matrix:
  task: [{gsm8k: {limit: 100}}, math500]
  target: [{path: models/smollm2-135m, device: auto, dtype: float32}]     # HF folder, .gguf file, or a known name
  drafter: [none, {ngram: {K: 8, min_n: 2, max_n: 4}}, {eagle3: {K: 5, path: models/smollm2-135m-eagle3}}]
  verifier: [strict, {asd: {B: 8, g: 0.25, M: 2}}]
  decoding: [{batch: 1}]           # greedy; max_tokens is the task's own limit unless given
skip: [{drafter: none, verifier: asd}]
baseline: {verifier: strict}        # same task, target, drafter, decoding
speed: {tokens: 128, prompts: 8, groups: 4, order: abba}      # abba: mirrored; a palindrome for more than two arms
capped: wrong                       # or as_scored; both figures are always stored and printed
)";

constexpr const char* kSmall = R"(run:
  name: small
matrix:
  task: [gsm8k]
  target: [toy]
  drafter: [ngram]
  verifier:
    - strict
    - asd: {B: 8}
)";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::vector<std::string> names_of(const std::vector<Choice>& choices) {
  std::vector<std::string> names;
  for (const Choice& choice : choices) names.push_back(choice.name);
  return names;
}

TEST(RunConfig, ReadsTheExample) {
  const RunConfig config = parse(kExample);
  EXPECT_EQ(config.file, "configs/study.yaml");
  EXPECT_EQ(config.text, kExample);
  EXPECT_EQ(config.name, "gsm8k-asd");
  EXPECT_EQ(config.seed, 7u);
  EXPECT_TRUE(config.quality);
  EXPECT_TRUE(config.speed);
  EXPECT_EQ(config.max_failed_samples, 0);
  EXPECT_THAT(names_of(config.tasks), ElementsAre("gsm8k", "math500"));
  EXPECT_EQ(config.tasks[0].params.at_least("limit", std::int64_t{1}), 100);
  EXPECT_THAT(names_of(config.targets), ElementsAre("models/smollm2-135m"));
  EXPECT_EQ(config.targets[0].params.text("device"), "auto");
  EXPECT_EQ(config.targets[0].params.text("dtype"), "float32");
  EXPECT_FALSE(config.targets[0].params.has("path"));
  EXPECT_THAT(names_of(config.drafters), ElementsAre("none", "ngram", "eagle3"));
  EXPECT_EQ(config.drafters[1].params.given(), "K=8 min_n=2 max_n=4");
  EXPECT_EQ(config.drafters[2].params.text("path"), "models/smollm2-135m-eagle3");
  EXPECT_THAT(names_of(config.verifiers), ElementsAre("strict", "asd"));
  EXPECT_EQ(config.verifiers[1].params.given(), "B=8 g=0.25 M=2");
  EXPECT_EQ(config.verifiers[1].params.owner(), "asd");
  EXPECT_EQ(config.verifiers[1].params.where().text(),
            "configs/study.yaml:6: matrix.verifier[1].asd");
  EXPECT_THAT(names_of(config.decodings), ElementsAre("decoding"));
  EXPECT_EQ(config.decodings[0].params.at_least("batch", std::int64_t{1}), 1);
  ASSERT_EQ(config.skip.size(), 1u);
  EXPECT_EQ(config.skip[0],
            (std::map<std::string, std::string>{{"drafter", "none"}, {"verifier", "asd"}}));
  EXPECT_EQ(config.baseline_verifier, "strict");
  EXPECT_EQ(config.speed_config.tokens, 128);
  EXPECT_EQ(config.speed_config.prompts, 8);
  EXPECT_EQ(config.speed_config.groups, 4);
  EXPECT_EQ(config.speed_config.warmup, 2);
  EXPECT_EQ(config.capped, CappedPolicy::kWrong);
}

TEST(RunConfig, HasTheDocumentedDefaults) {
  const RunConfig config = parse(kSmall);
  EXPECT_EQ(config.seed, 0u);
  EXPECT_TRUE(config.quality);
  EXPECT_FALSE(config.speed);
  EXPECT_EQ(config.max_failed_samples, 0);
  EXPECT_THAT(names_of(config.decodings), ElementsAre("decoding"));
  EXPECT_EQ(config.decodings[0].params.given(), "");
  EXPECT_TRUE(config.skip.empty());
  EXPECT_EQ(config.baseline_verifier, "strict");
  EXPECT_EQ(config.speed_config.tokens, 128);
  EXPECT_EQ(config.capped, CappedPolicy::kByGrader);
}

TEST(RunConfig, ReadsTheOtherChoices) {
  const RunConfig config = parse(std::string(kSmall) +
                                 "speed: {order: abba, warmup: 0}\n"
                                 "capped: as_scored\n");
  EXPECT_EQ(config.speed_config.warmup, 0);
  EXPECT_EQ(config.capped, CappedPolicy::kAsScored);
}

TEST(RunConfig, TakesTargetsByNameByPathAndWithOptions) {
  const RunConfig config = parse(replaced(kSmall, "[toy]",
                                          "[toy, models/a.gguf, b.gguf, {toy: {vocab: 7}}, "
                                          "{smollm2-135m: {path: x.gguf}}, {path: plain}]"));
  EXPECT_THAT(names_of(config.targets),
              ElementsAre("toy", "models/a.gguf", "b.gguf", "toy", "smollm2-135m", "plain"));
  EXPECT_EQ(config.targets[3].params.given(), "vocab=7");
  EXPECT_EQ(config.targets[4].params.given(), "path=x.gguf");
  EXPECT_EQ(config.targets[5].params.given(), "");
}

struct Refusal {
  std::string change, to, message;
};

void PrintTo(const Refusal& refusal, std::ostream* out) { *out << refusal.to; }

class Refused : public ::testing::TestWithParam<Refusal> {};

TEST_P(Refused, SaysWhereWhatAndWhatWasExpected) {
  EXPECT_EQ(error_of(replaced(kSmall, GetParam().change, GetParam().to)), GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    RunConfig, Refused,
    ::testing::Values(
        Refusal{"    - strict", "    - strict\n    - typcial",
                "configs/study.yaml:9: matrix.verifier[1]: unknown verifier \"typcial\"\n"
                "  known: asd, mars, strict, top_k, typical; did you mean \"typical\"?"},
        Refusal{"  name: small", "  name: small\n  seeed: 7",
                "configs/study.yaml:3: run: unknown key \"seeed\"\n"
                "  known: max_failed_samples, name, phases, seed; did you mean \"seed\"?"},
        Refusal{"matrix:", "matrx:",
                "configs/study.yaml:3: unknown key \"matrx\"\n"
                "  known: baseline, capped, deploy, matrix, run, skip, speed; did you mean "
                "\"matrix\"?"},
        Refusal{"  drafter: [ngram]\n", "",
                "configs/study.yaml:4: matrix: the key \"drafter\" is missing"},
        Refusal{"  name: small", "  seed: 1",
                "configs/study.yaml:2: run: the key \"name\" is missing"},
        Refusal{
            "  name: small", "  name: small\n  seed: seven",
            "configs/study.yaml:3: run.seed: found \"seven\"; expected a whole number, at least 0"},
        Refusal{"  name: small", "  name: small\n  seed: \"7\"",
                "configs/study.yaml:3: run.seed: found \"7\"; expected a whole number, at least 0"},
        Refusal{
            "  name: small", "  name: small\n  seed: 7.5",
            "configs/study.yaml:3: run.seed: found \"7.5\"; expected a whole number, at least 0"},
        Refusal{"  name: small", "  name: small\n  seed: -1",
                "configs/study.yaml:3: run.seed: -1 is out of range; expected at least 0"},
        Refusal{"  name: small", "  name: small\n  seed:",
                "configs/study.yaml:3: run.seed: found nothing; expected one value"},
        Refusal{"  name: small", "  name: [small]",
                "configs/study.yaml:2: run.name: found a list; expected one value"},
        Refusal{"  name: small", "  name: \"\"",
                "configs/study.yaml:2: run.name: found an empty text; expected a value"},
        Refusal{"  name: small", "  name: small\n  name: other",
                "configs/study.yaml:3: run: the key \"name\" is given twice"},
        Refusal{"  name: small", "  name: small\n  phases: quality",
                "configs/study.yaml:3: run.phases: found \"quality\"; expected a list"},
        Refusal{
            "  name: small", "  name: small\n  phases: []",
            "configs/study.yaml:3: run.phases: the list is empty; expected quality, speed, replay"},
        Refusal{"  name: small", "  name: small\n  phases: [quality, sped]",
                "configs/study.yaml:3: run.phases[1]: unknown value \"sped\"\n"
                "  known: quality, replay, speed; did you mean \"speed\"?"},
        Refusal{"  name: small", "  name: small\n  phases: [speed, speed]",
                "configs/study.yaml:3: run.phases[1]: \"speed\" is given twice"},
        Refusal{"[gsm8k]", "gsm8k",
                "configs/study.yaml:4: matrix.task: found \"gsm8k\"; expected a list"},
        Refusal{
            "[gsm8k]", "[]",
            "configs/study.yaml:4: matrix.task: the list is empty; expected at least one entry"},
        Refusal{
            "[gsm8k]", "[gsm8k, gsm8k]",
            "configs/study.yaml:4: matrix.task[1]: the same as matrix.task[0]; expected different "
            "entries"},
        Refusal{"[gsm8k]", "[{gsm8k: {limit: 5}, math500: {}}]",
                "configs/study.yaml:4: matrix.task[0]: found a map of 2 keys; expected a name or "
                "{name: {options}}"},
        Refusal{
            "[gsm8k]", "[{}]",
            "configs/study.yaml:4: matrix.task[0]: found an empty map; expected a name or {name: "
            "{options}}"},
        Refusal{"[gsm8k]", "[[gsm8k]]",
                "configs/study.yaml:4: matrix.task[0]: found a list; expected a name or {name: "
                "{options}}"},
        Refusal{"[gsm8k]", "[{gsm8k: 5}]",
                "configs/study.yaml:4: matrix.task[0].gsm8k: found \"5\"; expected a map"},
        Refusal{"[gsm8k]", "[{gsm8k: }]",
                "configs/study.yaml:4: matrix.task[0].gsm8k: found nothing; expected a map"},
        Refusal{
            "[gsm8k]", "[{gsm8k: {limit: [5]}}]",
            "configs/study.yaml:4: matrix.task[0].gsm8k.limit: found a list; expected one value"},
        Refusal{"[gsm8k]", "[{gsm8k: {limit: 5, limit: 6}}]",
                "configs/study.yaml:4: matrix.task[0].gsm8k: the key \"limit\" is given twice"},
        Refusal{"[gsm8k]", "[\"\"]",
                "configs/study.yaml:4: matrix.task[0]: found an empty text; expected a name"},
        Refusal{"[toy]", "[smollm-135m]",
                "configs/study.yaml:5: matrix.target[0]: unknown target \"smollm-135m\"\n"
                "  known: planted, smollm2-135m, toy; did you mean \"smollm2-135m\"?"},
        Refusal{
            "[toy]", "[{path: \"\"}]",
            "configs/study.yaml:5: matrix.target[0].path: found an empty text; expected a value"},
        Refusal{"[toy]", "[{toy: {}, device: cpu}]",
                "configs/study.yaml:5: matrix.target[0]: found a map of 2 keys; expected a name, "
                "{name: "
                "{options}} or {path: ..., options}"},
        Refusal{"  drafter: [ngram]", "  drafter: [ngram]\n  decoding: [batch]",
                "configs/study.yaml:7: matrix.decoding[0]: found \"batch\"; expected a map"},
        Refusal{"  drafter: [ngram]", "  drafter: [ngram]\n  verifer: [asd]",
                "configs/study.yaml:7: matrix: unknown key \"verifer\"\n"
                "  known: decoding, drafter, target, task, verifier; did you mean \"verifier\"?"},
        Refusal{"matrix:", "skip: {drafter: none}\nmatrix:",
                "configs/study.yaml:3: skip: found a map; expected a list"},
        Refusal{"matrix:", "skip: [{}]\nmatrix:",
                "configs/study.yaml:3: skip[0]: an empty map would skip every cell"},
        Refusal{"matrix:", "skip: [{draftr: none}]\nmatrix:",
                "configs/study.yaml:3: skip[0]: unknown key \"draftr\"\n"
                "  known: drafter, target, task, verifier; did you mean \"drafter\"?"},
        Refusal{"matrix:", "skip: [{drafter: non}]\nmatrix:",
                "configs/study.yaml:3: skip[0].drafter: unknown drafter \"non\"\n"
                "  known: eagle3, ngram, none; did you mean \"none\"?"},
        Refusal{
            "matrix:", "baseline: {verifier: mars}\nmatrix:",
            "configs/study.yaml:3: baseline.verifier: \"mars\" is not in matrix.verifier; add it "
            "there or name one that is"},
        Refusal{
            "matrix:", "baseline: {verifier: asd}\nmatrix:",
            "configs/study.yaml:3: baseline.verifier: found \"asd\"; expected strict, which every "
            "ratio is against"},
        Refusal{"matrix:", "baseline: strict\nmatrix:",
                "configs/study.yaml:3: baseline: found \"strict\"; expected a map"},
        Refusal{"matrix:", "baseline: {}\nmatrix:",
                "configs/study.yaml:3: baseline: the key \"verifier\" is missing"},
        Refusal{"matrix:", "capped: right\nmatrix:",
                "configs/study.yaml:3: capped: unknown value \"right\"\n  known: as_scored, wrong"},
        Refusal{"matrix:", "speed: {tokens: 0}\nmatrix:",
                "configs/study.yaml:3: speed.tokens: 0 is out of range; expected 1 to 1000000"},
        Refusal{
            "matrix:", "speed: {tokens: 99999999999999999999}\nmatrix:",
            "configs/study.yaml:3: speed.tokens: found \"99999999999999999999\"; expected a whole "
            "number, 1 to 1000000"},
        Refusal{"matrix:", "speed: {order: baab}\nmatrix:",
                "configs/study.yaml:3: speed.order: unknown value \"baab\"\n  known: abba, bcb"},
        Refusal{
            "matrix:", "speed: {seconds: 3}\nmatrix:",
            "configs/study.yaml:3: speed: unknown key \"seconds\"\n"
            "  known: groups, order, prompts, spot_checks, tokens, warmup, warmup_most, work"}));

TEST(RunConfig, SpeedHasKindsOfWorkAndAnOrder) {
  const RunConfig plain = parse(kSmall);
  EXPECT_EQ(plain.speed_config.work, std::vector<SpeedWork>{SpeedWork::kConstant});
  EXPECT_EQ(plain.speed_config.order, SpeedOrder::kAbba);
  EXPECT_EQ(plain.speed_config.spot_checks, 2);
  EXPECT_FALSE(plain.replay);
  const RunConfig config = parse(kSmall, {{"run.phases", "[replay, speed]"},
                                          {"speed.work", "[natural, reference, constant]"},
                                          {"speed.order", "bcb"},
                                          {"speed.spot_checks", "0"}});
  EXPECT_EQ(
      config.speed_config.work,
      (std::vector<SpeedWork>{SpeedWork::kNatural, SpeedWork::kReference, SpeedWork::kConstant}));
  EXPECT_EQ(config.speed_config.order, SpeedOrder::kBcb);
  EXPECT_EQ(config.speed_config.spot_checks, 0);
  EXPECT_TRUE(config.replay);
  EXPECT_FALSE(config.quality);
  EXPECT_EQ(error_of(kSmall, {{"speed.work", "[natural, natural]"}}),
            "--set: speed.work[1]: natural is given twice");
  EXPECT_EQ(error_of(kSmall, {{"speed.work", "[natural, raw]"}}),
            "--set: speed.work[1]: unknown value \"raw\"\n  known: constant, natural, reference");
  EXPECT_EQ(error_of(kSmall, {{"speed.work", "[]"}}),
            "--set: speed.work: the list is empty; expected constant, reference, natural");
}

TEST(RunConfig, RefusesDocumentsThatAreNoMap) {
  EXPECT_EQ(error_of(""), "configs/study.yaml: the file is empty; expected run and matrix");
  EXPECT_EQ(error_of("# only a comment\n"),
            "configs/study.yaml: the file is empty; expected run and matrix");
  EXPECT_EQ(error_of("- a\n"), "configs/study.yaml:1: found a list; expected a map");
  EXPECT_EQ(error_of("text\n"), "configs/study.yaml:1: found \"text\"; expected a map");
}

TEST(RunConfig, QuotesHostileNamesSafely) {
  const std::string message = error_of(replaced(kSmall, "[gsm8k]", "[\"a\\nb\\e[31m\"]"));
  EXPECT_THAT(message, HasSubstr("unknown task \"a\\x0ab\\x1b[31m\""));
  const std::string long_name(10'000, 'x');
  EXPECT_LT(error_of(replaced(kSmall, "[gsm8k]", "[" + long_name + "]")).size(), 400u);
}

TEST(Overrides, SetValuesByDottedPath) {
  const RunConfig config = parse(kSmall, {{"run.name", "other"},
                                          {"speed.groups", "2"},
                                          {"matrix.task[0].gsm8k.limit", "5"},
                                          {"matrix.task[0].gsm8k.split", "samples"},
                                          {"matrix.verifier[1].asd.B", "4"},
                                          {"run.phases", "[speed]"},
                                          {"matrix.target", "[{path: m/x.gguf, device: cpu}]"}});
  EXPECT_EQ(config.name, "other");
  EXPECT_EQ(config.speed_config.groups, 2);
  EXPECT_EQ(config.tasks[0].params.given(), "limit=5 split=samples");
  EXPECT_EQ(config.verifiers[1].params.given(), "B=4");
  EXPECT_FALSE(config.quality);
  EXPECT_TRUE(config.speed);
  EXPECT_EQ(config.targets[0].name, "m/x.gguf");
  EXPECT_EQ(config.text, kSmall);
}

TEST(Overrides, TheLastOneWins) {
  EXPECT_EQ(parse(kSmall, {{"run.seed", "1"}, {"run.seed", "2"}}).seed, 2u);
}

TEST(Overrides, ErrorsNameTheCommandLine) {
  EXPECT_EQ(error_of(kSmall, {{"speed.groups", "two"}}),
            "--set: speed.groups: found \"two\"; expected a whole number, 1 to 10000");
  EXPECT_EQ(error_of(kSmall, {{"speed.gruops", "2"}}),
            "--set: speed: unknown key \"gruops\"\n"
            "  known: groups, order, prompts, spot_checks, tokens, warmup, warmup_most, work; did "
            "you mean \"groups\"?");
  EXPECT_EQ(error_of(kSmall, {{"run.name", ""}}),
            "--set: run.name: found nothing; expected one value");
  EXPECT_EQ(
      error_of(kSmall, {{"matrix.task[1].gsm8k.limit", "5"}}),
      "--set matrix.task[1].gsm8k.limit: [1] is out of range; the list has 1 entries, counted "
      "from 0");
  EXPECT_EQ(
      error_of(kSmall, {{"matrix.task[0].math500.limit", "5"}}),
      "--set matrix.task[0].math500.limit: found \"gsm8k\" before \"math500\"; expected a map");
  EXPECT_EQ(error_of(kSmall, {{"run[0]", "5"}}),
            "--set run[0]: found a map before [0]; expected a list");
  EXPECT_EQ(error_of(kSmall, {{"matrix.task.gsm8k", "5"}}),
            "--set matrix.task.gsm8k: found a list before \"gsm8k\"; expected a map");
  EXPECT_EQ(error_of(kSmall, {{"run..name", "x"}}),
            "--set \"run..name\": expected a dotted path such as matrix.task[0].gsm8k.limit");
  EXPECT_EQ(error_of(kSmall, {{"", "x"}}),
            "--set \"\": expected a dotted path such as matrix.task[0].gsm8k.limit");
  EXPECT_EQ(error_of(kSmall, {{"run[x]", "x"}}),
            "--set \"run[x]\": \"[x]\" is no index; expected a number in brackets, from [0]");
  EXPECT_EQ(error_of(kSmall, {{"run[0]x", "x"}}),
            "--set \"run[0]x\": \"x\" is no index; expected a number in brackets, from [0]");
  EXPECT_EQ(error_of(kSmall, {{"a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q", "x"}}),
            "--set \"a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q\": the path has more than 16 steps");
  EXPECT_THAT(error_of(kSmall, {{"run.name", "\"x"}}),
              HasSubstr("--set run.name: not valid YAML: "));
  EXPECT_THAT(error_of(kSmall, {{"run.name", "&a x"}}), HasSubstr("anchors"));
}

std::vector<std::string> cells_of(const RunConfig& config) {
  std::vector<std::string> out;
  for (const CellIndex& cell : expand(config)) {
    out.push_back(config.tasks[cell.task].name + "/" + config.targets[cell.target].name + "/" +
                  config.drafters[cell.drafter].name + "/" + config.verifiers[cell.verifier].name);
  }
  return out;
}

TEST(Expand, CrossesTheAxesMinusSkipWithVerifierInnermost) {
  EXPECT_THAT(
      cells_of(
          parse(replaced(kExample, ", {eagle3: {K: 5, path: models/smollm2-135m-eagle3}}", ""))),
      ElementsAre("gsm8k/models/smollm2-135m/none/strict", "gsm8k/models/smollm2-135m/ngram/strict",
                  "gsm8k/models/smollm2-135m/ngram/asd", "math500/models/smollm2-135m/none/strict",
                  "math500/models/smollm2-135m/ngram/strict",
                  "math500/models/smollm2-135m/ngram/asd"));
}

TEST(Expand, ASkipEntryNeedsAllItsNamesToMatch) {
  const std::string text = replaced(kExample, "skip: [{drafter: none, verifier: asd}]",
                                    "skip: [{task: math500}, {drafter: eagle3}, "
                                    "{target: models/smollm2-135m, drafter: none}]");
  EXPECT_THAT(cells_of(parse(text)), ElementsAre("gsm8k/models/smollm2-135m/ngram/strict",
                                                 "gsm8k/models/smollm2-135m/ngram/asd"));
}

TEST(Expand, RefusesAnEmptyMatrix) {
  const RunConfig config = parse(std::string(kSmall) + "skip: [{drafter: ngram}]\n");
  try {
    expand(config);
    FAIL() << "no error";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(), "configs/study.yaml: matrix: no cell is left after skip");
  }
}

TEST(Expand, RefusesMoreCellsThanCanBeMeant) {
  std::string text = "run: {name: big}\nmatrix:\n";
  const auto axis = [&](const std::string& key, const std::string& name) {
    text += "  " + key + ":\n";
    for (int i = 0; i < 400; ++i) text += "    - " + name + ": {x: " + std::to_string(i) + "}\n";
  };
  axis("task", "gsm8k");
  axis("target", "toy");
  axis("drafter", "ngram");
  axis("verifier", "asd");
  try {
    expand(parse(text));
    FAIL() << "no error";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(), "configs/study.yaml: matrix: more than 100000 cells");
  }
}

TEST(ReadConfig, ReadsFilesAndNamesThoseThatItCannot) {
  const TemporaryFolder owned;
  const std::filesystem::path& folder = owned.path();
  const auto message = [&](const std::filesystem::path& file) -> std::string {
    try {
      read_config(file, known());
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "no error";
  };
  std::ofstream(folder / "good.yaml") << kSmall;
  EXPECT_EQ(read_config(folder / "good.yaml", known()).text, kSmall);
  EXPECT_EQ(
      message(folder / "absent.yaml"),
      (folder / "absent.yaml").string() + ": there is no such file; expected a YAML configuration");
  EXPECT_EQ(message(folder),
            folder.string() + ": is no regular file; expected a YAML configuration");
  EXPECT_EQ(message("/dev/zero"), "/dev/zero: is no regular file; expected a YAML configuration");
  std::ofstream(folder / "large.yaml") << std::string((std::size_t{1} << 20) + 1, '#');
  EXPECT_EQ(message(folder / "large.yaml"),
            (folder / "large.yaml").string() + ": more than 1048576 bytes; expected at most that");
  std::filesystem::remove_all(folder);
}

TEST(Configs, OfTheRepositoryAreRead) {
  KnownNames names = known();
  names.tasks = {"alpaca", "gsm8k", "humaneval", "math500", "mbpp", "mmlu", "mt_bench"};
  names.drafters = {"dflash", "dspark", "eagle3", "medusa", "ngram", "none"};
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(ASDBENCH_SOURCE_DIR "/configs")) {
    if (entry.path().extension() != ".yaml") continue;
    EXPECT_NO_THROW(expand(read_config(entry.path(), names))) << entry.path();
    ++count;
  }
  EXPECT_GE(count, 4);
}

TEST(TrainConfigTest, ReadsEverySection) {
  const TrainConfig config = parse_train_config(
      "train: {name: x, steps: 20}\n"
      "target: {path: models/x, device: cpu}\n"
      "data: [{gsm8k: {split: train}}, prompts, {prompts: {file: a.jsonl}}]\n"
      "replies: {max_tokens: 16}\n"
      "drafter: {eagle3: {unroll: 3}}\n",
      "t.yaml", known(), {{.key = "train.steps", .value = "30"}});
  EXPECT_EQ(config.train.integer("steps", 1, 1, 100), 30);
  EXPECT_EQ(config.target.name, "models/x");
  ASSERT_EQ(config.data.size(), 3U);
  EXPECT_EQ(config.data[0].params.text("split"), "train");
  EXPECT_EQ(config.data[1].name, kPromptFile);
  EXPECT_EQ(config.data[2].params.text("file"), "a.jsonl");
  EXPECT_EQ(config.drafter.name, "eagle3");
}

TEST(TrainConfigTest, SaysWhatIsWrongAndWhere) {
  const std::string good =
      "train: {name: x}\n"
      "target: toy\n"
      "data: [gsm8k]\n"
      "replies: {}\n"
      "drafter: eagle3\n";
  const auto error = [&](const std::string& from, const std::string& to) -> std::string {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    try {
      parse_train_config(text, "t.yaml", known());
    } catch (const ConfigError& found) {
      return found.what();
    }
    return "no error";
  };
  EXPECT_EQ(error("name", "name"), "no error");
  EXPECT_THAT(error("drafter: eagle3", "drafter: eagle4"),
              HasSubstr("t.yaml:5: drafter: unknown drafter \"eagle4\""));
  EXPECT_THAT(error("[gsm8k]", "[]"), HasSubstr("t.yaml:3: data: the list is empty"));
  EXPECT_THAT(error("[gsm8k]", "[gsm9k]"), HasSubstr("t.yaml:3: data[0]: unknown data \"gsm9k\""));
  EXPECT_THAT(error("replies: {}\n", ""), HasSubstr("the key \"replies\" is missing"));
  EXPECT_THAT(error("train:", "trian:"), HasSubstr("t.yaml:1: unknown key \"trian\""));
  EXPECT_THAT(error("{name: x}", "{name: [x]}"), HasSubstr("t.yaml:1: train.name: found a list"));
}

}  // namespace
}  // namespace asdbench
