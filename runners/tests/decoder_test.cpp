// The loop over the toy target: exactness, batches, slots, limits, failures.
#include "runners/decoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <numeric>

#include "runners/drafters/tests/fixtures.h"
#include "runners/models/planted_target.h"
#include "runners/tests/decoding.h"

namespace asdbench {
namespace {

using testing::HasSubstr;
using testing_support::asd;
using testing_support::drafter;
using testing_support::dump;
using testing_support::Oracle;
using testing_support::Prompted;
using testing_support::tokens;
using testing_support::verifier;

constexpr ToyOptions kToy{.vocab = 24, .positions = 512, .ends = 1, .seed = 5};
constexpr RequestLimits kNatural{.max_tokens = 60};
constexpr RequestLimits kFixed{.max_tokens = 60, .ignore_end_ids = true};
constexpr DecoderOptions kOptions{.drafts = 6, .requests = 1, .positions = 512};
constexpr std::uint64_t kPrompts = 40;

std::unique_ptr<Request> run(Target& target, Drafter& by, const Verifier& rule, std::uint64_t seed,
                             RequestLimits limits, DecoderOptions options = kOptions) {
  Decoder decoder(target, by, rule, options);
  auto request = Prompted(target, limits).request(seed);
  decoder.run(*request);
  return request;
}

std::unique_ptr<Request> plain(Target& target, std::uint64_t seed, RequestLimits limits) {
  DecoderOptions options = kOptions;
  options.drafts = 0;
  return run(target, *drafter("none", target), *verifier("strict"), seed, limits, options);
}

// Every drafter of the build: over the toy, the planted or a fixture's target; and the oracle at
// several rates.
struct Pair {
  std::string name;
  std::unique_ptr<Target> target;
  std::unique_ptr<Drafter> by;
  std::uint64_t prompts = kPrompts;  // fewer where a step is a network's
};

std::vector<Pair> all_drafters() {
  std::vector<Pair> pairs;
  const std::map<std::string, std::string> fixtures = {{"eagle3", "eagle3_safeailab_reduced"},
                                                       {"dspark", "dspark_trained"},
                                                       {"dflash", "dflash_zlab"},
                                                       {"medusa", "medusa_v1"}};
  for (const DrafterFactory& factory : drafter_factories()) {
    Pair pair{factory.name, nullptr, nullptr};
    if (const auto found = fixtures.find(factory.name); found != fixtures.end()) {
      auto fixture = testing_support::open_fixture(found->second);
      pairs.push_back({factory.name, std::move(fixture.target), std::move(fixture.drafter), 6});
      continue;
    }
    if (factory.name == "planted") {
      pair.target = std::make_unique<PlantedTarget>(
          PlantedOptions{.vocab = 24, .positions = 512, .mean_tokens = 40});
    } else {
      pair.target = std::make_unique<ToyTarget>(kToy);
    }
    pair.by = factory.make(Params(), {*pair.target});
    pairs.push_back(std::move(pair));
  }
  for (const double accuracy : {0.0, 0.6, 0.95, 1.0}) {
    auto toy = std::make_unique<ToyTarget>(kToy);
    auto oracle = std::make_unique<Oracle>(*toy, kToy.vocab, accuracy);
    pairs.push_back({"oracle", std::move(toy), std::move(oracle)});
  }
  return pairs;
}

TEST(DecoderTest, StrictEqualsPlainWithEveryDrafter) {
  std::int64_t fewer = 0;
  for (const Pair& pair : all_drafters()) {
    for (const RequestLimits limits : {kNatural, kFixed}) {
      for (std::uint64_t seed = 0; seed < pair.prompts; ++seed) {
        const auto expected = plain(*pair.target, seed, limits);
        const auto got = run(*pair.target, *pair.by, *verifier("strict"), seed, limits);
        ASSERT_EQ(tokens(*got), tokens(*expected)) << pair.name << ", prompt " << seed;
        ASSERT_EQ(got->finish(), expected->finish());
        ASSERT_EQ(got->error(), "");
        fewer += static_cast<std::int64_t>(expected->passes().size()) -
                 static_cast<std::int64_t>(got->passes().size());
      }
    }
  }
  EXPECT_GT(fewer, 1000) << "drafts were hardly ever accepted";
}

TEST(DecoderTest, ZeroControlsEqualStrictTokenByToken) {
  for (const Pair& pair : all_drafters()) {
    for (const std::string policy : {"headroom", "literal"}) {
      for (std::uint64_t seed = 0; seed < pair.prompts / 2; ++seed) {
        const auto strict = run(*pair.target, *pair.by, *verifier("strict"), seed, kNatural);
        for (const auto& rule : {asd("0", "inf", "inf", {{"tie_policy", policy}}),
                                 asd("inf", "0", "inf", {{"tie_policy", policy}}),
                                 asd("8", "0.25", "0", {{"tie_policy", policy}})}) {
          const auto got = run(*pair.target, *pair.by, *rule, seed, kNatural);
          ASSERT_EQ(tokens(*got), tokens(*strict)) << pair.name;
          ASSERT_EQ(got->passes().size(), strict->passes().size());
          ASSERT_EQ(got->ledger().spent(), 0);
          ASSERT_TRUE(got->exceptions().empty());
        }
      }
    }
  }
}

TEST(DecoderTest, EveryPassKeepsLedgerCacheAndCounts) {
  ToyTarget target(kToy);
  Oracle oracle(target, kToy.vocab, 0.7);
  std::size_t exceptions = 0, exhausted = 0;
  for (const auto& rule :
       {asd("0.5", "0.25", "2"), asd("8", "0.25", "2"), asd("inf", "1", "inf")}) {
    const double budget = *rule->info().regret_budget;
    Decoder decoder(target, oracle, *rule, kOptions);
    for (std::uint64_t seed = 0; seed < kPrompts; ++seed) {
      auto request = Prompted(target, kNatural).request(seed);
      decoder.start(*request);
      Request* const live[] = {request.get()};
      while (!request->finished()) {
        const auto committed = request->output().size();
        const double spent = request->ledger().spent();
        decoder.pass(live);
        ASSERT_EQ(request->error(), "");
        // P3, P19: the ledger only grows, and never beyond the budget; a pass commits 1 to K + 1.
        ASSERT_LE(spent, request->ledger().spent());
        ASSERT_LE(request->ledger().spent(), budget);
        ASSERT_GT(request->output().size(), committed);
        ASSERT_LE(request->output().size(), committed + request->draft.size() + 1);
        const PassRecord& pass = request->passes().back();
        ASSERT_EQ(request->output().size() - committed, static_cast<std::size_t>(pass.committed));
        // P9: the cache is that of a fresh prefill of what was committed up to the last kept draft.
        const auto cached = target.cached(0);
        const auto history = request->history();
        const std::size_t target_token = pass.committed > pass.kept ? 1 : 0;
        ASSERT_EQ(cached.size(), history.size() - target_token);
        HistoryTarget::State state = HistoryTarget::kEmpty;
        for (std::size_t i = 0; i < cached.size(); ++i) {
          state = HistoryTarget::fold(state, history[i]);
          ASSERT_EQ(cached[i], state) << i;
        }
      }
      decoder.finish(*request);
      // P20: at most one end, at the end; exceptions are what the output holds, and never an end.
      const auto output = request->output();
      for (std::size_t i = 0; i + 1 < output.size(); ++i) {
        ASSERT_FALSE(request->stop().is_end(output[i]));
      }
      double sum = 0;
      for (const ExceptionRecord& exception : request->exceptions()) {
        sum += exception.regret;
        ASSERT_EQ(output[static_cast<std::size_t>(exception.output_position)], exception.draft);
        ASSERT_NE(exception.draft, exception.choice);
        ASSERT_FALSE(request->stop().is_end(exception.choice));
        ASSERT_EQ(exception.spent_after, sum);
      }
      ASSERT_EQ(request->ledger().spent(), sum);
      exceptions += request->exceptions().size();
      exhausted += sum == budget ? 1 : 0;
    }
  }
  EXPECT_GT(exceptions, 200U);
  EXPECT_GT(exhausted, 0U);
}

TEST(DecoderTest, EveryRuleThatNeedsNoDraftLawDecodes) {
  ToyTarget target(kToy);
  Oracle oracle(target, kToy.vocab, 0.5);
  std::size_t rules = 0;
  for (const VerifierFactory& factory : verifier_factories()) {
    Params params(factory.name, {});
    for (const char* key : {"B", "g", "M", "tau", "kappa", "l", "alpha", "top_p", "h", "w", "k"}) {
      params.set(key, "1", {});
    }
    params.set("mask", "regret_gate", {});
    const auto rule = factory.make(params);
    if (rule->info().needs_draft_logits) continue;
    ++rules;
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
      const auto request = run(target, oracle, *rule, seed, kFixed);
      ASSERT_EQ(request->error(), "") << factory.name;
      ASSERT_EQ(request->output().size(), 60U);
      if (rule->info().keeps == Keeps::kGreedyOutput) {
        ASSERT_EQ(tokens(*request), tokens(*plain(target, seed, kFixed))) << factory.name;
        ASSERT_EQ(request->ledger().spent(), 0);
      }
    }
  }
  EXPECT_GT(rules, 10U);
}

// Requests decoded side by side, `slots` at a time, each new one in the first free slot.
std::vector<std::string> decode_together(Target& target, Drafter& by, const Verifier& rule,
                                         std::vector<std::unique_ptr<Request>>& requests,
                                         std::int32_t slots) {
  DecoderOptions options = kOptions;
  options.requests = slots;
  Decoder decoder(target, by, rule, options);
  std::vector<Request*> live;
  std::size_t next = 0;
  std::vector<std::int32_t> free_slots(static_cast<std::size_t>(slots));
  std::iota(free_slots.begin(), free_slots.end(), 0);
  while (next < requests.size() || !live.empty()) {
    while (!free_slots.empty() && next < requests.size()) {
      Request& request = *requests[next++];
      request.slot = free_slots.back();
      free_slots.pop_back();
      decoder.start(request);
      live.push_back(&request);
    }
    decoder.pass(live);
    std::erase_if(live, [&](Request* request) {
      if (!request->finished()) return false;
      decoder.finish(*request);
      free_slots.push_back(request->slot);
      return true;
    });
  }
  std::vector<std::string> dumps;
  for (const auto& request : requests) dumps.push_back(dump(*request));
  return dumps;
}

TEST(DecoderTest, BatchesSlotsAndOrderChangeNothing) {
  for (const Pair& pair : all_drafters()) {
    const auto rule = asd("1", "0.25", "2");
    const Prompted prompted(*pair.target, kNatural);
    std::vector<std::string> alone;
    for (std::uint64_t seed = 0; seed < 12; ++seed) {
      alone.push_back(dump(*run(*pair.target, *pair.by, *rule, seed, kNatural)));
    }
    for (const std::int32_t slots : {1, 2, 3, 12}) {
      for (const std::uint64_t step : {1, 5, 7}) {  // each generates 0..11 in another order
        std::vector<std::unique_ptr<Request>> requests;
        for (std::uint64_t i = 0; i < 12; ++i) requests.push_back(prompted.request(i * step % 12));
        const auto dumps = decode_together(*pair.target, *pair.by, *rule, requests, slots);
        for (std::uint64_t i = 0; i < 12; ++i) {
          ASSERT_EQ(dumps[i], alone[i * step % 12]) << pair.name << ", slots " << slots;
        }
      }
    }
  }
}

TEST(DecoderTest, AReusedSlotStartsAnew) {
  ToyTarget target(kToy);
  Oracle oracle(target, kToy.vocab, 0.7);
  const auto rule = asd("0.25", "0.25", "2");
  Decoder decoder(target, oracle, *rule, kOptions);
  const Prompted prompted(target, kFixed);
  auto first = prompted.request(1);
  decoder.run(*first);
  EXPECT_GT(first->ledger().spent(), 0);
  for (int i = 0; i < 3; ++i) {
    auto other = prompted.request(2);
    decoder.run(*other);
    auto again = prompted.request(1);
    EXPECT_EQ(again->ledger().spent(), 0);
    decoder.run(*again);
    EXPECT_EQ(dump(*again), dump(*first));
  }
}

// A toy target that spoils chosen rows of chosen requests.
class Spoiled final : public Target {
 public:
  explicit Spoiled(Target& target) : target_(target) {}
  TargetInfo info() const override { return target_.info(); }
  void reserve(const BatchLimits& limits, bool host_logits) override {
    target_.reserve(limits, host_logits);
  }
  StepView prefill(const Request& request) override {
    StepView step = target_.prefill(request);
    if (request.sample_id() == spoil_prefill) spoil(step, 0);
    return step;
  }
  StepView forward(std::span<Request* const> live) override {
    StepView step = target_.forward(live);
    std::size_t row = 0;
    for (const Request* request : live) {
      // The last row: it would not even be read if a draft before it were refused.
      row += request->draft.size() + 1;
      if (request->sample_id() == spoil_forward && request->passes().size() == 3)
        spoil(step, row - 1);
    }
    return step;
  }
  void keep(const Request& request, std::int32_t drafts) override { target_.keep(request, drafts); }
  void release(const Request& request) override { target_.release(request); }

  std::string spoil_prefill, spoil_forward;

 private:
  void spoil(StepView& step, std::size_t row) {
    bad_.assign(step.scores.bad.begin(), step.scores.bad.end());
    bad_[row] = 1;
    step.scores.bad = bad_;
  }
  Target& target_;
  std::vector<std::uint8_t> bad_;
};

TEST(DecoderTest, ABadRowFailsItsRequestOnly) {
  ToyTarget target(kToy);
  Oracle oracle(target, kToy.vocab, 0.7);
  const Prompted prompted(target, kFixed);
  for (const auto& rule : {asd("1", "0.25", "2"), verifier("strict")}) {
    std::vector<std::unique_ptr<Request>> requests, spoiled_requests;
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      requests.push_back(prompted.request(seed));
      spoiled_requests.push_back(prompted.request(seed));
    }
    const auto expected = decode_together(target, oracle, *rule, requests, 4);
    Spoiled spoiled(target);
    spoiled.spoil_forward = "test/1";
    spoiled.spoil_prefill = "test/3";
    const auto got = decode_together(spoiled, oracle, *rule, spoiled_requests, 4);
    EXPECT_EQ(got[0], expected[0]);
    EXPECT_EQ(got[2], expected[2]);

    const Request& failed = *spoiled_requests[1];
    EXPECT_THAT(failed.error(), HasSubstr("nonfinite_logit"));
    EXPECT_FALSE(failed.finish());
    EXPECT_EQ(failed.passes().size(), 3U);
    double sum = 0;
    for (const ExceptionRecord& exception : failed.exceptions()) sum += exception.regret;
    EXPECT_EQ(failed.ledger().spent(), sum);
    // P17: what was committed before is what the undamaged run committed in as many passes.
    const auto output = tokens(failed);
    const auto whole = tokens(*requests[1]);
    ASSERT_LT(output.size(), whole.size());
    EXPECT_TRUE(std::equal(output.begin(), output.end(), whole.begin()));

    EXPECT_THAT(spoiled_requests[3]->error(), HasSubstr("nonfinite_logit"));
    EXPECT_TRUE(spoiled_requests[3]->output().empty());
  }
}

TEST(DecoderTest, FirstTokenAndCapOfOne) {
  ToyTarget target(kToy);
  Oracle oracle(target, kToy.vocab, 0.7);
  const auto one = run(target, oracle, *verifier("strict"), 1, {.max_tokens = 1});
  EXPECT_EQ(one->output().size(), 1U);
  EXPECT_TRUE(one->passes().empty());
  EXPECT_EQ(one->finish(), FinishReason::kLength);
  // With every id an end, the token from prefill ends the answer.
  ToyTarget ending({.vocab = 24, .positions = 512, .ends = 24, .seed = 5});
  const auto ended = run(ending, oracle, *verifier("strict"), 1, kNatural);
  EXPECT_EQ(ended->output().size(), 1U);
  EXPECT_EQ(ended->finish(), FinishReason::kEos);
}

TEST(DecoderTest, PositionsLimitDraftsAndOutput) {
  for (const std::int64_t positions : {13, 14, 17, 25, 40}) {
    ToyOptions small = kToy;
    small.positions = positions;
    ToyTarget target(small);
    Oracle oracle(target, kToy.vocab, 1.0);
    const Prompted prompted(target, kFixed);
    const auto rule = verifier("strict");
    Decoder decoder(target, oracle, *rule, kOptions);
    auto request = prompted.request(3);
    decoder.run(*request);
    EXPECT_EQ(request->finish(), FinishReason::kContextLimit);
    EXPECT_EQ(request->history().size(), static_cast<std::size_t>(positions));
    std::int64_t length = 13;  // prompt and first token
    for (const PassRecord& pass : request->passes()) {
      EXPECT_EQ(pass.drafted, std::min<std::int64_t>(6, positions - length - 1));
      length += pass.committed;
    }
    // The same tokens as with room enough.
    ToyTarget roomy(kToy);
    const auto whole = plain(roomy, 3, kFixed);
    const auto output = tokens(*request);
    EXPECT_TRUE(std::equal(output.begin(), output.end(), whole->output().begin()));
  }
}

// Knows fewer positions than the target.
class ShortSighted final : public Drafter {
 public:
  DrafterInfo info() const override { return {.name = "short", .sha256 = "", .positions = 20}; }

 protected:
  using Drafter::propose;
  Draft propose(const RequestView&, DraftLimits) override { return Draft::none(); }
};

TEST(DecoderTest, TheDraftersPositionsLimitToo) {
  ToyTarget target(kToy);
  ShortSighted by;
  const auto request = run(target, by, *verifier("strict"), 3, kFixed);
  EXPECT_EQ(request->finish(), FinishReason::kContextLimit);
  EXPECT_EQ(request->history().size(), 20U);
}

TEST(DecoderTest, APromptThatDoesNotFitFails) {
  ToyOptions small = kToy;
  small.positions = 12;
  ToyTarget target(small);
  const auto request = run(target, *drafter("none", target), *verifier("strict"), 3, kFixed);
  EXPECT_THAT(request->error(), HasSubstr("12 tokens; expected at most 11"));
  EXPECT_TRUE(request->output().empty());

  ToyTarget roomy(kToy);
  const auto by = drafter("ngram", roomy);
  const auto rule = verifier("strict");
  Decoder decoder(roomy, *by, *rule, kOptions);
  for (const TokenId bad : {-1, 24}) {
    Request outside("a", {1, bad, 2}, kFixed, {}, Rng());
    decoder.run(outside);
    EXPECT_THAT(outside.error(), HasSubstr("token_out_of_range: prompt[1]"));
  }
}

// Proposes ids that the target does not have, for one sample.
class Wild final : public Drafter {
 public:
  explicit Wild(TokenId id) : id_(id) {}
  DrafterInfo info() const override { return {.name = "wild", .sha256 = ""}; }
  using Drafter::propose;
  void propose(std::span<Request* const> live, std::span<const DraftLimits>) override {
    for (Request* request : live) {
      request->draft = {1, request->sample_id() == "test/1" ? id_ : 2, 3};
    }
  }

 private:
  TokenId id_;
};

TEST(DecoderTest, ADraftOutsideTheVocabularyFailsItsRequestOnly) {
  ToyTarget target(kToy);
  const Prompted prompted(target, kFixed);
  for (const TokenId id : {TokenId{24}, kNoToken, std::numeric_limits<TokenId>::max()}) {
    Wild wild(id);
    std::vector<std::unique_ptr<Request>> requests;
    for (std::uint64_t seed = 0; seed < 3; ++seed) requests.push_back(prompted.request(seed));
    decode_together(target, wild, *asd("8", "0.25", "2"), requests, 3);
    EXPECT_EQ(requests[0]->finish(), FinishReason::kLength);
    EXPECT_EQ(requests[2]->finish(), FinishReason::kLength);
    EXPECT_THAT(requests[1]->error(), HasSubstr("token_out_of_range: draft[1]"));
    EXPECT_EQ(requests[1]->output().size(), 1U);
  }
}

// Ignores its limit.
class Greedy final : public Drafter {
 public:
  DrafterInfo info() const override { return {.name = "greedy", .sha256 = ""}; }
  using Drafter::propose;
  void propose(std::span<Request* const> live, std::span<const DraftLimits> limits) override {
    live[0]->draft.assign(static_cast<std::size_t>(limits[0].tokens) + 1, 0);
  }
};

struct NeedsLaw final : Verifier {
  VerifierInfo info() const override { return {.name = "needs_law", .needs_draft_logits = true}; }
  Decision decide(const Block&, const Ledger&, const Rng&) const override { return {}; }
};

TEST(DecoderTest, RefusesWhatCannotWork) {
  ToyTarget target(kToy);
  const auto none = drafter("none", target);
  const auto strict = verifier("strict");
  const auto make = [&](DecoderOptions options) { Decoder(target, *none, *strict, options); };
  EXPECT_THROW(make({.drafts = 65, .requests = 1, .positions = 512}), ConfigError);
  EXPECT_THROW(make({.drafts = -1, .requests = 1, .positions = 512}), ConfigError);
  EXPECT_THROW(make({.drafts = 1, .requests = 0, .positions = 512}), InternalError);
  ToyOptions tiny = kToy;
  tiny.positions = 5;
  ToyTarget small(tiny);
  EXPECT_THROW(Decoder(small, *none, *strict, {.drafts = 5, .requests = 1, .positions = 5}),
               ConfigError);
  EXPECT_THROW(Decoder(target, *none, NeedsLaw(), kOptions), ConfigError);

  Greedy greedy;
  EXPECT_THROW(run(target, greedy, *strict, 1, kFixed), InternalError);
  // More positions than were reserved would overrun a cache.
  EXPECT_THROW(
      run(target, *none, *strict, 1, kFixed, {.drafts = 6, .requests = 1, .positions = 77}),
      InternalError);
  EXPECT_EQ(run(target, *none, *strict, 1, kFixed, {.drafts = 6, .requests = 1, .positions = 78})
                ->finish(),
            FinishReason::kLength);
}

TEST(DecoderTest, TimesAddUp) {
  ToyTarget target(kToy);
  Oracle oracle(target, kToy.vocab, 0.7);
  const auto rule = asd("8", "0.25", "2");
  Decoder decoder(target, oracle, *rule, kOptions);
  auto request = Prompted(target, kFixed).request(1);
  decoder.run(*request);
  const PassTimes& times = decoder.times();
  EXPECT_EQ(times.passes, static_cast<std::int64_t>(request->passes().size()));
  EXPECT_GT(request->prefill_ns, 0);
  EXPECT_GT(times.draft_ns, 0);
  EXPECT_GT(times.verify_ns, 0);
  EXPECT_GT(times.rule_ns, 0);
  EXPECT_GT(times.cache_ns, 0);
  // Each is rounded down to a nanosecond of its own.
  EXPECT_NEAR(
      static_cast<double>(request->decode_ns),
      static_cast<double>(times.draft_ns + times.verify_ns + times.rule_ns + times.cache_ns),
      4.0 * static_cast<double>(times.passes));
}

}  // namespace
}  // namespace asdbench
