// The dump says what was generated and nothing about when or in which order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <sstream>

#include "eval/core/error.h"
#include "eval/core/json.h"
#include "results/store.h"
#include "results/tests/rows.h"

namespace asdbench {
namespace {

std::string dump_of(const ResultStore& store) {
  std::ostringstream out;
  store.dump_outputs(out);
  return out.str();
}

TEST(Dump, OneOutputIsOneLineWithItsKeysInOrder) {
  const Folder folder;
  ResultStore store(folder / "a.db", OpenMode::kReadWrite);
  const std::int64_t run = store.begin_run(run_row());
  store.save(output_row(store.cell(cell_row("asd")), run, "test/1"));
  EXPECT_EQ(
      dump_of(store),
      R"({"cell":{"task":"gsm8k","split":"test","task_version":1,"task_options":"","data_sha256":"d0","target":"toy",)"
      R"("target_sha256":"70","target_options":"vocab=16","drafter":"ngram","drafter_options":"K=4",)"
      R"("drafts":4,"verifier":"asd","verifier_options":"B=8 M=2 g=0.25","regret_budget":8.0,)"
      R"("gate":0.25,"max_exceptions":2.0,"max_tokens":64,"batch":1,"weight_dtype":"float32",)"
      R"("compute_dtype":"float32","logit_dtype":"float32","device":"cpu","engine":"toy",)"
      R"("activations":"float32"},"sample":"test/1","repeat":0,"turn":1,"cluster":"","category":"","status":"done",)"
      R"("error":null,"prompt_sha256":"aa","identity_sha256":"bb","tokens":[3,1,4,1,5],)"
      R"("text":"#### 18","finish":"eos","counts":{"prompt_tokens":11,"output_tokens":5,"passes":2,)"
      R"("exceptions":1},"ledger":0.125,"passes":{"count":2,"drafted":8,"accepted":2,"kept":2,)"
      R"("committed":4,"strict_length":1,"blocked_by":{"gate":1,"gate,budget":1}},)"
      R"("exceptions":[{"pass":0,"output_position":2,"block_position":1,"drafted":4,"draft":4,)"
      R"("choice":9,"regret":0.125,"weight":0.75,"spent_after":0.125}],)"
      R"("scores":[{"scorer":"default","scorer_version":1,"verdict":"correct","value":1.0,)"
      R"("answer":"18","rule":"hash","outcome":null,"detail":null}]})"
      "\n");
}

TEST(Dump, DoesNotDependOnOrderIdsOrTimes) {
  const Folder folder;
  ResultStore forward(folder / "a.db", OpenMode::kReadWrite);
  ResultStore backward(folder / "b.db", OpenMode::kReadWrite);
  backward.begin_run(run_row());
  const std::vector<std::string> rules = {"strict", "asd", "top_k"};
  const auto fill = [](ResultStore& store, std::vector<std::string> verifiers, bool reverse) {
    const std::int64_t run = store.begin_run(run_row());
    if (reverse) std::reverse(verifiers.begin(), verifiers.end());
    for (const std::string& verifier : verifiers) {
      const std::int64_t cell = store.cell(cell_row(verifier));
      for (int i = 0; i < 12; ++i) {
        OutputRow output = output_row(cell, run, "test/" + std::to_string(reverse ? 11 - i : i));
        output.completion.decode_ns = 1 + i + (reverse ? 1000 : 0);
        if (output.sample_id == "test/5") output = failed_row(cell, run, "test/5");
        store.save(output);
      }
    }
    store.end_run(run, "done");
  };
  fill(forward, rules, false);
  fill(backward, rules, true);
  const std::string dump = dump_of(forward);
  EXPECT_EQ(std::count(dump.begin(), dump.end(), '\n'), 36);
  EXPECT_EQ(dump, dump_of(backward));
  for (std::istringstream lines(dump); lines.peek() != EOF;) {
    std::string line;
    std::getline(lines, line);
    EXPECT_NO_THROW(parse_json(line));
  }
}

TEST(Dump, DiffersWhenATokenDoes) {
  const Folder folder;
  std::vector<std::string> dumps;
  for (const TokenId last : {5, 6}) {
    ResultStore store(folder / std::to_string(last), OpenMode::kReadWrite);
    const std::int64_t run = store.begin_run(run_row());
    OutputRow output = output_row(store.cell(cell_row("asd")), run, "test/1");
    output.completion.tokens.back() = last;
    store.save(output);
    dumps.push_back(dump_of(store));
  }
  EXPECT_NE(dumps[0], dumps[1]);
}

TEST(Dump, WritesInfinityLargeIdsAndBrokenText) {
  const Folder folder;
  ResultStore store(folder / "a.db", OpenMode::kReadWrite);
  const std::int64_t run = store.begin_run(run_row());
  CellRow cell = cell_row("asd");
  cell.regret_budget = std::numeric_limits<double>::infinity();
  OutputRow output = output_row(store.cell(cell), run, "test/1");
  output.completion.tokens = {0, std::numeric_limits<TokenId>::max(), 151'935};
  output.completion.text = std::string("a\0\"\n\xF0\x9F", 6);
  store.save(output);
  const Json line = parse_json(dump_of(store));
  EXPECT_EQ(line["cell"]["regret_budget"], "inf");
  EXPECT_EQ(line["tokens"], Json::array({0, 2147483647, 151935}));
  EXPECT_EQ(line["text"], std::string("a\0\"\n\xEF\xBF\xBD", 7));
}

TEST(Dump, AnEmptyDatabaseHasNoLines) {
  const Folder folder;
  const ResultStore store(folder / "a.db", OpenMode::kReadWrite);
  EXPECT_EQ(dump_of(store), "");
}

TEST(Dump, ABrokenStreamIsAnError) {
  const Folder folder;
  const ResultStore store(folder / "a.db", OpenMode::kReadWrite);
  std::ostringstream out;
  out.setstate(std::ios::badbit);
  EXPECT_THROW(store.dump_outputs(out), StoreError);
}

}  // namespace
}  // namespace asdbench
