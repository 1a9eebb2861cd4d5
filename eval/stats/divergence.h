// How two outputs differ on token ids, and what a rule spent. Source: specs/measurement.md,
// sections 5 and 6.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "eval/core/token_id.h"

namespace asdbench {

struct Divergence {
  std::optional<std::int64_t>
      first;  // position from 0; the shorter length for a prefix; none if equal
  std::int64_t common_prefix = 0;  // tokens
  std::int64_t edit_distance = 0;  // Levenshtein, tokens
  double edit_share = 0;           // over the longer length; 0 when both are empty
};

/// Compares committed ids, first and end token included.
Divergence diverge(std::span<const TokenId> a, std::span<const TokenId> b);

/// What one request's ledger says.
struct LedgerRequest {
  std::int64_t tokens = 0;
  std::int64_t passes = 0;
  std::vector<double> exceptions;  // regret of each, nats
  std::int64_t reused = 0;         // tokens kept behind exceptions
  bool budget_blocked = false;     // budget or headroom ever blocked
};

/// Sums over requests; a ratio over nothing is absent.
struct LedgerSummary {
  std::int64_t requests = 0;
  std::int64_t exceptions = 0;
  std::optional<double> exceptions_per_request;
  std::optional<double> exceptions_per_100_tokens;
  double regret_total = 0;  // nats
  std::optional<double> regret_per_exception;
  std::optional<double> budget_used_mean;  // of s / B over requests
  std::optional<double> budget_used_max;
  std::optional<double> requests_with_exception;  // share
  std::optional<double> reused_per_exception;
  std::optional<double> tokens_per_pass;
  std::optional<double> blocked_by_budget_share;  // of requests
};

/// `budget` is B in nats, +inf for none; with B = 0 the use of the budget is undefined.
LedgerSummary summarise_ledger(std::span<const LedgerRequest> requests, double budget);

}  // namespace asdbench
