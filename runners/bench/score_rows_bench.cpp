// score_rows over buffers that no cache holds, beside the plain read of the same buffer.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

#include "runners/kernels/cpu_kernels.h"
#include "runners/kernels/score_rows.h"

namespace {

using asdbench::TokenId;
using asdbench::kernels::active_isa;
using asdbench::kernels::cpu_kernels;

// Well past the last-level caches of servers, which the smallest size asked for (256 MiB) is not.
constexpr std::int64_t kBytes = std::int64_t{768} << 20;
constexpr std::int64_t kAlignment = 64;

struct Free {
  void operator()(float* values) const { std::free(values); }
};

/// kBytes of logits without ties to speak of; made once, read by every benchmark.
const float* logits() {
  static const std::unique_ptr<float, Free> kBuffer = [] {
    auto* values = static_cast<float*>(std::aligned_alloc(kAlignment, kBytes));
    if (values == nullptr) throw std::bad_alloc();
    std::uint32_t state = 7;
    for (std::int64_t i = 0; i < kBytes / 4; ++i) {
      state = state * 1'664'525u + 1'013'904'223u;
      values[i] = static_cast<float>(state >> 8) * 0x1p-20f;
    }
    return std::unique_ptr<float, Free>(values);
  }();
  return kBuffer.get();
}

void plain_read(benchmark::State& state) {
  const auto* words = reinterpret_cast<const std::uint64_t*>(logits());
  for (auto _ : state) {
    benchmark::DoNotOptimize(cpu_kernels(active_isa()).read(words, kBytes / 8));
  }
  state.SetBytesProcessed(state.iterations() * kBytes);
  state.SetLabel(std::string(name_of(active_isa())));
}

void score_rows(benchmark::State& state) {
  const std::int64_t vocab = state.range(0);
  const std::int64_t rows = kBytes / 4 / vocab;
  const auto count = static_cast<std::size_t>(rows);
  const std::vector<TokenId> draft(count, 5);
  std::vector<TokenId> choice(count);
  std::vector<float> choice_logit(count);
  std::vector<float> runner_up(count);
  std::vector<float> draft_logit(count);
  std::vector<std::uint8_t> bad(count);
  const float* values = logits();
  for (auto _ : state) {
    asdbench::kernels::score_rows(
        values, draft.data(), rows, vocab, asdbench::kernels::MaskedVocab::kNo,
        {choice.data(), choice_logit.data(), runner_up.data(), draft_logit.data(), bad.data()});
    benchmark::DoNotOptimize(choice.data());
  }
  state.SetBytesProcessed(state.iterations() * rows * vocab * 4);
  state.SetLabel(std::string(name_of(active_isa())));
}

/// A block of a verification pass, whose rows the head has just written: in cache.
void score_block(benchmark::State& state) {
  constexpr std::int64_t kRows = 9;
  const std::int64_t vocab = state.range(0);
  const std::vector<TokenId> draft(kRows, 5);
  TokenId choice[kRows];
  float choice_logit[kRows];
  float runner_up[kRows];
  float draft_logit[kRows];
  std::uint8_t bad[kRows];
  for (auto _ : state) {
    asdbench::kernels::score_rows(logits(), draft.data(), kRows, vocab,
                                  asdbench::kernels::MaskedVocab::kNo,
                                  {choice, choice_logit, runner_up, draft_logit, bad});
    benchmark::DoNotOptimize(choice);
  }
  state.SetBytesProcessed(state.iterations() * kRows * vocab * 4);
}

BENCHMARK(plain_read)->Unit(benchmark::kMillisecond);
BENCHMARK(score_rows)->Arg(49'152)->Arg(151'936)->Unit(benchmark::kMillisecond);
BENCHMARK(score_block)->Arg(49'152)->Arg(151'936)->Unit(benchmark::kMicrosecond);

}  // namespace
