// The rules of config.json that the fixtures leave open.
#include "runners/checkpoint/hf_config.h"

#include "runners/checkpoint/tests/support.h"

namespace asdbench {
namespace {

using testing::outcome_of;

Json base(const char* family = "llama") {
  return {{"model_type", family},          {"vocab_size", 32},       {"hidden_size", 16},
          {"intermediate_size", 24},       {"num_hidden_layers", 2}, {"num_attention_heads", 4},
          {"max_position_embeddings", 64}, {"rms_norm_eps", 1e-5}};
}

ModelConfig with(const char* key, const Json& value, const char* family = "llama") {
  Json json = base(family);
  json[key] = value;
  return read_hf_config(json, "config.json");
}

std::string fault(const char* key, const Json& value, const char* family = "llama") {
  return outcome_of([&] { with(key, value, family); });
}

TEST(HfConfig, FillsInDefaults) {
  const ModelConfig config = read_hf_config(base(), "config.json");
  EXPECT_EQ(config.kv_heads, 4);
  EXPECT_EQ(config.head_dim, 4);
  EXPECT_EQ(config.rope_theta, 10000);
  EXPECT_FALSE(config.llama3_rope.has_value());
  EXPECT_FALSE(config.tied_head || config.qkv_bias || config.output_bias || config.qk_norm);
  EXPECT_TRUE(config.end_ids.empty());
  EXPECT_FALSE(config.bos_id.has_value());
}

TEST(HfConfig, BiasFollowsTheFamily) {
  EXPECT_TRUE(with("attention_bias", true).output_bias);
  EXPECT_TRUE(with("attention_bias", true, "qwen3").output_bias);
  EXPECT_TRUE(with("attention_bias", false, "qwen2").qkv_bias);
  EXPECT_FALSE(with("attention_bias", true, "qwen2").output_bias);
}

TEST(HfConfig, RefusesVariants) {
  EXPECT_EQ(fault("hidden_act", "gelu"), "unsupported");
  EXPECT_EQ(fault("mlp_bias", true), "unsupported");
  EXPECT_EQ(fault("pretraining_tp", 2), "unsupported");
  EXPECT_EQ(fault("rope_interleaved", true), "unsupported");
  EXPECT_EQ(fault("quantization_config", Json::object()), "unsupported");
  EXPECT_EQ(fault("layer_types", {"full_attention", "sliding_attention"}), "unsupported");
  EXPECT_EQ(fault("layer_types", "full_attention"), "bad_config");
  EXPECT_EQ(fault("sliding_window", 131072), "ok");  // the switch is off
  Json windowed = base("qwen2");
  windowed["use_sliding_window"] = true;
  windowed["sliding_window"] = 32;
  EXPECT_EQ(outcome_of([&] { read_hf_config(windowed, "config.json"); }), "unsupported");
}

TEST(HfConfig, ChecksTypesAndRanges) {
  for (const char* key :
       {"hidden_size", "intermediate_size", "num_hidden_layers", "vocab_size",
        "num_attention_heads", "max_position_embeddings", "num_key_value_heads", "head_dim"}) {
    for (const Json& value : {Json("16"), Json(16.0), Json(0), Json(-1), Json(true), Json(1U << 31),
                              Json(18446744073709551615U), Json::array()}) {
      EXPECT_EQ(fault(key, value), "bad_config") << key << " " << value;
    }
  }
  for (const Json& value : {Json("1e-5"), Json(0), Json(-1e-5), Json()}) {
    EXPECT_EQ(fault("rms_norm_eps", value), "bad_config") << value;
  }
  EXPECT_EQ(fault("rope_theta", -1), "bad_config");
  EXPECT_EQ(fault("rope_theta", "1e4"), "bad_config");
  EXPECT_EQ(fault("head_dim", 5), "bad_config");  // odd
  EXPECT_EQ(fault("num_key_value_heads", 3), "bad_config");
  EXPECT_EQ(fault("tie_word_embeddings", 1), "bad_config");
  EXPECT_EQ(fault("bos_token_id", 32), "bad_config");
  EXPECT_EQ(fault("eos_token_id", -1), "bad_config");
  EXPECT_EQ(fault("eos_token_id", {1, "2"}), "bad_config");
  EXPECT_EQ(fault("model_type", Json()), "unknown_arch");
  EXPECT_EQ(fault("model_type", 3), "bad_config");
  EXPECT_EQ(outcome_of([] { read_hf_config(Json::array(), "config.json"); }), "bad_config");
}

TEST(HfConfig, ReadsRotaryEmbeddingInEverySpelling) {
  EXPECT_EQ(with("rope_theta", 5e5).rope_theta, 5e5);
  EXPECT_EQ(with("rope_parameters", {{"rope_theta", 7.0}}).rope_theta, 7);
  EXPECT_EQ(fault("rope_scaling", {{"factor", 2.0}}), "bad_config");
  EXPECT_EQ(fault("rope_scaling", "llama3"), "bad_config");
  EXPECT_EQ(fault("rope_scaling", {{"type", "dynamic"}}), "unsupported");
  EXPECT_EQ(fault("rope_parameters", {{"partial_rotary_factor", 0.5}}), "unsupported");
  Json llama3 = {{"rope_type", "llama3"},
                 {"factor", 8},
                 {"low_freq_factor", 1},
                 {"high_freq_factor", 4},
                 {"original_max_position_embeddings", 32}};
  EXPECT_EQ(with("rope_scaling", llama3).llama3_rope->high_freq_factor, 4);
  // One entry of a nesting can be used, and only full attention is computed.
  EXPECT_EQ(with("rope_parameters", {{"full_attention", llama3}}).llama3_rope->factor, 8);
  EXPECT_EQ(fault("rope_parameters", {{"sliding_attention", llama3}}), "unsupported");
  const Json two = {{"full_attention", llama3}, {"sliding_attention", llama3}};
  EXPECT_EQ(fault("rope_parameters", two), "unsupported");
  Json json = base();
  json["rope_parameters"] = two;
  json["layer_types"] = {"full_attention", "full_attention"};
  EXPECT_EQ(read_hf_config(json, "config.json").llama3_rope->factor, 8);

  for (const char* key :
       {"factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"}) {
    Json without = llama3;
    without.erase(key);
    EXPECT_EQ(fault("rope_scaling", without), "bad_config") << key;
    without[key] = 0;
    EXPECT_EQ(fault("rope_scaling", without), "bad_config") << key;
  }
  llama3["low_freq_factor"] = 4;  // no band between the two
  EXPECT_EQ(fault("rope_scaling", llama3), "bad_config");
}

}  // namespace
}  // namespace asdbench
