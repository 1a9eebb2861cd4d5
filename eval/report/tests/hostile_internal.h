// A small database whose every foreign text tries to break out of its format.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "eval/report/reporter.h"
#include "results/tests/rows.h"

namespace asdbench {

inline const std::string kHostile =
    "<script>alert(1)</script>\"'><img src=x "
    "onerror=alert(1)>|`[a](javascript:b)$\\input{x}%&#_\x1b[31m\xc2\x9b"
    "31m\xe2\x80\xae\xff";

/// Plain, strict and ASD over three samples, with one group of fixed work; `text` is in every place
/// that a file, a model or a person fills.
inline void fill(ResultStore& store, const std::string& text) {
  RunRow run = run_row();
  run.name = "run " + text;
  run.command = "run " + text;
  const std::int64_t id = store.begin_run(run);
  store.save_environment(id, {{"cpu" + text, text}});
  std::vector<std::int64_t> cells;
  const std::vector<std::pair<std::string, std::string>> arms = {
      {"strict", "none"}, {"strict", "ngram"}, {"asd", "ngram"}};
  for (const auto& [verifier, drafter] : arms) {
    CellRow cell = cell_row(verifier, drafter);
    cell.task = "gsm8k" + text;
    cell.target = "toy" + text;
    cells.push_back(store.cell(cell));
  }
  for (std::size_t i = 0; i < cells.size(); ++i) {
    for (const char* sample : {"a", "b", "c"}) {
      OutputRow output =
          output_row(cells[i], id, sample + text,
                     i == 2 && *sample == 'a' ? Verdict::kIncorrect : Verdict::kCorrect);
      output.completion.text = "Same start, then " + std::string(i == 2 ? "that" : "this") + text;
      if (i == 2 && *sample != 'c') output.completion.tokens = {3, 1, 9, 9};
      if (i < 2) {
        output.completion.exceptions.clear();
        output.completion.spent = 0;
      }
      output.scores.front().score.answer = text;
      store.save(output);
    }
  }
  store.save(failed_row(cells[2], id, "d" + text));
  // A gain of 2.5 at equal tokens per pass: above its bound, and with drift.
  for (std::int64_t group = 0; group < 3; ++group) {
    store.save_group(group_rows(id, "set", group, {cells[1], cells[2], cells[2], cells[1]},
                                {2.5, 1.01, 1.0, 2.6 + 0.01 * static_cast<double>(group)}));
  }
  store.end_run(id, "done");
}

inline Section section_of(const Report& report, const std::string& id) {
  for (const Section& section : report.sections) {
    if (section.id == id) return section;
  }
  throw std::runtime_error("no section " + id);
}

inline Table table_of(const Section& section, std::size_t number = 0) {
  for (const Content& block : section.blocks) {
    const auto* table = std::get_if<Table>(&block);
    if (table != nullptr && number-- == 0) return *table;
  }
  throw std::runtime_error("no such table in " + section.id);
}

}  // namespace asdbench
