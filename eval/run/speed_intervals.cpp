// Pairs of times by prompt, resampled.
#include "eval/run/speed_intervals.h"

#include <fmt/format.h>

#include "eval/stats/resampling.h"

namespace asdbench {
namespace {

/// Seconds of each prompt of a cell, a slot, by position.
using PromptTimes = std::map<std::int64_t, double>;

struct SetTimes {
  std::map<std::int64_t, PromptTimes> by_cell;
  std::map<std::int64_t, std::string> samples;  // by position
};

SetTimes times_of(const ResultStore& store, const std::string& set_key, SpeedWork work) {
  SetTimes times;
  for (const PromptTimeRow& row : store.prompt_times(set_key)) {
    const std::int64_t ns =
        row.decode_ns + (work == SpeedWork::kNatural ? row.prefill_ns : std::int64_t{0});
    times.by_cell[row.cell_id][row.position] =
        1e-9 * static_cast<double>(ns) / static_cast<double>(row.slots);
    times.samples.emplace(row.position, row.sample_id);
  }
  return times;
}

}  // namespace

std::vector<SpeedIntervalRow> speed_intervals(const ResultStore& store, const std::string& set_key,
                                              SpeedWork work,
                                              const std::map<std::string, std::string>& clusters,
                                              std::uint64_t seed) {
  const SetTimes times = times_of(store, set_key, work);
  // A prompt of no cluster is one of its own.
  std::map<std::string, std::uint64_t> numbers;
  std::vector<std::uint64_t> drawn_together;
  for (const auto& [position, sample] : times.samples) {
    const auto found = clusters.find(sample);
    const std::string cluster = found == clusters.end() || found->second.empty()
                                    ? fmt::format("\n{}", position)
                                    : found->second;
    drawn_together.push_back(numbers.emplace(cluster, numbers.size()).first->second);
  }
  const auto groups = static_cast<std::int64_t>(store.groups_done(set_key).size());
  std::vector<SpeedIntervalRow> rows;
  store.read("SELECT cell_id, reference_id FROM cell_reference ORDER BY cell_id, reference",
             [&](const std::vector<std::string>&, const std::vector<Value>& row) {
               const auto cell = std::get<std::int64_t>(row[0]);
               const auto reference = std::get<std::int64_t>(row[1]);
               const auto own = times.by_cell.find(cell), base = times.by_cell.find(reference);
               if (own == times.by_cell.end() || base == times.by_cell.end()) return;
               std::vector<Pair> pairs;
               for (const auto& [position, seconds] : own->second) {
                 const auto other = base->second.find(position);
                 if (other == base->second.end()) return;  // rows of an earlier build
                 pairs.push_back({.first = other->second, .second = seconds});
               }
               const auto estimate = paired_bootstrap(pairs, PairedStatistic::kRatioOfSums,
                                                      {.seed = seed, .clusters = drawn_together});
               if (!estimate) return;
               rows.push_back({.set_key = set_key,
                               .cell_id = cell,
                               .reference_id = reference,
                               .prompts = std::ssize(pairs),
                               .groups = groups,
                               .estimate = estimate->point,
                               .low = estimate->interval.lo,
                               .high = estimate->interval.hi,
                               .resamples = static_cast<std::int64_t>(estimate->resamples),
                               .seed = static_cast<std::int64_t>(seed)});
             });
  return rows;
}

}  // namespace asdbench
