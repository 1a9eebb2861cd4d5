// A verification rule: how many drafts of a scored block are accepted. It decides and changes
// nothing.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "eval/core/completion.h"
#include "eval/core/params.h"
#include "eval/core/rng.h"
#include "eval/core/token_id.h"
#include "runners/ledger.h"
#include "runners/logits.h"

namespace asdbench {

/// Longest chain of drafts that one pass may score; fixes the size of per-block buffers.
inline constexpr std::int32_t kMaxDraft = 64;

/// What ends a request: end ids, whether they end it, and how much it may still commit.
struct StopRule {
  std::span<const TokenId> end_ids;  // sorted; they outlive the request
  bool ignore_end_ids =
      false;  // fixed-work runs: end ids are ordinary tokens for the stop, not for the guard
  std::optional<std::int32_t> remaining;  // tokens this request may still commit; absent: no limit
  bool context_limited =
      false;  // `remaining` comes from the positions left, not from the token cap

  bool is_end(TokenId token) const;
};

/// One pass of one request: a chain of K drafts, scored.
struct Block {
  std::span<const TokenId> draft;  // [K], K >= 0
  RowScoresView scores;            // [K + 1]; row i follows draft[0..i)
  LogitsView target;  // [K + 1, vocab] float32; data is null when the target kept them on a
                      // device, rows and vocab are set always
  std::optional<LogitsView> draft_logits;  // [K, vocab], for rules that read the drafter's law
  const StopRule& stop;
  std::int32_t output_position =
      0;  // of draft[0] in the request's output; the token from prefill is 0
};

/// An accepted mismatch, before cuts.
struct Exception {
  std::int32_t position = 0;  // in the block, from 0
  TokenId draft = kNoToken;
  TokenId choice = kNoToken;
  double regret = 0;        // nats
  double weight = 0;        // q, as the gate used it
  double block_regret = 0;  // C, the running sum inside the block up to and including this one
};

/// At most kMaxDraft exceptions, without allocation: the decode loop must not touch the heap.
class ExceptionList {
 public:
  void push_back(const Exception& exception) {
    items_[static_cast<std::size_t>(size_++)] = exception;
  }
  void shrink(std::int32_t size) { size_ = size; }
  std::int32_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const Exception& operator[](std::int32_t i) const { return items_[static_cast<std::size_t>(i)]; }
  const Exception* begin() const { return items_.data(); }
  const Exception* end() const { return items_.data() + size_; }

 private:
  std::array<Exception, kMaxDraft> items_;  // the first size_ are set
  std::int32_t size_ = 0;
};

struct Decision {
  std::int32_t accepted = 0;        // leading drafts accepted before cuts, 0..K
  TokenId target_token = kNoToken;  // row `accepted`'s choice: recovery, or bonus at K
  ExceptionList exceptions;         // accepted mismatches, in order
  std::int32_t strict_length = 0;   // leading matches
  std::uint8_t blocked_by =
      kBlockedByNothing;  // BlockedBy flags of position `accepted`; empty at K
};

/// What a rule promises about the output, and is held to by tests.
enum class Keeps : std::uint8_t { kTargetLaw, kGreedyOutput, kNothing };

/// "law", "greedy", "nothing".
inline const char* name_of(Keeps keeps) {
  return keeps == Keeps::kTargetLaw ? "law" : keeps == Keeps::kGreedyOutput ? "greedy" : "nothing";
}

struct VerifierInfo {
  std::string name;
  Keeps keeps = Keeps::kNothing;
  bool needs_draft_logits = false;
  bool needs_target_logits = false;      // full rows on the host, not only the scores
  std::optional<double> regret_budget;   // B, for the invariant spent <= B
  std::optional<double> gate;            // g
  std::optional<double> max_exceptions;  // M; may be infinite
};

class Verifier {
 public:
  virtual ~Verifier() = default;
  virtual VerifierInfo info() const = 0;
  /// Pure. BlockError when the block cannot be decided (asd.md section 10).
  virtual Decision decide(const Block& block, const Ledger& ledger, const Rng& rng) const = 0;
};

struct VerifierFactory {
  using Make = std::unique_ptr<Verifier>(const Params&);
  std::string name;
  Make* make;
};

/// Generated: one row per file of runners/verifiers/.
const std::vector<VerifierFactory>& verifier_factories();

}  // namespace asdbench
