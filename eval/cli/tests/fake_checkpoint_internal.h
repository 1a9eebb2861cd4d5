// Checkpoints of the published shapes without their weights: right headers over sparse files.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "eval/core/json.h"

namespace asdbench::testing {

/// Sizes of a published model (specs: targets, section 1).
struct FakeModel {
  std::string name;
  std::string family;
  std::int64_t hidden, inner, layers, heads, kv_heads, vocab, positions;
  std::int64_t tensors, parameters;  // what the files must add up to
};

inline std::vector<FakeModel> published_models() {
  return {{"qwen3-8b", "qwen3", 4096, 12288, 36, 32, 8, 151936, 40960, 399, 8190735360},
          {"qwen3-14b", "qwen3", 5120, 17408, 40, 40, 8, 151936, 40960, 443, 14768307200},
          {"llama-3.1-8b", "llama", 4096, 14336, 32, 32, 8, 128256, 131072, 291, 8030261248},
          {"qwen2.5-7b", "qwen2", 3584, 18944, 28, 28, 4, 152064, 32768, 339, 7615616512}};
}

using Shapes = std::vector<std::pair<std::string, std::vector<std::int64_t>>>;

/// Tensors of bf16 zeros that take no space on the disk.
inline void write_sparse(const std::filesystem::path& file, const Shapes& shapes) {
  Json header;
  std::uint64_t end = 0;
  for (const auto& [name, shape] : shapes) {
    std::uint64_t bytes = 2;
    for (const std::int64_t extent : shape) bytes *= static_cast<std::uint64_t>(extent);
    header[name] = {{"dtype", "BF16"}, {"shape", shape}, {"data_offsets", {end, end + bytes}}};
    end += bytes;
  }
  const std::string text = header.dump();
  std::uint64_t length = text.size();
  std::ofstream out(file, std::ios::binary);
  out.write(reinterpret_cast<const char*>(&length), sizeof length);
  out << text;
  out.close();
  std::filesystem::resize_file(file, sizeof length + text.size() + end);
}

inline Shapes decoder_shapes(const FakeModel& model) {
  constexpr std::int64_t kHeadSize = 128;
  const std::int64_t query = model.heads * kHeadSize, key = model.kv_heads * kHeadSize;
  Shapes shapes = {{"model.embed_tokens.weight", {model.vocab, model.hidden}}};
  for (std::int64_t i = 0; i < model.layers; ++i) {
    const std::string prefix = fmt::format("model.layers.{}.", i);
    const auto add = [&](const char* name, std::vector<std::int64_t> shape) {
      shapes.emplace_back(prefix + name, std::move(shape));
    };
    add("input_layernorm.weight", {model.hidden});
    add("post_attention_layernorm.weight", {model.hidden});
    add("self_attn.q_proj.weight", {query, model.hidden});
    add("self_attn.k_proj.weight", {key, model.hidden});
    add("self_attn.v_proj.weight", {key, model.hidden});
    add("self_attn.o_proj.weight", {model.hidden, query});
    if (model.family == "qwen2") {
      add("self_attn.q_proj.bias", {query});
      add("self_attn.k_proj.bias", {key});
      add("self_attn.v_proj.bias", {key});
    }
    if (model.family == "qwen3") {
      add("self_attn.q_norm.weight", {kHeadSize});
      add("self_attn.k_norm.weight", {kHeadSize});
    }
    add("mlp.gate_proj.weight", {model.inner, model.hidden});
    add("mlp.up_proj.weight", {model.inner, model.hidden});
    add("mlp.down_proj.weight", {model.hidden, model.inner});
  }
  shapes.emplace_back("model.norm.weight", std::vector<std::int64_t>{model.hidden});
  shapes.emplace_back("lm_head.weight", std::vector<std::int64_t>{model.vocab, model.hidden});
  return shapes;
}

/// config.json and four shards with their index.
inline void write_fake_model(const std::filesystem::path& folder, const FakeModel& model) {
  std::filesystem::create_directories(folder);
  Json config = {{"model_type", model.family},
                 {"hidden_size", model.hidden},
                 {"intermediate_size", model.inner},
                 {"num_hidden_layers", model.layers},
                 {"num_attention_heads", model.heads},
                 {"num_key_value_heads", model.kv_heads},
                 {"head_dim", 128},
                 {"vocab_size", model.vocab},
                 {"max_position_embeddings", model.positions},
                 {"rms_norm_eps", 1e-6},
                 {"rope_theta", 1000000.0},
                 {"tie_word_embeddings", false},
                 {"eos_token_id", 2}};
  if (model.family == "llama") {
    config["rope_scaling"] = {{"rope_type", "llama3"},
                              {"factor", 8.0},
                              {"low_freq_factor", 1.0},
                              {"high_freq_factor", 4.0},
                              {"original_max_position_embeddings", 8192}};
  }
  std::ofstream(folder / "config.json") << config.dump();
  const Shapes all = decoder_shapes(model);
  constexpr std::size_t kShards = 4;
  Json map;
  for (std::size_t shard = 0; shard < kShards; ++shard) {
    const std::string file = fmt::format("model-{:05}-of-{:05}.safetensors", shard + 1, kShards);
    const Shapes part(
        all.begin() + static_cast<std::ptrdiff_t>(all.size() * shard / kShards),
        all.begin() + static_cast<std::ptrdiff_t>(all.size() * (shard + 1) / kShards));
    for (const auto& [name, shape] : part) map[name] = file;
    write_sparse(folder / file, part);
  }
  std::ofstream(folder / "model.safetensors.index.json") << Json({{"weight_map", map}}).dump();
}

}  // namespace asdbench::testing
