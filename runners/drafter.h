// Proposes the next tokens of a request.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "eval/core/params.h"
#include "eval/core/token_id.h"
#include "runners/request.h"
#include "runners/target.h"

namespace asdbench {

struct DraftLimits {
  std::int32_t tokens = 0;  // most that may be proposed in this pass
};

/// A proposal without allocation.
class Draft {
 public:
  static Draft none() { return {}; }
  static Draft of(std::span<const TokenId> tokens) {
    Draft draft;
    draft.size_ = static_cast<std::int32_t>(std::min(tokens.size(), draft.tokens_.size()));
    std::copy_n(tokens.begin(), draft.size_, draft.tokens_.begin());
    return draft;
  }
  void push_back(TokenId token) { tokens_[static_cast<std::size_t>(size_++)] = token; }
  std::span<const TokenId> tokens() const {
    return {tokens_.data(), static_cast<std::size_t>(size_)};
  }
  std::int32_t size() const { return size_; }

 private:
  std::array<TokenId, kMaxDraft> tokens_;
  std::int32_t size_ = 0;
};

/// What a drafter may see of a request: its committed history.
class RequestView {
 public:
  explicit RequestView(const Request& request) : request_(request) {}
  std::span<const TokenId> history() const { return request_.history(); }
  const Rng& rng() const { return request_.rng(); }
  std::int32_t output_position() const {
    return static_cast<std::int32_t>(request_.output().size());
  }
  std::int32_t slot() const { return request_.slot; }

 private:
  const Request& request_;
};

struct DrafterInfo {
  std::string name;
  std::string sha256;          // digest of its weights; "" when it has none
  std::int64_t positions = 0;  // its own position limit; 0: none
  std::int32_t drafts = 0;     // K: most that it proposes in a pass
  bool has_law = false;        // fills Request::draft_logits when BatchLimits asks for them
};

class Drafter : public HiddenListener {
 public:
  virtual DrafterInfo info() const = 0;

  /// The hidden states that the drafter wants to be told of.
  virtual HiddenSelection reads() const { return {}; }

  virtual void reserve(const BatchLimits&) {}
  /// After prefill: the prompt is in the history, and one committed token after it.
  virtual void begin(const Request&) {}
  /// Fills `draft` (and `draft_logits`) of each request with at most `limits[i].tokens` ids. The
  /// default calls the per-request form for each.
  virtual void propose(std::span<Request* const> live, std::span<const DraftLimits> limits);
  /// After the cut and before the commit: what of the proposal was kept, and what followed.
  virtual void observe(const Request&, const Kept&) {}
  /// Forgets the slot; also called for a request that never began.
  virtual void release(const Request&) {}

 protected:
  /// For drafters without a batched form.
  virtual Draft propose(const RequestView& request, DraftLimits limits);
};

/// What a drafter may need to be made.
struct DrafterContext {
  Target& target;                 // that it drafts for: a checkpoint to fit, a law to imitate
  std::filesystem::path shipped;  // folder of the drafters that came with the program; may be ""
  std::function<void(const std::string&)> warn = [](const std::string&) {};
};

struct DrafterFactory {
  using Make = std::unique_ptr<Drafter>(const Params&, const DrafterContext&);
  std::string name;
  Make* make;
};

/// Generated: one row per file of runners/drafters/.
const std::vector<DrafterFactory>& drafter_factories();

}  // namespace asdbench
