// What an audit computes without a model: near-duplicates of two splits, resamples, and a whole
// `verify` over an audit of the planted target.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "eval/audit/splits.h"
#include "eval/audit/steps.h"
#include "eval/audit/tuning.h"
#include "eval/core/digest.h"
#include "eval/core/rng.h"
#include "eval/stats/resampling.h"

namespace asdbench {
namespace {

namespace fs = std::filesystem;

/// Texts of 40 to 80 words, of a vocabulary in which some words are frequent, as in prompts.
std::vector<std::string> prompts(std::int64_t count, std::uint64_t seed) {
  SplitMix64 random(seed);
  std::vector<std::string> texts;
  for (std::int64_t i = 0; i < count; ++i) {
    std::string text;
    const auto words = 40 + static_cast<int>(random.uniform() * 40);
    for (int w = 0; w < words; ++w) {
      const double u = random.uniform();
      text += "w" + std::to_string(static_cast<int>(u * u * u * 5000)) + " ";
    }
    texts.push_back(std::move(text));
  }
  return texts;
}

/// Two splits of so many prompts each.
void near_duplicates(benchmark::State& state) {
  const auto a = prompts(state.range(0), 1), b = prompts(state.range(0), 2);
  for (auto _ : state) benchmark::DoNotOptimize(compare_splits(a, b).disjoint());
}
BENCHMARK(near_duplicates)->Arg(10'000)->Unit(benchmark::kMillisecond);

/// The worst case for an inverted index: prompts that share a long frame.
void near_duplicates_of_one_template(benchmark::State& state) {
  const auto framed = [&](std::uint64_t seed) {
    std::vector<std::string> texts = prompts(state.range(0), seed);
    for (std::string& text : texts) {
      text = "please read the following problem with care and think before you answer it " + text +
             " now give the answer alone on one line and nothing else at all";
    }
    return texts;
  };
  const auto a = framed(1), b = framed(2);
  for (auto _ : state) benchmark::DoNotOptimize(compare_splits(a, b).disjoint());
}
BENCHMARK(near_duplicates_of_one_template)->Arg(10'000)->Unit(benchmark::kMillisecond);

/// 10,000 resamples of so many pairs.
void bootstrap(benchmark::State& state) {
  SplitMix64 random(3);
  std::vector<Pair> pairs;
  for (std::int64_t i = 0; i < state.range(0); ++i) {
    pairs.push_back({.first = 1 + random.uniform(), .second = 1 + random.uniform()});
  }
  for (auto _ : state) {
    benchmark::DoNotOptimize(
        paired_bootstrap(pairs, PairedStatistic::kRatioOfSums, {.resamples = 10'000}));
  }
}
BENCHMARK(bootstrap)->Arg(1'319)->Arg(10'000)->Unit(benchmark::kMillisecond);

constexpr const char* kConfig = R"(run: {{name: bench, seed: 7}}
matrix:
  task: [{{gsm8k: {{split: synthetic, from: 0, count: 20, max_tokens: 64}}}}]
  target: [{{planted: {{seed: 1}}}}]
  drafter: [{{planted: {{K: 4, acceptance: 0.6}}}}]
  verifier: [strict, {{asd: {{B: 8, g: 0.25, M: 2}}}}]
speed: {{tokens: 16, prompts: 20, groups: 4, warmup: 1}}
deploy:
  audit: [{{gsm8k: {{split: synthetic, from: 100, count: {0}, max_tokens: 64}}}}]
  margins: {{gsm8k: 0.2}}
  minimum_seconds: 0
  select: given
  size: {0}
  ledger: {1}
)";

/// A decided audit of so many prompts in a folder of its own; making it takes minutes for 10,000.
class Audited {
 public:
  explicit Audited(std::int64_t count) {
    std::string pattern = fs::temp_directory_path() / "asdbench_verify_XXXXXX";
    folder_ = mkdtemp(pattern.data());
    const fs::path file = folder_ / "bench.yaml";
    RunConfig config = parse_config(fmt::format(kConfig, count, (folder_ / "splits").string()),
                                    file, known_names_of_build(), {});
    const DeploySettings settings = read_deploy_settings(config);
    ResultStore store(database(), OpenMode::kReadWrite);
    AuditContext context{.config = std::move(config),
                         .settings = settings,
                         .options = {.paths = {}},
                         .store = store,
                         .database = database(),
                         .run = {.name = "bench", .version = "bench", .commit = "bench"},
                         .environment = {{"cpu", "bench"}, {"cores", "1"}},
                         .program_sha256 = sha256_hex("bench"),
                         .callbacks = {}};
    tune(context, "");
    freeze(context);
    decision_ = audit(context).json.dump();
  }
  ~Audited() { fs::remove_all(folder_); }
  Audited(const Audited&) = delete;
  Audited& operator=(const Audited&) = delete;

  fs::path database() const { return folder_ / "bench.db"; }
  const std::string& decision() const { return decision_; }

 private:
  fs::path folder_;
  std::string decision_;
};

/// `asdbench verify` of an audit of so many prompts, 64 tokens each.
void verify_audit(benchmark::State& state) {
  const Audited audited(state.range(0));
  for (auto _ : state) {
    const ResultStore store(audited.database(), OpenMode::kReadOnly);
    const StepResult result = verify(audited.decision(), "decision", store, "");
    if (result.code == ExitCode::kRefused) state.SkipWithError("refused");
  }
}
BENCHMARK(verify_audit)->Arg(1'000)->Arg(10'000)->Unit(benchmark::kMillisecond)->Iterations(3);

}  // namespace
}  // namespace asdbench
