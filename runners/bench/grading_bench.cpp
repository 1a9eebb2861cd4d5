// Replies graded a second on one core: GSM8K's graders over replies of the usual length.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <string>
#include <vector>

#include "tasks/common/number_graders.h"

namespace asdbench {
namespace {

// Worked solutions of about 1,000 characters, with the ends that the rules look for and one without
// any.
std::vector<std::string> replies() {
  std::string steps;
  for (int i = 1; i <= 12; ++i) {
    const std::string a = std::to_string(17 * i);
    steps += fmt::format(
        "**Step {}:** each of the {} boxes holds ${}.50, so that makes \\({} \\times 3 = {}\\).\n",
        i, a, a, a, 51 * i);
  }
  std::vector<std::string> all;
  for (const char* end :
       {"\nSo the final answer is \\boxed{1,080}.", "#### 1080",
        "The answer is 9 * 120 = $1,080.00. That is all.", "Altogether 1,080 eggs.",
        "The answer is 1080.\nQuestion: what of 7 eggs?\nAnswer: 7"}) {
    all.push_back(steps + end);
  }
  return all;
}

void grade_gsm8k(benchmark::State& state) {
  const NumberGrader& grader = number_graders().at(static_cast<std::size_t>(state.range(0)));
  const std::vector<std::string> all = replies();
  const std::vector<std::string> targets = {"1080"};
  std::size_t next = 0;
  std::int64_t bytes = 0;
  for (auto _ : state) {
    const std::string& reply = all[next++ % all.size()];
    bytes += static_cast<std::int64_t>(reply.size());
    benchmark::DoNotOptimize(score_number(grader, targets, grader.extract(reply)));
  }
  state.SetItemsProcessed(state.iterations());  // replies
  state.SetBytesProcessed(bytes);
  state.SetLabel(grader.name);
}
BENCHMARK(grade_gsm8k)->DenseRange(0, static_cast<int>(number_graders().size()) - 1);

}  // namespace
}  // namespace asdbench
