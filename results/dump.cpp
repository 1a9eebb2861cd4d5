// Outputs and scores as JSON lines in a fixed order, so that two runs can be compared byte by byte.
#include <cmath>
#include <nlohmann/json.hpp>
#include <ostream>

#include "eval/core/completion.h"
#include "eval/core/error.h"
#include "eval/core/json.h"
#include "results/database_internal.h"

namespace asdbench {
namespace {

using OrderedJson = nlohmann::ordered_json;

/// The coordinates of a cell, in the order in which they are printed and sorted by.
constexpr const char* kCoordinates =
    "cell.task, cell.split, cell.task_version, cell.task_options, cell.data_sha256, cell.target, "
    "cell.target_sha256, "
    "cell.target_options, cell.drafter, cell.drafter_options, cell.drafts, cell.verifier, "
    "cell.verifier_options, cell.regret_budget, cell.gate, cell.max_exceptions, cell.max_tokens, "
    "cell.batch, cell.weight_dtype, cell.compute_dtype, cell.logit_dtype, cell.device, "
    "cell.engine, cell.activations";

OrderedJson value_of(const SQLite::Column& column) {
  if (column.isNull()) return nullptr;
  if (column.isInteger()) return column.getInt64();
  if (column.isFloat()) {
    // JSON has no infinity; the library writes finite reals in their shortest form.
    const double value = column.getDouble();
    return std::isinf(value) ? OrderedJson(shortest_real(value)) : OrderedJson(value);
  }
  return column.getString();
}

/// All columns of the current row from `first` on, by name.
OrderedJson row_of(SQLite::Statement& statement, int first = 0) {
  OrderedJson row = OrderedJson::object();
  for (int i = first; i < statement.getColumnCount(); ++i) {
    row[statement.getColumnName(i)] = value_of(statement.getColumn(i));
  }
  return row;
}

OrderedJson rows_of(SQLite::Statement& statement, std::int64_t output_id) {
  bind_all(statement, output_id);
  OrderedJson rows = OrderedJson::array();
  while (statement.executeStep()) rows.push_back(row_of(statement));
  return rows;
}

OrderedJson tokens_of(const SQLite::Column& column) {
  OrderedJson tokens = OrderedJson::array();
  const auto* bytes = static_cast<const unsigned char*>(column.getBlob());
  for (int i = 0; i + 4 <= column.getBytes(); i += 4) {
    std::uint32_t word = 0;
    for (int k = 3; k >= 0; --k) word = word << 8 | bytes[i + k];
    tokens.push_back(static_cast<TokenId>(word));
  }
  return tokens;
}

/// Sums over the passes of an output, and how often each condition stopped one.
OrderedJson passes_of(SQLite::Statement& sums, SQLite::Statement& blocks, std::int64_t output_id) {
  bind_all(sums, output_id);
  sums.executeStep();
  OrderedJson passes = row_of(sums);
  passes["blocked_by"] = OrderedJson::object();
  bind_all(blocks, output_id);
  while (blocks.executeStep()) {
    const auto flags = static_cast<std::uint8_t>(blocks.getColumn(0).getInt());
    passes["blocked_by"][describe_blocked_by(flags)] = blocks.getColumn(1).getInt64();
  }
  return passes;
}

}  // namespace

void ResultStore::dump_outputs(std::ostream& out) const {
  guarded(state_->file, "dump the outputs", [&] {
    // One snapshot: a run that is writing meanwhile changes nothing in this dump.
    SQLite::Transaction snapshot(state_->database);
    SQLite::Statement outputs(
        state_->database,
        std::string("SELECT output.id, output.tokens, output.sample_id, output.repeat, "
                    "output.turn, output.cluster, output.category, output.status, output.error, "
                    "output.prompt_sha256, "
                    "output.identity_sha256, output.completion, output.finish_reason, "
                    "output.prompt_tokens, output.output_tokens, output.passes, "
                    "output.exceptions, output.regret, ") +
            kCoordinates + " FROM output JOIN cell ON cell.id = output.cell_id ORDER BY " +
            kCoordinates + ", cell.key, output.sample_id, output.repeat, output.turn");
    SQLite::Statement sums(state_->database, R"(
      SELECT count(*) AS count, coalesce(sum(drafted), 0) AS drafted,
        coalesce(sum(accepted), 0) AS accepted, coalesce(sum(kept), 0) AS kept,
        coalesce(sum(committed), 0) AS committed, coalesce(sum(strict_length), 0) AS strict_length
      FROM pass WHERE output_id = ?)");
    SQLite::Statement blocks(state_->database, R"(
      SELECT blocked_by, count(*) FROM pass WHERE output_id = ? AND blocked_by <> 0
      GROUP BY blocked_by ORDER BY blocked_by)");
    SQLite::Statement exceptions(state_->database, R"(
      SELECT pass, output_position, block_position, drafted, draft, choice, regret, weight,
        spent_after FROM exception WHERE output_id = ? ORDER BY number)");
    SQLite::Statement scores(state_->database, R"(
      SELECT scorer, scorer_version, verdict, value, answer, rule, outcome, detail FROM score
      WHERE output_id = ? ORDER BY scorer, scorer_version)");
    constexpr int kFirstCoordinate = 18;
    while (outputs.executeStep()) {
      const auto column = [&](const char* name) { return value_of(outputs.getColumn(name)); };
      const std::int64_t id = outputs.getColumn(0).getInt64();
      OrderedJson line;
      line["cell"] = row_of(outputs, kFirstCoordinate);
      line["sample"] = column("sample_id");
      line["repeat"] = column("repeat");
      line["turn"] = column("turn");
      line["cluster"] = column("cluster");
      line["category"] = column("category");
      line["status"] = column("status");
      line["error"] = column("error");
      line["prompt_sha256"] = column("prompt_sha256");
      line["identity_sha256"] = column("identity_sha256");
      line["tokens"] = tokens_of(outputs.getColumn(1));
      line["text"] = column("completion");
      line["finish"] = column("finish_reason");
      line["counts"] = {{"prompt_tokens", column("prompt_tokens")},
                        {"output_tokens", column("output_tokens")},
                        {"passes", column("passes")},
                        {"exceptions", column("exceptions")}};
      line["ledger"] = column("regret");
      line["passes"] = passes_of(sums, blocks, id);
      line["exceptions"] = rows_of(exceptions, id);
      line["scores"] = rows_of(scores, id);
      // Text of a model may hold half a character at its end; the tokens above are the record.
      out << line.dump(-1, ' ', false, OrderedJson::error_handler_t::replace) << '\n';
    }
  });
  if (!out) throw StoreError(state_->file + ": the dump cannot be written; is its disk full?");
}

}  // namespace asdbench
