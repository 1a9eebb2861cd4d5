// Replies to mathematics problems graded a second on one core: the mix of the published cases,
// whole replies and bare answers in a box behind a worked solution of the usual length.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <string>
#include <vector>

#include "eval/core/error.h"
#include "tasks/common/jsonl.h"
#include "tasks/common/math_graders.h"

namespace asdbench {
namespace {

struct Pair {
  std::string reply, gold;
};

std::vector<Pair> fixture_mix() {
  std::string steps;
  for (int i = 1; i <= 12; ++i) {
    steps += fmt::format(
        "**Step {}:** by the identity above \\[ x_{{{}}} = \\frac{{{}}}{{{}}} \\] and so $x < "
        "{}$.\n",
        i, i, 3 * i + 1, 2 * i + 5, i);
  }
  std::vector<Pair> mix;
  // Of the source tree, where benchmarks are run.
  for (const char* file : {"scoring_math_equiv.jsonl", "scoring_math_grade.jsonl"}) {
    read_jsonl(std::string("tasks/tests/data/") + file, [&](const JsonlRow& row) {
      const std::string& text = row.text("prediction");
      const bool bare = row.text("kind") == "equiv";
      mix.push_back(
          {bare ? steps + "Hence the answer is $\\boxed{" + text + "}$." : text, row.text("gold")});
    });
  }
  return mix;
}

void grade_math(benchmark::State& state) {
  const MathGrader& grader = math_graders().at(static_cast<std::size_t>(state.range(0)));
  std::vector<Pair> mix;
  try {
    mix = fixture_mix();
  } catch (const DataError& error) {
    state.SkipWithError(error.what());
    return;
  }
  std::int64_t bytes = 0;
  for (auto _ : state) {
    for (const Pair& pair : mix) {
      bytes += static_cast<std::int64_t>(pair.reply.size());
      const auto answer = grader.extract(pair.reply);
      if (answer) benchmark::DoNotOptimize(grader.compare(answer->text, pair.gold));
    }
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(mix.size()));  // replies
  state.SetBytesProcessed(bytes);
  state.SetLabel(grader.name);
}
BENCHMARK(grade_math)
    ->DenseRange(0, static_cast<int>(math_graders().size()) - 1)
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace asdbench
