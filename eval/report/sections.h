// The sections of a report, each from the views it names.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "eval/report/facts.h"
#include "eval/report/matrix.h"
#include "eval/report/report.h"
#include "eval/stats/resampling.h"
#include "results/store.h"

namespace asdbench {

/// The cells of a database by id, with the names that tables and charts print.
class Cells {
 public:
  explicit Cells(const ResultStore& store);

  const std::vector<MatrixRow>& rows() const { return rows_; }
  const MatrixRow& at(std::int64_t id) const { return rows_.at(index_.at(id)); }
  /// Rule and drafter: "asd B=8 g=0.25 M=2 · ngram K=4".
  std::string label(std::int64_t id) const;
  /// Task, target and device: "gsm8k · smollm2-135m · cpu".
  std::string place(std::int64_t id) const;
  /// Rows of one task, target and device together, in the order of their first cell.
  const std::vector<std::vector<const MatrixRow*>>& settings() const { return settings_; }

 private:
  std::vector<MatrixRow> rows_;
  std::map<std::int64_t, std::size_t> index_;
  std::vector<std::vector<const MatrixRow*>> settings_;
};

/// Whether only a judge can tell how good a reply is.
inline bool is_judged(const MatrixRow& row) {
  return row.task == "mt_bench" || row.task == "alpaca";
}

/// At most so many lines in one chart; more cells make more charts.
inline constexpr std::size_t kChartSeries = 6;

/// One pair of figures a request, with clusters, for a bootstrap of their ratio of sums.
struct RatioSample {
  std::vector<Pair> pairs;
  std::vector<std::uint64_t> clusters;
};
/// Percentile intervals of all samples under one budget of draws, and the resamples that it
/// allowed.
struct RatioIntervals {
  std::map<std::int64_t, BootstrapEstimate> by_cell;
  std::uint64_t resamples = 0;
};

/// Positions at which diverged outputs of a cell first differ from those of a reference.
using FirstDifferences = std::map<std::pair<std::int64_t, std::string>, std::vector<double>>;
FirstDifferences first_differences(const ResultStore& store);

struct Evidence {
  const ResultStore& store;
  const Cells& cells;
  Capped capped = Capped::kByGrader;
  RatioIntervals accept_lengths;  // of every cell, by its requests
  // Views that several sections read, each scanning all outputs.
  ViewRows paired;                         // by cell, strict before plain
  std::map<std::int64_t, ViewRow> ledger;  // lossy cells
  FirstDifferences first_differences = {};
};

Section flags_section(const Evidence& evidence);
Section tradeoff_section(const Evidence& evidence);
Section quality_section(const Evidence& evidence);
Section frontier_section(const Evidence& evidence);
Section acceptance_section(const Evidence& evidence);
Section regret_section(const Evidence& evidence);
Section divergence_section(const Evidence& evidence);
Section length_section(const Evidence& evidence);
Section speed_section(const Evidence& evidence);
Section replies_section(const Evidence& evidence);
Section categories_section(const Evidence& evidence);
Section subjects_section(const Evidence& evidence);
Section outcomes_section(const Evidence& evidence);
Section judged_section(const Evidence& evidence);
Section fidelity_section(const Evidence& evidence);
Section examples_section(const Evidence& evidence);
Section environment_section(const Evidence& evidence);

/// Measured speed against what the tokens per pass of the timed work predict, for every cell that
/// was timed beside strict. No row where nothing was.
Table prediction_table(const ResultStore& store, const Cells& cells);

RatioIntervals ratio_intervals(const std::map<std::int64_t, RatioSample>& samples);
/// Accept length of every cell with its bootstrap over requests.
RatioIntervals accept_length_intervals(const ResultStore& store);

/// Charts of one setting: the series of `points` (by cell) in slices of kChartSeries.
void add_charts(Section& section, const Cells& cells, const Chart& frame,
                const std::map<std::int64_t, std::vector<Point>>& points);

}  // namespace asdbench
