// One generation in flight: prompt, output so far, drafts, ledger, stop rule.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "eval/core/completion.h"
#include "eval/core/rng.h"
#include "eval/core/token_id.h"
#include "runners/cut.h"
#include "runners/ledger.h"
#include "runners/verifier.h"

namespace asdbench {

/// Limits of one request; the stop rule is derived from them before each pass.
struct RequestLimits {
  std::int32_t max_tokens = 0;  // committed ids, the one from prefill included
  bool ignore_end_ids = false;  // fixed work
};

class Request {
 public:
  /// `end_ids` must outlive the request and be sorted. DataError when the prompt is empty.
  Request(std::string sample_id, std::vector<TokenId> prompt, RequestLimits limits,
          std::span<const TokenId> end_ids, Rng rng);

  // Written by the drafter and the decoder in each pass.
  std::vector<TokenId> draft;              // [K], capacity kMaxDraft
  std::optional<LogitsView> draft_logits;  // [K, vocab], for drafters that have a law
  std::int32_t slot = 0;  // row of the target's and drafter's caches; follows no ledger

  const std::string& sample_id() const { return sample_id_; }
  std::span<const TokenId> prompt() const { return {history_.data(), prompt_tokens_}; }
  std::span<const TokenId> output() const { return std::span(history_).subspan(prompt_tokens_); }
  /// Prompt and output in one piece; the last id is pending: committed, but not yet in the target's
  /// cache.
  std::span<const TokenId> history() const { return history_; }
  TokenId pending() const { return history_.back(); }
  const Ledger& ledger() const { return ledger_; }
  const Rng& rng() const { return rng_; }
  const StopRule& stop() const { return stop_; }
  const RequestLimits& limits() const { return limits_; }
  bool finished() const { return finish_.has_value() || !error_.empty(); }
  std::optional<FinishReason> finish() const { return finish_; }
  const std::string& error() const { return error_; }
  const std::vector<PassRecord>& passes() const { return passes_; }
  const std::vector<ExceptionRecord>& exceptions() const { return exceptions_; }

  /// Notes the choices among the tokens that are about to be committed, `tokens` from row 0 of
  /// `scores`, that were near ties.
  void note_near_ties(std::span<const TokenId> tokens, const RowScoresView& scores);

  /// Commits the token that prefill yields, and reserves everything that the decode loop appends
  /// to. `positions` is the position limit of target and drafter.
  void commit_first(TokenId token, std::int64_t positions);
  /// Tokens, ledger and pass record: all or nothing.
  void commit(const Kept& kept, const Decision& decision);
  /// Ends the request with an error; tokens and ledger stay as they are.
  void fail(std::string error);

  /// Times are filled by the decoder.
  std::int64_t prefill_ns = 0;
  std::int64_t decode_ns = 0;

  /// What is stored. The text is filled by the caller, who has the tokenizer.
  Completion completion() const;

 private:
  void update_stop();

  std::string sample_id_;
  std::vector<TokenId> history_;
  std::size_t prompt_tokens_;
  RequestLimits limits_;
  StopRule stop_;
  Ledger ledger_;
  Rng rng_;
  std::int64_t positions_ = 0;
  std::optional<FinishReason> finish_;
  std::string error_;
  std::vector<PassRecord> passes_;
  std::vector<ExceptionRecord> exceptions_;
  std::vector<NearTie> near_ties_;
};

}  // namespace asdbench
