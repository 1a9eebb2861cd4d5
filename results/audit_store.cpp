// Links, manifests and splits in; facts about outputs and slots out.
#include "results/audit_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <span>

#include "eval/core/completion.h"
#include "eval/core/digest.h"
#include "eval/core/error.h"
#include "results/database_internal.h"

namespace asdbench {
namespace {

constexpr auto kImmediate = SQLite::TransactionBehavior::IMMEDIATE;

std::string text_or_empty(const SQLite::Column& column) {
  return column.isNull() ? std::string() : column.getString();
}

void insert_record(SQLite::Database& database, const std::string& campaign,
                   const RecordRow& record) {
  SQLite::Statement insert(database, "INSERT INTO record VALUES (?, ?, ?, ?, ?)");
  execute(insert, campaign, record.seq, record.body, record.prev, record.hash);
}

/// StoreError when the chain does not end where `record` begins.
void check_place(const std::string& file, SQLite::Database& database, const std::string& campaign,
                 const RecordRow& record) {
  SQLite::Statement find(database, "SELECT count(*) FROM record WHERE campaign = ?");
  bind_all(find, campaign);
  find.executeStep();
  if (find.getColumn(0).getInt64() != record.seq) {
    throw StoreError(
        fmt::format("{}: record {} of campaign {} is there already: another process went on with "
                    "it\n  let one process work on a campaign at a time, and run the command again",
                    file, record.seq, shown(campaign)));
  }
}

void insert_split(SQLite::Database& database, const std::string& campaign, const char* part,
                  const std::vector<SplitRow>& rows) {
  SQLite::Statement insert(database, "INSERT INTO split VALUES (?, ?, ?, ?, ?, ?, ?, ?)");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    execute(insert, campaign, std::string(part), i, rows[i].task, rows[i].sample_id,
            rows[i].identity_sha256, rows[i].prompt, rows[i].sample);
  }
}

std::optional<Verdict> verdict_of(const std::string& name) {
  for (const Verdict verdict :
       {Verdict::kCorrect, Verdict::kIncorrect, Verdict::kNoAnswer, Verdict::kUnscored}) {
    if (name_of(verdict) == name) return verdict;
  }
  return std::nullopt;
}

/// Adds the passes of `facts.output_id`, and returns the drafts that each kept; their part of the
/// trace goes to `trace`.
std::vector<std::int64_t> add_passes(SQLite::Statement& select, OutputFacts& facts,
                                     fmt::memory_buffer& trace) {
  bind_all(select, facts.output_id);
  std::vector<std::int64_t> kept;
  while (select.executeStep()) {
    const auto number = [&](int i) { return select.getColumn(i).getInt64(); };
    fmt::format_to(std::back_inserter(trace), "p {} {} {} {} {} {} {}\n", number(0), number(1),
                   number(2), number(3), number(4), number(5), number(6));
    facts.committed += number(4);
    const auto blocked = static_cast<std::uint8_t>(number(6));
    if ((blocked & (kBlockedByBudget | kBlockedByHeadroom)) != 0) facts.blocked_by_budget = true;
    kept.push_back(number(3));
  }
  facts.passes = static_cast<std::int64_t>(kept.size());
  return kept;
}

/// Adds the exceptions, and follows the ledger through them: s + C, summed inside each block.
/// Reused tokens of a pass are its kept drafts behind the first exception that are none themselves.
void add_exceptions(SQLite::Statement& select, double gate, std::span<const std::int64_t> kept,
                    OutputFacts& facts, fmt::memory_buffer& trace) {
  bind_all(select, facts.output_id);
  double spent = 0, spent_before = 0, block = 0;
  std::int64_t pass = -1, in_pass = 0;
  bool adds_up = true;
  while (select.executeStep()) {
    const auto number = [&](int i) { return select.getColumn(i).getInt64(); };
    const double regret = select.getColumn(7).getDouble();
    const double weight = select.getColumn(8).getDouble();
    const double after = select.getColumn(9).getDouble();
    fmt::format_to(std::back_inserter(trace), "e {} {} {} {} {} {} {} {} {} {}\n", number(0),
                   number(1), number(2), number(3), number(4), number(5), number(6), regret, weight,
                   after);
    if (number(1) != pass) {
      pass = number(1);
      spent_before = spent;
      block = 0;
      in_pass = 0;
      if (pass >= 0 && pass < std::ssize(kept)) {
        facts.reused += kept[static_cast<std::size_t>(pass)] - number(3);
      }
    }
    --facts.reused;
    block += regret;
    spent = after;
    adds_up = adds_up && after == spent_before + block && regret >= 0;
    facts.most_in_pass = std::max(facts.most_in_pass, ++in_pass);
    facts.largest_excess = std::max(facts.largest_excess, regret - gate * weight);
    facts.regrets.push_back(regret);
    facts.positions.push_back(number(2));
    facts.block_positions.push_back(number(3));
  }
  facts.exceptions = static_cast<std::int64_t>(facts.regrets.size());
  facts.ledger_ok = adds_up && spent == facts.regret;
}

OutputFacts facts_of(SQLite::Statement& row) {
  OutputFacts facts;
  facts.output_id = row.getColumn(0).getInt64();
  facts.run_id = row.getColumn(1).getInt64();
  facts.sample_id = row.getColumn(2).getString();
  facts.cluster = row.getColumn(3).getString();
  facts.status = row.getColumn(4).getString();
  facts.error = text_or_empty(row.getColumn(5));
  facts.prompt_sha256 = row.getColumn(6).getString();
  facts.identity_sha256 = row.getColumn(7).getString();
  facts.stored_tokens_sha256 = text_or_empty(row.getColumn(8));
  const SQLite::Column blob = row.getColumn(9);
  const auto bytes = static_cast<std::size_t>(blob.getBytes());
  facts.tokens_sha256 = sha256_hex({static_cast<const char*>(blob.getBlob()), bytes});
  const auto* words = static_cast<const unsigned char*>(blob.getBlob());
  for (std::size_t i = 0; i + 4 <= bytes; i += 4) {
    const std::uint32_t word = words[i] | std::uint32_t{words[i + 1]} << 8 |
                               std::uint32_t{words[i + 2]} << 16 |
                               std::uint32_t{words[i + 3]} << 24;
    facts.tokens.push_back(std::bit_cast<TokenId>(word));
  }
  facts.text = text_or_empty(row.getColumn(10));
  facts.finish_reason = text_or_empty(row.getColumn(11));
  facts.output_tokens = row.getColumn(12).getInt64();
  facts.regret = row.getColumn(13).getDouble();
  if (!row.getColumn(14).isNull()) facts.verdict = verdict_of(row.getColumn(14).getString());
  if (!row.getColumn(15).isNull()) facts.value = row.getColumn(15).getDouble();
  facts.answer = text_or_empty(row.getColumn(16));
  return facts;
}

}  // namespace

std::vector<RecordRow> AuditStore::records(const std::string& campaign) const {
  return guarded(state_.file, "read the record chain", [&] {
    SQLite::Statement select(
        state_.database,
        "SELECT seq, body, prev, hash FROM record WHERE campaign = ? ORDER BY seq");
    bind_all(select, campaign);
    std::vector<RecordRow> rows;
    while (select.executeStep()) {
      rows.push_back({select.getColumn(0).getInt64(), select.getColumn(1).getString(),
                      select.getColumn(2).getString(), select.getColumn(3).getString()});
    }
    return rows;
  });
}

std::vector<std::string> AuditStore::campaigns() const {
  return guarded(state_.file, "read the campaigns", [&] {
    SQLite::Statement select(state_.database, "SELECT DISTINCT campaign FROM record ORDER BY 1");
    std::vector<std::string> names;
    while (select.executeStep()) names.push_back(select.getColumn(0).getString());
    return names;
  });
}

void AuditStore::append(const std::string& campaign, const RecordRow& record) {
  ASDBENCH_CHECK(writable_, "the store was opened for writing");
  guarded(state_.file, "append a record", [&] {
    SQLite::Transaction transaction(state_.database, kImmediate);
    check_place(state_.file, state_.database, campaign, record);
    insert_record(state_.database, campaign, record);
    transaction.commit();
  });
}

void AuditStore::freeze(const ManifestRow& manifest, const std::vector<SplitRow>& a,
                        const std::vector<SplitRow>& b, const RecordRow& record) {
  ASDBENCH_CHECK(writable_, "the store was opened for writing");
  guarded(state_.file, "record the manifest", [&] {
    SQLite::Transaction transaction(state_.database, kImmediate);
    check_place(state_.file, state_.database, manifest.campaign, record);
    SQLite::Statement insert(state_.database, "INSERT INTO manifest VALUES (?, ?, ?)");
    execute(insert, manifest.campaign, manifest.sha256, manifest.body);
    insert_split(state_.database, manifest.campaign, "A", a);
    insert_split(state_.database, manifest.campaign, "B", b);
    insert_record(state_.database, manifest.campaign, record);
    transaction.commit();
  });
}

std::optional<ManifestRow> AuditStore::manifest(const std::string& campaign) const {
  return guarded(state_.file, "read the manifest", [&]() -> std::optional<ManifestRow> {
    SQLite::Statement select(state_.database,
                             "SELECT sha256, body FROM manifest WHERE campaign = ?");
    bind_all(select, campaign);
    if (!select.executeStep()) return std::nullopt;
    return ManifestRow{campaign, select.getColumn(0).getString(), select.getColumn(1).getString()};
  });
}

std::vector<SplitRow> AuditStore::split(const std::string& campaign,
                                        const std::string& part) const {
  return guarded(state_.file, "read a split", [&] {
    SQLite::Statement select(state_.database, R"(
      SELECT task, sample_id, identity_sha256, prompt, sample FROM split
      WHERE campaign = ? AND part = ? ORDER BY position)");
    bind_all(select, campaign, part);
    std::vector<SplitRow> rows;
    while (select.executeStep()) {
      rows.push_back({select.getColumn(0).getString(), select.getColumn(1).getString(),
                      select.getColumn(2).getString(), select.getColumn(3).getString(),
                      select.getColumn(4).getString()});
    }
    return rows;
  });
}

std::optional<AuditStore::Cell> AuditStore::cell(const std::string& key) const {
  return guarded(state_.file, "find a cell", [&]() -> std::optional<Cell> {
    SQLite::Statement select(state_.database, "SELECT id, identity FROM cell WHERE key = ?");
    bind_all(select, key);
    if (!select.executeStep()) return std::nullopt;
    return Cell{select.getColumn(0).getInt64(), select.getColumn(1).getString()};
  });
}

std::vector<OutputFacts> AuditStore::outputs(std::int64_t cell_id, const std::string& scorer,
                                             std::int64_t scorer_version, double gate,
                                             const std::string& sample_id) const {
  return guarded(state_.file, "read the outputs", [&] {
    SQLite::Transaction snapshot(state_.database);
    SQLite::Statement select(state_.database, std::string(R"(
      SELECT o.id, o.run_id, o.sample_id, o.cluster, o.status, o.error, o.prompt_sha256,
        o.identity_sha256, o.tokens_sha256, o.tokens, o.completion, o.finish_reason,
        o.output_tokens, o.regret, s.verdict, s.value, s.answer
      FROM output o LEFT JOIN score s
        ON s.output_id = o.id AND s.scorer = ? AND s.scorer_version = ?
      WHERE o.cell_id = ? AND o.repeat = 0 AND o.turn = 1)") +
                                                  (sample_id.empty() ? " ORDER BY o.sample_id"
                                                                     : " AND o.sample_id = ?"));
    bind_all(select, scorer, scorer_version, cell_id);
    if (!sample_id.empty()) select.bind(4, sample_id);
    SQLite::Statement passes(state_.database, R"(
      SELECT number, drafted, accepted, kept, committed, strict_length, blocked_by FROM pass
      WHERE output_id = ? ORDER BY number)");
    SQLite::Statement exceptions(state_.database, R"(
      SELECT number, pass, output_position, block_position, drafted, draft, choice, regret, weight,
        spent_after FROM exception WHERE output_id = ? ORDER BY number)");
    std::vector<OutputFacts> found;
    while (select.executeStep()) {
      OutputFacts facts = facts_of(select);
      fmt::memory_buffer trace;
      const std::vector<std::int64_t> kept = add_passes(passes, facts, trace);
      add_exceptions(exceptions, gate, kept, facts, trace);
      facts.trace_sha256 = sha256_hex({trace.data(), trace.size()});
      found.push_back(std::move(facts));
    }
    return found;
  });
}

void AuditStore::each_identity(
    const std::function<void(const std::string& identity, std::int64_t run_id)>& each) const {
  guarded(state_.file, "read the prompts", [&] {
    SQLite::Statement select(state_.database,
                             "SELECT identity_sha256, min(run_id) FROM output GROUP BY 1");
    while (select.executeStep()) {
      each(select.getColumn(0).getString(), select.getColumn(1).getInt64());
    }
  });
}

std::vector<SlotFacts> AuditStore::slots(const std::string& set_key) const {
  return guarded(state_.file, "read the speed groups", [&] {
    SQLite::Statement select(state_.database, R"(
      SELECT g.id, g.number, g.run_id, s.slot, s.cell_id, s.tokens, s.passes, s.post_end_tokens,
        s.decode_ns, s.tokens_sha256, v.reason
      FROM speed_group g JOIN speed_slot s ON s.group_id = g.id
        LEFT JOIN speed_void v ON v.group_id = g.id
      WHERE g.set_key = ? ORDER BY g.number, s.slot)");
    SQLite::Statement prompts(state_.database, R"(
      SELECT sample_id, tokens, decode_ns FROM speed_prompt WHERE group_id = ? AND slot = ?
      ORDER BY position)");
    SQLite::Statement environment(state_.database, R"(
      SELECT name, samples, mean, least, most FROM slot_environment
      WHERE group_id = ? AND slot = ? ORDER BY name)");
    bind_all(select, set_key);
    std::vector<SlotFacts> found;
    while (select.executeStep()) {
      const auto number = [&](int i) { return select.getColumn(i).getInt64(); };
      SlotFacts facts{
          .group = number(1), .slot = number(3), .cell_id = number(4), .run_id = number(2)};
      facts.tokens = number(5);
      facts.passes = number(6);
      facts.post_end_tokens = number(7);
      facts.decode_ns = number(8);
      facts.tokens_sha256 = select.getColumn(9).getString();
      facts.void_reason = text_or_empty(select.getColumn(10));
      bind_all(prompts, number(0), number(3));
      while (prompts.executeStep()) {
        facts.prompts.push_back({prompts.getColumn(0).getString(), prompts.getColumn(1).getInt64(),
                                 prompts.getColumn(2).getInt64()});
      }
      bind_all(environment, number(0), number(3));
      while (environment.executeStep()) {
        facts.environment.push_back(
            {environment.getColumn(0).getString(), environment.getColumn(1).getInt64(),
             environment.getColumn(2).getDouble(), environment.getColumn(3).getDouble(),
             environment.getColumn(4).getDouble()});
      }
      found.push_back(std::move(facts));
    }
    return found;
  });
}

}  // namespace asdbench
