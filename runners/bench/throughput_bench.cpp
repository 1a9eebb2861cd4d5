// What measuring costs: the sampler's look at the machine, the clocks and counters of a pass, and
// the null engine, a planted target that costs nothing, timed as any other.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <chrono>

#include "eval/core/error.h"
#include "runners/decoder.h"
#include "runners/models/planted_target.h"
#include "runners/throughput/fixed_work.h"

namespace asdbench {
namespace {

Params options(const std::string& owner, const std::map<std::string, std::string>& values) {
  Params params(owner, {});
  for (const auto& [key, value] : values) params.set(key, value, {});
  return params;
}

/// Processor time of this thread, seconds.
double thread_seconds() {
  rusage usage{};
  ASDBENCH_CHECK(getrusage(RUSAGE_THREAD, &usage) == 0, "the thread's times can be read");
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Begin and end of a slot take two looks at everything that one second of sampling takes one of.
void environment_sample(benchmark::State& state) {
  EnvironmentSampler sampler;
  const double begin = thread_seconds();
  for (auto _ : state) {
    sampler.begin_slot();
    benchmark::DoNotOptimize(sampler.end_slot());
  }
  const double looks = 2 * static_cast<double>(state.iterations());
  // At one look a second, of one core's time.
  state.counters["percent_of_a_core"] = 100 * (thread_seconds() - begin) / looks;
}
BENCHMARK(environment_sample)->Unit(benchmark::kMicrosecond);

// The clock reads and additions of Decoder::pass for one request, and nothing else.
void clocks_and_counters(benchmark::State& state) {
  using Clock = std::chrono::steady_clock;
  PassTimes times;
  const auto ns = [](Clock::duration time) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
  };
  for (auto _ : state) {
    const auto begin = Clock::now(), drafted = Clock::now();
    auto now = Clock::now();
    times.draft_ns += ns(drafted - begin);
    times.verify_ns += ns(now - drafted);
    const auto scored = now, decided = Clock::now();
    now = Clock::now();
    times.rule_ns += ns(decided - scored);
    times.cache_ns += ns(now - decided);
    ++times.passes;
    benchmark::DoNotOptimize(times);
  }
}
BENCHMARK(clocks_and_counters);

// The harness itself: time a pass when neither target nor drafter costs anything worth naming.
void null_engine(benchmark::State& state) {
  const auto target = make_planted_target(options("planted", {{"step_us", "0"}}));
  std::unique_ptr<Drafter> drafter;
  for (const DrafterFactory& factory : drafter_factories()) {
    if (factory.name == "planted") {
      drafter = factory.make(options("planted", {{"K", "4"}, {"acceptance", "0.6"}}), {*target});
    }
  }
  std::unique_ptr<Verifier> strict;
  for (const VerifierFactory& factory : verifier_factories()) {
    if (factory.name == "strict") strict = factory.make(Params("strict", {}));
  }
  const Arm arm{.name = "strict",
                .drafter = drafter.get(),
                .verifier = strict.get(),
                .drafts = 4,
                .batch = static_cast<std::int32_t>(state.range(0))};
  std::vector<WorkItem> work;
  for (TokenId first = 1; first <= 16; ++first) {
    work.push_back({.sample_id = std::to_string(first), .prompt = {first, 2, 3}, .tokens = 256});
  }
  std::int64_t passes = 0, decode_ns = 0, tokens = 0;
  for (auto _ : state) {
    const SlotResult slot = decode_once(*target, arm, work, [] { return false; }).value();
    passes += slot.passes;
    decode_ns += slot.decode_ns;
    tokens += slot.tokens;
  }
  state.counters["ns_per_pass"] = static_cast<double>(decode_ns) / static_cast<double>(passes);
  state.counters["tokens_per_s"] =
      1e9 * static_cast<double>(tokens) / static_cast<double>(decode_ns);
}
BENCHMARK(null_engine)->ArgName("batch")->Arg(1)->Arg(8)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace asdbench
