// What needs attention, fixed-work speed, replies side by side, and the machine.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "eval/core/utf8.h"
#include "eval/report/sections.h"

namespace asdbench {
namespace {

/// Limits of measurement.md, sections 1 and 2.
constexpr double kDriftLimitPct = 3;
constexpr double kPostEndLimit = 0.20;
/// Share of all cores that others may use before it is said.
constexpr double kForeignLimit = 0.05;

/// Up to so many diverged prompts for two compared cells and for the whole report, and so much text
/// of each reply: a report of any database stays small.
constexpr int kExamplesOfPair = 6;
constexpr int kExamples = 90;
constexpr std::size_t kTextBefore = 300;
constexpr std::size_t kTextBytes = 1500;

/// Start of the character that byte `at` belongs to.
std::size_t character_start(std::string_view text, std::size_t at) {
  at = std::min(at, text.size());
  while (at > 0 && at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
  return at;
}

TextPair text_pair(std::string left, std::string right) {
  TextPair pair;
  const auto [end, unused] = std::mismatch(left.begin(), left.end(), right.begin(), right.end());
  const std::size_t common = character_start(left, static_cast<std::size_t>(end - left.begin()));
  const std::size_t from = common > kTextBefore ? character_start(left, common - kTextBefore) : 0;
  const auto cut = [&](std::string& text, bool& was_cut) {
    text.erase(0, from);
    was_cut = text.size() > kTextBytes;
    if (was_cut) text.resize(character_start(text, kTextBytes));
  };
  cut(left, pair.cut_left);
  cut(right, pair.cut_right);
  pair.cut_front = from > 0;
  pair.common = common - from;
  pair.left = std::move(left);
  pair.right = std::move(right);
  return pair;
}

void flag_speed(const Evidence& evidence, Table& table) {
  const auto add = [&](std::int64_t cell, const std::string& what, const std::string& found) {
    table.rows.push_back(
        {what, evidence.cells.place(cell) + " · " + evidence.cells.label(cell), found});
  };
  for (const ViewRow& row : read_rows(evidence.store, "SELECT * FROM speed_bound WHERE exceeded")) {
    add(row.count("cell_id"), "gain above its bound: unequal work or a fault of the clock",
        fmt::format(
            "{} against {}; tokens per pass allow {}",
            decimal_interval(row.number("estimate"), row.number("low"), row.number("high"), 3),
            row.text("reference"), decimal(row.number("bound"), 3)));
  }
  for (const ViewRow& row :
       read_rows(evidence.store,
                 "SELECT cell_id, number, reference FROM group_speed WHERE ratio IS NULL "
                 "AND reference IS NOT NULL ORDER BY group_id")) {
    add(row.count("cell_id"), "unequal work",
        fmt::format("group {} counted other tokens than {}", row.count("number"),
                    row.text("reference")));
  }
  for (const ViewRow& row : read_rows(evidence.store,
                                      "SELECT set_key, number, reason FROM speed_void JOIN "
                                      "speed_group ON id = group_id ORDER BY id")) {
    table.rows.push_back(
        {"void group",
         fmt::format("group {} of set {}", row.count("number"), row.text("set_key").substr(0, 12)),
         row.text("reason")});
  }
  // What holds for the arms of one set together has one line.
  const auto counted = [](std::int64_t count, const char* thing) {
    return fmt::format("{} {}{}", count, thing, count == 1 ? "" : "s");
  };
  const auto add_set = [&](const ViewRow& row, const std::string& what, const std::string& found) {
    table.rows.push_back({what,
                          fmt::format("{} · {}", evidence.cells.place(row.count("cell_id")),
                                      counted(row.count("arms"), "arm")),
                          found});
  };
  for (const ViewRow& row : read_rows(
           evidence.store,
           "SELECT min(cell_id) AS cell_id, count(DISTINCT cell_id) AS arms, "
           "count(DISTINCT group_id) AS groups, max(abs(drift_pct)) AS worst FROM group_speed "
           "WHERE abs(drift_pct) > " +
               std::to_string(kDriftLimitPct) + " GROUP BY set_key ORDER BY min(cell_id)")) {
    add_set(row, "drift",
            fmt::format("{} above {} %, the worst {} %", counted(row.count("groups"), "group"),
                        kDriftLimitPct, decimal(row.number("worst"), 1)));
  }
  for (const ViewRow& row :
       read_rows(evidence.store,
                 "SELECT min(cell_id) AS cell_id, count(*) AS arms, max(mean) AS worst FROM "
                 "arm_environment WHERE name = 'foreign_share' AND mean > " +
                     std::to_string(kForeignLimit) + " GROUP BY set_key ORDER BY min(cell_id)")) {
    add_set(row, "other processes ran meanwhile",
            "up to " + percent(row.number("worst")) + " of all cores' time on average");
  }
  for (const ViewRow& row :
       read_rows(evidence.store,
                 "SELECT min(cell_id) AS cell_id, count(*) AS arms, max(post_end_fraction) AS "
                 "worst FROM speed WHERE work = 'constant' AND post_end_fraction > " +
                     std::to_string(kPostEndLimit) + " GROUP BY set_key ORDER BY min(cell_id)")) {
    add_set(row, "text after the end",
            "up to " + percent(row.number("worst")) +
                " of the counted tokens stand after the reply's natural end: reference lengths "
                "(speed.work) are the primary figure then");
  }
  for (const ViewRow& row : read_rows(evidence.store,
                                      "SELECT cell_id, count(*) AS checked, "
                                      "sum(timed_sha256 <> again_sha256) AS different FROM "
                                      "spot_check GROUP BY cell_id HAVING different > 0")) {
    add(row.count("cell_id"), "timed prompts do not repeat",
        fmt::format("{} of {} gave other tokens when decoded again", row.count("different"),
                    row.count("checked")));
  }
  for (const ViewRow& row : read_rows(evidence.store,
                                      "SELECT cell_id, pairs, diverged FROM noise_floor "
                                      "WHERE reference = 'batch' AND diverged > 0")) {
    add(row.count("cell_id"), "the batch changes replies",
        fmt::format("{} of {} differ from those at batch 1", row.count("diverged"),
                    row.count("pairs")));
  }
}

/// "[1.05, 1.12]"; a dash when it is not known.
std::string bounds_text(std::optional<double> low, std::optional<double> high) {
  if (!low || !high) return std::string(kUndefined);
  return fmt::format("[{}, {}]", decimal(low, 3), decimal(high, 3));
}

/// Natural endings, triples, fixed concurrency and replayed blocks, each where it was run.
void add_time_to_answer(Section& section, const Evidence& evidence) {
  Table table{.title = "Time to answer: natural endings, prefill included",
              .columns = {{"task"},
                          {"cell"},
                          {"requests", Align::kRight},
                          {"s / request", Align::kRight},
                          {"of it prefill", Align::kRight},
                          {"tokens / request", Align::kRight},
                          {"against"},
                          {"times faster [95 % over groups]"},
                          {"[95 % over prompts]"},
                          {"tokens/s", Align::kRight},
                          {"length", Align::kRight},
                          {"answers/s", Align::kRight}},
              .rows = {}};
  const auto change = [](std::optional<double> pct) {
    return pct ? fmt::format("{:+.2f} %", *pct) : std::string(kUndefined);
  };
  for (const ViewRow& row :
       read_rows(evidence.store, "SELECT * FROM time_to_answer ORDER BY cell_id, reference DESC")) {
    const std::int64_t id = row.count("cell_id");
    table.rows.push_back(
        {evidence.cells.place(id), evidence.cells.label(id), row.text("requests"),
         decimal(row.number("seconds_per_request"), 3),
         decimal(row.number("prefill_seconds_per_request"), 3),
         decimal(row.number("tokens_per_request"), 1),
         row.text("reference").empty() ? std::string(kUndefined) : row.text("reference"),
         decimal_interval(row.number("ratio"), row.number("low"), row.number("high"), 3),
         bounds_text(row.number("prompts_low"), row.number("prompts_high")),
         change(row.number("tokens_per_s_gain_pct")), change(row.number("length_change_pct")),
         change(row.number("answers_per_s_change_pct"))});
  }
  if (!table.rows.empty()) section.blocks.emplace_back(std::move(table));
}

void add_bracketed(Section& section, const Evidence& evidence) {
  Table table{.title = "Baseline, cell, baseline: percent of throughput, triple by triple",
              .columns = {{"task"},
                          {"cell"},
                          {"work"},
                          {"triple", Align::kRight},
                          {"before, tokens/s", Align::kRight},
                          {"cell", Align::kRight},
                          {"after", Align::kRight},
                          {"gain", Align::kRight},
                          {"drift", Align::kRight},
                          {"valid (3 %)"}},
              .rows = {}};
  for (const ViewRow& row :
       read_rows(evidence.store, "SELECT * FROM bracketed ORDER BY cell_id, group_id")) {
    const std::int64_t id = row.count("cell_id");
    const auto pct = [&](const char* column) {
      const std::optional<double> value = row.number(column);
      return value ? fmt::format("{:+.2f} %", *value) : std::string(kUndefined);
    };
    table.rows.push_back({evidence.cells.place(id), evidence.cells.label(id), row.text("work"),
                          row.text("number"), decimal(row.number("before"), 2),
                          decimal(row.number("candidate"), 2), decimal(row.number("after"), 2),
                          pct("gain_pct"), pct("drift_pct"),
                          row.count("valid") != 0 ? "yes" : "no"});
  }
  if (!table.rows.empty()) section.blocks.emplace_back(std::move(table));
}

void add_concurrency(Section& section, const Evidence& evidence) {
  Table table{.title = "Fixed concurrency: the tail is the time when no prompt waited any more",
              .columns = {{"task"},
                          {"cell"},
                          {"batch", Align::kRight},
                          {"tokens/s, all", Align::kRight},
                          {"batch full", Align::kRight},
                          {"tail", Align::kRight},
                          {"tail, of the time", Align::kRight}},
              .rows = {}};
  for (const ViewRow& row :
       read_rows(evidence.store, "SELECT * FROM concurrency ORDER BY cell_id")) {
    const std::int64_t id = row.count("cell_id");
    table.rows.push_back(
        {evidence.cells.place(id), evidence.cells.label(id), row.text("batch"),
         decimal(row.number("tokens_per_s"), 1), decimal(row.number("full_tokens_per_s"), 1),
         decimal(row.number("tail_tokens_per_s"), 1), percent(row.number("tail_share"))});
  }
  if (!table.rows.empty()) section.blocks.emplace_back(std::move(table));
}

void add_replay(Section& section, const Evidence& evidence) {
  Table table{.title = "Replay: the blocks of strict runs shown to each rule, masks only",
              .columns = {{"task"},
                          {"cell"},
                          {"requests", Align::kRight},
                          {"passes", Align::kRight},
                          {"strict, tokens / pass", Align::kRight},
                          {"rule, tokens / pass", Align::kRight},
                          {"gain", Align::kRight},
                          {"exceptions", Align::kRight},
                          {"regret, nats", Align::kRight}},
              .rows = {}};
  for (const ViewRow& row : read_rows(evidence.store, "SELECT * FROM replayed ORDER BY cell_id")) {
    const std::int64_t id = row.count("cell_id");
    const std::optional<double> gain = row.number("gain_pct");
    table.rows.push_back({evidence.cells.place(id), evidence.cells.label(id), row.text("requests"),
                          row.text("passes"), decimal(row.number("strict_tokens_per_pass"), 3),
                          decimal(row.number("tokens_per_pass"), 3),
                          gain ? fmt::format("{:+.2f} %", *gain) : std::string(kUndefined),
                          row.text("exceptions"), decimal(row.number("regret"), 2)});
  }
  if (!table.rows.empty()) section.blocks.emplace_back(std::move(table));
}

void add_drift(Section& section, const Evidence& evidence) {
  std::map<std::int64_t, std::vector<Point>> points;
  for (const ViewRow& row :
       read_rows(evidence.store,
                 "SELECT * FROM group_speed WHERE reference = 'strict' AND ratio NOT NULL "
                 "AND cell_id <> reference_id ORDER BY group_id")) {
    points[row.count("cell_id")].push_back(
        {.x = static_cast<double>(row.count("number")), .y = row.number("ratio").value_or(0)});
  }
  add_charts(section, evidence.cells,
             {.x = {.label = "group"}, .y = {.label = "speed against strict"}}, points);
}

void add_attribution(Section& section, const Evidence& evidence, const ViewRows& speed) {
  static constexpr std::array<std::pair<const char*, const char*>, 5> kParts = {
      {{"draft", "draft_ms_per_pass"},
       {"verify", "verify_ms_per_pass"},
       {"rule", "rule_ms_per_pass"},
       {"cache", "cache_ms_per_pass"},
       {"host", "host_ms_per_pass"}}};
  Chart chart{.kind = ChartKind::kStacked,
              .title = "Where a pass spends its time",
              .x = {.label = "milliseconds a pass"},
              .series = {},
              .categories = {}};
  for (const auto& [name, unused] : kParts) chart.series.push_back({.name = name, .points = {}});
  Table table{.title = "Milliseconds a pass; host is what the parts leave of the clock of record",
              .columns = {{"task"},
                          {"cell"},
                          {"draft", Align::kRight},
                          {"verify", Align::kRight},
                          {"rule", Align::kRight},
                          {"cache", Align::kRight},
                          {"host", Align::kRight},
                          {"rule, ms / token", Align::kRight}},
              .rows = {}};
  for (const ViewRow& row : speed) {
    const std::int64_t id = row.count("cell_id");
    std::vector<std::string> cells = {evidence.cells.place(id), evidence.cells.label(id)};
    for (std::size_t i = 0; i < kParts.size(); ++i) {
      const std::optional<double> part = row.number(kParts[i].second);
      cells.push_back(decimal(part, 3));
      chart.series[i].points.push_back({.x = static_cast<double>(chart.categories.size()),
                                        .y = std::max(0.0, part.value_or(0))});
    }
    cells.push_back(decimal(row.number("rule_ms_per_token"), 4));
    table.rows.push_back(std::move(cells));
    chart.categories.push_back(evidence.cells.label(id));
  }
  // A bar for each of very many cells would be a wall.
  constexpr std::size_t kMostBars = 24;
  if (chart.categories.size() <= kMostBars) section.blocks.emplace_back(std::move(chart));
  section.blocks.emplace_back(std::move(table));
}

}  // namespace

Section flags_section(const Evidence& evidence) {
  Section section{.id = "flags", .title = "What needs attention", .brief = true};
  Table table{.title = "", .columns = {{"what"}, {"where"}, {"found"}}, .rows = {}};
  for (const ViewRow& row : read_rows(evidence.store,
                                      "SELECT id, name, status FROM run WHERE status <> 'done' "
                                      "ORDER BY id")) {
    table.rows.push_back({"a run did not end well",
                          fmt::format("run {} · {}", row.count("id"), row.text("name")),
                          row.text("status")});
  }
  for (const MatrixRow& row : evidence.cells.rows()) {
    const std::string where =
        evidence.cells.place(row.cell_id) + " · " + evidence.cells.label(row.cell_id);
    if (row.failed > 0) {
      table.rows.push_back(
          {"failed samples", where, fmt::format("{} failed, n = {}", row.failed, row.n)});
    }
    if (row.unscored > 0 && !is_judged(row)) {  // those the section of judges tells of
      table.rows.push_back(
          {"unscored replies", where, fmt::format("{} are left out of n", row.unscored)});
    }
    if (row.undecided > 0) {
      table.rows.push_back(
          {"undecided replies", where,
           fmt::format("{} count as incorrect: grading hit its limits", row.undecided)});
    }
  }
  flag_speed(evidence, table);
  section.note = table.rows.empty()
                     ? "Nothing was flagged: equal work, gains within their bounds, drift "
                       "within 3 %, no failed sample."
                     : "Read these before the numbers.";
  if (evidence.cells.rows().empty()) section.note = "The database holds no cells yet.";
  if (!table.rows.empty()) section.blocks.emplace_back(std::move(table));
  return section;
}

Table prediction_table(const ResultStore& store, const Cells& cells) {
  Table table{.title = "Measured speed and what tokens per pass predict, against strict",
              .columns = {{"task"},
                          {"cell"},
                          {"work"},
                          {"tokens / pass", Align::kRight},
                          {"strict's", Align::kRight},
                          {"predicted", Align::kRight},
                          {"measured", Align::kRight},
                          {"off by", Align::kRight},
                          {"95 % over groups"},
                          {"95 % over prompts"},
                          {"within"}},
              .rows = {}};
  for (const ViewRow& row :
       read_rows(store,
                 "SELECT bound.*, speed.work, speed.vs_strict_low, speed.vs_strict_high, "
                 "prompts.low AS prompts_low, prompts.high AS prompts_high "
                 "FROM speed_bound AS bound "
                 "JOIN speed ON speed.set_key = bound.set_key AND speed.cell_id = bound.cell_id "
                 "LEFT JOIN speed_interval AS prompts ON prompts.set_key = bound.set_key "
                 "AND prompts.cell_id = bound.cell_id "
                 "AND prompts.reference_id = bound.reference_id "
                 "WHERE bound.reference = 'strict' ORDER BY bound.cell_id, speed.last_group_id")) {
    const std::int64_t id = row.count("cell_id");
    const std::optional<double> predicted = row.number("bound"), measured = row.number("estimate");
    const std::optional<double> low = row.number("vs_strict_low"),
                                high = row.number("vs_strict_high");
    std::string within(kUndefined);
    if (predicted && low && high) {
      within = *predicted < *low ? "above" : *predicted > *high ? "below" : "yes";
    }
    table.rows.push_back(
        {cells.place(id), cells.label(id), row.text("work"),
         decimal(row.number("tokens_per_pass"), 3),
         decimal(row.number("reference_tokens_per_pass"), 3), decimal(predicted, 3),
         decimal(measured, 3),
         predicted && measured ? fmt::format("{:+.2f} %", 100 * (*measured / *predicted - 1))
                               : std::string(kUndefined),
         bounds_text(row.number("low"), row.number("high")),
         bounds_text(row.number("prompts_low"), row.number("prompts_high")), within});
  }
  return table;
}

Section speed_section(const Evidence& evidence) {
  Section section{.id = "speed", .title = "Fixed-work speed"};
  const ViewRows speed = read_rows(
      evidence.store,
      "SELECT speed.*, work.slots, work.decode_ms / 1000 / speed.groups AS seconds_per_group, "
      "work.decode_ms / work.passes - draft_ms_per_pass - verify_ms_per_pass - rule_ms_per_pass - "
      "cache_ms_per_pass AS host_ms_per_pass "
      "FROM speed JOIN (SELECT set_key, cell_id, count(*) AS slots, 1e-6 * sum(decode_ns) AS "
      "decode_ms, "
      "sum(passes) AS passes FROM speed_slot JOIN speed_group ON speed_group.id = group_id "
      "WHERE group_id NOT IN (SELECT group_id FROM speed_void) "
      "GROUP BY set_key, cell_id) AS work ON work.set_key = speed.set_key AND work.cell_id = "
      "speed.cell_id ORDER BY speed.cell_id, speed.last_group_id");
  section.note =
      "Every arm decodes the same counted tokens, ends ignored, arms in mirrored order. Work is "
      "constant (so many tokens a prompt) or has reference lengths (those of the strict replies). "
      "The interval is the wider of two: over groups (run-to-run noise, Student's t) and over "
      "prompts (which prompts were drawn, bootstrap); with one group there is none. A pass that "
      "costs the same under both rules makes the speed the ratio of tokens per pass: the "
      "prediction. Measured above it beyond noise is a fault; below it, a pass costs more. Text "
      "after the end is the share of counted tokens behind a reply's natural end. A certificate "
      "wants 4 groups and 60 seconds an arm and group.";
  if (speed.empty()) section.note = "No fixed work was timed; add speed to run.phases.";
  Table table{.title = "",
              .columns = {{"task"},
                          {"cell"},
                          {"work"},
                          {"groups", Align::kRight},
                          {"tokens", Align::kRight},
                          {"s / arm and group", Align::kRight},
                          {"tokens/s", Align::kRight},
                          {"vs strict [95 % CI]"},
                          {"vs plain [95 % CI]"},
                          {"tokens / pass", Align::kRight},
                          {"after the end", Align::kRight}},
              .rows = {}};
  for (const ViewRow& row : speed) {
    const std::int64_t id = row.count("cell_id");
    const auto ratio = [&](const std::string& name) {
      return decimal_interval(row.number(name), row.number(name + "_low"),
                              row.number(name + "_high"), 3);
    };
    table.rows.push_back(
        {evidence.cells.place(id), evidence.cells.label(id), row.text("work"), row.text("groups"),
         row.text("tokens"), decimal(row.number("seconds_per_group"), 1),
         decimal(row.number("tokens_per_s"), 1), ratio("vs_strict"), ratio("vs_plain"),
         decimal(row.number("tokens_per_pass"), 3), percent(row.number("post_end_fraction"))});
  }
  if (!speed.empty()) {
    section.blocks.emplace_back(std::move(table));
    Table prediction = prediction_table(evidence.store, evidence.cells);
    if (!prediction.rows.empty()) section.blocks.emplace_back(std::move(prediction));
    add_drift(section, evidence);
    add_attribution(section, evidence, speed);
  }
  add_bracketed(section, evidence);
  add_concurrency(section, evidence);
  add_time_to_answer(section, evidence);
  add_replay(section, evidence);
  return section;
}

Section examples_section(const Evidence& evidence) {
  Section section{.id = "examples", .title = "Diverged replies side by side"};
  section.note = fmt::format(
      "For each two compared cells up to {} diverged prompts, those whose verdict changed first, "
      "then by "
      "sample id; {} in all; from {} bytes before the first difference, {} bytes of each reply.",
      kExamplesOfPair, kExamples, kTextBefore, kTextBytes);
  const ViewRows rows = read_rows(
      evidence.store,
      fmt::format(
          "WITH ranked AS (SELECT pair.*, own.verdict AS verdict, other.verdict AS "
          "reference_verdict, "
          "row_number() OVER (PARTITION BY pair.cell_id ORDER BY own.verdict IS other.verdict, "
          "pair.sample_id, pair.repeat, pair.turn) AS place FROM pair "
          "LEFT JOIN verdict AS own ON own.output_id = pair.output_id "
          "LEFT JOIN verdict AS other ON other.output_id = pair.reference_output_id "
          "WHERE differs AND reference = 'strict') "
          "SELECT ranked.cell_id, ranked.reference_id, ranked.sample_id, ranked.turn, verdict, "
          "reference_verdict, "
          "base.completion AS reference_text, output.completion AS text "
          "FROM ranked JOIN output ON output.id = output_id "
          "JOIN output AS base ON base.id = reference_output_id "
          "WHERE place <= {} ORDER BY place, ranked.cell_id LIMIT {}",
          kExamplesOfPair, kExamples));
  for (const ViewRow& row : rows) {
    const std::int64_t id = row.count("cell_id");
    TextPair pair = text_pair(row.text("reference_text"), row.text("text"));
    pair.title = fmt::format("{} · {}", evidence.cells.place(id), row.text("sample_id"));
    if (row.count("turn") > 1) pair.title += fmt::format(" · turn {}", row.count("turn"));
    const auto verdict = [&](const char* column) {
      return row.text(column).empty() ? "unscored" : row.text(column);
    };
    pair.left_name = fmt::format("{}: {}", evidence.cells.label(row.count("reference_id")),
                                 verdict("reference_verdict"));
    pair.right_name = fmt::format("{}: {}", evidence.cells.label(id), verdict("verdict"));
    section.blocks.emplace_back(std::move(pair));
  }
  if (rows.empty()) section.note = "No reply of a lossy cell differs from its strict one.";
  return section;
}

Section environment_section(const Evidence& evidence) {
  Section section{.id = "environment", .title = "Runs and environment"};
  Table runs{.title = "",
             .columns = {{"run"},
                         {"name"},
                         {"status"},
                         {"started"},
                         {"ended"},
                         {"config"},
                         {"command"},
                         {"version"},
                         {"commit"},
                         {"host"},
                         {"seed", Align::kRight}},
             .rows = {}};
  for (const ViewRow& row : read_rows(evidence.store, "SELECT * FROM run ORDER BY id")) {
    runs.rows.push_back(
        {row.text("id"), row.text("name"), row.text("status"), row.text("started"),
         row.text("ended"), row.text("config_file"), row.text("command"), row.text("version"),
         row.text("source_commit").substr(0, 12) + (row.count("dirty") != 0 ? " (changed)" : ""),
         row.text("host"), row.text("seed")});
  }
  if (runs.rows.empty()) {
    section.note = "No run is recorded.";
    return section;
  }
  section.blocks.emplace_back(std::move(runs));
  // One line a fact: what several runs share stands once.
  Table facts{.title = "Machine and build", .columns = {{"fact"}, {"value"}, {"runs"}}, .rows = {}};
  for (const ViewRow& row :
       read_rows(evidence.store,
                 "SELECT name, value, group_concat(run_id, ', ') AS runs FROM "
                 "environment GROUP BY name, value ORDER BY name, min(run_id)")) {
    facts.rows.push_back({row.text("name"), row.text("value"), row.text("runs")});
  }
  if (!facts.rows.empty()) section.blocks.emplace_back(std::move(facts));
  Table machine{.title = "The machine while arms were timed",
                .columns = {{"task"},
                            {"cell"},
                            {"quantity"},
                            {"slots", Align::kRight},
                            {"samples", Align::kRight},
                            {"mean", Align::kRight},
                            {"least", Align::kRight},
                            {"most", Align::kRight}},
                .rows = {}};
  for (const ViewRow& row :
       read_rows(evidence.store, "SELECT * FROM arm_environment ORDER BY cell_id, name")) {
    const std::int64_t id = row.count("cell_id");
    machine.rows.push_back({evidence.cells.place(id), evidence.cells.label(id), row.text("name"),
                            row.text("slots"), row.text("samples"), decimal(row.number("mean"), 3),
                            decimal(row.number("least"), 3), decimal(row.number("most"), 3)});
  }
  if (!machine.rows.empty()) section.blocks.emplace_back(std::move(machine));
  Table cells{.title = "Cells and what identifies them",
              .columns = {{"cell"},
                          {"task"},
                          {"rule and drafter"},
                          {"engine"},
                          {"weights"},
                          {"compute"},
                          {"logits"},
                          {"max tokens", Align::kRight},
                          {"batch", Align::kRight},
                          {"target SHA-256"},
                          {"data SHA-256"},
                          {"key"}},
              .rows = {}};
  for (const ViewRow& row : read_rows(evidence.store, "SELECT * FROM cell ORDER BY id")) {
    const std::int64_t id = row.count("id");
    cells.rows.push_back({row.text("id"), evidence.cells.place(id), evidence.cells.label(id),
                          row.text("engine"), row.text("weight_dtype"), row.text("compute_dtype"),
                          row.text("logit_dtype"), row.text("max_tokens"), row.text("batch"),
                          row.text("target_sha256").substr(0, 16),
                          row.text("data_sha256").substr(0, 16), row.text("key").substr(0, 16)});
  }
  section.blocks.emplace_back(std::move(cells));
  return section;
}

}  // namespace asdbench
