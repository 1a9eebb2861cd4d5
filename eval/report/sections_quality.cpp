// Accuracy against speed, paired quality, acceptance, regret, divergence and lengths.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "eval/report/sections.h"
#include "eval/stats/paired.h"
#include "eval/stats/stats.h"

namespace asdbench {
namespace {

std::string whole(std::int64_t value) { return std::to_string(value); }

std::string points_of(double share) { return fmt::format("{:+.2f}", 100 * share); }

const Estimate& accuracy_of(const MatrixRow& row, Capped capped) {
  return capped_is_wrong(row, capped) ? row.accuracy_capped_wrong : row.accuracy_as_scored;
}

std::string share_of(std::int64_t part, std::int64_t all) {
  if (all == 0) return std::string(kUndefined);
  const auto interval = wilson(part, all);
  return percent_interval(static_cast<double>(part) / static_cast<double>(all),
                          interval ? std::optional(interval->lo) : std::nullopt,
                          interval ? std::optional(interval->hi) : std::nullopt);
}

std::optional<double> bound(const std::optional<Interval>& interval, double Interval::*end) {
  return interval ? std::optional((*interval).*end) : std::nullopt;
}

/// Share of a total, by cell: the points of a histogram.
std::map<std::int64_t, std::vector<Point>> shares(const ViewRows& rows, const char* x,
                                                  const char* count) {
  std::map<std::int64_t, double> totals;
  for (const ViewRow& row : rows) totals[row.count("cell_id")] += row.number(count).value_or(0);
  std::map<std::int64_t, std::vector<Point>> points;
  for (const ViewRow& row : rows) {
    const std::int64_t cell = row.count("cell_id");
    if (totals[cell] <= 0) continue;
    points[cell].push_back(
        {.x = row.number(x).value_or(0), .y = row.number(count).value_or(0) / totals[cell]});
  }
  return points;
}

}  // namespace

Section tradeoff_section(const Evidence& evidence) {
  Section section{.id = "tradeoff", .title = "Accuracy against speed"};
  section.note =
      "Speed is the ratio of times for equal work, with ends ignored, against strict verification "
      "with the same drafter; accuracy is of natural endings. Bars are 95 % intervals. Up and to "
      "the right is better.";
  std::map<std::int64_t, std::vector<Point>> points;
  for (const MatrixRow& row : evidence.cells.rows()) {
    const Estimate& accuracy = accuracy_of(row, evidence.capped);
    if (!row.vs_strict.estimate || !accuracy.estimate) continue;
    points[row.cell_id].push_back({.x = *row.vs_strict.estimate,
                                   .y = *accuracy.estimate,
                                   .x_low = row.vs_strict.low,
                                   .x_high = row.vs_strict.high,
                                   .y_low = accuracy.low,
                                   .y_high = accuracy.high});
  }
  if (points.empty()) {
    section.note += " No cell has both yet: `phases: [quality, speed]` measures both.";
  }
  add_charts(section, evidence.cells,
             {.kind = ChartKind::kScatter,
              .x = {.label = "speed against strict"},
              .y = {.label = "accuracy", .unit = Unit::kShare}},
             points);
  return section;
}

Section quality_section(const Evidence& evidence) {
  Section section{
      .id = "quality", .title = "Quality against the reference, paired by sample", .brief = true};
  section.note =
      "b: only this cell is right, c: only the reference; the change is (b - c) / n in points with "
      "one-sided 95 % bounds (score test). p is McNemar's exact two-sided test: a large p does not "
      "mean harmless. The last column is the smallest margin that so many prompts can certify at "
      "the discordance seen (alpha 0.05, power 0.8).";
  Table table{.title = "",
              .columns = {{"task"},
                          {"cell"},
                          {"against"},
                          {"n", Align::kRight},
                          {"b", Align::kRight},
                          {"c", Align::kRight},
                          {"change, points [bounds]"},
                          {"p", Align::kRight},
                          {"diverged only: right / reference right of n"},
                          {"certifiable", Align::kRight}},
              .rows = {}};
  for (const ViewRow& row : evidence.paired) {
    const std::int64_t id = row.count("cell_id");
    const bool wrong = capped_is_wrong(evidence.cells.at(id), evidence.capped);
    const PairedCounts counts{.n = row.count("n"),
                              .b = row.count(wrong ? "b" : "b_as_scored"),
                              .c = row.count(wrong ? "c" : "c_as_scored")};
    std::string change(kUndefined), p(kUndefined), certifiable(kUndefined);
    if (counts.n > 0) {
      const auto n = static_cast<double>(counts.n);
      change = points_of(static_cast<double>(counts.b - counts.c) / n);
      if (const auto bounds = tango_bounds(counts, 0.05)) {
        change += fmt::format(" [{}, {}]", points_of(bounds->lo), points_of(bounds->hi));
      }
      if (const auto test = mcnemar(counts.b, counts.c)) p = fmt::format("{:.3f}", test->two_sided);
      const double discordance = static_cast<double>(counts.b + counts.c) / n;
      if (discordance > 0) certifiable = percent(certifiable_margin(discordance, counts.n), 2);
    }
    table.rows.push_back(
        {evidence.cells.place(id), evidence.cells.label(id), row.text("reference"), whole(counts.n),
         whole(counts.b), whole(counts.c), change, p,
         fmt::format("{} / {} of {}", row.count("correct_diverged"),
                     row.count("reference_correct_diverged"), row.count("n_diverged")),
         certifiable});
  }
  if (table.rows.empty()) {
    section.note =
        "No two cells can be paired: the database lacks a strict or plain arm of equal settings.";
    return section;
  }
  section.blocks.emplace_back(std::move(table));
  return section;
}

namespace {

/// Every ASD cell beside the other rules of its setting and drafter whose largest regret of a
/// request comes within a tenth of its own.
Table equal_regret(const Evidence& evidence) {
  constexpr double kTolerance = 0.1;
  Table table{.title = "At equal realised regret: largest of a request within 10 % of ASD's",
              .columns = {{"task"},
                          {"cell"},
                          {"largest regret", Align::kRight},
                          {"regret / request", Align::kRight},
                          {"accept length", Align::kRight},
                          {"accuracy [95 % CI]"},
                          {"speed vs strict [95 % CI]"}},
              .rows = {}};
  const auto spent = [&](const MatrixRow& row, const char* column) {
    const auto found = evidence.ledger.find(row.cell_id);
    return found == evidence.ledger.end() ? std::nullopt : found->second.number(column);
  };
  const auto add = [&](const MatrixRow& row) {
    const Estimate& accuracy = accuracy_of(row, evidence.capped);
    table.rows.push_back(
        {evidence.cells.place(row.cell_id), evidence.cells.label(row.cell_id),
         decimal(spent(row, "largest_regret"), 2), decimal(spent(row, "regret_per_request"), 3),
         decimal(row.accept_length, 3),
         percent_interval(accuracy.estimate, accuracy.low, accuracy.high),
         decimal_interval(row.vs_strict.estimate, row.vs_strict.low, row.vs_strict.high, 3)});
  };
  for (const MatrixRow& own : evidence.cells.rows()) {
    const std::optional<double> most = spent(own, "largest_regret");
    if (own.verifier != "asd" || !most || *most <= 0) continue;
    std::vector<const MatrixRow*> others;
    for (const MatrixRow& row : evidence.cells.rows()) {
      const std::optional<double> largest = spent(row, "largest_regret");
      if (row.verifier != "asd" && largest && same_setting(row, own) &&
          drafter_name(row) == drafter_name(own) &&
          std::abs(*largest - *most) <= kTolerance * *most) {
        others.push_back(&row);
      }
    }
    if (others.empty()) continue;
    add(own);
    for (const MatrixRow* row : others) add(*row);
  }
  return table;
}

}  // namespace

Section frontier_section(const Evidence& evidence) {
  Section section{.id = "frontier", .title = "Frontier over the controls"};
  section.note =
      "Every lossy setting: what it accepts, what it spends, and what it does to accuracy. The "
      "chart "
      "sets accuracy against accept length; strict cells are the zero point.";
  const RatioIntervals& lengths = evidence.accept_lengths;
  const std::map<std::int64_t, ViewRow>& spent = evidence.ledger;
  Table table{.title = "",
              .columns = {{"task"},
                          {"cell"},
                          {"n", Align::kRight},
                          {"accuracy [95 % CI]"},
                          {"accept length [95 % CI]"},
                          {"exceptions / 100 tokens", Align::kRight},
                          {"regret / request", Align::kRight},
                          {"largest", Align::kRight},
                          {"speed vs strict [95 % CI]"}},
              .rows = {}};
  std::map<std::int64_t, std::vector<Point>> points;
  for (const MatrixRow& row : evidence.cells.rows()) {
    if (row.drafter == "none") continue;
    const Estimate& accuracy = accuracy_of(row, evidence.capped);
    const auto length = lengths.by_cell.find(row.cell_id);
    const bool known = length != lengths.by_cell.end();
    if (known && accuracy.estimate) {
      points[row.cell_id].push_back({.x = length->second.point,
                                     .y = *accuracy.estimate,
                                     .x_low = length->second.interval.lo,
                                     .x_high = length->second.interval.hi,
                                     .y_low = accuracy.low,
                                     .y_high = accuracy.high});
    }
    const auto ledger = spent.find(row.cell_id);
    const auto figure = [&](const char* column) {
      return ledger == spent.end() ? std::nullopt : ledger->second.number(column);
    };
    table.rows.push_back(
        {evidence.cells.place(row.cell_id), evidence.cells.label(row.cell_id), whole(row.n),
         percent_interval(accuracy.estimate, accuracy.low, accuracy.high),
         known ? decimal_interval(length->second.point, length->second.interval.lo,
                                  length->second.interval.hi, 3)
               : std::string(kUndefined),
         decimal(figure("exceptions_per_100_tokens"), 2), decimal(figure("regret_per_request"), 3),
         decimal(figure("largest_regret"), 2),
         decimal_interval(row.vs_strict.estimate, row.vs_strict.low, row.vs_strict.high, 3)});
  }
  add_charts(section, evidence.cells,
             {.kind = ChartKind::kScatter,
              .x = {.label = "accept length, tokens per pass"},
              .y = {.label = "accuracy", .unit = Unit::kShare}},
             points);
  section.blocks.emplace_back(std::move(table));
  Table equal = equal_regret(evidence);
  if (!equal.rows.empty()) section.blocks.emplace_back(std::move(equal));
  return section;
}

Section acceptance_section(const Evidence& evidence) {
  Section section{.id = "acceptance", .title = "Acceptance"};
  const RatioIntervals& lengths = evidence.accept_lengths;
  section.note = fmt::format(
      "Tokens per pass of natural endings, the token from prefill excluded. Accept length counts "
      "the "
      "target's own token; pooled sums all passes, per request is the mean of requests. Intervals: "
      "bootstrap over requests, {} resamples, seed 1. Conditional acceptance is of drafts whose "
      "earlier ones were all accepted.",
      lengths.resamples);
  Table table{.title = "",
              .columns = {{"task"},
                          {"cell"},
                          {"requests", Align::kRight},
                          {"passes", Align::kRight},
                          {"accept length, pooled [95 % CI]"},
                          {"per request", Align::kRight},
                          {"drafts kept / pass", Align::kRight},
                          {"strict length / pass", Align::kRight},
                          {"drafts kept", Align::kRight}},
              .rows = {}};
  for (const ViewRow& row :
       read_rows(evidence.store, "SELECT * FROM acceptance ORDER BY cell_id")) {
    const std::int64_t id = row.count("cell_id");
    const auto length = lengths.by_cell.find(id);
    const bool known = length != lengths.by_cell.end();
    table.rows.push_back(
        {evidence.cells.place(id), evidence.cells.label(id), whole(row.count("requests")),
         whole(row.count("passes")),
         decimal_interval(row.number("accept_length"),
                          known ? std::optional(length->second.interval.lo) : std::nullopt,
                          known ? std::optional(length->second.interval.hi) : std::nullopt, 3),
         decimal(row.number("accept_length_per_request"), 3),
         decimal(row.number("drafts_kept_per_pass"), 3),
         decimal(row.number("strict_length_per_pass"), 3),
         percent(row.number("draft_acceptance"))});
  }
  if (table.rows.empty()) return section;
  section.blocks.emplace_back(std::move(table));
  const char* drafted = " WHERE cell_id IN (SELECT id FROM cell WHERE drafter <> 'none') ";
  add_charts(section, evidence.cells,
             {.x = {.label = "tokens committed in a pass"},
              .y = {.label = "share of passes", .unit = Unit::kShare, .from_zero = true}},
             shares(read_rows(evidence.store, std::string("SELECT * FROM accept_histogram") +
                                                  drafted + "ORDER BY cell_id, committed"),
                    "committed", "passes"));
  std::map<std::int64_t, std::vector<Point>> conditional;
  for (const ViewRow& row :
       read_rows(evidence.store, "SELECT * FROM block_position ORDER BY cell_id, position")) {
    const std::int64_t reached = row.count("reached"), accepted = row.count("accepted");
    if (reached == 0) continue;
    const auto interval = wilson(accepted, reached);
    conditional[row.count("cell_id")].push_back(
        {.x = static_cast<double>(row.count("position") + 1),
         .y = static_cast<double>(accepted) / static_cast<double>(reached),
         .y_low = bound(interval, &Interval::lo),
         .y_high = bound(interval, &Interval::hi)});
  }
  add_charts(section, evidence.cells,
             {.x = {.label = "position in the block, from 1"},
              .y = {.label = "conditional acceptance", .unit = Unit::kShare, .from_zero = true}},
             conditional);
  return section;
}

Section regret_section(const Evidence& evidence) {
  Section section{.id = "regret", .title = "Regret and ledger"};
  section.note =
      "Regret in nats. An exception is an accepted mismatch; a barren one kept no draft behind it. "
      "Exhausted: requests in which budget or headroom ever stopped a block.";
  Table table{.title = "",
              .columns = {{"task"},
                          {"cell"},
                          {"requests", Align::kRight},
                          {"with exceptions", Align::kLeft},
                          {"exceptions", Align::kRight},
                          {"/ request", Align::kRight},
                          {"/ 100 tokens", Align::kRight},
                          {"regret / request", Align::kRight},
                          {"regret / exception", Align::kRight},
                          {"of regret 0", Align::kRight},
                          {"barren", Align::kRight},
                          {"reused / exception", Align::kRight},
                          {"budget used: mean; most", Align::kLeft},
                          {"exhausted", Align::kLeft}},
              .rows = {}};
  for (const auto& [id, row] : evidence.ledger) {
    const std::int64_t exceptions = row.count("exceptions");
    const auto of_exceptions = [&](const char* column) {
      if (exceptions == 0) return std::string(kUndefined);
      return percent(static_cast<double>(row.count(column)) / static_cast<double>(exceptions));
    };
    table.rows.push_back(
        {evidence.cells.place(id), evidence.cells.label(id), whole(row.count("requests")),
         share_of(row.count("requests_with_exception"), row.count("requests")), whole(exceptions),
         decimal(row.number("exceptions_per_request"), 2),
         decimal(row.number("exceptions_per_100_tokens"), 2),
         decimal(row.number("regret_per_request"), 3),
         decimal(row.number("regret_per_exception"), 3), of_exceptions("free"),
         of_exceptions("barren"), decimal(row.number("reused_per_exception"), 2),
         percent(row.number("budget_used_mean")) + "; " + percent(row.number("budget_used_max")),
         share_of(row.count("exhausted"), row.count("requests"))});
  }
  if (table.rows.empty()) {
    section.note = "No lossy cell has a finished reply.";
    return section;
  }
  section.blocks.emplace_back(std::move(table));
  add_charts(section, evidence.cells,
             {.x = {.label = "regret of an exception, nats, from (steps of 1/16)"},
              .y = {.label = "share of exceptions", .unit = Unit::kShare, .from_zero = true}},
             shares(read_rows(evidence.store,
                              "SELECT * FROM regret_histogram ORDER BY cell_id, regret_from"),
                    "regret_from", "exceptions"));
  add_charts(section, evidence.cells,
             {.x = {.label = "position of the exception in its block, from 0"},
              .y = {.label = "share of exceptions", .unit = Unit::kShare, .from_zero = true}},
             shares(read_rows(evidence.store,
                              "SELECT * FROM exception_position ORDER BY cell_id, position"),
                    "position", "exceptions"));
  Table blocked{.title = "What stopped a block: passes that name the condition",
                .columns = {{"task"}, {"cell"}, {"condition"}, {"passes", Align::kRight}},
                .rows = {}};
  for (const ViewRow& row :
       read_rows(evidence.store,
                 "SELECT * FROM blocked WHERE cell_id IN (SELECT id FROM "
                 "cell WHERE verifier <> 'strict') ORDER BY cell_id, passes DESC")) {
    const std::int64_t id = row.count("cell_id");
    blocked.rows.push_back({evidence.cells.place(id), evidence.cells.label(id),
                            row.text("condition"), whole(row.count("passes"))});
  }
  if (!blocked.rows.empty()) section.blocks.emplace_back(std::move(blocked));
  return section;
}

FirstDifferences first_differences(const ResultStore& store) {
  FirstDifferences positions;
  store.read("SELECT cell_id, reference, position FROM first_difference",
             [&](const std::vector<std::string>&, const std::vector<Value>& row) {
               positions[{std::get<std::int64_t>(row[0]), std::get<std::string>(row[1])}].push_back(
                   static_cast<double>(std::get<std::int64_t>(row[2])));
             });
  return positions;
}

Section divergence_section(const Evidence& evidence) {
  Section section{.id = "divergence", .title = "Divergence"};
  section.note =
      "On token ids, for prompts that both cells finished. It is reported and gates nothing: long "
      "replies diverge without being worse. The rows of rules that keep the target's output are "
      "the "
      "numerical noise floor. Positions count from 0.";
  FirstDifferences positions = evidence.first_differences;
  Table table{.title = "",
              .columns = {{"task"},
                          {"cell"},
                          {"against"},
                          {"pairs", Align::kRight},
                          {"diverged [Wilson 95 %]"},
                          {"exact 95 %"},
                          {"first difference: least", Align::kRight},
                          {"25 %", Align::kRight},
                          {"median", Align::kRight},
                          {"75 %", Align::kRight},
                          {"most", Align::kRight}},
              .rows = {}};
  std::map<std::int64_t, std::vector<Point>> alike;
  for (const ViewRow& row : evidence.paired) {
    const std::int64_t id = row.count("cell_id"), pairs = row.count("pairs"),
                       diverged = row.count("diverged");
    const auto exact = clopper_pearson(diverged, pairs);
    std::vector<std::string> cells = {
        evidence.cells.place(id),
        evidence.cells.label(id),
        row.text("reference"),
        whole(pairs),
        share_of(diverged, pairs),
        exact ? fmt::format("[{:.1f}, {:.1f}]", 100 * exact->lo, 100 * exact->hi)
              : std::string(kUndefined)};
    std::vector<double>& first = positions[{id, row.text("reference")}];
    std::sort(first.begin(), first.end());
    for (const double q : {0.0, 0.25, 0.5, 0.75, 1.0}) {
      cells.push_back(decimal(quantile_linear(first, q), 0));
    }
    table.rows.push_back(std::move(cells));
    if (row.text("reference") != "strict" || pairs == 0) continue;
    // Share of pairs that are equal before token t, at no more than some 60 places.
    std::vector<Point>& line = alike[id];
    line.push_back({.x = 0, .y = 1});
    const std::size_t step = std::max<std::size_t>(1, first.size() / 60);
    for (std::size_t i = 0; i < first.size(); i += step) {
      line.push_back(
          {.x = first[i] + 1, .y = 1 - static_cast<double>(i + 1) / static_cast<double>(pairs)});
    }
  }
  if (table.rows.empty()) {
    section.note = "No two cells can be paired.";
    return section;
  }
  section.blocks.emplace_back(std::move(table));
  Table noise{.title = "What rounding alone changes",
              .columns = {{"task"},
                          {"cell"},
                          {"against"},
                          {"pairs", Align::kRight},
                          {"diverged [Wilson 95 %]"}},
              .rows = {}};
  for (const ViewRow& row :
       read_rows(evidence.store, "SELECT * FROM noise_floor ORDER BY cell_id, reference")) {
    const std::int64_t id = row.count("cell_id");
    noise.rows.push_back({evidence.cells.place(id), evidence.cells.label(id),
                          row.text("reference") == "batch" ? "the same cell at batch 1"
                                                           : "plain decoding with the same weights",
                          whole(row.count("pairs")),
                          share_of(row.count("diverged"), row.count("pairs"))});
  }
  if (!noise.rows.empty()) section.blocks.emplace_back(std::move(noise));
  add_charts(
      section, evidence.cells,
      {.x = {.label = "tokens from the start of the reply"},
       .y = {.label = "replies still equal to strict", .unit = Unit::kShare, .from_zero = true}},
      alike);
  return section;
}

Section length_section(const Evidence& evidence) {
  Section section{.id = "length", .title = "Length and caps"};
  std::map<std::int64_t, RatioSample> samples;
  evidence.store.read(
      "SELECT cell_id, output_tokens, reference_tokens FROM pair WHERE reference = 'strict' "
      "ORDER BY cell_id, sample_id, repeat, turn",
      [&](const std::vector<std::string>&, const std::vector<Value>& row) {
        samples[std::get<std::int64_t>(row[0])].pairs.push_back(
            {.first = static_cast<double>(std::get<std::int64_t>(row[1])),
             .second = static_cast<double>(std::get<std::int64_t>(row[2]))});
      });
  const RatioIntervals ratios = ratio_intervals(samples);
  section.note = fmt::format(
      "Length against strict is the ratio of sums over paired prompts (bootstrap over prompts, {} "
      "resamples, seed 1). A reply is capped when it ended at its limit; cap b: only the reference "
      "is "
      "capped, c: only this cell.",
      ratios.resamples);
  std::map<std::int64_t, const ViewRow*> paired;
  for (const ViewRow& row : evidence.paired) {
    if (row.text("reference") == "strict") paired.emplace(row.count("cell_id"), &row);
  }
  Table table{.title = "",
              .columns = {{"task"},
                          {"cell"},
                          {"n", Align::kRight},
                          {"mean tokens", Align::kRight},
                          {"least–most", Align::kRight},
                          {"ended", Align::kRight},
                          {"capped", Align::kRight},
                          {"length vs strict [95 % CI]"},
                          {"cap b", Align::kRight},
                          {"cap c", Align::kRight}},
              .rows = {}};
  for (const ViewRow& row : read_rows(evidence.store, "SELECT * FROM length ORDER BY cell_id")) {
    const std::int64_t id = row.count("cell_id");
    const auto ratio = ratios.by_cell.find(id);
    const auto pair = paired.find(id);
    const auto figure = [&](const char* column) {
      return pair == paired.end() ? std::string(kUndefined) : whole(pair->second->count(column));
    };
    table.rows.push_back({evidence.cells.place(id), evidence.cells.label(id), whole(row.count("n")),
                          decimal(row.number("mean_tokens"), 1),
                          fmt::format("{}–{}", row.count("least"), row.count("most")),
                          whole(row.count("ended") + row.count("stop_string")),
                          whole(row.count("length") + row.count("context_limit")),
                          ratio == ratios.by_cell.end()
                              ? std::string(kUndefined)
                              : decimal_interval(ratio->second.point, ratio->second.interval.lo,
                                                 ratio->second.interval.hi, 4),
                          figure("only_reference_capped"), figure("only_capped")});
  }
  if (!table.rows.empty()) section.blocks.emplace_back(std::move(table));
  return section;
}

}  // namespace asdbench
