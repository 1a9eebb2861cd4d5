// The matrix of accuracy versus speedup as tables, JSON and CSV.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "eval/report/table.h"
#include "results/store.h"

namespace asdbench {

/// How a capped reply counts: as incorrect, or by its verdict. Unless it is said, as incorrect for
/// our default grader and by its verdict for one that reproduces another's figures.
enum class Capped : std::uint8_t { kByGrader, kWrong, kAsScored };

/// Whether capped replies count as incorrect where `grader` has scored them.
bool capped_is_wrong(const std::string& grader, Capped policy);
/// The same for the cell's own grader.
bool capped_is_wrong(const MatrixRow& row, Capped policy);

/// One table for each task, grader, target, drafter and device: the plain row first, then the
/// drafter's rules. `capped` says how a reply that hit its limit counts in the accuracy column; the
/// last column has the other figure.
std::vector<Table> matrix_tables(const std::vector<MatrixRow>& rows,
                                 Capped capped = Capped::kByGrader);

/// Whether two rows differ in nothing but drafter and rule.
bool same_setting(const MatrixRow& a, const MatrixRow& b);
/// "asd B=8 g=0.25 M=2", "plain (no drafter)".
std::string rule_name(const MatrixRow& row);
/// "ngram K=4"
std::string drafter_name(const MatrixRow& row);
/// "gsm8k", "gsm8k (our samples, not the official set)", "gsm8k shots=5 grader=qwen", ...
std::string task_name(const MatrixRow& row);

/// All rows with every number, for machines; undefined is null.
std::string matrix_json(const std::vector<MatrixRow>& rows);
/// The same as one flat CSV table, undefined is an empty cell.
std::string matrix_csv(const std::vector<MatrixRow>& rows);

}  // namespace asdbench
