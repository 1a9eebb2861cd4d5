// The loop: draft, verify, cut, commit. Plain, strict and lossy decoding differ in nothing but one
// object.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "runners/drafter.h"
#include "runners/request.h"
#include "runners/target.h"
#include "runners/verifier.h"

namespace asdbench {

struct DecoderOptions {
  std::int32_t drafts = 0;     // K; 0 is plain decoding
  std::int32_t requests = 1;   // slots
  std::int64_t positions = 0;  // longest prompt plus output, K + 1 included
};

/// Where the time of the passes went, for attribution; the clock of record is outside the loop.
struct PassTimes {
  std::int64_t draft_ns = 0;
  std::int64_t verify_ns = 0;
  std::int64_t rule_ns = 0;
  std::int64_t cache_ns = 0;  // cutting caches, observing, committing
  std::int64_t passes = 0;
};

class Decoder {
 public:
  /// Allocates in target and drafter for the options. The three must outlive the decoder; a target
  /// serves one decoder at a time.
  Decoder(Target& target, Drafter& drafter, const Verifier& verifier, DecoderOptions options);
  ~Decoder() { target_.listen({}, nullptr); }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  /// Prefill and the first token. The request takes the slot given in it. A prompt that does not
  /// fit, or a row that cannot be judged, fails the request.
  void start(Request& request);
  /// Advances every live request by one pass; finished ones are passed over. A batch of one is not
  /// a special case. Touches no heap unless a request fails.
  void pass(std::span<Request* const> live);
  /// Gives the slot back.
  void finish(Request& request);
  /// start, passes until the request has finished, finish.
  void run(Request& request);

  const PassTimes& times() const { return times_; }
  const DecoderOptions& options() const { return options_; }

 private:
  /// Lets the drafter propose; returns the requests that take part in the pass.
  std::span<Request* const> draft(std::span<Request* const> live);
  /// Rows `row` and following of the step, as the block of one request.
  Block block_of(const Request& request, const StepView& step, std::size_t row) const;

  Target& target_;
  Drafter& drafter_;
  const Verifier& verifier_;
  DecoderOptions options_;
  std::int64_t vocab_ = 0;
  std::int64_t positions_ = 0;       // position limit of target and drafter together
  std::vector<Request*> batch_;      // requests of the pass
  std::vector<DraftLimits> limits_;  // of each of them
  PassTimes times_;
};

}  // namespace asdbench
