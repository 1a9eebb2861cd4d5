// Invariants over stored rows, as SQL that returns the rows that break them.
#include "eval/run/checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <utility>

namespace asdbench {

std::string_view name_of(CheckStatus status) {
  static constexpr std::array<std::string_view, 3> kNames = {"pass", "fail", "n/a"};
  return kNames.at(static_cast<std::size_t>(status));
}

namespace {

struct Invariant {
  const char* name;
  const char* checked;   // SQL: how many rows the invariant speaks about
  const char* breaking;  // SQL: one text column per row that breaks it
};

// A done output holds the token from prefill and what its passes committed, nothing else. Where
// the task chose by log-probability nothing was decoded.
constexpr Invariant kCommitted = {
    "committed_tokens", "SELECT count(*) FROM output WHERE status = 'done' AND output_tokens > 0",
    "SELECT o.sample_id || ': ' || o.output_tokens || ' tokens, passes committed ' || "
    "       coalesce((SELECT sum(p.committed) FROM pass p WHERE p.output_id = o.id), 0) "
    "FROM output o WHERE o.status = 'done' AND o.output_tokens > 0 AND o.output_tokens <> 1 + "
    "  coalesce((SELECT sum(p.committed) FROM pass p WHERE p.output_id = o.id), 0)"};

constexpr Invariant kLedger = {
    "ledger_within_budget",
    "SELECT count(*) FROM output o JOIN cell c ON c.id = o.cell_id "
    "WHERE o.status = 'done' AND c.regret_budget IS NOT NULL",
    "SELECT o.sample_id || ': spent ' || o.regret || ' of ' || c.regret_budget "
    "FROM output o JOIN cell c ON c.id = o.cell_id "
    "WHERE o.status = 'done' AND c.regret_budget IS NOT NULL AND o.regret > c.regret_budget"};

constexpr Invariant kExceptions = {
    "exceptions_within_cap",
    "SELECT count(*) FROM output o JOIN cell c ON c.id = o.cell_id "
    "WHERE o.status = 'done' AND c.max_exceptions IS NOT NULL",
    "SELECT o.sample_id || ': pass ' || e.pass || ' has ' || count(*) || ' exceptions, M is ' || "
    "c.max_exceptions "
    "FROM exception e JOIN output o ON o.id = e.output_id JOIN cell c ON c.id = o.cell_id "
    "WHERE c.max_exceptions IS NOT NULL GROUP BY e.output_id, e.pass HAVING count(*) > "
    "c.max_exceptions"};

// Every slot of one arm over the same work gives the same tokens.
constexpr Invariant kRepeats = {
    "timed_outputs_repeat", "SELECT count(*) FROM speed_slot",
    "SELECT 'cell ' || cell_id || ', set ' || substr(set_key, 1, 12) || ': ' || "
    "count(DISTINCT tokens_sha256) || ' different outputs' "
    "FROM speed_slot JOIN speed_group ON speed_group.id = group_id "
    "GROUP BY set_key, cell_id HAVING count(DISTINCT tokens_sha256) > 1"};

// Timed prompts decoded once more; other company in a batch may round otherwise.
constexpr Invariant kSpotCheck = {
    "timed_prompts_again",
    "SELECT count(*) FROM spot_check JOIN cell ON cell.id = cell_id AND cell.batch = 1",
    "SELECT 'cell ' || cell_id || ', sample ' || sample_id || ': other tokens when decoded again' "
    "FROM spot_check JOIN cell ON cell.id = cell_id AND cell.batch = 1 "
    "WHERE timed_sha256 <> again_sha256"};

// Outputs that promise the greedy text, joined with the earlier one of the same target, prompt and
// limit, whatever drafter was used.
constexpr const char* kGreedyPairs =
    "SELECT a.sample_id, ca.drafter || ' and ' || cb.drafter, hex(a.tokens), hex(b.tokens), a.id, "
    "b.id "
    "FROM output a JOIN cell ca ON ca.id = a.cell_id "
    "JOIN output b ON b.prompt_sha256 = a.prompt_sha256 AND b.sample_id = a.sample_id "
    "  AND b.repeat = a.repeat AND b.turn = a.turn "
    "JOIN cell cb ON cb.id = b.cell_id "
    "WHERE ca.id < cb.id AND a.status = 'done' AND b.status = 'done' "
    "AND ca.verifier_keeps = 'greedy' AND cb.verifier_keeps = 'greedy' "
    "AND ca.task = cb.task AND ca.split = cb.split AND ca.target = cb.target "
    "AND ca.target_sha256 = cb.target_sha256 AND ca.engine = cb.engine AND ca.device = cb.device "
    "AND ca.compute_dtype = cb.compute_dtype AND ca.activations = cb.activations AND ca.max_tokens "
    "= cb.max_tokens";

/// Tokens before the first difference of two lists of ids, each 8 hex digits.
std::int64_t common_tokens(std::string_view a, std::string_view b) {
  const auto [end, unused] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return (end - a.begin()) / 8;
}

/// Equal token for token, or first different where the better of two ids led by less than
/// kNearTieGap: rounding that depends on the shape of a step may decide those.
Check check_greedy(const ResultStore& store) {
  std::set<std::pair<std::string, std::string>> near_ties;  // (output, position)
  store.query("SELECT output_id, output_position FROM near_tie",
              [&](const auto&, const auto& row) { near_ties.emplace(*row[0], *row[1]); });
  std::int64_t pairs = 0, excused = 0, broken = 0;
  std::string first;
  store.query(kGreedyPairs, [&](const auto&, const auto& row) {
    ++pairs;
    const std::string left = row[2].value_or(""), right = row[3].value_or("");
    if (left == right) return;
    const std::int64_t at = common_tokens(left, right);
    const std::string position = std::to_string(at);
    if (near_ties.contains({*row[4], position}) || near_ties.contains({*row[5], position})) {
      ++excused;
    } else if (broken++ == 0) {
      first = fmt::format("sample {}: {} differ from token {} on", *row[0], *row[1], at);
    }
  });
  Check result{.name = "greedy_outputs_equal", .evidence = ""};
  if (pairs == 0) return result;
  result.status = broken == 0 ? CheckStatus::kPass : CheckStatus::kFail;
  result.evidence = broken == 0
                        ? fmt::format("{} pairs, {} first differ at a near tie", pairs, excused)
                        : fmt::format("{} of {} pairs broken, first: {}", broken, pairs, first);
  return result;
}

Check check(const ResultStore& store, const Invariant& invariant) {
  Check result{.name = invariant.name};
  std::int64_t checked = 0;
  store.query(invariant.checked,
              [&](const auto&, const auto& row) { checked = std::stoll(row[0].value_or("0")); });
  if (checked == 0) return result;
  std::int64_t broken = 0;
  std::string first;
  store.query(invariant.breaking, [&](const auto&, const auto& row) {
    if (broken++ == 0) first = row[0].value_or("");
  });
  result.status = broken == 0 ? CheckStatus::kPass : CheckStatus::kFail;
  result.evidence = broken == 0 ? fmt::format("{} checked", checked)
                                : fmt::format("{} of {} broken, first: {}", broken, checked, first);
  return result;
}

/// Programs that could not be run have no verdict: above a share of 0.5 % a score means nothing.
/// Source: specs/scoring.md, sections 5.3 and 9.
Check check_code_runner(const ResultStore& store) {
  constexpr std::int64_t kLargestShareInverse = 200;
  std::int64_t run = 0, errors = 0;
  std::string first;
  store.query(
      "SELECT sum(outcome <> 'runner_error'), sum(outcome = 'runner_error'), "
      "min(CASE WHEN outcome = 'runner_error' THEN detail END) FROM score WHERE outcome IS NOT "
      "NULL",
      [&](const auto&, const auto& row) {
        run = std::stoll(row[0].value_or("0"));
        errors = std::stoll(row[1].value_or("0"));
        first = row[2].value_or("");
      });
  Check result{.name = "programs_run", .evidence = ""};
  if (run + errors == 0) return result;
  result.status =
      errors * kLargestShareInverse > run + errors ? CheckStatus::kFail : CheckStatus::kPass;
  result.evidence = fmt::format("{} run, {} not", run, errors);
  if (errors > 0) result.evidence += ", such as: " + first;
  return result;
}

}  // namespace

std::vector<Check> check_rows(const ResultStore& store) {
  std::vector<Check> checks;
  for (const Invariant& invariant : {kCommitted, kLedger, kExceptions, kRepeats, kSpotCheck}) {
    checks.push_back(check(store, invariant));
  }
  checks.push_back(check_greedy(store));
  checks.push_back(check_code_runner(store));
  return checks;
}

}  // namespace asdbench
