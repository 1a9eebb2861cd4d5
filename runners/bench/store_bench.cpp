// Rows a second into the results database, and the time of its matrix view.
#include <benchmark/benchmark.h>

#include <filesystem>
#include <memory>
#include <sstream>
#include <string>

#include "eval/core/temporary_folder.h"
#include "results/store.h"

namespace asdbench {
namespace {

/// A store in a folder of its own, on the disk that holds temporary files.
class Bench {
 public:
  Bench() {
    store_ = std::make_unique<ResultStore>(folder_ / "bench.db", OpenMode::kReadWrite);
    run_ = store_->begin_run({.name = "bench"});
    cell_ = store_->cell({.key = "cell", .grader = "default", .verifier = "asd", .drafts = 4});
  }

  ResultStore& store() { return *store_; }

  /// Stores one finished sample of `passes` passes with two exceptions and a score.
  void save(std::int64_t number, std::int64_t passes) {
    OutputRow output;
    output.cell_id = cell_;
    output.run_id = run_;
    output.sample_id = "test/" + std::to_string(number);
    output.completion.tokens.assign(static_cast<std::size_t>(passes * 3 / 2), 42);
    output.completion.text.assign(static_cast<std::size_t>(passes * 6), 'x');
    output.completion.finish = FinishReason::kEos;
    output.completion.passes.assign(static_cast<std::size_t>(passes),
                                    {.drafted = 4, .committed = 1});
    output.completion.exceptions.resize(2);
    ScoreRow score{.scorer = "default"};
    score.score.verdict = number % 3 == 0 ? Verdict::kCorrect : Verdict::kIncorrect;
    score.score.value = number % 3 == 0 ? 1 : 0;
    output.scores.push_back(std::move(score));
    store_->save(output);
  }

 private:
  const TemporaryFolder folder_;
  std::unique_ptr<ResultStore> store_;
  std::int64_t run_ = 0, cell_ = 0;
};

/// One transaction a sample, synced: argument 0 is the number of passes, each a row.
void save_sample(benchmark::State& state) {
  Bench bench;
  const std::int64_t passes = state.range(0);
  std::int64_t number = 0;
  for (auto _ : state) bench.save(number++, passes);
  constexpr std::int64_t kOtherRows = 4;  // the output, two exceptions, a score
  state.counters["rows/s"] = benchmark::Counter(static_cast<double>(number * (passes + kOtherRows)),
                                                benchmark::Counter::kIsRate);
  state.counters["samples/s"] =
      benchmark::Counter(static_cast<double>(number), benchmark::Counter::kIsRate);
}
BENCHMARK(save_sample)->Arg(1)->Arg(64)->Arg(300)->Unit(benchmark::kMillisecond)->UseRealTime();

/// The whole matrix and the whole dump over argument 0 samples of 100 passes.
void read_matrix(benchmark::State& state) {
  Bench bench;
  for (std::int64_t i = 0; i < state.range(0); ++i) bench.save(i, 100);
  for (auto _ : state) benchmark::DoNotOptimize(bench.store().matrix());
}
BENCHMARK(read_matrix)->Arg(1319)->Unit(benchmark::kMillisecond);

void dump_outputs(benchmark::State& state) {
  Bench bench;
  for (std::int64_t i = 0; i < state.range(0); ++i) bench.save(i, 100);
  std::int64_t bytes = 0;
  for (auto _ : state) {
    std::ostringstream out;
    bench.store().dump_outputs(out);
    bytes += static_cast<std::int64_t>(out.str().size());
  }
  state.SetBytesProcessed(bytes);
}
BENCHMARK(dump_outputs)->Arg(1319)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace asdbench
