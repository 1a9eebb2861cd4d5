// Plain greedy decoding of one request after the other.
#include "eval/run/local_judge.h"

#include <fmt/format.h>

#include "eval/core/error.h"
#include "runners/decoder.h"

namespace asdbench {
namespace {

template <typename Factory>
const Factory& factory_of(const std::vector<Factory>& table, std::string_view name) {
  for (const Factory& factory : table) {
    if (factory.name == name) return factory;
  }
  throw InternalError(fmt::format("no plugin {}", name));
}

class LocalJudge final : public Judge {
 public:
  LocalJudge(const std::string& target, const Params& params, const Paths& paths,
             std::int64_t max_tokens, std::function<bool()> interrupted)
      : model_(make_model(target, params, paths.models)),
        drafter_(factory_of(drafter_factories(), "none").make(none_, {*model_.target})),
        rule_(factory_of(verifier_factories(), "strict").make(none_)),
        max_tokens_(max_tokens),
        interrupted_(std::move(interrupted)) {
    params.refuse_unread();
  }

  ChatOutcome ask(const std::vector<Message>& messages) override {
    const TargetInfo info = model_.target->info();
    std::string rendered;
    const std::vector<TokenId> prompt =
        model_.prompt_ids({.messages = messages, .text = ""}, &rendered);
    const auto needed = static_cast<std::int64_t>(prompt.size()) + max_tokens_ + 1;
    Decoder decoder(*model_.target, *drafter_, *rule_,
                    {.drafts = 0, .requests = 1, .positions = std::min(info.positions, needed)});
    Request request("judge", prompt, {.max_tokens = static_cast<std::int32_t>(max_tokens_)},
                    info.end_ids, Rng(0, "judge", "decode"));
    decoder.start(request);
    Request* const live[] = {&request};
    while (!request.finished()) {
      if (interrupted_()) {
        decoder.finish(request);
        return failed(ChatFault::kRetry, "interrupted");
      }
      decoder.pass(live);
    }
    decoder.finish(request);
    const Completion completion = request.completion();
    if (!completion.error.empty()) return failed(ChatFault::kRequest, completion.error);
    ChatOutcome outcome;
    outcome.reply.text = model_.text(completion.tokens);
    outcome.reply.version = info.name + " " + info.sha256.substr(0, 12);
    outcome.reply.finish = *completion.finish == FinishReason::kEos ? "stop" : "length";
    outcome.reply.prompt_tokens = completion.prompt_tokens;
    outcome.reply.reply_tokens = static_cast<std::int64_t>(completion.tokens.size());
    if (outcome.reply.text.empty()) return failed(ChatFault::kRequest, "the judge said nothing");
    return outcome;
  }

 private:
  static ChatOutcome failed(ChatFault fault, std::string error) {
    return {.fault = fault, .reply = {}, .error = std::move(error), .retry_after = std::nullopt};
  }

  Params none_{"judge", {}};
  Model model_;
  std::unique_ptr<Drafter> drafter_;
  std::unique_ptr<Verifier> rule_;
  std::int64_t max_tokens_;
  std::function<bool()> interrupted_;
};

}  // namespace

std::unique_ptr<Judge> make_local_judge(const std::string& target, const Params& params,
                                        const Paths& paths, std::int64_t max_tokens,
                                        std::function<bool()> interrupted) {
  return std::make_unique<LocalJudge>(target, params, paths, max_tokens, std::move(interrupted));
}

}  // namespace asdbench
