// The matrix of accuracy versus speedup as tables, JSON and CSV.
#pragma once

#include <string>
#include <vector>

#include "eval/report/table.h"
#include "results/store.h"

namespace asdbench {

/// One table for each task, target, drafter and device: the plain row first, then the drafter's
/// rules. `capped` says which accuracy is printed: "wrong" or "as_scored"; the other stands in the
/// last column.
std::vector<Table> matrix_tables(const std::vector<MatrixRow>& rows);

/// All rows with every number, for machines; undefined is null.
std::string matrix_json(const std::vector<MatrixRow>& rows);
/// The same as one flat CSV table, undefined is an empty cell.
std::string matrix_csv(const std::vector<MatrixRow>& rows);

}  // namespace asdbench
