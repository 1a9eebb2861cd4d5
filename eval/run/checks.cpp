// Invariants over stored rows, as SQL that returns the rows that break them.
#include "eval/run/checks.h"

#include <fmt/format.h>

#include <array>
#include <optional>

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

// A done output holds the token from prefill and what its passes committed, nothing else.
constexpr Invariant kCommitted = {
    "committed_tokens", "SELECT count(*) FROM output WHERE status = 'done'",
    "SELECT o.sample_id || ': ' || o.output_tokens || ' tokens, passes committed ' || "
    "       coalesce((SELECT sum(p.committed) FROM pass p WHERE p.output_id = o.id), 0) "
    "FROM output o WHERE o.status = 'done' AND o.output_tokens <> 1 + "
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

// Rules that promise the greedy output and never took an exception must agree token for token: on
// one target, sample and limit, whatever drafter was used.
constexpr Invariant kGreedy = {
    "greedy_outputs_equal",
    "SELECT count(*) FROM output a JOIN cell ca ON ca.id = a.cell_id "
    "JOIN output b ON b.sample_id = a.sample_id AND b.repeat = a.repeat "
    "JOIN cell cb ON cb.id = b.cell_id "
    "WHERE ca.id < cb.id AND a.status = 'done' AND b.status = 'done' "
    "AND ca.verifier_keeps = 'greedy' AND cb.verifier_keeps = 'greedy' "
    "AND ca.task = cb.task AND ca.split = cb.split AND ca.target_sha256 = cb.target_sha256 AND "
    "ca.target = cb.target "
    "AND ca.engine = cb.engine AND ca.device = cb.device AND ca.compute_dtype = cb.compute_dtype "
    "AND ca.max_tokens = cb.max_tokens AND a.prompt_sha256 = b.prompt_sha256",
    "SELECT a.sample_id || ': ' || ca.drafter || ' and ' || cb.drafter || ' differ' "
    "FROM output a JOIN cell ca ON ca.id = a.cell_id "
    "JOIN output b ON b.sample_id = a.sample_id AND b.repeat = a.repeat "
    "JOIN cell cb ON cb.id = b.cell_id "
    "WHERE ca.id < cb.id AND a.status = 'done' AND b.status = 'done' "
    "AND ca.verifier_keeps = 'greedy' AND cb.verifier_keeps = 'greedy' "
    "AND ca.task = cb.task AND ca.split = cb.split AND ca.target_sha256 = cb.target_sha256 AND "
    "ca.target = cb.target "
    "AND ca.engine = cb.engine AND ca.device = cb.device AND ca.compute_dtype = cb.compute_dtype "
    "AND ca.max_tokens = cb.max_tokens AND a.prompt_sha256 = b.prompt_sha256 "
    "AND a.tokens_sha256 <> b.tokens_sha256"};

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

}  // namespace

std::vector<Check> check_rows(const ResultStore& store) {
  std::vector<Check> checks;
  for (const Invariant& invariant : {kCommitted, kLedger, kExceptions, kGreedy}) {
    checks.push_back(check(store, invariant));
  }
  return checks;
}

}  // namespace asdbench
