// Rows in, rows out. Every public function is one transaction.
#include "results/store.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <limits>
#include <span>

#include "eval/core/digest.h"
#include "eval/core/error.h"
#include "results/database_internal.h"
#include "results/migrations_internal.h"

namespace asdbench {
namespace {

constexpr auto kImmediate = SQLite::TransactionBehavior::IMMEDIATE;

/// Ids as stored: 32-bit little-endian words.
std::string blob_of(std::span<const TokenId> tokens) {
  std::string blob;
  blob.reserve(tokens.size() * 4);
  for (const TokenId token : tokens) {
    const auto word = std::bit_cast<std::uint32_t>(token);
    for (const int shift : {0, 8, 16, 24}) blob += static_cast<char>(word >> shift & 0xFF);
  }
  return blob;
}

std::optional<std::string> unless_empty(const std::string& text) {
  if (text.empty()) return std::nullopt;
  return text;
}

void check_output(const OutputRow& output) {
  const Completion& completion = output.completion;
  ASDBENCH_CHECK(completion.error.empty() == completion.finish.has_value(),
                 "a completion has either a finish reason or an error");
  for (const ScoreRow& row : output.scores) {
    ASDBENCH_CHECK((row.score.verdict == Verdict::kUnscored) == !row.score.value.has_value(),
                   "a score has a value unless it is unscored");
  }
}

std::int64_t insert_output(SQLite::Database& database, const OutputRow& output) {
  SQLite::Statement insert(database, R"(
    INSERT INTO output (cell_id, run_id, sample_id, repeat, turn, status, error, cluster, category,
      prompt_sha256, identity_sha256, tokens_sha256, completion, finish_reason, prompt_tokens, output_tokens,
      passes, regret, exceptions, prefill_ns, decode_ns, tokens)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?))");
  const Completion& completion = output.completion;
  const bool failed = !completion.error.empty();
  std::optional<std::string> finish;
  if (completion.finish) finish = std::string(name_of(*completion.finish));
  bind_all(insert, output.cell_id, output.run_id, output.sample_id, output.repeat, output.turn,
           std::string(failed ? "failed" : "done"), unless_empty(completion.error), output.cluster,
           output.category, output.prompt_sha256, output.identity_sha256,
           sha256_tokens(completion.tokens), completion.text, finish, completion.prompt_tokens,
           completion.tokens.size(), completion.passes.size(), completion.spent,
           completion.exceptions.size(), completion.prefill_ns, completion.decode_ns);
  const std::string blob = blob_of(completion.tokens);
  const int last = insert.getBindParameterCount();
  insert.bind(last, static_cast<const void*>(blob.data()), static_cast<int>(blob.size()));
  insert.exec();
  return database.getLastInsertRowid();
}

void insert_passes(SQLite::Database& database, std::int64_t output_id,
                   const Completion& completion) {
  SQLite::Statement pass(database, "INSERT INTO pass VALUES (?, ?, ?, ?, ?, ?, ?, ?)");
  for (std::size_t i = 0; i < completion.passes.size(); ++i) {
    const PassRecord& row = completion.passes[i];
    execute(pass, output_id, i, row.drafted, row.accepted, row.kept, row.committed,
            row.strict_length, row.blocked_by);
  }
  SQLite::Statement near_tie(database, "INSERT INTO near_tie VALUES (?, ?, ?)");
  for (const NearTie& row : completion.near_ties) {
    execute(near_tie, output_id, row.output_position, row.gap);
  }
  SQLite::Statement exception(database,
                              "INSERT INTO exception VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  for (std::size_t i = 0; i < completion.exceptions.size(); ++i) {
    const ExceptionRecord& row = completion.exceptions[i];
    execute(exception, output_id, i, row.pass, row.output_position, row.block_position, row.drafted,
            row.draft, row.choice, row.regret, row.weight, row.spent_after);
  }
}

void execute_score(SQLite::Statement& insert, std::int64_t output_id, const ScoreRow& row) {
  execute(insert, output_id, row.scorer, row.scorer_version,
          std::string(name_of(row.score.verdict)), row.score.value, unless_empty(row.score.answer),
          unless_empty(row.score.rule), unless_empty(row.score.outcome),
          unless_empty(row.score.detail));
}

void insert_scores(SQLite::Database& database, std::int64_t output_id,
                   const std::vector<ScoreRow>& scores) {
  SQLite::Statement insert(database, "INSERT INTO score VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)");
  for (const ScoreRow& row : scores) execute_score(insert, output_id, row);
}

/// Whether `output` is still to be inserted; a failed output of before is deleted. StoreError when
/// a finished one differs: greedy outputs of one cell are equal, so one of the two came from
/// another program or machine.
bool make_room(const std::string& file, SQLite::Database& database, const OutputRow& output) {
  SQLite::Statement find(database, R"(
    SELECT id, status, tokens_sha256, finish_reason, run_id FROM output
    WHERE cell_id = ? AND sample_id = ? AND repeat = ? AND turn = ?)");
  bind_all(find, output.cell_id, output.sample_id, output.repeat, output.turn);
  if (!find.executeStep()) return true;
  if (find.getColumn(1).getString() == "failed") {
    SQLite::Statement remove(database, "DELETE FROM output WHERE id = ?");
    execute(remove, find.getColumn(0).getInt64());
    return true;
  }
  const Completion& completion = output.completion;
  if (!completion.finish) return false;  // a failure does not undo what another run finished
  if (find.getColumn(2).getString() != sha256_tokens(completion.tokens) ||
      find.getColumn(3).getString() != name_of(*completion.finish)) {
    throw StoreError(fmt::format(
        "{}: sample {} of cell {} was recorded by run {} with other tokens than run {} decoded\n"
        "  the first is kept; outputs of one cell must be equal: use another file with --db for "
        "another machine or build",
        file, output.sample_id, output.cell_id, find.getColumn(4).getInt64(), output.run_id));
  }
  return false;
}

std::optional<double> number(const SQLite::Column& column) {
  if (column.isNull()) return std::nullopt;
  return column.getDouble();
}

std::string hex_of(const SQLite::Column& column) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  const auto* bytes = static_cast<const unsigned char*>(column.getBlob());
  const auto count = static_cast<std::size_t>(column.getBytes());
  std::string text;
  text.reserve(2 * count);
  for (std::size_t i = 0; i < count; ++i) {
    text += kDigits[bytes[i] >> 4U];
    text += kDigits[bytes[i] & 0xFU];
  }
  return text;
}

}  // namespace

ResultStore::ResultStore(const std::filesystem::path& path, OpenMode mode,
                         std::chrono::milliseconds busy_timeout)
    : state_(new State{path.string(), open_database(path, mode, busy_timeout)}) {}

ResultStore::~ResultStore() = default;

const std::string& ResultStore::file() const { return state_->file; }

std::int64_t ResultStore::begin_run(const RunRow& run) {
  ASDBENCH_CHECK(run.seed <= std::uint64_t{std::numeric_limits<std::int64_t>::max()},
                 "a seed fits a signed word");
  return guarded(state_->file, "record the run", [&] {
    SQLite::Statement insert(state_->database, R"(
      INSERT INTO run (status, started, name, config_file, config_text, config_sha256, command,
        version, source_commit, dirty, host, device, engine, seed)
      VALUES ('running', strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?))");
    execute(insert, run.name, run.config_file, run.config_text, run.config_sha256, run.command,
            run.version, run.commit, run.dirty, run.host, run.device, run.engine, run.seed);
    return state_->database.getLastInsertRowid();
  });
}

void ResultStore::end_run(std::int64_t run_id, const std::string& status) {
  guarded(state_->file, "record the end of the run", [&] {
    SQLite::Statement update(state_->database, R"(
      UPDATE run SET status = ?, ended = strftime('%Y-%m-%dT%H:%M:%fZ', 'now') WHERE id = ?)");
    execute(update, status, run_id);
    ASDBENCH_CHECK(state_->database.getChanges() == 1, "the run that ends was begun");
  });
}

std::int64_t ResultStore::cell(const CellRow& cell) {
  return guarded(state_->file, "record a cell", [&] {
    SQLite::Transaction transaction(state_->database, kImmediate);
    SQLite::Statement insert(state_->database, R"(
      INSERT INTO cell (key, identity, task, split, grader, task_version, task_options, data_sha256, target,
        target_sha256, target_options, drafter, drafter_options, drafts, verifier,
        verifier_options, verifier_keeps, regret_budget, gate, max_exceptions, max_tokens, batch,
        weight_dtype, compute_dtype, logit_dtype, device, engine, activations, baseline)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT (key) DO UPDATE SET baseline = excluded.baseline, grader = excluded.grader)");
    execute(insert, cell.key, cell.identity, cell.task, cell.split, cell.grader, cell.task_version,
            cell.task_options, cell.data_sha256, cell.target, cell.target_sha256,
            cell.target_options, cell.drafter, cell.drafter_options, cell.drafts, cell.verifier,
            cell.verifier_options, cell.verifier_keeps, cell.regret_budget, cell.gate,
            cell.max_exceptions, cell.max_tokens, cell.batch, cell.weight_dtype, cell.compute_dtype,
            cell.logit_dtype, cell.device, cell.engine, cell.activations, cell.baseline);
    SQLite::Statement find(state_->database, "SELECT id, identity FROM cell WHERE key = ?");
    bind_all(find, cell.key);
    find.executeStep();
    const std::int64_t id = find.getColumn(0).getInt64();
    if (find.getColumn(1).getString() != cell.identity) {
      throw StoreError(
          fmt::format("{}: cell {} has another identity than its key says; the file was edited\n"
                      "  give another file with --db",
                      state_->file, id));
    }
    transaction.commit();
    return id;
  });
}

std::set<std::pair<std::string, std::int64_t>> ResultStore::done(std::int64_t cell_id,
                                                                 std::int64_t turn) const {
  return guarded(state_->file, "read the outputs", [&] {
    SQLite::Statement select(
        state_->database,
        "SELECT sample_id, repeat FROM output WHERE cell_id = ? AND turn = ? AND status = 'done'");
    bind_all(select, cell_id, turn);
    std::set<std::pair<std::string, std::int64_t>> found;
    while (select.executeStep()) {
      found.emplace(select.getColumn(0).getString(), select.getColumn(1).getInt64());
    }
    return found;
  });
}

std::map<std::pair<std::string, std::int64_t>, std::string> ResultStore::replies(
    std::int64_t cell_id, std::int64_t turn) const {
  return guarded(state_->file, "read the outputs", [&] {
    SQLite::Statement select(state_->database, R"(
      SELECT sample_id, repeat, completion FROM output
      WHERE cell_id = ? AND turn = ? AND status = 'done')");
    bind_all(select, cell_id, turn);
    std::map<std::pair<std::string, std::int64_t>, std::string> found;
    while (select.executeStep()) {
      found.emplace(std::pair(select.getColumn(0).getString(), select.getColumn(1).getInt64()),
                    select.getColumn(2).getString());
    }
    return found;
  });
}

std::map<std::string, std::int64_t> ResultStore::output_lengths(std::int64_t cell_id) const {
  return guarded(state_->file, "read the outputs", [&] {
    SQLite::Statement select(state_->database, R"(
      SELECT sample_id, output_tokens FROM output
      WHERE cell_id = ? AND status = 'done' AND repeat = 0 AND turn = 1)");
    bind_all(select, cell_id);
    std::map<std::string, std::int64_t> lengths;
    while (select.executeStep()) {
      lengths.emplace(select.getColumn(0).getString(), select.getColumn(1).getInt64());
    }
    return lengths;
  });
}

bool ResultStore::save(const OutputRow& output) {
  check_output(output);
  return guarded(state_->file, "record an output", [&] {
    SQLite::Transaction transaction(state_->database, kImmediate);
    if (!make_room(state_->file, state_->database, output)) return false;
    const std::int64_t id = insert_output(state_->database, output);
    insert_passes(state_->database, id, output.completion);
    insert_scores(state_->database, id, output.scores);
    transaction.commit();
    return true;
  });
}

std::vector<StoredCompletion> ResultStore::completions_without_score(
    std::int64_t cell_id, const std::string& scorer, std::int64_t scorer_version) const {
  return guarded(state_->file, "read the outputs", [&] {
    SQLite::Statement select(state_->database, R"(
      SELECT id, sample_id, completion FROM output WHERE cell_id = ? AND status = 'done'
        AND NOT EXISTS (SELECT 1 FROM score WHERE output_id = output.id AND scorer = ?
                        AND scorer_version = ? AND coalesce(outcome, '') <> 'runner_error')
      ORDER BY id)");
    bind_all(select, cell_id, scorer, scorer_version);
    std::vector<StoredCompletion> stored;
    while (select.executeStep()) {
      stored.push_back({.output_id = select.getColumn(0).getInt64(),
                        .sample_id = select.getColumn(1).getString(),
                        .text = select.getColumn(2).getString()});
    }
    return stored;
  });
}

void ResultStore::add_scores(const std::vector<OutputScore>& scores) {
  guarded(state_->file, "record scores", [&] {
    SQLite::Transaction transaction(state_->database, kImmediate);
    SQLite::Statement drop(state_->database,
                           "DELETE FROM score WHERE output_id = ? AND scorer = ? AND "
                           "scorer_version = ? AND outcome = 'runner_error'");
    SQLite::Statement insert(
        state_->database,
        "INSERT INTO score VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING");
    for (const auto& [output_id, score] : scores) {
      execute(drop, output_id, score.scorer, score.scorer_version);
      execute_score(insert, output_id, score);
    }
    transaction.commit();
  });
}

void ResultStore::save_judgement(const JudgementRow& judgement) {
  guarded(state_->file, "record a judgement", [&] {
    SQLite::Transaction transaction(state_->database, kImmediate);
    SQLite::Statement remove(state_->database, R"(
      DELETE FROM judgement WHERE output_id = ? AND kind = ? AND baseline = ? AND place = ?
        AND judge = ? AND prompts = ? AND seed = ?)");
    execute(remove, judgement.output_id, judgement.kind, judgement.baseline, judgement.place,
            judgement.judge, judgement.prompts, judgement.seed);
    // A judge may be silent: of a done one an empty reply is a reply.
    std::optional<std::string> reply;
    if (judgement.status == "done") reply = judgement.reply;
    SQLite::Statement insert(state_->database, R"(
      INSERT INTO judgement (judged, output_id, kind, baseline, baseline_output_id, place, judge,
        version, prompts, prompt_sha256, seed, status, error, reply, finish, prompt_tokens,
        reply_tokens)
      VALUES (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?))");
    execute(insert, judgement.output_id, judgement.kind, judgement.baseline,
            judgement.baseline_output_id, judgement.place, judgement.judge, judgement.version,
            judgement.prompts, judgement.prompt_sha256, judgement.seed, judgement.status,
            unless_empty(judgement.error), reply, unless_empty(judgement.finish),
            judgement.prompt_tokens, judgement.reply_tokens);
    const std::int64_t id = state_->database.getLastInsertRowid();
    SQLite::Statement rating(state_->database, "INSERT INTO rating VALUES (?, ?, ?)");
    for (const auto& [grader, value] : judgement.ratings) execute(rating, id, grader, value);
    transaction.commit();
  });
}

void ResultStore::save_group(const std::vector<SpeedSlotRow>& slots,
                             const std::string& void_reason) {
  ASDBENCH_CHECK(!slots.empty(), "a group has slots");
  const SpeedSlotRow& first = slots.front();
  guarded(state_->file, "record a speed group", [&] {
    SQLite::Transaction transaction(state_->database, kImmediate);
    SQLite::Statement find(state_->database,
                           "SELECT run_id FROM speed_group WHERE set_key = ? AND number = ?");
    bind_all(find, first.set_key, first.group);
    if (find.executeStep()) {
      throw StoreError(
          fmt::format("{}: speed group {} was recorded by run {} while run {} measured it\n"
                      "  the first is kept; let one run measure at a time, and run again to go on",
                      state_->file, first.group, find.getColumn(0).getInt64(), first.run_id));
    }
    SQLite::Statement group(state_->database,
                            "INSERT INTO speed_group (run_id, set_key, number) VALUES (?, ?, ?)");
    execute(group, first.run_id, first.set_key, first.group);
    const std::int64_t group_id = state_->database.getLastInsertRowid();
    SQLite::Statement insert(state_->database, R"(
      INSERT INTO speed_slot (group_id, slot, cell_id, prompts, tokens, passes, drafted, accepted,
        post_end_tokens, decode_ns, prefill_ns, draft_ns, verify_ns, rule_ns, cache_ns,
        tokens_sha256)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?))");
    SQLite::Statement prompt(state_->database,
                             "INSERT INTO speed_prompt VALUES (?, ?, ?, ?, ?, ?, ?, ?)");
    SQLite::Statement tail(state_->database, "INSERT INTO speed_tail VALUES (?, ?, ?, ?)");
    for (const SpeedSlotRow& row : slots) {
      ASDBENCH_CHECK(row.set_key == first.set_key && row.group == first.group,
                     "the slots of one call belong to one group");
      execute(insert, group_id, row.slot, row.cell_id, row.prompts, row.tokens, row.passes,
              row.drafted, row.accepted, row.post_end_tokens, row.decode_ns, row.prefill_ns,
              row.draft_ns, row.verify_ns, row.rule_ns, row.cache_ns, row.tokens_sha256);
      for (std::size_t i = 0; i < row.each.size(); ++i) {
        execute(prompt, group_id, row.slot, i, row.each[i].sample_id, row.each[i].tokens,
                row.each[i].decode_ns, row.each[i].prefill_ns, row.each[i].tokens_sha256);
      }
      if (row.tail_ns > 0) execute(tail, group_id, row.slot, row.tail_tokens, row.tail_ns);
      SQLite::Statement figure(state_->database,
                               "INSERT INTO slot_environment VALUES (?, ?, ?, ?, ?, ?, ?)");
      for (const SlotEnvironmentRow& item : row.environment) {
        execute(figure, group_id, row.slot, item.name, item.samples, item.mean, item.least,
                item.most);
      }
    }
    if (!void_reason.empty()) {
      SQLite::Statement voided(state_->database, "INSERT INTO speed_void VALUES (?, ?)");
      execute(voided, group_id, void_reason);
    }
    transaction.commit();
  });
}

void ResultStore::save_speed_set(const SpeedSetRow& row) {
  guarded(state_->file, "record a set of speed groups", [&] {
    SQLite::Statement insert(state_->database, "INSERT OR IGNORE INTO speed_set VALUES (?, ?, ?)");
    execute(insert, row.set_key, row.work, row.design);
  });
}

std::vector<PromptTimeRow> ResultStore::prompt_times(const std::string& set_key) const {
  return guarded(state_->file, "read the speed groups", [&] {
    SQLite::Statement select(state_->database, R"(
      SELECT speed_slot.cell_id, position, count(*), min(speed_prompt.sample_id),
             sum(speed_prompt.decode_ns), sum(speed_prompt.prefill_ns)
      FROM speed_group JOIN speed_slot ON speed_slot.group_id = speed_group.id
      JOIN speed_prompt ON speed_prompt.group_id = speed_slot.group_id
        AND speed_prompt.slot = speed_slot.slot
      WHERE set_key = ? AND speed_group.id NOT IN (SELECT group_id FROM speed_void)
      GROUP BY speed_slot.cell_id, position ORDER BY speed_slot.cell_id, position)");
    bind_all(select, set_key);
    std::vector<PromptTimeRow> rows;
    while (select.executeStep()) {
      rows.push_back({.cell_id = select.getColumn(0).getInt64(),
                      .position = select.getColumn(1).getInt64(),
                      .slots = select.getColumn(2).getInt64(),
                      .sample_id = select.getColumn(3).getString(),
                      .decode_ns = select.getColumn(4).getInt64(),
                      .prefill_ns = select.getColumn(5).getInt64()});
    }
    return rows;
  });
}

void ResultStore::save_speed_intervals(const std::string& set_key,
                                       const std::vector<SpeedIntervalRow>& rows) {
  guarded(state_->file, "record intervals", [&] {
    SQLite::Transaction transaction(state_->database, kImmediate);
    SQLite::Statement drop(state_->database, "DELETE FROM speed_interval WHERE set_key = ?");
    execute(drop, set_key);
    SQLite::Statement insert(state_->database,
                             "INSERT INTO speed_interval VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
    for (const SpeedIntervalRow& row : rows) {
      ASDBENCH_CHECK(row.set_key == set_key, "the intervals of one call belong to one set");
      execute(insert, row.set_key, row.cell_id, row.reference_id, row.prompts, row.groups,
              row.estimate, row.low, row.high, row.resamples, row.seed);
    }
    transaction.commit();
  });
}

void ResultStore::save_spot_checks(const std::vector<SpotCheckRow>& rows) {
  guarded(state_->file, "record spot checks", [&] {
    SQLite::Transaction transaction(state_->database, kImmediate);
    SQLite::Statement insert(state_->database,
                             "INSERT OR REPLACE INTO spot_check VALUES (?, ?, ?, ?, ?)");
    for (const SpotCheckRow& row : rows) {
      execute(insert, row.set_key, row.cell_id, row.sample_id, row.timed_sha256, row.again_sha256);
    }
    transaction.commit();
  });
}

std::set<std::string> ResultStore::replayed(std::int64_t cell_id) const {
  return guarded(state_->file, "read the replays", [&] {
    SQLite::Statement select(state_->database, "SELECT sample_id FROM replay WHERE cell_id = ?");
    bind_all(select, cell_id);
    std::set<std::string> found;
    while (select.executeStep()) found.insert(select.getColumn(0).getString());
    return found;
  });
}

void ResultStore::save_replay(const std::vector<ReplayRow>& rows) {
  guarded(state_->file, "record a replay", [&] {
    SQLite::Transaction transaction(state_->database, kImmediate);
    SQLite::Statement insert(state_->database,
                             "INSERT OR REPLACE INTO replay VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)");
    for (const ReplayRow& row : rows) {
      execute(insert, row.cell_id, row.sample_id, row.run_id, row.passes, row.drafted,
              row.strict_committed, row.committed, row.exceptions, row.regret);
    }
    transaction.commit();
  });
}

std::set<std::int64_t> ResultStore::groups_done(const std::string& set_key) const {
  return guarded(state_->file, "read the speed groups", [&] {
    SQLite::Statement select(state_->database, "SELECT number FROM speed_group WHERE set_key = ?");
    bind_all(select, set_key);
    std::set<std::int64_t> found;
    while (select.executeStep()) found.insert(select.getColumn(0).getInt64());
    return found;
  });
}

void ResultStore::save_environment(std::int64_t run_id,
                                   const std::map<std::string, std::string>& values) {
  guarded(state_->file, "record the environment", [&] {
    SQLite::Transaction transaction(state_->database, kImmediate);
    SQLite::Statement insert(state_->database, "INSERT INTO environment VALUES (?, ?, ?)");
    for (const auto& [name, value] : values) execute(insert, run_id, name, value);
    transaction.commit();
  });
}

std::vector<MatrixRow> ResultStore::matrix() const {
  return guarded(state_->file, "read the matrix", [&] {
    SQLite::Statement select(state_->database, "SELECT * FROM matrix");
    std::vector<MatrixRow> rows;
    while (select.executeStep()) {
      const auto text = [&](const char* name) { return select.getColumn(name).getString(); };
      const auto count = [&](const char* name) { return select.getColumn(name).getInt64(); };
      const auto real = [&](const char* name) { return number(select.getColumn(name)); };
      const auto interval = [&](const std::string& name) {
        return Estimate{real(name.c_str()), real((name + "_low").c_str()),
                        real((name + "_high").c_str())};
      };
      MatrixRow row;
      row.cell_id = count("cell_id");
      row.task = text("task");
      row.split = text("split");
      row.task_options = text("task_options");
      row.grader = text("grader");
      row.target = text("target");
      row.drafter = text("drafter");
      row.drafter_options = text("drafter_options");
      row.verifier = text("verifier");
      row.verifier_options = text("verifier_options");
      row.verifier_keeps = text("verifier_keeps");
      row.device = text("device");
      row.max_tokens = count("max_tokens");
      row.batch = count("batch");
      row.n = count("n");
      row.failed = count("failed");
      row.correct = count("correct");
      row.capped = count("capped");
      row.no_answer = count("no_answer");
      row.unscored = count("unscored");
      row.undecided = count("undecided");
      row.accuracy_capped_wrong = interval("accuracy_capped_wrong");
      row.accuracy_as_scored = interval("accuracy_as_scored");
      row.vs_strict = interval("vs_strict");
      row.vs_plain = interval("vs_plain");
      row.tokens_per_s = real("tokens_per_s");
      row.groups = count("groups");
      row.speed_work = text("speed_work");
      row.accept_length = real("accept_length");
      row.regret_per_request = real("regret_per_request");
      row.exceptions_per_request = real("exceptions_per_request");
      rows.push_back(std::move(row));
    }
    return rows;
  });
}

void ResultStore::hold_for_report() const {
  constexpr std::array<HeldView, 5> kViews = {{{"pair", "cell_id"},
                                               {"verdict", "output_id"},
                                               {"exception_tally", "cell_id"},
                                               {"accuracy", "cell_id"},
                                               {"breakdown", "cell_id"}}};
  guarded(state_->file, "read the results", [&] { hold_views(state_->database, kViews); });
}

void ResultStore::read(const std::string& sql,
                       const std::function<void(const std::vector<std::string>& names,
                                                const std::vector<Value>& row)>& each) const {
  guarded(state_->file, "read the results", [&] {
    SQLite::Statement select(state_->database, sql);
    std::vector<std::string> names;
    for (int i = 0; i < select.getColumnCount(); ++i) names.emplace_back(select.getColumnName(i));
    std::vector<Value> row(names.size());
    while (select.executeStep()) {
      for (std::size_t i = 0; i < row.size(); ++i) {
        const SQLite::Column column = select.getColumn(static_cast<int>(i));
        if (column.isNull()) {
          row[i] = std::monostate();
        } else if (column.isInteger()) {
          row[i] = column.getInt64();
        } else if (column.isFloat()) {
          row[i] = column.getDouble();
        } else if (column.isBlob()) {
          row[i] = hex_of(column);
        } else {
          row[i] = column.getString();
        }
      }
      each(names, row);
    }
  });
}

void ResultStore::query(
    const std::string& sql,
    const std::function<void(const std::vector<std::string>& names,
                             const std::vector<std::optional<std::string>>& row)>& each) const {
  guarded(state_->file, "run a query", [&] {
    SQLite::Statement select(state_->database, sql);
    std::vector<std::string> names;
    for (int i = 0; i < select.getColumnCount(); ++i) names.emplace_back(select.getColumnName(i));
    while (select.executeStep()) {
      std::vector<std::optional<std::string>> row;
      for (int i = 0; i < select.getColumnCount(); ++i) {
        const SQLite::Column column = select.getColumn(i);
        row.push_back(column.isNull() ? std::nullopt : std::optional(column.getString()));
      }
      each(names, row);
    }
  });
}

}  // namespace asdbench
