// The transformer against golden values, against itself in other shapes, and with broken weights.
#include "runners/models/torch_transformer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "eval/core/error.h"
#include "eval/core/rng.h"
#include "runners/models/tests/golden_internal.h"

namespace asdbench {
namespace {

using testing::Golden;
using testing::Rows;
using testing::Walk;

const std::filesystem::path kData = ASDBENCH_TEST_DATA;

void expect_near(std::span<const float> got, std::span<const float> expected, double absolute,
                 double relative, const std::string& what) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(got[i], expected[i], absolute + relative * std::abs(expected[i]))
        << what << ", id " << i;
  }
}

/// Every test of ours runs with dead cache rows full of NaN: reading one shows.
std::unique_ptr<Target> make(const Checkpoint& checkpoint,
                             TorchScoring scoring = TorchScoring::kKernelOnCpu,
                             HiddenTap tap = {}) {
  TargetInfo info;
  info.name = "tiny";
  EngineOptions options;
  options.device = "cpu";
  options.threads = 1;
  options.tap = std::move(tap);
  return make_torch_transformer(checkpoint, info, options,
                                {.scoring = scoring, .dead_rows = DeadRows::kFillWithNan})
      .target;
}

class TinyModel : public ::testing::TestWithParam<const char*> {
 protected:
  TinyModel()
      : golden_(kData / GetParam()),
        checkpoint_(open_checkpoint(kData / GetParam() / "model.gguf")),
        target_(make(*checkpoint_)) {
    target_->reserve({.requests = 2, .drafts = 8, .positions = 128}, /*host_logits=*/true);
  }
  std::vector<TokenId> ids(std::size_t prompt) const {
    return golden_.json.at("prompts").at(prompt).at("ids").get<std::vector<TokenId>>();
  }

  Golden golden_;
  std::unique_ptr<Checkpoint> checkpoint_;
  std::unique_ptr<Target> target_;
};

TEST_P(TinyModel, LastLogitsAndGreedyTokensAreThoseOfTheReference) {
  for (const Json& prompt : golden_.json.at("prompts")) {
    Walk walk(*target_, prompt.at("ids").get<std::vector<TokenId>>());
    const auto& expected = golden_.arrays.at(prompt.at("last_logits").get<std::string>());
    expect_near(walk.start(), expected, 2e-4, 1e-4, prompt.at("id").get<std::string>());
    const auto greedy = prompt.at("greedy").get<std::vector<TokenId>>();
    while (walk.request().output().size() < greedy.size()) {
      const Rows rows = walk.verify({});
      const auto best = std::max_element(rows[0].begin(), rows[0].end());
      walk.keep(0, static_cast<TokenId>(best - rows[0].begin()));
    }
    EXPECT_THAT(walk.request().output(), ::testing::ElementsAreArray(greedy)) << prompt.at("id");
  }
}

TEST_P(TinyModel, AVerifyStepInsideAPromptGivesTheWindowOfTheReference) {
  int windows = 0;
  for (const Json& prompt : golden_.json.at("prompts")) {
    if (!prompt.contains("window")) continue;
    ++windows;
    const Json& window = prompt.at("window");
    const auto ids = prompt.at("ids").get<std::vector<TokenId>>();
    const auto start = window.at("start").get<std::ptrdiff_t>();
    const auto count = window.at("count").get<std::ptrdiff_t>();
    Walk walk(*target_, {ids.begin(), ids.begin() + start});
    walk.start(ids[static_cast<std::size_t>(start)]);
    const Rows rows = walk.verify({ids.begin() + start + 1, ids.begin() + start + count});
    const std::span<const float> expected =
        golden_.arrays.at(window.at("logits").get<std::string>());
    ASSERT_EQ(rows.size(), static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < rows.size(); ++i) {
      expect_near(rows[i], expected.subspan(i * rows[i].size(), rows[i].size()), 2e-4, 1e-4,
                  "row " + std::to_string(i));
    }
  }
  EXPECT_EQ(windows, 1);
}

TEST_P(TinyModel, HiddenStatesAreThoseOfTheReference) {
  std::map<std::int64_t, std::vector<float>> seen;
  const auto target = make(*checkpoint_, TorchScoring::kKernelOnCpu,
                           [&](std::int64_t index, std::span<const float> values) {
                             seen[index].insert(seen[index].end(), values.begin(), values.end());
                           });
  target->reserve({.requests = 1, .drafts = 64, .positions = 128}, true);
  const auto layers = golden_.json.at("layers").get<std::int64_t>();
  int compared = 0;
  for (const Json& prompt : golden_.json.at("prompts")) {
    if (!prompt.contains("taps")) continue;
    seen.clear();
    // The first id by prefill and the others as drafts: every row is then a scored one.
    const auto ids = prompt.at("ids").get<std::vector<TokenId>>();
    Walk walk(*target, {ids[0]});
    walk.start(ids[1]);
    walk.verify({ids.begin() + 2, ids.end()});
    for (const auto& [name, array] : prompt.at("taps").items()) {
      const std::int64_t index = name == "h" ? layers + 1 : std::stoll(name.substr(1));
      expect_near(seen[index], golden_.arrays.at(array.get<std::string>()), 2e-4, 1e-4, name);
      ++compared;
    }
  }
  EXPECT_EQ(compared, layers + 2);
}

TEST_P(TinyModel, SingleStepsEqualOnePrefill) {
  const std::vector<TokenId> all = ids(3);
  for (const std::size_t split : {1UL, 5UL, all.size() - 1}) {
    Walk whole(*target_, all, 0);
    const std::vector<float> expected = whole.start();
    Walk steps(*target_, {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(split)}, 1);
    steps.start(all[split]);
    std::vector<float> last;
    for (std::size_t i = split; i < all.size(); ++i) {
      last = steps.verify({})[0];
      steps.keep(0, i + 1 < all.size() ? all[i + 1] : 0);
    }
    expect_near(last, expected, 1e-4, 0, "split " + std::to_string(split));
  }
}

TEST_P(TinyModel, OneVerifyStepEqualsSingleSteps) {
  const std::vector<TokenId> prompt = ids(2), drafts = {5, 300, 5, 77, 6, 8, 9, 10};
  Walk block(*target_, prompt, 0), singles(*target_, prompt, 1);
  const TokenId pending = 42;
  block.start(pending);
  singles.start(pending);
  const Rows together = block.verify(drafts);
  ASSERT_EQ(together.size(), drafts.size() + 1);
  for (std::size_t i = 0; i <= drafts.size(); ++i) {
    expect_near(singles.verify({})[0], together[i], 1e-4, 0, "row " + std::to_string(i));
    singles.keep(0, i < drafts.size() ? drafts[i] : 0);
  }
}

// P9: ids that were accepted although the target preferred others are the ids in the cache.
TEST_P(TinyModel, TheCacheAfterAcceptedExceptionsIsThatOfAFreshPrefill) {
  const std::vector<TokenId> prompt = ids(2), drafts = {11, 12, 13, 14, 15};
  for (std::int32_t kept = 0; kept <= 5; ++kept) {
    Walk walk(*target_, prompt, 0);
    walk.start(3);
    walk.verify(drafts);
    const TokenId next = 99;
    walk.keep(kept, next);
    const std::vector<float> after = walk.verify({})[0];

    Walk fresh(*target_, {walk.request().history().begin(), walk.request().history().end()}, 1);
    expect_near(after, fresh.start(), 1e-4, 0, "kept " + std::to_string(kept));
  }
}

TEST_P(TinyModel, RejectedDraftsLeaveNoTrace) {
  const std::vector<TokenId> prompt = ids(3);
  Walk drafted(*target_, prompt, 0), plain(*target_, prompt, 1);
  drafted.start(7);
  plain.start(7);
  for (const TokenId next : {21, 22, 23}) {
    drafted.verify({600, 601, 602, 603, 604, 605, 606, 607});
    plain.verify({});
    drafted.keep(0, next);
    plain.keep(0, next);
  }
  // Same shapes from here on; earlier single steps were computed in another shape.
  expect_near(drafted.verify({1, 2})[2], plain.verify({1, 2})[2], 1e-4, 0, "after rollback");
}

TEST_P(TinyModel, RequestsOfOneStepEqualRequestsAlone) {
  Walk a(*target_, ids(2), 0), b(*target_, ids(4), 1);
  a.start(3);
  b.start(4);
  a.request().draft = {31, 32, 33};
  b.request().draft = {41};
  Request* live[] = {&b.request(), &a.request()};
  const Rows together = testing::rows_of(target_->forward(live));
  ASSERT_EQ(together.size(), 6U);
  target_->keep(a.request(), 0);
  target_->keep(b.request(), 0);

  Walk a_alone(*target_, ids(2), 0), b_alone(*target_, ids(4), 1);
  a_alone.start(3);
  b_alone.start(4);
  const Rows b_rows = b_alone.verify({41}), a_rows = a_alone.verify({31, 32, 33});
  for (std::size_t i = 0; i < 2; ++i) expect_near(together[i], b_rows[i], 1e-4, 0, "request b");
  for (std::size_t i = 0; i < 4; ++i) expect_near(together[2 + i], a_rows[i], 1e-4, 0, "request a");
}

TEST_P(TinyModel, TheSameStepsTwiceGiveTheSameBits) {
  const auto run = [&] {
    Walk walk(*target_, ids(4));
    Rows rows = {walk.start(1)};
    for (int i = 0; i < 3; ++i) {
      for (auto& row : walk.verify({2, 3, 4})) rows.push_back(std::move(row));
      walk.keep(2, 9);
    }
    return rows;
  };
  EXPECT_EQ(run(), run());
}

INSTANTIATE_TEST_SUITE_P(Families, TinyModel,
                         ::testing::Values("llama_smollm_f16", "llama_l3rope_q8_0", "qwen2_q5_1",
                                           "qwen3_bf16"));

// ---- a model made in memory, so that its weights can be broken

/// A llama of two layers with weights from a seeded generator and a head of its own.
class MadeCheckpoint final : public Checkpoint {
 public:
  MadeCheckpoint() {
    config_.hidden = 16;
    config_.intermediate = 24;
    config_.layers = 2;
    config_.heads = 4;
    config_.kv_heads = 2;
    config_.head_dim = 4;
    config_.vocab = 40;
    config_.positions = 1024;
    config_.rms_eps = 1e-5;
    config_.output_bias = true;
    config_.end_ids = {1};
    add("model.embed_tokens.weight", {40, 16});
    for (const std::string layer : {"model.layers.0.", "model.layers.1."}) {
      add(layer + "input_layernorm.weight", {16});
      add(layer + "self_attn.q_proj.weight", {16, 16});
      add(layer + "self_attn.k_proj.weight", {8, 16});
      add(layer + "self_attn.v_proj.weight", {8, 16});
      add(layer + "self_attn.o_proj.weight", {16, 16});
      add(layer + "self_attn.o_proj.bias", {16});
      add(layer + "post_attention_layernorm.weight", {16});
      add(layer + "mlp.gate_proj.weight", {24, 16});
      add(layer + "mlp.up_proj.weight", {24, 16});
      add(layer + "mlp.down_proj.weight", {16, 24});
    }
    add("model.norm.weight", {16});
    add("lm_head.weight", {40, 16});
  }
  /// The stored values of a tensor, to be changed before a target is made.
  std::vector<float>& values(const std::string& name) { return values_.at(name); }

 private:
  void add(const std::string& name, const std::vector<std::int64_t>& shape) {
    std::size_t count = 1;
    for (const std::int64_t size : shape) count *= static_cast<std::size_t>(size);
    std::vector<float>& values = values_[name];
    for (std::size_t i = 0; i < count; ++i) {
      values.push_back(static_cast<float>(random_.uniform() - 0.5));
    }
    tensors_[name] = {
        .type = WeightType::kF32, .shape = shape, .bytes = std::as_bytes(std::span(values))};
  }

  std::map<std::string, std::vector<float>> values_;
  SplitMix64 random_{20260730};
};

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(TorchTransformer, ANanInOneRequestLeavesTheOthersAlone) {
  MadeCheckpoint good, broken;
  constexpr TokenId kPoison = 7;
  std::fill_n(broken.values("model.embed_tokens.weight").begin() + kPoison * 16, 16, kNan);
  std::vector<Rows> rows;
  for (const Checkpoint* checkpoint :
       {static_cast<const Checkpoint*>(&good), static_cast<const Checkpoint*>(&broken)}) {
    const auto target = make(*checkpoint);
    target->reserve({.requests = 2, .drafts = 2, .positions = 32}, true);
    Walk healthy(*target, {2, 3, 4}, 0), poisoned(*target, {5, 6, 8}, 1);
    healthy.start(9);
    poisoned.start(kPoison);
    healthy.request().draft = {10, 11};
    Request* live[] = {&poisoned.request(), &healthy.request()};
    const StepView view = target->forward(live);
    rows.push_back(testing::rows_of(view));
    EXPECT_EQ(view.scores.bad[0] != 0, checkpoint == &broken);
    for (std::size_t i = 1; i <= 3; ++i) EXPECT_EQ(view.scores.bad[i], 0) << i;
  }
  for (std::size_t i = 1; i <= 3; ++i) EXPECT_EQ(rows[0][i], rows[1][i]) << "row " << i;
}

TEST(TorchTransformer, ASlotForgetsAPoisonedRequest) {
  MadeCheckpoint broken;
  std::fill_n(broken.values("model.embed_tokens.weight").begin() + 7 * 16, 16, kNan);
  const auto target = make(broken);
  target->reserve({.requests = 1, .drafts = 2, .positions = 32}, true);
  Walk before(*target, {2, 3, 4});
  const std::vector<float> expected = before.start();
  target->release(before.request());
  Walk poisoned(*target, {2, 7, 4});
  EXPECT_TRUE(std::isnan(poisoned.start(1)[0]));
  target->release(poisoned.request());
  Walk after(*target, {2, 3, 4});
  EXPECT_EQ(after.start(), expected);
}

TEST(TorchTransformer, ScoresInAtenAreThoseOfTheKernel) {
  MadeCheckpoint checkpoint;
  // Equal rows of the head make equal logits: ties in every row of scores.
  auto& head = checkpoint.values("lm_head.weight");
  for (const int copy : {12, 25, 39})
    std::copy_n(head.begin() + 3 * 16, 16, head.begin() + copy * 16);
  std::fill_n(checkpoint.values("model.embed_tokens.weight").begin() + 7 * 16, 16, kNan);
  const auto run = [&](TorchScoring scoring) {
    const auto target = make(checkpoint, scoring);
    target->reserve({.requests = 2, .drafts = 5, .positions = 64}, false);
    std::vector<std::vector<double>> found;
    for (TokenId pending = 0; pending < 40; ++pending) {
      Walk walk(*target, {1, 2, pending == 7 ? 8 : pending}, pending % 2);
      walk.start(pending == 7 ? 8 : pending);
      walk.request().draft = {3, 12, pending == 9 ? 7 : 25, pending == 11 ? 40 : 39,
                              pending == 11 ? -2 : 0};
      Request* live[] = {&walk.request()};
      const StepView view = target->forward(live);
      EXPECT_EQ(view.logits.data, nullptr);
      for (std::size_t i = 0; i < 6; ++i) {
        const bool bad = view.scores.bad[i] != 0;
        found.push_back({static_cast<double>(view.scores.bad[i]),
                         static_cast<double>(view.scores.choice[i]),
                         bad ? 0 : view.scores.choice_logit[i],
                         bad || i == 5 ? 0 : view.scores.draft_logit[i]});
      }
      target->release(walk.request());
    }
    return found;
  };
  const auto kernel = run(TorchScoring::kKernelOnCpu);
  EXPECT_EQ(run(TorchScoring::kAten), kernel);
  int bad = 0;
  for (const auto& row : kernel) bad += row[0] != 0 ? 1 : 0;
  // The mask is added to the scores, so a NaN key reaches every row of its block; the block is
  // refused as a whole anyway. Two drafts are no ids of the vocabulary.
  EXPECT_EQ(bad, 6 + 2);
}

TEST(TorchTransformer, LongPromptsArePrefilledInPieces) {
  MadeCheckpoint checkpoint;
  const auto target = make(checkpoint);
  target->reserve({.requests = 2, .drafts = 8, .positions = 1024}, true);
  std::vector<TokenId> prompt;
  for (int i = 0; i < 601; ++i) prompt.push_back((i * 37) % 40);
  Walk whole(*target, prompt, 0);
  const std::vector<float> expected = whole.start();
  // The same ids, nine a step: 24 by prefill, then 64 steps with a pending id and 8 drafts, and
  // one.
  Walk steps(*target, {prompt.begin(), prompt.begin() + 24}, 1);
  steps.start(prompt[24]);
  for (std::ptrdiff_t i = 24; i < 600; i += 9) {
    steps.verify({prompt.begin() + i + 1, prompt.begin() + i + 9});
    steps.keep(8, prompt[static_cast<std::size_t>(i) + 9]);
  }
  expect_near(steps.verify({})[0], expected, 1e-4, 0, "601 ids");
}

TEST(TorchTransformer, WhatWasNotReservedIsRefused) {
  MadeCheckpoint checkpoint;
  const auto target = make(checkpoint);
  EXPECT_THROW(target->reserve({.requests = 1, .drafts = 0, .positions = 1025}, false),
               ConfigError);
  target->reserve({.requests = 1, .drafts = 1, .positions = 8}, false);
  Walk other_slot(*target, {1}, 1);
  EXPECT_THROW(other_slot.start(), InternalError);
  Walk long_prompt(*target, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  EXPECT_THROW(long_prompt.start(), InternalError);
  Walk foreign(*target, {1, 40});
  EXPECT_THROW(foreign.start(), BlockError);
  Walk walk(*target, {1, 2});
  walk.start();
  EXPECT_THROW(walk.verify({1, 2}), InternalError);
}

TEST(TorchTransformer, SaysWhatItIs) {
  MadeCheckpoint checkpoint;
  const TargetInfo info = make(checkpoint)->info();
  EXPECT_EQ(info.engine, "torch");
  EXPECT_EQ(info.device, "cpu");
  EXPECT_EQ(info.compute_dtype, "float32");
  EXPECT_EQ(info.logit_dtype, "float32");
  EXPECT_EQ(info.vocab, 40);
  EXPECT_EQ(info.positions, 1024);
  EXPECT_EQ(info.end_ids, (std::vector<TokenId>{1}));
}

}  // namespace
}  // namespace asdbench
