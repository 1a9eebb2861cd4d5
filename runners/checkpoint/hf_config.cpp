// Which keys of config.json mean what, and which values are refused (specs: targets, section 2).
#include "runners/checkpoint/hf_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "eval/core/error.h"
#include "runners/checkpoint/checkpoint_internal.h"

namespace asdbench {
namespace {

[[noreturn]] void bad(const std::string& where, const std::string& message) {
  throw ModelError(ModelFault::kBadConfig, fmt::format("{}: {}", where, message));
}

[[noreturn]] void unsupported(const std::string& where, const std::string& message) {
  throw ModelError(ModelFault::kUnsupported,
                   fmt::format("{}: {}, which is not supported", where, message));
}

ModelFamily read_family(const ConfigSection& config) {
  if (config.find("model_type") == nullptr) {
    throw ModelError(ModelFault::kUnknownArch,
                     fmt::format("{}: model_type is missing", config.where()));
  }
  const std::string type = config.text("model_type");
  if (type == "llama") return ModelFamily::kLlama;
  if (type == "qwen2") return ModelFamily::kQwen2;
  if (type == "qwen3") return ModelFamily::kQwen3;
  throw ModelError(ModelFault::kUnknownArch,
                   fmt::format("{}: model_type {}; supported are llama, qwen2 and qwen3",
                               config.where(), shown(type)));
}

// Models with several kinds of attention nest one object for each kind inside rope_parameters.
// Only full attention is computed here, so its entry is the one used.
const Json& used_rope_entry(const Json& json, const std::string& where, bool layer_types_given) {
  bool nested = false;
  for (const auto& [key, value] : json.items()) nested |= value.is_object();
  if (!nested) return json;
  const auto full = json.find("full_attention");
  if (full == json.end() || !full->is_object() || (json.size() > 1 && !layer_types_given)) {
    unsupported(where, "a nesting with more than the entry full_attention");
  }
  return *full;
}

double positive(const ConfigSection& section, const char* key) {
  const double value = section.number(key);
  if (!(value > 0)) bad(section.where(), fmt::format("{} is {}, expected more than 0", key, value));
  return value;
}

std::optional<Llama3Rope> read_rope_scaling(const ConfigSection& rope) {
  const char* key = rope.find("rope_type") != nullptr ? "rope_type" : "type";
  if (rope.find(key) == nullptr) {
    if (rope.find("factor") != nullptr) bad(rope.where(), "factor without rope_type");
    return std::nullopt;
  }
  const std::string type = rope.text(key);
  if (type == "default") return std::nullopt;
  if (type != "llama3") unsupported(rope.where(), fmt::format("{} {}", key, shown(type)));
  const Llama3Rope scaling = {positive(rope, "factor"), positive(rope, "low_freq_factor"),
                              positive(rope, "high_freq_factor"),
                              positive(rope, "original_max_position_embeddings")};
  if (scaling.high_freq_factor <= scaling.low_freq_factor) {
    bad(rope.where(), fmt::format("high_freq_factor {} is not above low_freq_factor {}",
                                  scaling.high_freq_factor, scaling.low_freq_factor));
  }
  return scaling;
}

TokenId read_id(const Json& value, const char* key, const std::string& where) {
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > kLargestCount) {
    bad(where, fmt::format("{} is no token id", key));
  }
  return value.get<TokenId>();
}

}  // namespace

void read_rope(const ConfigSection& config, ModelConfig& out) {
  if (config.find("rope_theta") != nullptr) out.rope_theta = config.number("rope_theta");
  const char* key = config.find("rope_parameters") != nullptr ? "rope_parameters" : "rope_scaling";
  const Json* json = config.find(key);
  if (json == nullptr) return;
  const std::string where = fmt::format("{}: {}", config.where(), key);
  const ConfigSection outer(*json, where);
  const ConfigSection rope(
      used_rope_entry(outer.json(), where, config.find("layer_types") != nullptr), where);
  if (rope.find("rope_theta") != nullptr) out.rope_theta = rope.number("rope_theta");
  if (rope.find("partial_rotary_factor") != nullptr && rope.number("partial_rotary_factor") != 1) {
    unsupported(where, "partial_rotary_factor other than 1");
  }
  out.llama3_rope = read_rope_scaling(rope);
}

void refuse_variants(const ConfigSection& config) {
  const std::string& where = config.where();
  if (config.find("hidden_act") != nullptr && config.text("hidden_act") != "silu") {
    unsupported(where, fmt::format("hidden_act {}", shown(config.text("hidden_act"))));
  }
  if (config.find("quantization_config") != nullptr) unsupported(where, "quantization_config");
  if (config.integer_or("pretraining_tp", 1) != 1)
    unsupported(where, "pretraining_tp other than 1");
  if (config.flag_or("rope_interleaved", false)) unsupported(where, "rope_interleaved");
  if (config.flag_or("mlp_bias", false)) unsupported(where, "mlp_bias");
  // Without the switch the window is a number that nobody reads.
  if (config.flag_or("use_sliding_window", false) && config.find("sliding_window") != nullptr) {
    unsupported(where, "use_sliding_window");
  }
  if (const Json* types = config.find("layer_types")) {
    if (!types->is_array()) bad(where, "layer_types is no list");
    for (const Json& type : *types) {
      if (type != "full_attention") {
        unsupported(where,
                    fmt::format("layer_types with {}",
                                shown(type.dump(-1, ' ', true, Json::error_handler_t::replace))));
      }
    }
  }
}

ConfigSection::ConfigSection(const Json& json, std::string where)
    : json_(json), where_(std::move(where)) {
  if (!json.is_object()) bad(where_, fmt::format("expected an object, found {}", json.type_name()));
}

const Json* ConfigSection::find(std::string_view key) const {
  asked_.emplace(key);
  const auto found = json_.find(key);
  return found == json_.end() || found->is_null() ? nullptr : &*found;
}

const Json& ConfigSection::at(std::string_view key) const {
  const Json* found = find(key);
  if (found == nullptr) bad(where_, fmt::format("{} is missing", key));
  return *found;
}

std::int64_t ConfigSection::integer(std::string_view key) const {
  const Json& value = at(key);
  if (!value.is_number_integer()) expected(key, "an integer", value);
  if (value.is_number_unsigned() && !std::in_range<std::int64_t>(value.get<std::uint64_t>())) {
    bad(where_, fmt::format("{} is too large", key));
  }
  return value.get<std::int64_t>();
}

std::int64_t ConfigSection::integer_or(std::string_view key, std::int64_t fallback) const {
  return find(key) == nullptr ? fallback : integer(key);
}

std::vector<std::int64_t> ConfigSection::integers(std::string_view key) const {
  const Json& list = at(key);
  if (!list.is_array()) expected(key, "a list of integers", list);
  std::vector<std::int64_t> values;
  for (const Json& value : list) {
    if (!value.is_number_integer() || value > kLargestCount || value < -kLargestCount) {
      expected(key, "a list of integers", list);
    }
    values.push_back(value.get<std::int64_t>());
  }
  return values;
}

double ConfigSection::number(std::string_view key) const {
  const Json& value = at(key);
  if (!value.is_number()) expected(key, "a number", value);
  return value.get<double>();
}

bool ConfigSection::flag_or(std::string_view key, bool fallback) const {
  const Json* value = find(key);
  if (value == nullptr) return fallback;
  if (!value->is_boolean()) expected(key, "true or false", *value);
  return value->get<bool>();
}

std::string ConfigSection::text(std::string_view key) const {
  const Json& value = at(key);
  if (!value.is_string()) expected(key, "a string", value);
  return value.get<std::string>();
}

void ConfigSection::refuse_unasked(std::span<const std::string_view> harmless) const {
  for (const auto& [key, value] : json_.items()) {
    const bool known =
        asked_.contains(key) || std::find(harmless.begin(), harmless.end(), key) != harmless.end();
    if (known || value.is_null() || value == false) continue;  // a flag that is off changes nothing
    unsupported(where_, fmt::format("the key {}", shown(key)));
  }
}

void ConfigSection::expected(std::string_view key, const char* what, const Json& found) const {
  bad(where_, fmt::format("{}: expected {}, found {}", key, what, found.type_name()));
}

std::optional<std::vector<TokenId>> read_end_ids(const Json& json, const std::string& where) {
  const ConfigSection section(json, where);
  const Json* value = section.find("eos_token_id");
  if (value == nullptr) return std::nullopt;
  if (!value->is_array()) return std::vector<TokenId>{read_id(*value, "eos_token_id", where)};
  std::vector<TokenId> ids;
  ids.reserve(value->size());
  for (const Json& id : *value) ids.push_back(read_id(id, "eos_token_id", where));
  return ids;
}

ModelConfig read_hf_config(const Json& json, const std::string& where) {
  const ConfigSection config(json, where);
  ModelConfig out;
  out.family = read_family(config);
  out.hidden = config.integer("hidden_size");
  out.intermediate = config.integer("intermediate_size");
  out.layers = config.integer("num_hidden_layers");
  out.heads = config.integer("num_attention_heads");
  out.kv_heads = config.integer_or("num_key_value_heads", out.heads);
  // Never derived when present: Qwen3 has sizes where heads * head_dim is not hidden_size.
  out.head_dim = config.find("head_dim") != nullptr
                     ? config.integer("head_dim")
                     : derived_head_dim(out.hidden, out.heads, where);
  out.vocab = config.integer("vocab_size");
  out.positions = config.integer("max_position_embeddings");
  out.rms_eps = config.number("rms_norm_eps");
  read_rope(config, out);
  out.tied_head = config.flag_or("tie_word_embeddings", false);
  // The class of qwen2 has biases on q, k and v whatever the key says.
  const bool attention_bias = config.flag_or("attention_bias", false);
  out.qkv_bias = out.family == ModelFamily::kQwen2 || attention_bias;
  out.output_bias = out.family != ModelFamily::kQwen2 && attention_bias;
  out.qk_norm = out.family == ModelFamily::kQwen3;
  out.end_ids = read_end_ids(json, where).value_or(std::vector<TokenId>{});
  if (const Json* bos = config.find("bos_token_id")) {
    out.bos_id = read_id(*bos, "bos_token_id", where);
  }
  refuse_variants(config);
  check_config(out, where);
  return out;
}

}  // namespace asdbench
