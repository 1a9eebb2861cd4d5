// What tests of the loop share: a drafter that knows the toy law, plugins by name, runs in one
// line.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "eval/core/error.h"
#include "runners/decoder.h"
#include "runners/models/toy_target.h"

namespace asdbench::testing_support {

using Options = std::vector<std::pair<std::string, std::string>>;

inline Params params(const std::string& owner, const Options& options) {
  Params made(owner, {});
  for (const auto& [key, value] : options) made.set(key, value, {});
  return made;
}

inline std::unique_ptr<Verifier> verifier(const std::string& name, const Options& options = {}) {
  for (const VerifierFactory& factory : verifier_factories()) {
    if (factory.name == name) return factory.make(params(name, options));
  }
  throw InternalError("no verifier " + name);
}

inline std::unique_ptr<Verifier> asd(const std::string& budget, const std::string& gate,
                                     const std::string& most, Options more = {}) {
  more.insert(more.end(), {{"B", budget}, {"g", gate}, {"M", most}});
  return verifier("asd", more);
}

inline std::unique_ptr<Drafter> drafter(const std::string& name, Target& target,
                                        const Options& options = {}) {
  for (const DrafterFactory& factory : drafter_factories()) {
    if (factory.name == name) return factory.make(params(name, options), {target});
  }
  throw InternalError("no drafter " + name);
}

/// Proposes the toy target's own choice with a given probability, else any id, so that blocks hold
/// matches, ties and mismatches in any number. A function of the history alone.
class Oracle final : public Drafter {
 public:
  Oracle(const HistoryTarget& target, std::int64_t vocab, double accuracy)
      : target_(target), vocab_(vocab), accuracy_(accuracy) {}
  DrafterInfo info() const override { return {.name = "oracle", .sha256 = ""}; }

 protected:
  using Drafter::propose;
  Draft propose(const RequestView& request, DraftLimits limits) override {
    std::vector<TokenId> history(request.history().begin(), request.history().end());
    Draft draft;
    while (draft.size() < limits.tokens) {
      const std::vector<float> row = target_.logits_after(history);
      TokenId best = 0;
      for (TokenId id = 1; id < vocab_; ++id) {
        if (row[static_cast<std::size_t>(id)] > row[static_cast<std::size_t>(best)]) best = id;
      }
      SplitMix64 random(static_cast<std::uint64_t>(best) + 1000 * history.size());
      // A near miss is an id that ties or nearly ties; it makes exceptions.
      TokenId near = best;
      for (TokenId id = 0; id < vocab_; ++id) {
        const float gap = row[static_cast<std::size_t>(best)] - row[static_cast<std::size_t>(id)];
        if (id != best && gap <= 0.25F) near = id;
      }
      const double draw = random.uniform();
      const auto any = static_cast<TokenId>(random.index(static_cast<std::uint64_t>(vocab_)));
      const TokenId token = draw < accuracy_ ? best : draw < (1 + accuracy_) / 2 ? near : any;
      draft.push_back(token);
      history.push_back(token);
    }
    return draft;
  }

 private:
  const HistoryTarget& target_;
  std::int64_t vocab_;
  double accuracy_;
};

/// A request over the ends of `target`, with a prompt of `prompt_tokens` ids drawn from `seed`.
class Prompted {
 public:
  Prompted(const Target& target, RequestLimits limits) : info_(target.info()), limits_(limits) {
    static std::set<std::vector<TokenId>> ends;  // outlives every request of the program
    end_ids_ = *ends.insert(info_.end_ids).first;
  }
  std::unique_ptr<Request> request(std::uint64_t seed, std::int32_t slot = 0,
                                   std::size_t prompt_tokens = 12) const {
    SplitMix64 random(seed);
    std::vector<TokenId> prompt;
    while (prompt.size() < prompt_tokens) {
      prompt.push_back(static_cast<TokenId>(random.index(static_cast<std::uint64_t>(info_.vocab))));
    }
    const std::string id = "test/" + std::to_string(seed);
    auto made =
        std::make_unique<Request>(id, std::move(prompt), limits_, end_ids_, Rng(1, id, "decode"));
    made->slot = slot;
    return made;
  }

 private:
  TargetInfo info_;
  RequestLimits limits_;
  std::span<const TokenId> end_ids_;
};

/// Everything of a completion but times, as text: what equal runs must agree on.
inline std::string dump(const Request& request) {
  const Completion completion = request.completion();
  std::string text = completion.error + "|";
  text += completion.finish ? std::string(name_of(*completion.finish)) : "unfinished";
  for (const TokenId token : completion.tokens) text += " " + std::to_string(token);
  text += "|" + std::to_string(completion.spent);
  for (const PassRecord& pass : completion.passes) {
    text += "|" + std::to_string(pass.drafted) + "," + std::to_string(pass.accepted) + "," +
            std::to_string(pass.kept) + "," + std::to_string(pass.committed) + "," +
            std::to_string(pass.strict_length) + "," + std::to_string(pass.blocked_by);
  }
  for (const ExceptionRecord& exception : completion.exceptions) {
    text += "|" + std::to_string(exception.output_position) + ":" +
            std::to_string(exception.draft) + "<" + std::to_string(exception.choice) + "@" +
            std::to_string(exception.regret) + "=" + std::to_string(exception.spent_after);
  }
  return text;
}

inline std::vector<TokenId> tokens(const Request& request) {
  return {request.output().begin(), request.output().end()};
}

}  // namespace asdbench::testing_support
