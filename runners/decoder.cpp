// The loop: draft, verify, cut, commit.
#include "runners/decoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "eval/core/error.h"

namespace asdbench {
namespace {

using Clock = std::chrono::steady_clock;

std::int64_t nanoseconds(Clock::duration time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
}

// Index of the first id outside the vocabulary; -1 when all are inside.
std::ptrdiff_t find_outside(std::span<const TokenId> tokens, std::int64_t vocab) {
  const auto outside = [&](TokenId token) { return token < 0 || token >= vocab; };
  const auto found = std::find_if(tokens.begin(), tokens.end(), outside);
  return found == tokens.end() ? -1 : found - tokens.begin();
}

std::string outside_vocabulary(const char* what, std::ptrdiff_t index, TokenId token,
                               std::int64_t vocab) {
  return fmt::format("{}: {}[{}] is {}; expected 0 to {}", name_of(BlockFault::kTokenOutOfRange),
                     what, index, token, vocab - 1);
}

}  // namespace

Decoder::Decoder(Target& target, Drafter& drafter, const Verifier& verifier, DecoderOptions options)
    : target_(target), drafter_(drafter), verifier_(verifier), options_(options) {
  const TargetInfo target_info = target.info();
  const DrafterInfo drafter_info = drafter.info();
  const VerifierInfo rule = verifier.info();
  vocab_ = target_info.vocab;
  positions_ = target_info.positions;
  if (drafter_info.positions > 0) positions_ = std::min(positions_, drafter_info.positions);

  ASDBENCH_CHECK(options.requests >= 1, "a decoder has at least one slot");
  if (options.drafts < 0 || options.drafts > kMaxDraft || options.drafts >= positions_) {
    throw ConfigError(
        fmt::format("K is {}; expected 0 to {}: target {} and drafter {} have {} "
                    "positions, and a pass scores at most {} drafts",
                    options.drafts, std::min<std::int64_t>(kMaxDraft, positions_ - 1),
                    target_info.name, drafter_info.name, positions_, kMaxDraft));
  }
  if (rule.needs_draft_logits && !drafter_info.has_law) {
    throw ConfigError(
        fmt::format("verifier {} reads the drafter's logits, which drafter {} does "
                    "not have; choose another drafter, or skip this cell",
                    rule.name, drafter_info.name));
  }
  const BatchLimits limits{options.requests, options.drafts,
                           std::min(options.positions, positions_), rule.needs_draft_logits};
  target_.listen(drafter_.reads(), &drafter_);
  target_.reserve(limits, rule.needs_target_logits);
  drafter_.reserve(limits);
  batch_.reserve(static_cast<std::size_t>(options.requests));
  limits_.reserve(static_cast<std::size_t>(options.requests));
}

void Decoder::start(Request& request) {
  const auto prompt_tokens = static_cast<std::int64_t>(request.prompt().size());
  ASDBENCH_CHECK(request.output().empty(), "a request is started once");
  ASDBENCH_CHECK(request.slot >= 0 && request.slot < options_.requests, "no such slot");
  ASDBENCH_CHECK(std::min(prompt_tokens + request.limits().max_tokens + options_.drafts,
                          positions_) <= options_.positions,
                 "the request needs more positions than were reserved");
  if (prompt_tokens >= positions_) {
    request.fail(
        fmt::format("the prompt has {} tokens; expected at most {}, so that one can follow",
                    prompt_tokens, positions_ - 1));
    return;
  }
  if (const auto at = find_outside(request.prompt(), vocab_); at >= 0) {
    request.fail(
        outside_vocabulary("prompt", at, request.prompt()[static_cast<std::size_t>(at)], vocab_));
    return;
  }
  const auto begin = Clock::now();
  try {
    // A block without drafts: the rule that chooses every other token chooses the first one too.
    const StepView step = target_.prefill(request);
    const Block block = block_of(request, step, 0);
    const TokenId first = verifier_.decide(block, request.ledger(), request.rng()).target_token;
    request.note_near_ties({&first, 1}, block.scores);
    request.commit_first(first, positions_);
    if (!request.finished()) drafter_.begin(request);
  } catch (const BlockError& error) {
    request.fail(error.what());
  }
  request.prefill_ns = nanoseconds(Clock::now() - begin);
}

void Decoder::pass(std::span<Request* const> live) {
  const auto begin = Clock::now();
  const std::span<Request* const> batch = draft(live);  // request->draft: [K_r], within its limits
  const auto drafted = Clock::now();
  if (batch.empty()) return;
  const StepView step = target_.forward(batch);  // one step for all; request r owns K_r + 1 rows
  auto now = Clock::now();
  times_.draft_ns += nanoseconds(drafted - begin);
  times_.verify_ns += nanoseconds(now - drafted);
  std::size_t row = 0;
  for (Request* request : batch) {
    const auto scored = now;
    const Block block = block_of(*request, step, row);
    row += block.draft.size() + 1;
    try {
      const Decision decision = verifier_.decide(block, request->ledger(), request->rng());  // pure
      const Kept kept = cut(block, decision);  // the only code that cuts
      const auto decided = now = Clock::now();
      target_.keep(*request, kept.drafts);  // the cache holds what was committed, no more
      drafter_.observe(*request, kept);
      request->note_near_ties(kept.committed_tokens(), block.scores);
      request->commit(kept, decision);  // tokens, ledger, pass record: all or nothing
      now = Clock::now();
      times_.rule_ns += nanoseconds(decided - scored);
      times_.cache_ns += nanoseconds(now - decided);
    } catch (const BlockError& error) {
      request->fail(error.what());  // this request only; its tokens and ledger stay as they are
    }
  }
  ++times_.passes;
  for (Request* request : batch) request->decode_ns += nanoseconds(now - begin);
}

void Decoder::finish(Request& request) {
  target_.release(request);
  drafter_.release(request);
}

void Decoder::run(Request& request) {
  start(request);
  Request* const live[] = {&request};
  while (!request.finished()) pass(live);
  finish(request);
}

std::span<Request* const> Decoder::draft(std::span<Request* const> live) {
  ASDBENCH_CHECK(live.size() <= static_cast<std::size_t>(options_.requests), "more than the slots");
  batch_.clear();
  limits_.clear();
  for (Request* request : live) {
    if (request->finished()) continue;
    // Prompt, output, K drafts and the target's token must fit.
    const auto free = positions_ - static_cast<std::int64_t>(request->history().size()) - 1;
    batch_.push_back(request);
    limits_.push_back({static_cast<std::int32_t>(std::min<std::int64_t>(options_.drafts, free))});
  }
  drafter_.propose(batch_, limits_);

  std::size_t kept = 0;
  for (std::size_t i = 0; i < batch_.size(); ++i) {
    Request& request = *batch_[i];
    ASDBENCH_CHECK(static_cast<std::int64_t>(request.draft.size()) <= limits_[i].tokens,
                   drafter_.info().name + " proposed more tokens than it may");
    if (request.finished()) continue;  // the drafter could not go on with it
    // An id that the target cannot embed must not reach it.
    if (const auto at = find_outside(request.draft, vocab_); at >= 0) {
      request.fail(
          outside_vocabulary("draft", at, request.draft[static_cast<std::size_t>(at)], vocab_));
    } else {
      batch_[kept++] = &request;
    }
  }
  batch_.resize(kept);
  return batch_;
}

Block Decoder::block_of(const Request& request, const StepView& step, std::size_t row) const {
  const std::size_t rows = request.draft.size() + 1;
  const auto first = static_cast<std::int64_t>(row);
  const LogitsView logits{step.logits.data == nullptr ? nullptr : step.logits.data + first * vocab_,
                          static_cast<std::int64_t>(rows), vocab_};
  return {.draft = request.draft,
          .scores = step.scores.slice(row, rows),
          .target = logits,
          .draft_logits = request.draft_logits,
          .stop = request.stop(),
          .output_position = static_cast<std::int32_t>(request.output().size())};
}

}  // namespace asdbench
