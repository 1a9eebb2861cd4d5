// Whole models in folders of HF's layout: every good fixture in every spelling, every bad one.
#include <fmt/format.h>

#include <fstream>

#include "runners/checkpoint/checkpoint.h"
#include "runners/checkpoint/tests/support.h"

namespace asdbench {
namespace {

using testing::allowed;
using testing::data_dir;
using testing::outcome_of;
using testing::read_file;
using testing::write_file;
namespace fs = std::filesystem;

const char* const kModels[] = {"llama_bias_f32",    "llama_l3rope_bf16", "llama_l3rope_f32",
                               "llama_sharded_f16", "llama_tied_f32",    "qwen2_tied_bf16",
                               "qwen2_untied_f32",  "qwen3_gqa_f32",     "qwen3_tied_bf16"};

fs::path model_path(const std::string& name) { return data_dir() / "checkpoints" / name; }

TEST(FolderCheckpoint, OpensEveryModelWithItsCounts) {
  for (const char* name : kModels) {
    SCOPED_TRACE(name);
    const auto checkpoint = open_checkpoint(model_path(name));
    const Json golden = parse_json(read_file(model_path(name) / "golden.json"));
    EXPECT_EQ(checkpoint->parameters(), golden.at("parameters"));
    EXPECT_EQ(checkpoint->tensor_bytes(), golden.at("tensor_bytes"));
    EXPECT_EQ(checkpoint->config().vocab, golden.at("vocab_size"));
    EXPECT_EQ(checkpoint->config().hidden, golden.at("hidden_size"));
    EXPECT_EQ(checkpoint->config().layers, golden.at("layers"));
    EXPECT_EQ(name_of(checkpoint->tensor("model.embed_tokens.weight").type),
              golden.at("stored_dtype"));
    EXPECT_FALSE(checkpoint->config().interleaved_qk_rows);
    EXPECT_EQ(checkpoint->gguf(), nullptr);
    // The fixtures name no end id, and say so.
    EXPECT_EQ(checkpoint->warnings().size(), 1U);
  }
}

void expect_same(const ModelConfig& a, const ModelConfig& b) {
  EXPECT_EQ(a.family, b.family);
  EXPECT_EQ(a.kv_heads, b.kv_heads);
  EXPECT_EQ(a.head_dim, b.head_dim);
  EXPECT_EQ(a.positions, b.positions);
  EXPECT_EQ(a.rms_eps, b.rms_eps);
  EXPECT_EQ(a.rope_theta, b.rope_theta);
  EXPECT_EQ(a.tied_head, b.tied_head);
  EXPECT_EQ(a.qkv_bias, b.qkv_bias);
  EXPECT_EQ(a.output_bias, b.output_bias);
  ASSERT_EQ(a.llama3_rope.has_value(), b.llama3_rope.has_value());
  if (a.llama3_rope) {
    EXPECT_EQ(a.llama3_rope->factor, b.llama3_rope->factor);
    EXPECT_EQ(a.llama3_rope->low_freq_factor, b.llama3_rope->low_freq_factor);
    EXPECT_EQ(a.llama3_rope->high_freq_factor, b.llama3_rope->high_freq_factor);
    EXPECT_EQ(a.llama3_rope->original_positions, b.llama3_rope->original_positions);
  }
}

TEST(FolderCheckpoint, EverySpellingOfAConfigurationMeansTheSame) {
  std::size_t spellings = 0;
  for (const char* name : kModels) {
    const auto checkpoint = open_checkpoint(model_path(name));
    for (const auto& file : fs::directory_iterator(model_path(name))) {
      const std::string config = file.path().filename().string();
      if (!config.starts_with("config.alt_")) continue;
      SCOPED_TRACE(fmt::format("{} {}", name, config));
      const auto other = open_checkpoint(model_path(name), config);
      expect_same(checkpoint->config(), other->config());
      EXPECT_EQ(checkpoint->parameters(), other->parameters());
      ++spellings;
    }
  }
  EXPECT_EQ(spellings, 14U);
}

TEST(FolderCheckpoint, ReadsWhatSetsFamiliesApart) {
  const auto bias = open_checkpoint(model_path("llama_bias_f32"));
  EXPECT_TRUE(bias->config().qkv_bias && bias->config().output_bias);
  EXPECT_TRUE(bias->has("model.layers.1.self_attn.o_proj.bias"));
  const auto rope = open_checkpoint(model_path("llama_l3rope_f32"));
  EXPECT_EQ(rope->config().rope_theta, 500);
  EXPECT_EQ(rope->config().llama3_rope->factor, 8);
  EXPECT_EQ(rope->config().llama3_rope->original_positions, 32);
  const auto tied = open_checkpoint(model_path("llama_tied_f32"));
  EXPECT_TRUE(tied->config().tied_head);
  for (const auto& [name, tensor] : tied->tensors()) {
    EXPECT_EQ(name.find("inv_freq"), std::string::npos);
  }
  const auto qwen2 = open_checkpoint(model_path("qwen2_untied_f32"));
  EXPECT_TRUE(qwen2->config().qkv_bias);
  EXPECT_FALSE(qwen2->config().output_bias);
  const auto qwen3 = open_checkpoint(model_path("qwen3_gqa_f32"));
  EXPECT_TRUE(qwen3->config().qk_norm);
  EXPECT_EQ(qwen3->config().head_dim, 24);  // 4 heads of 24, hidden 64
}

TEST(FolderCheckpoint, GivesTheFaultOfEveryBadFixture) {
  const Json cases = parse_json(read_file(data_dir() / "bad" / "cases.json"));
  EXPECT_EQ(cases.size(), 68U);
  for (const Json& entry : cases) {
    const std::string outcome = outcome_of(
        [&] { open_checkpoint(data_dir() / "bad" / entry.at("path").get<std::string>()); });
    EXPECT_TRUE(allowed(entry, outcome)) << entry.at("id") << ": " << outcome;
  }
}

// A folder that can be changed, from the smallest good fixture.
class Changed {
 public:
  explicit Changed(const char* base = "good") {
    fs::copy(data_dir() / "bad" / base, folder_.path(), fs::copy_options::recursive);
  }
  const fs::path& path() const { return folder_.path(); }
  void write(const char* name, std::string_view content) const {
    write_file(folder_.path() / name, content);
  }
  // Sets one key of config.json.
  void set(const char* key, const Json& value) const {
    Json config = parse_json(read_file(folder_.path() / "config.json"));
    config[key] = value;
    write("config.json", config.dump());
  }
  std::string outcome() const {
    return outcome_of([&] { open_checkpoint(folder_.path()); });
  }

 private:
  TemporaryFolder folder_;
};

TEST(FolderCheckpoint, RefusesWeightsCutAtAnyByte) {
  const Changed model;
  ASSERT_EQ(model.outcome(), "ok");
  const fs::path weights = model.path() / "model.safetensors";
  for (std::uintmax_t size = fs::file_size(weights); size-- > 0;) {
    fs::resize_file(weights, size);
    ASSERT_EQ(model.outcome(), "truncated") << size;
  }
}

TEST(FolderCheckpoint, RefusesAConfigurationCutAtAnyByte) {
  const Changed model;
  model.set("tie_word_embeddings", false);  // written anew, without a newline that could go
  const fs::path config = model.path() / "config.json";
  for (std::uintmax_t size = fs::file_size(config); size-- > 0;) {
    fs::resize_file(config, size);
    ASSERT_EQ(model.outcome(), "bad_config") << size;
  }
}

TEST(FolderCheckpoint, EndIdsComeFromTheFirstFileThatNamesThem) {
  const Changed model;
  model.write("tokenizer_config.json",
              R"({"eos_token": {"content": "<e>"}, "chat_template": "T",
                  "added_tokens_decoder": {"3": {"content": "<x>"}, "5": {"content": "<e>"}}})");
  EXPECT_EQ(open_checkpoint(model.path())->config().end_ids, std::vector<TokenId>{5});
  EXPECT_TRUE(open_checkpoint(model.path())->warnings().empty());
  EXPECT_EQ(open_checkpoint(model.path())->chat_template(), "T");
  model.set("eos_token_id", 7);
  EXPECT_EQ(open_checkpoint(model.path())->config().end_ids, std::vector<TokenId>{7});
  model.write("generation_config.json", R"({"eos_token_id": [9, 2, 9], "temperature": 0.6})");
  EXPECT_EQ(open_checkpoint(model.path())->config().end_ids, (std::vector<TokenId>{2, 9}));
  model.write("chat_template.jinja", "J");
  EXPECT_EQ(open_checkpoint(model.path())->chat_template(), "J");
  model.write("tokenizer.json", "{}");
  EXPECT_EQ(open_checkpoint(model.path())->tokenizer_kind(), "tokenizer.json");

  model.write("generation_config.json", R"({"eos_token_id": [16]})");
  EXPECT_EQ(model.outcome(), "bad_config");  // the vocabulary has 16 ids
  model.write("generation_config.json", R"({"eos_token_id": "2"})");
  EXPECT_EQ(model.outcome(), "bad_config");
  model.write("generation_config.json", "{");
  EXPECT_EQ(model.outcome(), "bad_config");
}

TEST(FolderCheckpoint, NamedTemplatesUseTheDefault) {
  const Changed model;
  model.write("tokenizer_config.json",
              R"({"chat_template": [{"name": "tool_use", "template": "A"},
                                    {"name": "default", "template": "B"}]})");
  EXPECT_EQ(open_checkpoint(model.path())->chat_template(), "B");
}

TEST(FolderCheckpoint, ATiedHeadThatDiffersIsKept) {
  const Changed model;
  model.set("tie_word_embeddings", true);
  const auto differing = open_checkpoint(model.path());
  EXPECT_FALSE(differing->config().tied_head);
  EXPECT_TRUE(differing->has("lm_head.weight"));
  EXPECT_EQ(differing->warnings().size(), 2U);  // this, and the absence of end ids

  // The same with a head that equals the embedding: its data are the first and the last 512 bytes.
  const fs::path path = model.path() / "model.safetensors";
  std::string content = read_file(path);
  content.replace(content.size() - 512, 512, content.substr(content.size() - 2656, 512));
  write_file(path, content);
  const auto equal = open_checkpoint(model.path());
  EXPECT_TRUE(equal->config().tied_head);
  EXPECT_FALSE(equal->has("lm_head.weight"));
  EXPECT_EQ(equal->parameters(), differing->parameters() - 16 * 8);
}

TEST(FolderCheckpoint, ShardNamesStayInTheFolder) {
  for (const char* shard :
       {"", ".", "..", "a/b.safetensors", "..\\\\b", "/etc/passwd", "a\\u0000b"}) {
    const Changed model("good_sharded");
    std::string index = read_file(model.path() / "model.safetensors.index.json");
    const std::string first = "model-00001-of-00002.safetensors";
    index.replace(index.find(first), first.size(), shard);
    model.write("model.safetensors.index.json", index);
    EXPECT_EQ(model.outcome(), "bad_config") << shard;
  }
}

TEST(FolderCheckpoint, DescribesItself) {
  std::map<std::string, std::string> described;
  const auto checkpoint = open_checkpoint(model_path("llama_l3rope_bf16"));
  for (const auto& [key, value] : describe_checkpoint(*checkpoint)) described[key] = value;
  EXPECT_EQ(described.at("format"), "safetensors");
  EXPECT_EQ(described.at("architecture"), "llama");
  EXPECT_EQ(described.at("tensor bytes"), "400480");
  EXPECT_EQ(described.at("rotary embedding"), "base 10000, llama3 scaling x4");
  EXPECT_EQ(described.at("output head"), "own matrix");
  EXPECT_EQ(described.at("end ids"), "none");
  EXPECT_EQ(described.at("tokenizer"), "none");
}

}  // namespace
}  // namespace asdbench
