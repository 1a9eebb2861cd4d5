// The model under test: scores the pending token and the drafts of every live request in one step.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "eval/core/token_id.h"
#include "runners/logits.h"
#include "runners/request.h"

namespace asdbench {

struct TargetInfo {
  std::string name;                     // "smollm2-135m"
  std::string engine;                   // "toy", "torch", "native"
  std::string device;                   // "cpu", "cuda:0 NVIDIA H200"
  std::string weight_dtype;             // as stored: "Q4_1"
  std::string compute_dtype;            // "float32"
  std::string logit_dtype;              // "float32"
  std::string activations = "float32";  // what enters a linear layer: float32, bf16 or int8
  std::string sha256;                   // digest of the weights; "" for built-in targets
  std::int64_t vocab = 0;
  std::int64_t positions = 0;    // longest prompt plus output
  std::vector<TokenId> end_ids;  // sorted
};

/// How much a target or drafter must be ready for; everything is allocated when it is told.
struct BatchLimits {
  std::int32_t requests = 1;   // slots
  std::int32_t drafts = 0;     // K; a request has at most K + 1 rows a step
  std::int64_t positions = 0;  // prompt plus output of the longest request, K + 1 included
  bool draft_logits = false;   // the rule reads Request::draft_logits
};

/// The rows of one step. Request r of the batch owns draft.size() + 1 of them, in the order of the
/// batch.
struct StepView {
  RowScoresView scores;  // [rows]
  LogitsView logits;     // [rows, vocab]; data is null unless host rows were asked for
};

/// Which hidden states a step hands over (specs: targets, section 4.5).
struct HiddenSelection {
  std::vector<std::int64_t> taps;  // R[k] of every row, beside each other in this order
  bool final_norm = false;         // the final norm's output, of scored rows

  bool empty() const { return taps.empty() && !final_norm; }
};

/// Receives hidden states: float32 in the memory of the target's device, valid until its next call.
///
/// Rows stand at neighbouring positions of one request, from `position` on. While its output is
/// empty they are a piece of its prompt, in order; after that the pending token and its drafts.
class HiddenListener {
 public:
  virtual ~HiddenListener() = default;
  /// `data` [rows, taps * hidden].
  virtual void on_taps(const Request&, std::int64_t /*position*/, std::int64_t /*rows*/,
                       const float* /*data*/) {}
  /// `data` [rows, hidden].
  virtual void on_final_norm(const Request&, std::int64_t /*position*/, std::int64_t /*rows*/,
                             const float* /*data*/) {}
};

/// A cache holds, per slot, exactly the history that was committed up to but without the pending
/// token.
class Target {
 public:
  virtual ~Target() = default;
  virtual TargetInfo info() const = 0;

  /// Hands the selected hidden states of every later step to `listener`; an empty selection ends
  /// that. To be called before reserve(), which makes the buffers. ConfigError when the target has
  /// none, or no such layer.
  virtual void listen(const HiddenSelection& selection, HiddenListener* listener);
  /// Allocates for the limits; `host_logits` asks that StepView::logits be filled. DeviceError when
  /// memory is short.
  virtual void reserve(const BatchLimits& limits, bool host_logits) = 0;
  /// Fills the slot's cache with the prompt and scores its last row: one row, no draft. The view is
  /// valid until the next call.
  virtual StepView prefill(const Request& request) = 0;
  /// Scores pending token and drafts of each request. The view is valid until the next call.
  virtual StepView forward(std::span<Request* const> live) = 0;
  /// Cuts the slot's cache to the history before this pass plus the pending token of then plus
  /// `drafts` drafts. Called after each forward, before the request commits.
  virtual void keep(const Request& request, std::int32_t drafts) = 0;
  /// Forgets the slot.
  virtual void release(const Request& request) = 0;
};

}  // namespace asdbench
