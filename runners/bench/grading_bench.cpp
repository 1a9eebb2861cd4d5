// Replies graded a second on one core, GSM8K's and MMLU's graders over replies of the usual length;
// 10,000 stored replies graded again; MMLU's questions loaded.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "eval/core/error.h"
#include "eval/core/temporary_folder.h"
#include "eval/run/grade.h"
#include "results/store.h"
#include "tasks/common/letter_graders.h"
#include "tasks/common/number_graders.h"
#include "tasks/task.h"

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

// Chains of thought of about 1,000 characters that discuss the choices, and the ends of the rules.
std::vector<std::string> letter_replies() {
  std::string steps;
  for (int i = 1; i <= 10; ++i) {
    steps += fmt::format(
        "{}. **Option {}** would mean that a pressure of {} bar holds, which the answer rules "
        "out.\n",
        i, "ABCD"[i % 4], 3 * i);
  }
  std::vector<std::string> all;
  for (const char* end : {"\nAnswer: C", "\nThe correct answer is **(B) twice as much**.",
                          "\\boxed{D}", "\n(A) half as much", "\nAll of them are wrong.",
                          "\nAnswer: B\n\nQuestion: what next?\nAnswer: D"}) {
    all.push_back(steps + end);
  }
  return all;
}

void grade_mmlu(benchmark::State& state) {
  const LetterGrader& grader = letter_graders().at(static_cast<std::size_t>(state.range(0)));
  const std::vector<std::string> all = letter_replies();
  const std::vector<std::string> choices = {"half as much", "twice as much", "the same", "nothing"};
  std::size_t next = 0;
  std::int64_t bytes = 0;
  for (auto _ : state) {
    const std::string& reply = all[next++ % all.size()];
    bytes += static_cast<std::int64_t>(reply.size());
    benchmark::DoNotOptimize(grader.extract(reply, choices));
  }
  state.SetItemsProcessed(state.iterations());  // replies
  state.SetBytesProcessed(bytes);
  state.SetLabel(grader.name);
}
BENCHMARK(grade_mmlu)->DenseRange(0, static_cast<int>(letter_graders().size()) - 1);

const TaskFactory& factory_of(const std::string& name) {
  return *std::find_if(task_factories().begin(), task_factories().end(),
                       [&](const TaskFactory& entry) { return entry.name == name; });
}

// A database of 10,000 finished replies, read, graded and written as `asdbench rescore` does.
void rescore_10000(benchmark::State& state, const char* task_name) {
  constexpr std::int64_t kReplies = 10'000;
  const TemporaryFolder folder;
  ResultStore store(folder / "replies.db", OpenMode::kReadWrite);
  const std::int64_t run = store.begin_run({.name = "bench"});
  CellRow cell;
  cell.key = cell.identity = "bench";
  cell.task = task_name;
  cell.grader = "default";
  const std::int64_t id = store.cell(cell);
  const std::vector<std::string> texts = replies();
  for (std::int64_t i = 0; i < kReplies; ++i) {
    OutputRow row;
    row.cell_id = id;
    row.run_id = run;
    row.sample_id = std::to_string(i);
    row.completion.text = texts[static_cast<std::size_t>(i) % texts.size()];
    row.completion.finish = FinishReason::kEos;
    store.save(row);
  }
  const auto task = factory_of(task_name).make(Params(task_name, {}));
  Sample sample;
  sample.targets = {"1080"};
  std::int64_t version = 0;  // another one each time, which has graded nothing yet
  for (auto _ : state) {
    const GradeResult result = grade_stored(
        store, id, {.task = *task, .name = "default", .version = ++version},
        [&](const std::string&) { return &sample; },
        {.progress = [](std::int64_t, std::int64_t) {}, .interrupted = [] { return false; }});
    if (result.graded != kReplies) state.SkipWithError("not every reply was graded");
  }
  state.SetItemsProcessed(state.iterations() * kReplies);
}
BENCHMARK_CAPTURE(rescore_10000, gsm8k, "gsm8k")->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(rescore_10000, math500, "math500")->Unit(benchmark::kMillisecond);

// The official test split below ASDBENCH_DATA, digests checked, as a run loads it.
void load_mmlu(benchmark::State& state) {
  const char* folder = std::getenv("ASDBENCH_DATA");
  const auto task = factory_of("mmlu").make(Params("mmlu", {}));
  std::size_t questions = 0;
  try {
    for (auto _ : state) {
      questions = task->load({.data = folder == nullptr ? "data" : folder, .samples = ""}).size();
    }
  } catch (const DataError& error) {
    state.SkipWithError(error.what());
  }
  state.counters["questions"] = static_cast<double>(questions);
}
BENCHMARK(load_mmlu)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace asdbench
