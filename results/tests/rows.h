// Rows that the tests of this folder store.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "eval/core/temporary_folder.h"
#include "results/store.h"

namespace asdbench {

/// A folder that an unprivileged child may read too.
class Folder : public TemporaryFolder {
 public:
  Folder() { std::filesystem::permissions(path(), std::filesystem::perms(0755)); }
};

inline RunRow run_row() {
  RunRow run;
  run.name = "test";
  run.config_file = "configs/test.yaml";
  run.config_text = "run: {name: test}\n";
  run.config_sha256 = "c0ffee";
  run.command = "asdbench run configs/test.yaml";
  run.version = "0.1.0";
  run.commit = "abc";
  run.host = "host";
  run.device = "cpu";
  run.engine = "toy";
  run.seed = 7;
  return run;
}

/// A cell of drafter ngram (or none) and `verifier`.
inline CellRow cell_row(const std::string& verifier, const std::string& drafter = "ngram") {
  CellRow cell;
  cell.identity = "{\"drafter\":\"" + drafter + "\",\"verifier\":\"" + verifier + "\"}";
  cell.key = drafter + "/" + verifier;
  cell.task = "gsm8k";
  cell.split = "test";
  cell.grader = "default";
  cell.data_sha256 = "d0";
  cell.target = "toy";
  cell.target_sha256 = "70";
  cell.target_options = "vocab=16";
  cell.drafter = drafter;
  cell.drafter_options = drafter == "none" ? "" : "K=4";
  cell.drafts = drafter == "none" ? 0 : 4;
  cell.verifier = verifier;
  cell.verifier_keeps = verifier == "strict" ? "greedy" : "nothing";
  if (verifier == "asd") {
    cell.verifier_options = "B=8 M=2 g=0.25";
    cell.regret_budget = 8;
    cell.gate = 0.25;
    cell.max_exceptions = 2;
  }
  cell.max_tokens = 64;
  cell.weight_dtype = cell.compute_dtype = cell.logit_dtype = "float32";
  cell.device = "cpu";
  cell.engine = "toy";
  cell.activations = "float32";
  cell.baseline = verifier == "strict" && drafter != "none";
  return cell;
}

inline ScoreRow score_row(Verdict verdict) {
  ScoreRow row;
  row.scorer = "default";
  row.score.verdict = verdict;
  if (verdict != Verdict::kUnscored) row.score.value = verdict == Verdict::kCorrect ? 1.0 : 0.0;
  if (verdict == Verdict::kCorrect || verdict == Verdict::kIncorrect) {
    row.score.answer = "18";
    row.score.rule = "hash";
  }
  return row;
}

/// A finished output of 5 tokens in 2 passes, with one exception.
inline OutputRow output_row(std::int64_t cell, std::int64_t run, const std::string& sample,
                            Verdict verdict = Verdict::kCorrect,
                            FinishReason finish = FinishReason::kEos) {
  OutputRow output;
  output.cell_id = cell;
  output.run_id = run;
  output.sample_id = sample;
  output.prompt_sha256 = "aa";
  output.identity_sha256 = "bb";
  output.completion.tokens = {3, 1, 4, 1, 5};
  output.completion.text = "#### 18";
  output.completion.finish = finish;
  output.completion.prompt_tokens = 11;
  output.completion.spent = 0.125;
  output.completion.passes = {
      {.drafted = 4, .accepted = 2, .kept = 2, .committed = 3, .strict_length = 1, .blocked_by = 5},
      {.drafted = 4,
       .accepted = 0,
       .kept = 0,
       .committed = 1,
       .strict_length = 0,
       .blocked_by = 1}};
  output.completion.exceptions = {{.pass = 0,
                                   .output_position = 2,
                                   .block_position = 1,
                                   .drafted = 4,
                                   .draft = 4,
                                   .choice = 9,
                                   .regret = 0.125,
                                   .weight = 0.75,
                                   .spent_after = 0.125}};
  output.completion.near_ties = {{.output_position = 1, .gap = 0.0005}};
  output.completion.prefill_ns = 1000;
  output.completion.decode_ns = 2000;
  output.scores = {score_row(verdict)};
  return output;
}

inline OutputRow failed_row(std::int64_t cell, std::int64_t run, const std::string& sample) {
  OutputRow output = output_row(cell, run, sample);
  output.completion.finish.reset();
  output.completion.error = "logit row 3 holds NaN";
  output.scores.clear();
  return output;
}

/// Slots of one group: `cells` in the order of time, with their decode times in seconds for
/// `tokens` tokens each.
inline std::vector<SpeedSlotRow> group_rows(std::int64_t run, const std::string& set_key,
                                            std::int64_t group,
                                            const std::vector<std::int64_t>& cells,
                                            const std::vector<double>& seconds,
                                            std::int64_t tokens = 1000) {
  std::vector<SpeedSlotRow> rows;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    SpeedSlotRow row;
    row.cell_id = cells[i];
    row.run_id = run;
    row.set_key = set_key;
    row.group = group;
    row.slot = static_cast<std::int64_t>(i);
    row.prompts = 2;
    row.tokens = tokens;
    row.passes = 500;
    row.drafted = 2000;
    row.accepted = 500;
    row.post_end_tokens = 100;
    row.decode_ns = static_cast<std::int64_t>(seconds[i] * 1e9 + 0.5);
    row.prefill_ns = 5;
    row.rule_ns = 1'000'000;
    row.tokens_sha256 = "ee";
    rows.push_back(row);
  }
  return rows;
}

using Rows = std::vector<std::vector<std::optional<std::string>>>;

inline Rows rows_of(const ResultStore& store, const std::string& sql) {
  Rows rows;
  store.query(sql, [&](const auto&, const auto& row) { rows.push_back(row); });
  return rows;
}

/// The single value that `sql` yields, as text.
inline std::string value_of(const ResultStore& store, const std::string& sql) {
  const Rows rows = rows_of(store, sql);
  EXPECT_EQ(rows.size(), 1u) << sql;
  return rows.at(0).at(0).value_or("NULL");
}

}  // namespace asdbench
