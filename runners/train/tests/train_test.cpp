// Replies that are kept, and drafters that learn from them, on a tiny checkpoint.
#include "runners/train/train.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "eval/core/error.h"
#include "eval/core/json.h"
#include "eval/core/rng.h"
#include "eval/core/temporary_folder.h"
#include "runners/kernels/half.h"
#include "runners/models/models.h"

namespace asdbench {
namespace {

namespace fs = std::filesystem;

const fs::path kData = ASDBENCH_TEST_DATA;

std::string bytes_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string values_of(const fs::path& file, const std::string& name) {
  const SafetensorsFile opened = SafetensorsFile::open(file);
  for (const SafetensorsEntry& entry : opened.entries()) {
    if (entry.name == name) {
      return {reinterpret_cast<const char*>(entry.bytes.data()), entry.bytes.size()};
    }
  }
  return "";
}

class Training : public ::testing::Test {
 protected:
  Training()
      : checkpoint_(open_checkpoint(kData / "llama_m")),
        recorder_(default_taps(checkpoint_->config())) {
    EngineOptions options{
        .engine = "native", .device = "cpu", .threads = 1, .tap = recorder_.tap()};
    target_ = load_target(*checkpoint_, {.name = "tiny"}, options).target;
    SplitMix64 draw(5);
    for (int i = 0; i < 9; ++i) {
      TrainingPrompt prompt{.id = std::to_string(i), .identity = "", .ids = {1}};
      for (std::uint64_t n = 2 + draw.index(9); n > 0; --n) {
        prompt.ids.push_back(static_cast<TokenId>(3 + draw.index(300)));
      }
      prompts_.push_back(prompt);
    }
  }

  CorpusOptions corpus(const std::string& name) const {
    return {.folder = folder_ / name, .max_tokens = 24, .batch = 4};
  }
  bool generate(const CorpusOptions& options, std::int64_t most = 1000) {
    std::int64_t done = 0;
    return generate_replies(*target_, recorder_, prompts_, options,
                            {.progress = [&](const CorpusProgress& at) { done = at.done; },
                             .interrupted = [&] { return done >= most; }});
  }
  TrainInput input() {
    generate(corpus("replies"));
    TrainInput input{.target = *checkpoint_, .taps = recorder_.plan(), .train = {}, .held_out = {}};
    for (std::size_t i = 0; i < prompts_.size(); ++i) {
      (i < 2 ? input.held_out : input.train)
          .push_back(Reply::open(reply_file(corpus("replies"), prompts_[i]), prompts_[i],
                                 recorder_.plan()));
    }
    return input;
  }
  static TrainOptions options() {
    Params params("train", {});
    params.set("name", "tiny", {});
    params.set("steps", "20", {});
    params.set("seed", "3", {});
    params.set("step_tokens", "60", {});
    params.set("learning_rate", "3e-3", {});
    params.set("warmup", "3", {});
    params.set("evaluate_every", "8", {});
    params.set("checkpoint_every", "1000", {});
    params.set("threads", "1", {});
    params.set("K", "3", {});
    return read_train_options(params, std::nullopt);
  }
  static Params sizes(const std::string& kind) {
    Params params(kind, {});
    params.set("draft_vocab", "112", {});
    if (kind == "eagle3") params.set("unroll", "3", {});
    if (kind == "dspark") params.set("markov_rank", "8", {});
    if (kind == "dspark") params.set("block", "3", {});
    return params;
  }
  /// Trains in `folder`, interrupted before step `most` + 1.
  TrainOutcome train(const std::string& folder, const TrainOptions& options,
                     std::int64_t most = 1000, const std::string& kind = "eagle3") {
    std::int64_t asked = 0;
    return train_drafter(
        kind, sizes(kind), input(), options, folder_ / folder,
        {.progress = [](const TrainProgress&) {}, .interrupted = [&] { return asked++ >= most; }});
  }

  const TemporaryFolder owned_;
  const fs::path& folder_ = owned_.path();
  std::unique_ptr<Checkpoint> checkpoint_;
  TapRecorder recorder_;
  std::unique_ptr<Target> target_;
  std::vector<TrainingPrompt> prompts_;
};

TEST_F(Training, KeptHiddenStatesChoseTheReply) {
  const TrainInput data = input();
  const std::int64_t hidden = checkpoint_->config().hidden;
  const std::int64_t vocab = checkpoint_->config().vocab;
  std::vector<float> head(static_cast<std::size_t>(vocab * hidden));
  checkpoint_->read("lm_head.weight", head);
  for (const Reply& reply : data.train) {
    ASSERT_GE(reply.reply_tokens(), 1);
    for (std::int64_t row = 0; row < reply.reply_tokens(); ++row) {
      std::int64_t best = 0;
      double best_logit = -1e30;
      for (std::int64_t id = 0; id < vocab; ++id) {
        double logit = 0;
        for (std::int64_t i = 0; i < hidden; ++i) {
          logit +=
              static_cast<double>(kernels::bf16_to_float(reply.final_hidden()[row * hidden + i])) *
              static_cast<double>(head[static_cast<std::size_t>(id * hidden + i)]);
        }
        if (logit > best_logit) {
          best_logit = logit;
          best = id;
        }
      }
      EXPECT_EQ(best, reply.tokens()[static_cast<std::size_t>(reply.prompt_tokens() + row)]) << row;
    }
  }
}

TEST_F(Training, InterruptedGenerationGoesOnWithTheSameBytes) {
  ASSERT_TRUE(generate(corpus("whole")));
  ASSERT_FALSE(generate(corpus("parts"), 3));
  std::size_t there = 0;
  for (const TrainingPrompt& prompt : prompts_)
    there += fs::exists(reply_file(corpus("parts"), prompt));
  EXPECT_GE(there, 3U);
  EXPECT_LT(there, prompts_.size());
  ASSERT_TRUE(generate(corpus("parts")));
  for (const TrainingPrompt& prompt : prompts_) {
    EXPECT_EQ(bytes_of(reply_file(corpus("whole"), prompt)),
              bytes_of(reply_file(corpus("parts"), prompt)));
  }
}

TEST_F(Training, ARepliesFileOfAnotherPromptOrShapeIsRefused) {
  ASSERT_TRUE(generate(corpus("replies")));
  const fs::path first = reply_file(corpus("replies"), prompts_[0]);
  EXPECT_THROW(Reply::open(first, prompts_[1], recorder_.plan()), DataError);
  TapPlan other = recorder_.plan();
  other.hidden = 64;
  EXPECT_THROW(Reply::open(first, prompts_[0], other), DataError);
  fs::resize_file(first, fs::file_size(first) - 1);
  EXPECT_THROW(Reply::open(first, prompts_[0], recorder_.plan()), ModelError);
}

TEST_F(Training, TwentyStepsLowerTheLossAndTheSameCallGivesTheSameBits) {
  for (const std::string& kind : trainable_drafters()) {
    const TrainOutcome first = train(kind, options(), 1000, kind);
    EXPECT_FALSE(first.interrupted);
    EXPECT_LT(first.last_loss, 0.95 * first.first_loss) << kind;
    ASSERT_EQ(first.held_out.position.size(), 3U);
    EXPECT_GE(first.held_out.committed[0], 1);
    EXPECT_LE(first.held_out.committed[2], 4);
    train(kind + "-again", options(), 1000, kind);
    const char* weights = kind == "medusa" ? "medusa_lm_head.safetensors" : "model.safetensors";
    for (const char* file : {"config.json", weights}) {
      EXPECT_EQ(bytes_of(folder_ / kind / file), bytes_of(folder_ / (kind + "-again") / file))
          << kind << " " << file;
    }
    EXPECT_FALSE(fs::exists(folder_ / kind / "training.safetensors"));
  }
}

TEST_F(Training, AResumedTrainingEndsWithTheBitsOfAnUninterruptedOne) {
  train("whole", options());
  EXPECT_TRUE(train("parts", options(), 7).interrupted);
  EXPECT_TRUE(fs::exists(folder_ / "parts" / "training.safetensors"));
  EXPECT_FALSE(fs::exists(folder_ / "parts" / "model.safetensors"));
  EXPECT_FALSE(train("parts", options()).interrupted);
  EXPECT_EQ(bytes_of(folder_ / "whole" / "model.safetensors"),
            bytes_of(folder_ / "parts" / "model.safetensors"));
}

TEST_F(Training, AResumedTrainingMayBecomeShorterAndSaysSo) {
  EXPECT_TRUE(train("parts", options(), 7).interrupted);
  TrainOptions shorter = options();
  shorter.steps = 12;
  const TrainOutcome outcome = train("parts", shorter);
  ASSERT_EQ(outcome.schedule.size(), 2U);
  EXPECT_EQ(outcome.schedule[0].from, 1);
  EXPECT_EQ(outcome.schedule[0].steps, 20);
  EXPECT_EQ(outcome.schedule[1].from, 8);
  EXPECT_EQ(outcome.schedule[1].steps, 12);
}

TEST_F(Training, TheStateOfAnotherTrainingIsRefused) {
  EXPECT_TRUE(train("state", options(), 2).interrupted);
  TrainOptions other = options();
  other.learning_rate /= 2;
  EXPECT_THROW(train("state", other), DataError);
}

TEST_F(Training, FilesHaveTheReleasedLayout) {
  train("drafter", options());
  const Json config = parse_json(bytes_of(folder_ / "drafter" / "config.json"));
  EXPECT_EQ(config.at("draft_vocab_size"), 112);
  EXPECT_EQ(config.at("num_hidden_layers"), 1);
  const SafetensorsFile file = SafetensorsFile::open(folder_ / "drafter" / "model.safetensors");
  std::map<std::string, std::string> found;
  for (const SafetensorsEntry& entry : file.entries()) {
    std::string shape;
    for (const std::int64_t extent : entry.shape) shape += " " + std::to_string(extent);
    found[entry.name] = entry.dtype + shape;
  }
  const std::map<std::string, std::string> expected = {
      {"fc.weight", "BF16 48 144"},
      {"midlayer.input_layernorm.weight", "BF16 48"},
      {"midlayer.hidden_norm.weight", "BF16 48"},
      {"midlayer.post_attention_layernorm.weight", "BF16 48"},
      {"midlayer.self_attn.q_proj.weight", "BF16 48 96"},
      {"midlayer.self_attn.k_proj.weight", "BF16 48 96"},
      {"midlayer.self_attn.v_proj.weight", "BF16 48 96"},
      {"midlayer.self_attn.o_proj.weight", "BF16 48 48"},
      {"midlayer.mlp.gate_proj.weight", "BF16 64 48"},
      {"midlayer.mlp.up_proj.weight", "BF16 64 48"},
      {"midlayer.mlp.down_proj.weight", "BF16 48 64"},
      {"norm.weight", "BF16 48"},
      {"lm_head.weight", "BF16 112 48"},
      {"d2t", "I64 112"},
      {"t2d", "BOOL 320"}};
  EXPECT_EQ(found, expected);

  // d2t holds offsets, and t2d is true exactly at the ids that they give.
  const std::string offsets = values_of(folder_ / "drafter" / "model.safetensors", "d2t");
  const std::string known = values_of(folder_ / "drafter" / "model.safetensors", "t2d");
  std::string expected_known(320, '\0');
  for (std::size_t i = 0; i < 112; ++i) {
    std::int64_t offset = 0;
    std::memcpy(&offset, offsets.data() + 8 * i, 8);
    expected_known.at(static_cast<std::size_t>(offset) + i) = '\1';
  }
  EXPECT_EQ(known, expected_known);
}

TEST(ShippedDrafters, AreSmallAndSayWhatTheyWereMadeFrom) {
  std::uintmax_t all = 0;
  int drafters = 0;
  for (const auto& folder :
       fs::directory_iterator(ASDBENCH_SOURCE_DIR "/runners/drafters/shipped")) {
    SCOPED_TRACE(folder.path().string());
    ++drafters;
    std::uintmax_t size = 0;
    for (const auto& file : fs::directory_iterator(folder)) size += file.file_size();
    EXPECT_LT(size, 25'000'000U);
    all += size;
    const Json card = parse_json(bytes_of(folder.path() / "card.json"));
    EXPECT_EQ(card.at("name"), folder.path().filename().string());
    const Json& identities = card.at("prompt_identities");
    EXPECT_EQ(identities.size(), card.at("prompts"));
    for (const Json& identity : identities) {
      EXPECT_EQ(identity.get<std::string>().size(), 64U);
    }
    for (const Json& source : card.at("data")) {
      EXPECT_TRUE(source.at("source") == "gsm8k train" ||
                  source.at("source") == "written for asdbench");
    }
  }
  EXPECT_GE(drafters, 1);
  EXPECT_LT(all, 40'000'000U);
}

TEST(TrainOptionsTest, WhatCannotBeIsRefusedWithItsKey) {
  const auto read = [](const std::string& key, const std::string& value) {
    Params params("train", {.file = "c.yaml", .line = 1, .path = "train"});
    if (key != "name") params.set("name", "x", {});
    params.set(key, value, {.file = "c.yaml", .line = 3, .path = "train." + key});
    return read_train_options(params, std::nullopt);
  };
  EXPECT_EQ(read("steps", "7").steps, 7);
  for (const auto& [key, value] :
       std::vector<std::pair<std::string, std::string>>{{"name", "../elsewhere"},
                                                        {"name", ".hidden"},
                                                        {"steps", "0"},
                                                        {"steps", "many"},
                                                        {"learning_rate", "0"},
                                                        {"learning_rate", "nan"},
                                                        {"step_tokens", "-1"},
                                                        {"compute", "float8"},
                                                        {"K", "17"},
                                                        {"step", "5"}}) {
    try {
      read(key, value);
      ADD_FAILURE() << key << " = " << value;
    } catch (const ConfigError& error) {
      EXPECT_NE(std::string(error.what()).find("c.yaml:3: train." + key), std::string::npos)
          << error.what();
    }
  }
}

TEST(TrainOptionsTest, OptionsOfTheDrafterAreCheckedBeforeAnyReplyIsMade) {
  const auto checkpoint = open_checkpoint(kData / "llama_m");
  Params misspelt("eagle3", {});
  misspelt.set("unrol", "3", {});
  EXPECT_THROW(check_drafter_options("eagle3", misspelt, checkpoint->config()), ConfigError);
  Params too_many("eagle3", {});
  too_many.set("draft_vocab", "321", {});
  EXPECT_THROW(check_drafter_options("eagle3", too_many, checkpoint->config()), ConfigError);
  check_drafter_options("eagle3", Params("eagle3", {}), checkpoint->config());
}

TEST(TapsTest, TheRuleNeedsThreeDifferentLayers) {
  ModelConfig config;
  config.hidden = 8;
  config.layers = 30;
  EXPECT_EQ(default_taps(config).indices, (std::vector<std::int64_t>{2, 15, 27}));
  config.layers = 3;
  EXPECT_EQ(default_taps(config).indices, (std::vector<std::int64_t>{0, 1, 2}));
  for (const std::int64_t layers : {1, 2, 4, 5, 6}) {
    config.layers = layers;
    EXPECT_THROW(default_taps(config), ModelError) << layers;
  }
}

}  // namespace
}  // namespace asdbench
