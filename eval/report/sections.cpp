// What sections share: names of cells, intervals by resampling, and charts by setting.
#include "eval/report/sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace asdbench {
namespace {

/// All samples together draw about so often: some tenths of a second.
constexpr double kDraws = 2e7;
constexpr std::uint64_t kFewestResamples = 200;
constexpr std::uint64_t kMostResamples = 10'000;

}  // namespace

Cells::Cells(const ResultStore& store) : rows_(store.matrix()) {
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    index_.emplace(rows_[i].cell_id, i);
    const auto same = std::find_if(settings_.begin(), settings_.end(), [&](const auto& setting) {
      return same_setting(*setting.front(), rows_[i]);
    });
    if (same == settings_.end()) {
      settings_.push_back({&rows_[i]});
    } else {
      same->push_back(&rows_[i]);
    }
  }
}

std::string Cells::label(std::int64_t id) const {
  const MatrixRow& row = at(id);
  if (row.drafter == "none") return rule_name(row);
  return fmt::format("{} · {}", rule_name(row), drafter_name(row));
}

std::string Cells::place(std::int64_t id) const {
  const MatrixRow& row = at(id);
  std::string place = fmt::format("{} · {} · {}", task_name(row), row.target, row.device);
  if (row.batch != 1) place += fmt::format(" · batch {}", row.batch);
  // Two settings may differ in the limit only.
  const bool limits = std::any_of(rows_.begin(), rows_.end(), [&](const MatrixRow& other) {
    return other.task == row.task && other.target == row.target &&
           other.max_tokens != row.max_tokens;
  });
  return limits ? place + fmt::format(" · at most {} tokens", row.max_tokens) : place;
}

RatioIntervals ratio_intervals(const std::map<std::int64_t, RatioSample>& samples) {
  double all = 1;
  for (const auto& [unused, sample] : samples) all += static_cast<double>(sample.pairs.size());
  RatioIntervals out;
  out.resamples =
      std::clamp(static_cast<std::uint64_t>(kDraws / all), kFewestResamples, kMostResamples);
  for (const auto& [cell, sample] : samples) {
    const auto estimate =
        paired_bootstrap(sample.pairs, PairedStatistic::kRatioOfSums,
                         {.seed = 1, .resamples = out.resamples, .clusters = sample.clusters});
    if (estimate) out.by_cell.emplace(cell, *estimate);
  }
  return out;
}

RatioIntervals accept_length_intervals(const ResultStore& store) {
  std::map<std::int64_t, RatioSample> samples;
  std::map<std::string, std::uint64_t> clusters;
  std::uint64_t fresh = std::uint64_t{1} << 32;  // a request without a cluster is one of its own
  store.read(
      // What is drawn must not depend on how SQLite goes through the table.
      "SELECT cell_id, output_tokens - 1, passes, cluster FROM output WHERE status = 'done' "
      "ORDER BY cell_id, sample_id, repeat, turn",
      [&](const std::vector<std::string>&, const std::vector<Value>& row) {
        RatioSample& sample = samples[std::get<std::int64_t>(row[0])];
        sample.pairs.push_back({.first = static_cast<double>(std::get<std::int64_t>(row[1])),
                                .second = static_cast<double>(std::get<std::int64_t>(row[2]))});
        const auto& cluster = std::get<std::string>(row[3]);
        sample.clusters.push_back(
            cluster.empty() ? fresh++ : clusters.emplace(cluster, clusters.size()).first->second);
      });
  return ratio_intervals(samples);
}

void add_charts(Section& section, const Cells& cells, const Chart& frame,
                const std::map<std::int64_t, std::vector<Point>>& points) {
  for (const std::vector<const MatrixRow*>& setting : cells.settings()) {
    std::vector<Series> series;
    for (const MatrixRow* row : setting) {
      const auto found = points.find(row->cell_id);
      if (found == points.end() || found->second.empty()) continue;
      series.push_back({.name = cells.label(row->cell_id), .points = found->second});
    }
    const std::size_t charts = (series.size() + kChartSeries - 1) / kChartSeries;
    for (std::size_t i = 0; i < charts; ++i) {
      Chart chart = frame;
      chart.title = cells.place(setting.front()->cell_id);
      if (charts > 1) chart.title += fmt::format(" ({} of {})", i + 1, charts);
      const auto begin = series.begin() + static_cast<std::ptrdiff_t>(i * kChartSeries);
      const auto end = series.begin() +
                       static_cast<std::ptrdiff_t>(std::min(series.size(), (i + 1) * kChartSeries));
      chart.series.assign(begin, end);
      section.blocks.emplace_back(std::move(chart));
    }
  }
}

}  // namespace asdbench
