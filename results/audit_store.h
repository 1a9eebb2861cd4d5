// What the protocol keeps in a results database: manifests, splits, the record chain, and the rows
// that its evidence is derived from.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "eval/core/sample.h"
#include "eval/core/token_id.h"
#include "results/store.h"

namespace asdbench {

/// `sha256` is that of `body`, canonical JSON.
struct ManifestRow {
  std::string campaign, sha256, body;
};

/// One prompt of a frozen split.
struct SplitRow {
  std::string task, sample_id, identity_sha256;
  std::string prompt;  // user messages joined by LF
  std::string sample;  // canonical JSON of the sample's fields, targets and cluster
};

/// One link of the chain; `body` is canonical JSON.
struct RecordRow {
  std::int64_t seq = 0;
  std::string body, prev, hash;
};

/// One finished output with digests over its parts, taken from the rows and not from what they
/// claim.
struct OutputFacts {
  std::int64_t output_id = 0, run_id = 0;
  std::string sample_id, cluster, status, error;
  std::string prompt_sha256, identity_sha256;
  std::string stored_tokens_sha256, tokens_sha256;  // as the row says; of its tokens
  std::vector<TokenId> tokens;                      // the one from prefill first
  std::string text, finish_reason;
  std::int64_t output_tokens = 0;  // as the row says
  std::int64_t passes = 0, committed = 0;
  std::string trace_sha256;  // over its passes and exceptions
  std::int64_t exceptions = 0, reused = 0;
  double regret = 0;       // the ledger at the end, as the row says
  bool ledger_ok = false;  // starts at 0, adds up, ends at `regret`
  bool blocked_by_budget = false;
  double largest_excess = 0;            // of an exception's regret over gate times weight, nats
  std::int64_t most_in_pass = 0;        // exceptions of one pass
  std::vector<double> regrets;          // of each exception, nats
  std::vector<std::int64_t> positions;  // of each exception in the output
  std::vector<std::int64_t> block_positions;  // and in its block
  std::optional<Verdict> verdict;             // of the scorer asked for; absent: not scored by it
  std::optional<double> value;
  std::string answer;
};

/// One slot of a timed group.
struct SlotFacts {
  std::int64_t group = 0, slot = 0, cell_id = 0, run_id = 0;
  std::int64_t tokens = 0, passes = 0, post_end_tokens = 0, decode_ns = 0;
  std::string tokens_sha256;
  std::string void_reason;  // of its group; "" when it counts
  struct Prompt {
    std::string sample_id;
    std::int64_t tokens = 0, decode_ns = 0;
  };
  std::vector<Prompt> prompts;
  std::vector<SlotEnvironmentRow> environment;  // by name
};

/// Reads and writes the protocol's tables of an open store. StoreError as the store's own.
class AuditStore {
 public:
  explicit AuditStore(ResultStore& store) : state_(*store.state_), writable_(true) {}
  explicit AuditStore(const ResultStore& store) : state_(*store.state_), writable_(false) {}

  /// All links in order of `seq`.
  std::vector<RecordRow> records(const std::string& campaign) const;
  /// Names of all campaigns with at least one record.
  std::vector<std::string> campaigns() const;
  /// StoreError when the place is taken: another process went on with this campaign.
  void append(const std::string& campaign, const RecordRow& record);
  /// Manifest, both splits and the record that says so, all or nothing.
  void freeze(const ManifestRow& manifest, const std::vector<SplitRow>& a,
              const std::vector<SplitRow>& b, const RecordRow& record);
  std::optional<ManifestRow> manifest(const std::string& campaign) const;
  std::vector<SplitRow> split(const std::string& campaign, const std::string& part) const;

  struct Cell {
    std::int64_t id = 0;
    std::string identity;  // canonical JSON
  };
  std::optional<Cell> cell(const std::string& key) const;
  /// Outputs of a cell, failed ones too, by sample id; of one sample alone unless `sample_id` is
  /// "". `gate` is g of the cell, for the excess.
  std::vector<OutputFacts> outputs(std::int64_t cell_id, const std::string& scorer,
                                   std::int64_t scorer_version, double gate,
                                   const std::string& sample_id = "") const;
  /// (identity, run) of every output of the database.
  void each_identity(
      const std::function<void(const std::string& identity, std::int64_t run_id)>& each) const;
  std::vector<SlotFacts> slots(const std::string& set_key) const;

 private:
  ResultStore::State& state_;
  bool writable_;
};

}  // namespace asdbench
