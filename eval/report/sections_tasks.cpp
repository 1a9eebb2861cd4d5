// What tasks have of their own: how replies ended, subjects, classes of code runs, judges,
// fidelity.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "eval/report/sections.h"
#include "eval/stats/divergence.h"
#include "eval/stats/fidelity.h"
#include "eval/stats/judged.h"
#include "eval/stats/stats.h"

namespace asdbench {
namespace {

std::string whole(std::int64_t value) { return std::to_string(value); }

std::string share(std::int64_t part, std::int64_t all) {
  if (all == 0) return std::string(kUndefined);
  return percent(static_cast<double>(part) / static_cast<double>(all));
}

std::optional<double> ratio(std::int64_t part, std::int64_t all) {
  if (all == 0) return std::nullopt;
  return static_cast<double>(part) / static_cast<double>(all);
}

/// sqrt(p (1 - p) / n), the standard error of a mean of 0 and 1.
std::string standard_error(std::optional<double> p, std::int64_t n) {
  if (!p || n == 0) return std::string(kUndefined);
  return percent(std::sqrt(*p * (1 - *p) / static_cast<double>(n)));
}

std::string grader_name(const ViewRow& row) {
  return fmt::format("{} {}", row.text("scorer"), row.count("scorer_version"));
}

/// Right answers and items, as a policy for capped replies counts them.
struct Count {
  std::int64_t right = 0, items = 0;
  void add(const ViewRow& row, bool capped_wrong) {
    right += row.count(capped_wrong ? "uncapped_correct" : "correct");
    items += row.count("n");
  }
};

/// The section with its table; without a note where there is nothing to tell.
Section with_table(Section section, Table table) {
  if (table.rows.empty()) {
    section.note.clear();
  } else {
    section.blocks.emplace_back(std::move(table));
  }
  return section;
}

// More ratings missing than this leave no headline (specs/scoring.md, section 6.3).
constexpr double kMostUnrated = 0.02;

}  // namespace

Section replies_section(const Evidence& evidence) {
  Section section{
      .id = "replies", .title = "Replies, and what graders found in them", .brief = true};
  section.note =
      "Every grader that has scored a cell, side by side, with both figures for capped replies and "
      "the standard error of the one that counts. Unparsed: no answer was found, which scores 0. "
      "Capped: the reply hit its limit. Failed samples have no score. Undecided: a comparison ran "
      "out of time or memory, which counts as incorrect.";
  Table table{.title = "",
              .columns = {{"task"},
                          {"cell"},
                          {"grader"},
                          {"n", Align::kRight},
                          {"capped wrong", Align::kRight},
                          {"as scored", Align::kRight},
                          {"std. error", Align::kRight},
                          {"unparsed", Align::kRight},
                          {"capped", Align::kRight},
                          {"unscored", Align::kRight},
                          {"undecided", Align::kRight},
                          {"failed", Align::kRight}},
              .rows = {}};
  for (const ViewRow& row : read_rows(
           evidence.store, "SELECT * FROM accuracy ORDER BY cell_id, scorer, scorer_version")) {
    const std::int64_t id = row.count("cell_id"), n = row.count("n");
    const std::int64_t replies = n + row.count("unscored");
    const bool wrong = capped_is_wrong(row.text("scorer"), evidence.capped);
    table.rows.push_back({evidence.cells.place(id), evidence.cells.label(id), grader_name(row),
                          whole(n), percent(row.number("capped_wrong")),
                          percent(row.number("as_scored")),
                          standard_error(row.number(wrong ? "capped_wrong" : "as_scored"), n),
                          share(row.count("no_answer"), n), share(row.count("capped"), replies),
                          whole(row.count("unscored")), whole(row.count("undecided")),
                          share(row.count("failed"), replies + row.count("failed"))});
  }
  return with_table(std::move(section), std::move(table));
}

namespace {

/// Counts by cell and name of its group.
using Groups = std::map<std::int64_t, std::map<std::string, Count>>;

enum class GroupBy { kCategory, kSubject };

Groups groups_of(const Evidence& evidence, GroupBy by) {
  Groups groups;
  for (const ViewRow& row :
       read_rows(evidence.store, "SELECT * FROM breakdown WHERE category <> '' AND n > 0")) {
    // A conversation is no subject.
    if (by == GroupBy::kSubject &&
        (row.text("cluster").empty() || row.count("conversation") != 0)) {
      continue;
    }
    const std::int64_t id = row.count("cell_id");
    const std::string name = row.text(by == GroupBy::kCategory ? "category" : "cluster");
    groups[id][name].add(row, capped_is_wrong(evidence.cells.at(id), evidence.capped));
  }
  return groups;
}

/// One table a setting: a line for each group, a column for each cell; above them micro and macro.
void add_groups(const Evidence& evidence, Groups groups, Section& section) {
  for (const auto& setting : evidence.cells.settings()) {
    std::set<std::string> names;
    for (const MatrixRow* cell : setting) {
      for (const auto& [name, count] : groups[cell->cell_id]) names.insert(name);
    }
    if (names.empty()) continue;
    Table table{.title = evidence.cells.place(setting.front()->cell_id),
                .columns = {{"group"}},
                .rows = {{"micro"}, {"macro"}}};
    for (const std::string& name : names) table.rows.push_back({name});
    for (const MatrixRow* cell : setting) {
      table.columns.push_back({evidence.cells.label(cell->cell_id), Align::kRight});
      std::vector<std::pair<std::int64_t, std::int64_t>> counts;
      for (const auto& [name, count] : groups[cell->cell_id]) {
        counts.emplace_back(count.right, count.items);
      }
      const SubjectMeans means = subject_means(counts);
      table.rows[0].push_back(percent(means.micro));
      table.rows[1].push_back(percent(means.macro));
      std::size_t line = 2;
      for (const std::string& name : names) {
        const Count count = groups[cell->cell_id][name];
        table.rows[line++].push_back(
            count.items == 0
                ? std::string(kUndefined)
                : fmt::format("{} of {}", percent(ratio(count.right, count.items)), count.items));
      }
    }
    section.blocks.emplace_back(std::move(table));
  }
}

constexpr const char* kGroupNote =
    "Of the cell's own grader. Micro is the mean over all items, the headline; macro the mean over "
    "the groups below it.";

}  // namespace

Section categories_section(const Evidence& evidence) {
  Section section{.id = "categories", .title = "By category", .brief = true};
  add_groups(evidence, groups_of(evidence, GroupBy::kCategory), section);
  if (!section.blocks.empty()) section.note = kGroupNote;
  return section;
}

Section subjects_section(const Evidence& evidence) {
  Section section{.id = "subjects", .title = "By subject"};
  add_groups(evidence, groups_of(evidence, GroupBy::kSubject), section);
  if (!section.blocks.empty()) section.note = kGroupNote;
  return section;
}

Section outcomes_section(const Evidence& evidence) {
  Section section{.id = "outcomes", .title = "Code runs by outcome", .brief = true};
  section.note =
      "Of the cell's own grader. A runner_error is a fault of ours or of the machine, never of the "
      "reply: it is unscored, and above 0.5 % the run is invalid.";
  Table table{.title = "",
              .columns = {{"task"},
                          {"cell"},
                          {"outcome"},
                          {"runs", Align::kRight},
                          {"share", Align::kRight}},
              .rows = {}};
  for (const ViewRow& row :
       read_rows(evidence.store, "SELECT * FROM outcome ORDER BY cell_id, runs DESC, outcome")) {
    const std::int64_t id = row.count("cell_id");
    table.rows.push_back({evidence.cells.place(id), evidence.cells.label(id), row.text("outcome"),
                          whole(row.count("runs")),
                          share(row.count("runs"), row.count("all_runs"))});
  }
  return with_table(std::move(section), std::move(table));
}

namespace {

/// Who judged, with which prompts: "judge-large, prompts own-1, seed 0".
std::string judge_name(const ViewRow& row) {
  return fmt::format("{}, prompts {}, seed {}", row.text("judge"), row.text("prompts"),
                     row.count("seed"));
}

/// "2026-12-01" of a time in ISO 8601.
std::string date_of(const ViewRow& row) { return row.text("latest").substr(0, 10); }

/// Ratings of one cell by one judge and grader.
struct Rated {
  std::map<std::pair<std::string, std::int64_t>, std::pair<double, std::int64_t>> sums;
  std::int64_t asked = 0, rated = 0;
  std::string date;  // of the latest

  void add(const ViewRow& row) {
    date = std::max(date, date_of(row));
    auto& [sum, count] = sums[{row.text("category"), row.count("turn")}];
    sum += row.number("total").value_or(0);
    count += row.count("rated");
    asked += row.count("asked");
    rated += row.count("rated");
  }
  /// Mean over what `wanted` (category, turn) picks.
  template <typename Wanted>
  std::optional<double> mean(const Wanted& wanted) const {
    double sum = 0;
    std::int64_t count = 0;
    for (const auto& [key, value] : sums) {
      if (!wanted(key.first, key.second)) continue;
      sum += value.first;
      count += value.second;
    }
    if (count == 0) return std::nullopt;
    return sum / static_cast<double>(count);
  }
  bool headline() const {
    return static_cast<double>(asked - rated) <= kMostUnrated * static_cast<double>(asked);
  }
};

void add_ratings(const Evidence& evidence, Section& section) {
  using Key = std::tuple<std::int64_t, std::string, std::string>;  // cell, judge, grader
  std::map<Key, Rated> rated;
  std::set<std::string> categories;
  for (const ViewRow& row :
       read_rows(evidence.store, "SELECT * FROM judged WHERE kind = 'single' ORDER BY cell_id")) {
    rated[{row.count("cell_id"), judge_name(row), row.text("grader")}].add(row);
    categories.insert(row.text("category"));
  }
  if (rated.empty()) return;
  Table table{.title = "Ratings from 1 to 10",
              .columns = {{"task"},
                          {"cell"},
                          {"judge"},
                          {"latest"},
                          {"grader"},
                          {"rated", Align::kRight},
                          {"average", Align::kRight},
                          {"turn 1", Align::kRight},
                          {"turn 2", Align::kRight}},
              .rows = {}};
  for (const std::string& category : categories) table.columns.push_back({category, Align::kRight});
  for (const auto& [key, ratings] : rated) {
    const auto& [id, judge, grader] = key;
    const auto any = [](const std::string&, std::int64_t) { return true; };
    std::vector<std::string> row = {evidence.cells.place(id),
                                    evidence.cells.label(id),
                                    judge,
                                    ratings.date,
                                    grader,
                                    fmt::format("{} of {}", ratings.rated, ratings.asked),
                                    ratings.headline()
                                        ? decimal(ratings.mean(any), 2)
                                        : fmt::format("{} (too many without)", kUndefined)};
    for (const std::int64_t turn : {1, 2}) {
      row.push_back(
          decimal(ratings.mean([&](const std::string&, std::int64_t t) { return t == turn; }), 2));
    }
    for (const std::string& category : categories) {
      row.push_back(decimal(
          ratings.mean([&](const std::string& c, std::int64_t) { return c == category; }), 2));
    }
    table.rows.push_back(std::move(row));
  }
  section.blocks.emplace_back(std::move(table));
}

void add_preferences(const Evidence& evidence, Section& section) {
  using Key = std::tuple<std::int64_t, std::string, std::string>;  // cell, judge, baseline
  struct Pairs {
    std::vector<std::optional<double>> preferences;
    std::int64_t equal = 0;
    std::string date;  // of the latest
  };
  std::map<Key, Pairs> pairs;
  for (const ViewRow& row : read_rows(evidence.store, "SELECT * FROM preference")) {
    Pairs& entry = pairs[{row.count("cell_id"), judge_name(row), row.text("baseline")}];
    entry.date = std::max(entry.date, date_of(row));
    entry.preferences.push_back(row.number("value"));
    entry.equal += row.count("equal");
  }
  if (pairs.empty()) return;
  Table table{.title = "Preference over the baseline; 50 % is no difference",
              .columns = {{"task"},
                          {"cell"},
                          {"judge"},
                          {"latest"},
                          {"baseline"},
                          {"judged", Align::kRight},
                          {"win rate", Align::kRight},
                          {"discrete", Align::kRight},
                          {"equal replies", Align::kRight},
                          {"without a word", Align::kRight}},
              .rows = {}};
  for (const auto& [key, entry] : pairs) {
    const auto& [id, judge, baseline] = key;
    const WinRate rate = win_rate(entry.preferences);
    const auto of_hundred = [](std::optional<double> value) {
      return value ? percent(*value / 100) : std::string(kUndefined);
    };
    table.rows.push_back({evidence.cells.place(id), evidence.cells.label(id), judge, entry.date,
                          baseline, whole(rate.judged), of_hundred(rate.weighted),
                          of_hundred(rate.discrete), whole(entry.equal), whole(rate.failed)});
  }
  section.blocks.emplace_back(std::move(table));
}

/// Cells that wait for a judge: they have no score, and none is made up.
void add_unjudged(const Evidence& evidence, Section& section) {
  std::set<std::int64_t> judged;
  for (const ViewRow& row :
       read_rows(evidence.store,
                 "SELECT DISTINCT cell_id FROM output WHERE id IN (SELECT output_id FROM judgement "
                 "UNION SELECT baseline_output_id FROM judgement)")) {
    judged.insert(row.count("cell_id"));
  }
  Table table{.title = "No judge has seen these replies; `asdbench judge` asks one",
              .columns = {{"task"}, {"cell"}, {"replies", Align::kRight}, {"score"}},
              .rows = {}};
  for (const MatrixRow& row : evidence.cells.rows()) {
    if (!is_judged(row) || row.unscored == 0 || judged.contains(row.cell_id)) continue;
    table.rows.push_back({evidence.cells.place(row.cell_id), evidence.cells.label(row.cell_id),
                          whole(row.unscored), "none"});
  }
  if (!table.rows.empty()) section.blocks.emplace_back(std::move(table));
}

}  // namespace

Section judged_section(const Evidence& evidence) {
  Section section{.id = "judged", .title = "Judged", .brief = true};
  add_ratings(evidence, section);
  add_preferences(evidence, section);
  if (!section.blocks.empty()) {
    section.note =
        "Repeated ratings of the same answers by one judge differ by up to 0.2. Ratings are of "
        "greedy replies and are not comparable with published ones. Equal replies count as draws "
        "without a question. Win rates are not corrected for length: `asdbench judge "
        "--annotations` writes the preferences for AlpacaEval's own tool.";
  }
  add_unjudged(evidence, section);
  return section;
}

namespace {

/// Tokens of a blob's hexadecimal text, little-endian words.
std::vector<TokenId> tokens_of(const std::string& hex) {
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  std::vector<TokenId> tokens;
  for (std::size_t at = 0; at + 8 <= hex.size(); at += 8) {
    std::uint32_t word = 0;
    for (int byte = 3; byte >= 0; --byte) {
      const std::size_t place = at + 2 * static_cast<std::size_t>(byte);
      word = word << 8 | static_cast<std::uint32_t>(16 * digit(hex[place]) + digit(hex[place + 1]));
    }
    tokens.push_back(static_cast<TokenId>(word));
  }
  return tokens;
}

/// Sums over the pairs of one cell and its reference. What needs the tokens and the text is summed
/// over the diverged pairs that were drawn, and stands for all diverged ones.
struct Fidelity {
  std::int64_t pairs = 0, identical = 0, identical_with_words = 0, drawn = 0;
  std::int64_t answered = 0, agreed = 0, scored = 0;
  double prefix = 0, positions = 0, rouge = 0, edits = 0;  // of drawn ones
  double difference = 0, squares = 0;                      // of scores
  std::vector<double> first;

  void add_score_change(double change) {
    ++scored;
    difference += change;
    squares += change * change;
  }
  void add_drawn(const std::vector<TokenId>& own, const std::vector<TokenId>& base,
                 const std::string& text, const std::string& base_text) {
    ++drawn;
    const TokenFidelity tokens = token_fidelity(own, base);
    if (tokens.first_divergence) first.push_back(static_cast<double>(*tokens.first_divergence));
    prefix += tokens.prefix_match;
    positions += tokens.position_agreement;
    edits += diverge(own, base).edit_share;
    rouge += rouge_l(text, base_text);
  }
  /// Mean over all pairs, of which the identical ones add `of_identical`.
  std::string mean(double of_identical, double of_drawn) const {
    const std::int64_t diverged = pairs - identical;
    if (pairs == 0 || (diverged > 0 && drawn == 0)) return std::string(kUndefined);
    if (diverged > 0) {
      of_identical += of_drawn * static_cast<double>(diverged) / static_cast<double>(drawn);
    }
    return decimal(of_identical / static_cast<double>(pairs), 3);
  }
  /// Mean change of the score with its paired standard error.
  std::string change() const {
    if (scored == 0) return std::string(kUndefined);
    const auto n = static_cast<double>(scored);
    const double average = difference / n;
    std::string text = fmt::format("{:+.4f}", average);
    if (scored > 1) {
      const double variance = std::max(0.0, (squares - n * average * average) / (n - 1));
      text += fmt::format(" ± {:.4f}", std::sqrt(variance / n));
    }
    return text;
  }
};

// Some tenths of a second of comparing texts for all cells together.
constexpr std::int64_t kComparedPairs = 6'000;
constexpr std::int64_t kFewestCompared = 200;  // of a cell

/// Which diverged pairs are compared word by word: all, or as many as there is time for, by the
/// hash of their prompts, which is as good as a draw and the same every time.
struct Draw {
  std::int64_t limit = 0;  // about so many of a cell
  std::string largest;     // CASE over cells: the last hash that is taken; "" when all are
};

Draw draw_of(const Evidence& evidence) {
  std::map<std::int64_t, std::int64_t> diverged;
  for (const ViewRow& row : evidence.paired) {
    std::int64_t& most = diverged[row.count("cell_id")];
    most = std::max(most, row.count("diverged"));
  }
  const auto cells = std::max<std::int64_t>(1, static_cast<std::int64_t>(diverged.size()));
  Draw draw{.limit = std::max(kFewestCompared, kComparedPairs / cells), .largest = ""};
  for (const auto& [cell, pairs] : diverged) {
    if (pairs <= draw.limit) continue;
    const double share = static_cast<double>(draw.limit) / static_cast<double>(pairs);
    draw.largest += fmt::format(" WHEN {} THEN '{:08x}'", cell,
                                static_cast<std::uint32_t>(share * 0xFFFFFFFFU));
  }
  return draw;
}

// {}: whether a diverged pair is drawn.
constexpr const char* kFidelityRows =
    "WITH drawn AS (SELECT pair.*, own.completion, own.tokens, base.completion AS base_completion, "
    "base.tokens AS base_tokens, pair.differs AND {} AS taken "
    "FROM pair JOIN output AS own ON own.id = pair.output_id "
    "JOIN output AS base ON base.id = pair.reference_output_id "
    "WHERE pair.reference = 'strict' OR pair.cell_id NOT IN "
    "(SELECT cell_id FROM cell_reference WHERE reference = 'strict')) "
    "SELECT drawn.cell_id, differs, taken, capped, reference_capped, mine.value, theirs.value, "
    "coalesce(mine.answer, mine.outcome, theirs.answer, theirs.outcome) IS NOT NULL, "
    "mine.answer IS theirs.answer AND mine.outcome IS theirs.outcome, "
    "NOT differs AND completion GLOB '*[A-Za-z0-9]*', "
    "CASE WHEN taken THEN tokens END, CASE WHEN taken THEN base_tokens END, "
    "CASE WHEN taken THEN completion END, CASE WHEN taken THEN base_completion END "
    "FROM drawn LEFT JOIN verdict AS mine ON mine.output_id = drawn.output_id "
    "LEFT JOIN verdict AS theirs ON theirs.output_id = drawn.reference_output_id";

std::map<std::int64_t, Fidelity> fidelity_of(const Evidence& evidence, const Draw& draw) {
  std::map<std::int64_t, Fidelity> cells;
  const std::string taken = draw.largest.empty()
                                ? std::string("1")
                                : "own.prompt_sha256 <= CASE pair.cell_id" + draw.largest +
                                      " ELSE 'g' END";  // after every hash
  evidence.store.read(fmt::format(kFidelityRows, taken), [&](const std::vector<std::string>&,
                                                             const std::vector<Value>& row) {
    const auto flag = [&](std::size_t column) {
      const auto* value = std::get_if<std::int64_t>(&row[column]);
      return value != nullptr && *value != 0;
    };
    const auto text = [&](std::size_t column) {
      const auto* value = std::get_if<std::string>(&row[column]);
      return value == nullptr ? std::string() : *value;
    };
    const std::int64_t id = std::get<std::int64_t>(row[0]);
    const bool wrong = capped_is_wrong(evidence.cells.at(id), evidence.capped);
    const auto score = [&](std::size_t column, bool capped) -> std::optional<double> {
      const auto* value = std::get_if<double>(&row[column]);
      if (value == nullptr) return std::nullopt;
      return wrong && capped ? 0 : *value;
    };
    Fidelity& cell = cells[id];
    ++cell.pairs;
    const auto mine = score(5, flag(3)), theirs = score(6, flag(4));
    if (mine && theirs) cell.add_score_change(*mine - *theirs);
    if (flag(7)) {
      ++cell.answered;
      cell.agreed += flag(8) ? 1 : 0;
    }
    if (!flag(1)) {
      ++cell.identical;
      cell.identical_with_words += flag(9) ? 1 : 0;
    } else if (flag(2)) {
      cell.add_drawn(tokens_of(text(10)), tokens_of(text(11)), text(12), text(13));
    }
  });
  return cells;
}

}  // namespace

Section fidelity_section(const Evidence& evidence) {
  Section section{
      .id = "fidelity", .title = "Fidelity to the strict output (no judge)", .brief = true};
  section.note =
      "How close each reply is to the strict greedy one, which says nothing about which is better: "
      "a diverged text is no quality loss, and an unchanged score is no fidelity. Prefix and "
      "position agreement are shares of the longer output, edits the Levenshtein distance over it, "
      "all on token ids; ROUGE-L is the F1 of words. Answers agree where the same one was "
      "extracted, or the code ran to the same end.";
  const Draw draw = draw_of(evidence);
  if (!draw.largest.empty()) {
    section.note += fmt::format(
        " Where more than {0} replies of a cell diverged, first divergence, prefix, positions, "
        "edits and ROUGE-L are of about {0} of these, drawn by the hash of their prompts.",
        draw.limit);
  }
  std::map<std::int64_t, Fidelity> cells = fidelity_of(evidence, draw);
  Table table{.title = "",
              .columns = {{"task"},
                          {"cell"},
                          {"pairs", Align::kRight},
                          {"identical", Align::kRight},
                          {"median first divergence", Align::kRight},
                          {"prefix", Align::kRight},
                          {"positions", Align::kRight},
                          {"edits", Align::kRight},
                          {"ROUGE-L", Align::kRight},
                          {"answers agree", Align::kRight},
                          {"score change ± SE", Align::kRight}},
              .rows = {}};
  for (auto& [id, cell] : cells) {
    std::sort(cell.first.begin(), cell.first.end());
    const auto identical = static_cast<double>(cell.identical);
    const auto with_words = static_cast<double>(cell.identical_with_words);
    table.rows.push_back({evidence.cells.place(id), evidence.cells.label(id), whole(cell.pairs),
                          share(cell.identical, cell.pairs),
                          decimal(quantile_linear(cell.first, 0.5), 0),
                          cell.mean(identical, cell.prefix), cell.mean(identical, cell.positions),
                          cell.mean(0, cell.edits), cell.mean(with_words, cell.rouge),
                          share(cell.agreed, cell.answered), cell.change()});
  }
  return with_table(std::move(section), std::move(table));
}

}  // namespace asdbench
