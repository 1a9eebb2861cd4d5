// Cost of the loop itself: whole passes over the toy target, which costs next to nothing.
#include <benchmark/benchmark.h>

#include "eval/core/error.h"
#include "runners/decoder.h"
#include "runners/models/toy_target.h"

namespace asdbench {
namespace {

constexpr std::int32_t kTokens = 4000;

// Always K drafts, of which the toy target accepts some: those that its last-id law repeats.
class Repeat final : public Drafter {
 public:
  DrafterInfo info() const override { return {.name = "repeat", .sha256 = ""}; }

 protected:
  using Drafter::propose;
  Draft propose(const RequestView& request, DraftLimits limits) override {
    const auto history = request.history();
    const auto most = static_cast<std::size_t>(limits.tokens);
    return Draft::of(history.last(std::min(most, history.size())));
  }
};

std::unique_ptr<Verifier> rule(const std::string& name) {
  Params params(name, {});
  if (name == "asd") {
    params.set("B", "inf", {});
    params.set("g", "0.25", {});
    params.set("M", "2", {});
  }
  for (const VerifierFactory& factory : verifier_factories()) {
    if (factory.name == name) return factory.make(params);
  }
  throw InternalError("no verifier " + name);
}

std::unique_ptr<Drafter> drafter(const std::string& name, Target& target) {
  if (name == "repeat") return std::make_unique<Repeat>();
  for (const DrafterFactory& factory : drafter_factories()) {
    if (factory.name == name) return factory.make(Params(), {target});
  }
  throw InternalError("no drafter " + name);
}

// One iteration is one pass; starting requests is not timed.
void pass(benchmark::State& state, const std::string& by_name, const std::string& rule_name) {
  const auto batch = static_cast<std::int32_t>(state.range(0));
  const std::int32_t drafts = by_name == "none" ? 0 : 8;
  ToyTarget target({.vocab = 32, .positions = kTokens + 100});
  const auto by = drafter(by_name, target);
  const auto verifier = rule(rule_name);
  Decoder decoder(target, *by, *verifier,
                  {.drafts = drafts, .requests = batch, .positions = kTokens + 100});
  std::vector<std::unique_ptr<Request>> requests(static_cast<std::size_t>(batch));
  std::vector<Request*> live(requests.size());
  std::int64_t rows = 0, committed = 0;
  const auto renew = [&](std::size_t i) {
    std::vector<TokenId> prompt{1, 2, 3, 4, 5, 6, 7, static_cast<TokenId>(8 + i)};
    requests[i] = std::make_unique<Request>(
        "bench", std::move(prompt), RequestLimits{.max_tokens = kTokens, .ignore_end_ids = true},
        std::span<const TokenId>(), Rng());
    requests[i]->slot = static_cast<std::int32_t>(i);
    decoder.start(*requests[i]);
    live[i] = requests[i].get();
  };
  for (std::size_t i = 0; i < requests.size(); ++i) renew(i);
  for (auto _ : state) {
    decoder.pass(live);
    for (std::size_t i = 0; i < requests.size(); ++i) {
      rows += static_cast<std::int64_t>(live[i]->draft.size()) + 1;
      committed += live[i]->passes().back().committed;
      if (!live[i]->finished()) continue;
      state.PauseTiming();
      renew(i);
      state.ResumeTiming();
    }
  }
  const auto per_pass = [&](std::int64_t value) {
    return static_cast<double>(value) / static_cast<double>(state.iterations() * batch);
  };
  const PassTimes& times = decoder.times();
  state.counters["rows"] = per_pass(rows);
  state.counters["committed"] = per_pass(committed);
  state.counters["draft_ns"] = per_pass(times.draft_ns);
  state.counters["verify_ns"] = per_pass(times.verify_ns);
  state.counters["rule_ns"] = per_pass(times.rule_ns);
  state.counters["cache_ns"] = per_pass(times.cache_ns);
  state.SetItemsProcessed(state.iterations() * batch);
}
BENCHMARK_CAPTURE(pass, plain, "none", "strict")->ArgName("batch")->Arg(1);
BENCHMARK_CAPTURE(pass, strict, "repeat", "strict")->ArgName("batch")->Arg(1);
BENCHMARK_CAPTURE(pass, asd, "repeat", "asd")->ArgName("batch")->Arg(1)->Arg(8);
BENCHMARK_CAPTURE(pass, asd_ngram, "ngram", "asd")->ArgName("batch")->Arg(1);

}  // namespace
}  // namespace asdbench
