// Cost of one decision of the rule, from the scalars to the decision.
#include <benchmark/benchmark.h>

#include "eval/core/rng.h"
#include "runners/cut.h"
#include "runners/verifiers/asd.h"
#include "runners/verifiers/common/score_block.h"

namespace asdbench {
namespace {

// K drafts of which about one in five is a near miss, so that the scan goes far and takes
// exceptions.
struct Scored {
  explicit Scored(std::size_t drafts) {
    constexpr std::size_t kVocab = 64;
    SplitMix64 random(7);
    for (std::size_t row = 0; row <= drafts; ++row) {
      const std::size_t best = random.index(kVocab), second = (best + 1) % kVocab;
      std::vector<float> row_logits(kVocab, -1);
      row_logits[best] = 2;
      row_logits[second] = 2 - 1.0F / 64;
      logits.insert(logits.end(), row_logits.begin(), row_logits.end());
      if (row < drafts) {
        draft.push_back(static_cast<TokenId>(random.uniform() < 0.8 ? best : second));
      }
    }
    scores.emplace(LogitsView{logits.data(), static_cast<std::int64_t>(drafts) + 1, kVocab}, draft,
                   Masked::kNo);
  }
  Block block(const StopRule& stop) const {
    return {.draft = draft,
            .scores = scores->view(),
            .target = {nullptr, static_cast<std::int64_t>(draft.size()) + 1, 64},
            .draft_logits = std::nullopt,
            .stop = stop};
  }

  std::vector<float> logits;
  std::vector<TokenId> draft;
  std::optional<BlockScores> scores;
};

void decide(benchmark::State& state) {
  const Scored scored(static_cast<std::size_t>(state.range(0)));
  const std::vector<TokenId> ends{63};
  const StopRule stop{.end_ids = ends};
  const Block block = scored.block(stop);
  const AsdControls controls{.regret_budget = 8, .gate = 0.25, .max_exceptions = 4};
  for (auto _ : state) benchmark::DoNotOptimize(decide_asd(controls, block, 0.5));
}
BENCHMARK(decide)->Name("asd.decide")->ArgName("K")->DenseRange(1, 16);

void decide_and_cut(benchmark::State& state) {
  const Scored scored(static_cast<std::size_t>(state.range(0)));
  const std::vector<TokenId> ends{63};
  const StopRule stop{.end_ids = ends, .remaining = 100};
  const Block block = scored.block(stop);
  const AsdControls controls{.regret_budget = 8, .gate = 0.25, .max_exceptions = 4};
  for (auto _ : state) benchmark::DoNotOptimize(cut(block, decide_asd(controls, block, 0.5)));
}
BENCHMARK(decide_and_cut)->Name("asd.decide+cut")->ArgName("K")->Arg(8);

}  // namespace
}  // namespace asdbench
