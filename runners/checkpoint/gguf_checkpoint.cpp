// A model in a GGUF file: metadata to configuration, tensor names to HF names (specs: targets,
// sections 10.2 to 10.4).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "eval/core/error.h"
#include "runners/checkpoint/checkpoint_internal.h"

namespace asdbench {
namespace {

using NamePair = std::pair<std::string_view, std::string_view>;  // GGUF, HF

constexpr std::array<NamePair, 3> kOuterNames = {{
    {"token_embd", "model.embed_tokens"},
    {"output_norm", "model.norm"},
    {"output", "lm_head"},
}};
constexpr std::array<NamePair, 11> kLayerNames = {{
    {"attn_norm", "input_layernorm"},
    {"attn_q", "self_attn.q_proj"},
    {"attn_k", "self_attn.k_proj"},
    {"attn_v", "self_attn.v_proj"},
    {"attn_output", "self_attn.o_proj"},
    {"attn_q_norm", "self_attn.q_norm"},
    {"attn_k_norm", "self_attn.k_norm"},
    {"ffn_norm", "post_attention_layernorm"},
    {"ffn_gate", "mlp.gate_proj"},
    {"ffn_up", "mlp.up_proj"},
    {"ffn_down", "mlp.down_proj"},
}};
constexpr std::string_view kGgufLayer = "blk.";
constexpr std::string_view kHfLayer = "model.layers.";

// The other name of a tensor, in the direction from `kFrom` to `kTo` (0: GGUF, 1: HF); nullopt when
// the name has no counterpart. Layer numbers are decimal without leading zeros.
template <std::size_t kFrom, std::size_t kTo>
std::optional<std::string> translate(std::string_view name) {
  constexpr std::array<std::string_view, 2> kPrefixes = {kGgufLayer, kHfLayer};
  const std::size_t last_dot = name.rfind('.');
  if (last_dot == std::string_view::npos) return std::nullopt;
  const std::string_view suffix = name.substr(last_dot);
  if (suffix != ".weight" && suffix != ".bias") return std::nullopt;
  std::string_view stem = name.substr(0, last_dot);
  std::string prefix;
  const bool in_layer = stem.starts_with(kPrefixes[kFrom]);
  if (in_layer) {
    stem.remove_prefix(kPrefixes[kFrom].size());
    const std::string_view digits = stem.substr(0, stem.find_first_not_of("0123456789"));
    if (digits.empty() || (digits.size() > 1 && digits.front() == '0')) return std::nullopt;
    stem.remove_prefix(digits.size());
    if (!stem.starts_with('.')) return std::nullopt;
    stem.remove_prefix(1);
    prefix = fmt::format("{}{}.", kPrefixes[kTo], digits);
  }
  const std::span<const NamePair> names =
      in_layer ? std::span<const NamePair>(kLayerNames) : std::span<const NamePair>(kOuterNames);
  for (const NamePair& pair : names) {
    if (std::get<kFrom>(pair) == stem) {
      return fmt::format("{}{}{}", prefix, std::get<kTo>(pair), suffix);
    }
  }
  return std::nullopt;
}

std::string gguf_name(std::string_view hf_name) {
  return translate<1, 0>(hf_name).value_or(std::string(hf_name));
}

// Metadata under the architecture's prefix.
class Metadata {
 public:
  Metadata(const GgufFile& file, std::string architecture)
      : file_(file), prefix_(std::move(architecture) + ".") {}

  std::int64_t integer(std::string_view suffix) const { return file_.integer(key(suffix)); }
  std::int64_t integer_or(std::string_view suffix, std::int64_t fallback) const {
    return has(suffix) ? integer(suffix) : fallback;
  }
  double real(std::string_view suffix) const { return file_.real(key(suffix)); }
  bool has(std::string_view suffix) const { return file_.find(key(suffix)) != nullptr; }
  std::string key(std::string_view suffix) const { return prefix_ + std::string(suffix); }

 private:
  const GgufFile& file_;
  std::string prefix_;
};

ModelFamily family_of(const GgufFile& file, const std::string& where) {
  const std::string& architecture = file.text("general.architecture");
  if (architecture == "llama") return ModelFamily::kLlama;
  if (architecture == "qwen2") return ModelFamily::kQwen2;
  if (architecture == "qwen3") return ModelFamily::kQwen3;
  throw ModelError(ModelFault::kUnknownArch,
                   fmt::format("{}: architecture {}; supported are llama, qwen2 and qwen3", where,
                               shown(architecture)));
}

// Variants of the three architectures that the forward pass does not compute.
void refuse_variants(const GgufFile& file, const Metadata& metadata, const ModelConfig& config,
                     const std::string& where) {
  const auto refuse = [&](std::string_view suffix, const std::string& found) {
    throw ModelError(ModelFault::kUnsupported, fmt::format("{}: {} is {}, which is not supported",
                                                           where, metadata.key(suffix), found));
  };
  if (metadata.integer_or("attention.value_length", config.head_dim) != config.head_dim) {
    refuse("attention.value_length", "not the key length");
  }
  if (metadata.integer_or("rope.dimension_count", config.head_dim) != config.head_dim) {
    refuse("rope.dimension_count", "not the head size");
  }
  if (metadata.integer_or("expert_count", 0) != 0) refuse("expert_count", "not 0");
  const std::int64_t window = metadata.integer_or("attention.sliding_window", 0);
  if (window != 0 && window < config.positions) {
    refuse("attention.sliding_window", "shorter than the context");
  }
  if (metadata.has("rope.scaling.type")) {
    const std::string& scaling = file.text(metadata.key("rope.scaling.type"));
    if (scaling != "none") refuse("rope.scaling.type", shown(scaling));
  }
  if (metadata.has("rope.scale_linear") && metadata.real("rope.scale_linear") != 1) {
    refuse("rope.scale_linear", "not 1");
  }
}

TokenId token_id(const GgufFile& file, std::string_view key, const std::string& where) {
  const std::int64_t id = file.integer(key);
  if (id < 0 || id > kLargestCount) {
    throw ModelError(ModelFault::kBadConfig, fmt::format("{}: {} is {}", where, key, id));
  }
  return static_cast<TokenId>(id);
}

ModelConfig read_config(const GgufFile& file, const TensorMap& found, const std::string& where) {
  ModelConfig config;
  config.family = family_of(file, where);
  const Metadata metadata(file, file.text("general.architecture"));
  config.hidden = metadata.integer("embedding_length");
  config.intermediate = metadata.integer("feed_forward_length");
  config.layers = metadata.integer("block_count");
  config.heads = metadata.integer("attention.head_count");
  config.kv_heads = metadata.integer_or("attention.head_count_kv", config.heads);
  config.head_dim = metadata.has("attention.key_length")
                        ? metadata.integer("attention.key_length")
                        : derived_head_dim(config.hidden, config.heads, where);
  config.positions = metadata.integer("context_length");
  config.rms_eps = metadata.real("attention.layer_norm_rms_epsilon");
  if (metadata.has("rope.freq_base")) config.rope_theta = metadata.real("rope.freq_base");

  const auto embedding = found.find("model.embed_tokens.weight");
  const std::int64_t rows = embedding == found.end() || embedding->second.shape.empty()
                                ? 0
                                : embedding->second.shape.front();
  const std::int64_t tokens =
      file.find("tokenizer.ggml.tokens") == nullptr
          ? 0
          : static_cast<std::int64_t>(file.texts("tokenizer.ggml.tokens").size());
  config.vocab = metadata.integer_or("vocab_size", std::max(rows, tokens));
  if (tokens > config.vocab) {
    throw ModelError(ModelFault::kBadConfig, fmt::format("{}: {} tokens, but a vocabulary of {}",
                                                         where, tokens, config.vocab));
  }

  const auto has = [&](std::string_view name) { return found.find(name) != found.end(); };
  config.tied_head = !has("lm_head.weight");
  // GGUF has no key for these two: the first layer's tensors tell, and the others must agree.
  config.qkv_bias =
      config.family == ModelFamily::kQwen2 || has("model.layers.0.self_attn.q_proj.bias");
  config.output_bias =
      config.family != ModelFamily::kQwen2 && has("model.layers.0.self_attn.o_proj.bias");
  config.qk_norm = config.family == ModelFamily::kQwen3;
  config.interleaved_qk_rows = config.family == ModelFamily::kLlama;

  // Only some converters write the keys for the end of a turn or of a message.
  for (const char* key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                          "tokenizer.ggml.eom_token_id"}) {
    if (file.find(key) != nullptr) config.end_ids.push_back(token_id(file, key, where));
  }
  if (file.find("tokenizer.ggml.bos_token_id") != nullptr) {
    config.bos_id = token_id(file, "tokenizer.ggml.bos_token_id", where);
  }
  check_config(config, where);
  refuse_variants(file, metadata, config, where);
  return config;
}

std::vector<float> read_rope_divisors(const Tensor& tensor, const ModelConfig& config,
                                      const std::string& where) {
  const std::vector<std::int64_t> expected = {config.head_dim / 2};
  if (tensor.shape != expected) {
    throw ModelError(ModelFault::kBadShape,
                     fmt::format("{}: tensor \"rope_freqs.weight\" has shape {}, expected {}",
                                 where, shown_shape(tensor.shape), shown_shape(expected)));
  }
  std::vector<float> divisors(static_cast<std::size_t>(tensor.elements()));
  dequantise(tensor, divisors);
  for (const float divisor : divisors) {
    if (!std::isfinite(divisor) || divisor <= 0) {
      throw ModelError(ModelFault::kBadConfig,
                       fmt::format("{}: tensor \"rope_freqs.weight\" holds {}, expected positive "
                                   "divisors",
                                   where, divisor));
    }
  }
  return divisors;
}

class GgufCheckpoint final : public Checkpoint {
 public:
  GgufCheckpoint(GgufFile file, const std::filesystem::path& path) : file_(std::move(file)) {
    path_ = path;
    const std::string where = path.string();
    std::optional<Tensor> divisors;
    std::optional<std::string> unknown;
    TensorMap found;
    for (const GgufTensor& each : file_.tensors()) {
      if (each.name == "rope_freqs.weight") {
        divisors = each.tensor;
      } else if (const std::optional<std::string> name = translate<0, 1>(each.name)) {
        found.emplace(*name, each.tensor);
      } else {
        unknown = each.name;
      }
    }
    config_ = read_config(file_, found, where);
    if (unknown) {  // said only now: in a file of another architecture the architecture is the news
      throw ModelError(
          ModelFault::kUnexpectedTensor,
          fmt::format("{}: tensor {} belongs to no part of such a model", where, shown(*unknown)));
    }
    if (divisors) config_.rope_divisors = read_rope_divisors(*divisors, config_, where);
    tensors_ = take_expected_tensors(config_, std::move(found), where, gguf_name);
    if (config_.end_ids.empty()) {
      warnings_.emplace_back(
          "the file names no end id (tokenizer.ggml.eos_token_id): outputs end by length only");
    }
    if (file_.find("tokenizer.chat_template") != nullptr) {
      chat_template_ = file_.text("tokenizer.chat_template");
    }
    if (file_.find("tokenizer.ggml.model") != nullptr) {
      tokenizer_kind_ = file_.text("tokenizer.ggml.model");
      if (file_.find("tokenizer.ggml.pre") != nullptr) {
        tokenizer_kind_ += "/" + file_.text("tokenizer.ggml.pre");
      }
    }
  }

  const GgufFile* gguf() const override { return &file_; }

 private:
  GgufFile file_;
};

}  // namespace

std::unique_ptr<Checkpoint> checkpoint_of_gguf(GgufFile file, const std::filesystem::path& path) {
  return std::make_unique<GgufCheckpoint>(std::move(file), path);
}

}  // namespace asdbench
