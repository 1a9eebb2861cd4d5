// The native engine against golden values, and against itself in every other shape: equal bits, not
// equal within a tolerance.
#include "runners/models/native_transformer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>

#include "eval/core/error.h"
#include "runners/kernels/pool.h"
#include "runners/kernels/score_rows.h"
#include "runners/models/tests/golden_internal.h"

namespace asdbench {
namespace {

using testing::Golden;
using testing::Rows;
using testing::Walk;

const std::filesystem::path kData = ASDBENCH_TEST_DATA;

std::unique_ptr<Target> make(const Checkpoint& checkpoint, std::int32_t threads = 2,
                             HiddenTap tap = {}, const std::string& activations = "float32") {
  EngineOptions options;
  options.activations = activations;
  options.engine = "native";
  options.threads = threads;
  options.tap = std::move(tap);
  TargetInfo info;
  info.name = "tiny";
  auto target = make_native_transformer(checkpoint, info, options).target;
  target->reserve({.requests = 3, .drafts = 40, .positions = 128}, true);
  return target;
}

void expect_near(std::span<const float> got, std::span<const float> expected,
                 const std::string& what) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  for (std::size_t i = 0; i < got.size(); ++i) {
    // The fixtures' tolerance (their README).
    ASSERT_NEAR(got[i], expected[i], 2e-4 + 1e-4 * std::abs(expected[i])) << what << ", id " << i;
  }
}

class NativeModel : public ::testing::TestWithParam<const char*> {
 protected:
  NativeModel()
      : golden_(kData / GetParam()),
        checkpoint_(open_checkpoint(kData / GetParam() / "model.gguf")),
        target_(make(*checkpoint_)) {}
  std::vector<TokenId> ids(std::size_t prompt) const {
    return golden_.json.at("prompts").at(prompt).at("ids").get<std::vector<TokenId>>();
  }
  /// Rows of single steps that follow `prompt` with `next`, one row a step.
  Rows single_steps(Target& target, const std::vector<TokenId>& prompt,
                    const std::vector<TokenId>& next, std::int32_t slot = 0) {
    Walk walk(target, prompt, slot);
    walk.start(next[0]);
    Rows rows;
    for (std::size_t i = 0; i < next.size(); ++i) {
      rows.push_back(walk.verify({})[0]);
      walk.keep(0, i + 1 < next.size() ? next[i + 1] : 0);
    }
    return rows;
  }

  Golden golden_;
  std::unique_ptr<Checkpoint> checkpoint_;
  std::unique_ptr<Target> target_;
};

TEST_P(NativeModel, LogitsTokensAndHiddenStatesAreThoseOfTheReference) {
  std::map<std::int64_t, std::vector<float>> seen;
  const auto tapped = make(*checkpoint_, 1, [&](std::int64_t index, std::span<const float> values) {
    seen[index].assign(values.begin(), values.end());
  });
  const auto layers = golden_.json.at("layers").get<std::int64_t>();
  int compared = 0;
  for (const Json& prompt : golden_.json.at("prompts")) {
    const auto prompt_ids = prompt.at("ids").get<std::vector<TokenId>>();
    Walk walk(*target_, prompt_ids);
    expect_near(walk.start(), golden_.arrays.at(prompt.at("last_logits").get<std::string>()),
                prompt.at("id").get<std::string>());
    const auto greedy = prompt.at("greedy").get<std::vector<TokenId>>();
    while (walk.request().output().size() < greedy.size()) {
      const Rows rows = walk.verify({});
      walk.keep(0, static_cast<TokenId>(std::max_element(rows[0].begin(), rows[0].end()) -
                                        rows[0].begin()));
    }
    EXPECT_THAT(walk.request().output(), ::testing::ElementsAreArray(greedy)) << prompt.at("id");
    if (!prompt.contains("taps")) continue;
    Walk(*tapped, prompt_ids).start();
    for (const auto& [name, array] : prompt.at("taps").items()) {
      const std::vector<float>& expected = golden_.arrays.at(array.get<std::string>());
      if (name == "h") {
        const std::size_t width = expected.size() / prompt_ids.size();
        expect_near(seen[layers + 1], std::span(expected).last(width), name);
      } else {
        expect_near(seen[std::stoll(name.substr(1))], expected, name);
      }
      ++compared;
    }
  }
  EXPECT_EQ(compared, layers + 2);
}

// A row's bits depend on nothing beside it: block size, prefill or decode, the other requests of
// the step, threads.
TEST_P(NativeModel, EveryShapeOfAStepGivesTheSameBits) {
  const std::vector<TokenId> prompt = ids(0);
  const std::vector<TokenId> next = ids(3);
  const Rows expected = single_steps(*target_, prompt, next);
  for (const std::size_t block : {2UL, 3UL, 7UL, next.size()}) {
    Walk walk(*target_, prompt, 1);
    walk.start(next[0]);
    std::size_t at = 0;
    while (at < next.size()) {
      const std::size_t count = std::min(block, next.size() - at);
      const Rows rows = walk.verify({next.begin() + static_cast<std::ptrdiff_t>(at) + 1,
                                     next.begin() + static_cast<std::ptrdiff_t>(at + count)});
      for (std::size_t i = 0; i < count; ++i)
        ASSERT_EQ(rows[i], expected[at + i]) << block << " at " << at + i;
      at += count;
      walk.keep(static_cast<std::int32_t>(count) - 1, at < next.size() ? next[at] : 0);
    }
  }
  std::vector<TokenId> whole = prompt;
  whole.insert(whole.end(), next.begin(), next.end());
  EXPECT_EQ(Walk(*target_, whole, 2).start(), expected.back());
  const auto one_thread = make(*checkpoint_, 1);
  EXPECT_EQ(single_steps(*one_thread, prompt, next), expected);
}

TEST_P(NativeModel, RequestsOfOneStepEqualRequestsAlone) {
  const std::vector<TokenId> next = ids(3);
  const Rows alone_a = single_steps(*target_, ids(0), {next[0], next[1], next[2]});
  const Rows alone_b = single_steps(*target_, ids(1), {next[1], next[2]});
  Walk a(*target_, ids(0), 0);
  Walk b(*target_, ids(1), 2);
  a.start(next[0]);
  b.start(next[1]);
  a.request().draft = {next[1], next[2]};
  b.request().draft = {next[2]};
  Request* live[] = {&b.request(), &a.request()};
  const Rows rows = testing::rows_of(target_->forward(live));
  ASSERT_EQ(rows.size(), 5U);
  EXPECT_EQ(rows[0], alone_b[0]);
  EXPECT_EQ(rows[1], alone_b[1]);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(rows[2 + i], alone_a[i]) << i;
}

TEST_P(NativeModel, RejectedDraftsLeaveNoTraceAndExceptionsAreCached) {
  const std::vector<TokenId> next = ids(3);
  const Rows expected = single_steps(*target_, ids(0), {next[0], next[1], next[2]});
  Walk walk(*target_, ids(0), 1);
  walk.start(next[0]);
  walk.verify({next[5], next[6], next[7], next[8]});  // garbage, all rejected
  walk.keep(0, next[1]);
  // An accepted exception: whatever the target would have chosen, the cache holds the draft.
  const Rows rows = walk.verify({next[2], next[9]});
  EXPECT_EQ(rows[0], expected[1]);
  EXPECT_EQ(rows[1], expected[2]);
  walk.keep(1, next[3]);
  std::vector<TokenId> committed = ids(0);
  committed.insert(committed.end(), {next[0], next[1], next[2], next[3]});
  const Rows last = walk.verify({});
  EXPECT_EQ(last[0], Walk(*target_, committed, 2).start()) << "the cache equals a fresh prefill";
}

TEST_P(NativeModel, LongerReservationsKeepTheBits) {
  const std::vector<TokenId> next = ids(3);
  const Rows expected = single_steps(*target_, ids(0), {next[0], next[1]});
  target_->reserve({.requests = 4, .drafts = 2, .positions = 200}, true);
  EXPECT_EQ(single_steps(*target_, ids(0), {next[0], next[1]}, 3), expected);
}

TEST_P(NativeModel, RoundedActivationsStayNearAndAreEquallyInvariant) {
  const std::vector<TokenId> next = ids(3);
  const std::vector<TokenId> some(next.begin(), next.begin() + 3);
  const Rows exact = single_steps(*target_, ids(0), some);
  for (const auto& [activations, tolerance] : {std::pair{"bf16", 0.05}, {"int8", 0.1}}) {
    const auto rounded = make(*checkpoint_, 2, {}, activations);
    EXPECT_EQ(rounded->info().activations, activations);
    const Rows alone = single_steps(*rounded, ids(0), some);
    Walk walk(*rounded, ids(0), 1);
    walk.start(next[0]);
    const Rows block = walk.verify({next[1], next[2]});
    for (std::size_t row = 0; row < 3; ++row) {
      EXPECT_EQ(block[row], alone[row]) << activations;
      EXPECT_NE(alone[row], exact[row]) << activations << " rounds nothing";
      float largest = 0;
      for (const float logit : exact[row]) largest = std::max(largest, std::abs(logit));
      for (std::size_t id = 0; id < exact[row].size(); ++id) {
        ASSERT_NEAR(alone[row][id], exact[row][id], tolerance * static_cast<double>(largest))
            << activations;
      }
    }
  }
}

TEST_P(NativeModel, ScoresDoNotDependOnWhetherLogitsAreKept) {
  const std::vector<TokenId> next = ids(3);
  const auto scores_of = [&](bool host_logits) {
    target_->reserve({.requests = 3, .drafts = 4, .positions = 128}, host_logits);
    Request request("r", ids(0), {.max_tokens = 10}, {}, Rng());
    request.commit_first(target_->prefill(request).scores.choice[0], 128);
    request.draft = {next[0], request.pending(), next[2]};
    Request* live[] = {&request};
    const StepView view = target_->forward(live);
    EXPECT_EQ(view.logits.data != nullptr, host_logits);
    std::vector<float> all;
    for (std::size_t row = 0; row < 4; ++row) {
      all.push_back(static_cast<float>(view.scores.choice[row]));
      all.push_back(view.scores.choice_logit[row]);
      all.push_back(view.scores.runner_up[row]);
      if (row < 3) all.push_back(view.scores.draft_logit[row]);
    }
    target_->release(request);
    return all;
  };
  EXPECT_EQ(scores_of(false), scores_of(true));
}

INSTANTIATE_TEST_SUITE_P(Families, NativeModel,
                         ::testing::Values("llama_smollm_f16", "llama_l3rope_q8_0", "qwen2_q5_1",
                                           "qwen3_bf16"));

/// A copy of the untied model of `folder` whose embedding of `token` is NaN.
std::filesystem::path with_nan_embedding(const std::string& folder, TokenId token) {
  const std::filesystem::path from = kData / folder / "model.gguf";
  std::ifstream in(from, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const auto checkpoint = open_checkpoint(from);
  const Tensor& table = checkpoint->tensor("model.embed_tokens.weight");
  const std::size_t row_bytes = table.bytes.size() / static_cast<std::size_t>(table.shape[0]);
  const std::string row(reinterpret_cast<const char*>(table.bytes.data()) +
                            static_cast<std::size_t>(token) * row_bytes,
                        row_bytes);
  const std::size_t at = bytes.find(row);
  EXPECT_NE(at, std::string::npos);
  EXPECT_EQ(bytes.find(row, at + 1), std::string::npos) << "the row is not the only one like it";
  bytes[at + 1] = 0x7e;  // the first block's scale, a float16
  std::filesystem::path path = std::filesystem::temp_directory_path() /
                               ("asdbench-nan-" + std::to_string(getpid()) + ".gguf");
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

TEST(NativeTransformer, NanWeightsSpoilTheRequestThatMeetsThemAndNoOther) {
  const Golden golden(kData / "llama_l3rope_q8_0");
  const auto prompt = golden.json.at("prompts").at(0).at("ids").get<std::vector<TokenId>>();
  const auto clean_checkpoint = open_checkpoint(kData / "llama_l3rope_q8_0" / "model.gguf");
  ASSERT_FALSE(clean_checkpoint->config().tied_head);
  TokenId token = 0;
  while (std::find(prompt.begin(), prompt.end(), token) != prompt.end()) ++token;
  const std::filesystem::path path = with_nan_embedding("llama_l3rope_q8_0", token);
  const auto spoilt = make(*open_checkpoint(path));
  std::filesystem::remove(path);

  Request good("good", prompt, {.max_tokens = 10}, {}, Rng());
  Request bad("bad", {prompt[0], token}, {.max_tokens = 10}, {}, Rng());
  bad.slot = 1;
  EXPECT_EQ(spoilt->prefill(bad).scores.bad[0], kernels::kBadLogits);
  bad.commit_first(prompt[0], 128);
  good.commit_first(spoilt->prefill(good).scores.choice[0], 128);
  Request* live[] = {&bad, &good};
  const StepView view = spoilt->forward(live);
  EXPECT_NE(view.scores.bad[0], 0);
  EXPECT_EQ(view.scores.bad[1], 0);
  const Rows beside = testing::rows_of(view);

  const auto clean = make(*clean_checkpoint);
  Request alone("alone", prompt, {.max_tokens = 10}, {}, Rng());
  alone.commit_first(clean->prefill(alone).scores.choice[0], 128);
  EXPECT_EQ(alone.pending(), good.pending());
  Request* only[] = {&alone};
  EXPECT_EQ(testing::rows_of(clean->forward(only))[0], beside[1]);
}

TEST(NativeTransformer, SaysWhatKQuantsLoseAsFloat16) {
  // One Q6_K block: scales 1, 2, ..., and an outer scale that float16 products do not fit.
  std::vector<std::byte> block(210);
  for (std::size_t i = 0; i < 192; ++i) block[i] = static_cast<std::byte>(i * 37 + 5);
  for (std::size_t i = 192; i < 208; ++i) block[i] = static_cast<std::byte>(i - 191);
  block[208] = std::byte{0x35};
  block[209] = std::byte{0x2e};  // float16 0x2e35
  const Tensor tensor{.type = WeightType::kQ6_K, .shape = {1, 256}, .bytes = block};
  const Tensor* tensors[] = {&tensor};
  const Narrowed narrowed = narrowed_weights(tensors);
  EXPECT_EQ(narrowed.matrices, 1);
  EXPECT_GT(narrowed.rms, 1e-5);
  EXPECT_LT(narrowed.rms, 0x1p-11);
  EXPECT_GT(narrowed.largest, 0);
  EXPECT_LE(narrowed.largest, 0x1p-11);
  EXPECT_EQ(narrowed_weights(*open_checkpoint(kData / "qwen2_q5_1" / "model.gguf")).matrices, 0);
}

TEST(NativeTransformer, MoreThreadsThanCoresWorkAndAreMentioned) {
  const auto checkpoint = open_checkpoint(kData / "llama_smollm_f16" / "model.gguf");
  EngineOptions options;
  options.threads = kernels::Pool::usable_cores() + 1;
  const LoadedTarget loaded = make_native_transformer(*checkpoint, {}, options);
  EXPECT_THAT(loaded.warnings, ::testing::Contains(::testing::HasSubstr("cores")));
  options.threads = 1;
  for (const std::string& warning : make_native_transformer(*checkpoint, {}, options).warnings) {
    EXPECT_THAT(warning, ::testing::Not(::testing::HasSubstr("cores")));
  }
}

TEST(NativeTransformer, RefusesMorePositionsThanTheModelHasAndSaysWhatItIs) {
  const auto checkpoint = open_checkpoint(kData / "llama_smollm_f16" / "model.gguf");
  const auto target = make(*checkpoint);
  EXPECT_THROW(target->reserve({.requests = 1, .drafts = 1, .positions = 1 << 30}, false),
               ConfigError);
  const TargetInfo info = target->info();
  EXPECT_EQ(info.engine, "native");
  EXPECT_EQ(info.device, "cpu");
  EXPECT_EQ(info.logit_dtype, "float32");
  EXPECT_EQ(info.vocab, checkpoint->config().vocab);
}

}  // namespace
}  // namespace asdbench
