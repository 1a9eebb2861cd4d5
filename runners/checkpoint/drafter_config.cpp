// Which keys of a drafter's config.json mean what, and which values are refused.
#include "runners/checkpoint/drafter_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "eval/core/error.h"
#include "runners/checkpoint/checkpoint_internal.h"
#include "runners/checkpoint/hf_config.h"

namespace asdbench {
namespace {

// A block is decoded in one piece; released ones have 7 to 16 rows.
constexpr std::int64_t kLargestBlock = 1024;
// DeepSpec's EAGLE-3 reads exactly this many layers, SafeAILab's rule gives three.
constexpr std::size_t kDeepSpecTaps = 5;

// What saved configurations carry and nothing here is computed by: names, storage, training, ids.
constexpr std::array<std::string_view, 24> kHarmless = {"architectures",
                                                        "model_type",
                                                        "auto_map",
                                                        "dtype",
                                                        "torch_dtype",
                                                        "transformers_version",
                                                        "_name_or_path",
                                                        "initializer_range",
                                                        "attention_dropout",
                                                        "use_cache",
                                                        "bos_token_id",
                                                        "eos_token_id",
                                                        "pad_token_id",
                                                        "max_window_layers",
                                                        "sliding_window",
                                                        "num_anchors",
                                                        "step_loss_decay",
                                                        "ttt_length",
                                                        "target_model_name_or_path",
                                                        "target_model_type",
                                                        "base_model_name_or_path",
                                                        "tie_word_embeddings",
                                                        "draft_num_hidden_layers",
                                                        "return_dict"};

[[noreturn]] void bad(const std::string& where, const std::string& message) {
  throw ModelError(ModelFault::kBadConfig, fmt::format("{}: {}", where, message));
}

[[noreturn]] void unsupported(const std::string& where, const std::string& message) {
  throw ModelError(ModelFault::kUnsupported,
                   fmt::format("{}: {}, which is not supported", where, message));
}

std::optional<DraftMethod> method_of(const Json& json) {
  const auto has = [&](const char* key) { return json.contains(key); };
  if (has("medusa_num_heads") || json.value("model_type", Json()) == "medusa") {
    return DraftMethod::kMedusa;
  }
  if (has("dflash_config") || has("mask_token_id") || has("block_size")) {
    return DraftMethod::kDSpark;  // or kDFlash: its heads tell
  }
  if (has("draft_vocab_size") || has("target_layer_ids") || has("eagle_config")) {
    return DraftMethod::kEagle3;
  }
  return std::nullopt;
}

void read_sizes(const ConfigSection& config, ModelConfig& sizes) {
  sizes.hidden = config.integer("hidden_size");
  sizes.intermediate = config.integer("intermediate_size");
  sizes.layers = config.integer("num_hidden_layers");
  sizes.heads = config.integer("num_attention_heads");
  sizes.kv_heads = config.integer_or("num_key_value_heads", sizes.heads);
  sizes.head_dim = config.find("head_dim") != nullptr
                       ? config.integer("head_dim")
                       : derived_head_dim(sizes.hidden, sizes.heads, config.where());
  sizes.vocab = config.integer("vocab_size");
  sizes.positions = config.integer_or("max_position_embeddings", kLargestCount);
  sizes.rms_eps = config.number("rms_norm_eps");
  read_rope(config, sizes);
  refuse_variants(config);
  if (config.flag_or("attention_bias", false)) unsupported(config.where(), "attention_bias");
  check_config(sizes, config.where());
}

std::int64_t read_count(const ConfigSection& config, const char* key, std::int64_t least,
                        std::int64_t most) {
  const std::int64_t value = config.integer(key);
  if (value < least || value > most) {
    bad(config.where(), fmt::format("{} is {}, expected {} to {}", key, value, least, most));
  }
  return value;
}

/// Layers whose outputs are tapped, as R indices; -1 is the embedding.
std::vector<std::int64_t> read_layer_taps(const ConfigSection& config, std::int64_t least) {
  std::vector<std::int64_t> taps = config.integers("target_layer_ids");
  if (taps.empty() || taps.front() < least || !std::is_sorted(taps.begin(), taps.end()) ||
      std::adjacent_find(taps.begin(), taps.end()) != taps.end()) {
    bad(config.where(), fmt::format("target_layer_ids [{}], expected rising ids from {} on",
                                    fmt::join(taps, ", "), least));
  }
  for (std::int64_t& tap : taps) ++tap;
  return taps;
}

// Two meanings are in circulation and the first id tells them apart: 1 begins ids of layers whose
// output is taken, anything else indices of R (specs: drafters, section 1).
std::vector<std::int64_t> read_aux_taps(const ConfigSection& config) {
  constexpr const char* kKey = "eagle_aux_hidden_state_layer_ids";
  std::vector<std::int64_t> taps = config.integers(kKey);
  if (taps.size() != 3 || taps.front() < 0 || !(taps[0] < taps[1] && taps[1] < taps[2])) {
    bad(config.where(), fmt::format("{}: expected three rising ids", kKey));
  }
  if (taps.front() == 1) {
    for (std::int64_t& tap : taps) ++tap;
  }
  return taps;
}

void read_draft_vocab(const ConfigSection& config, DrafterSettings& out) {
  out.drafter.draft_vocab = config.find("draft_vocab_size") == nullptr
                                ? out.sizes.vocab
                                : read_count(config, "draft_vocab_size", 1, out.sizes.vocab);
}

// Keys of NVIDIA's exports that spell out the step of section 4.3; anything else is another step.
void refuse_other_eagle_steps(const ConfigSection& nested) {
  const bool same = nested.flag_or("use_aux_hidden_state", true) &&
                    nested.flag_or("use_input_layernorm_in_first_layer", true) &&
                    nested.flag_or("use_last_layernorm", true) &&
                    !nested.flag_or("use_mtp_layernorm", false);
  if (!same) unsupported(nested.where(), "a step other than EAGLE-3's");
  nested.refuse_unasked({});
}

void read_eagle3(const ConfigSection& config, DrafterSettings& out) {
  DrafterConfig& drafter = out.drafter;
  drafter.method = DraftMethod::kEagle3;
  read_sizes(config, out.sizes);
  if (out.sizes.layers != 1) {
    bad(config.where(),
        fmt::format("num_hidden_layers is {}, an EAGLE-3 drafter has 1", out.sizes.layers));
  }
  read_draft_vocab(config, out);
  drafter.target_hidden = config.find("target_hidden_size") == nullptr
                              ? out.sizes.hidden
                              : read_count(config, "target_hidden_size", 1, kLargestCount);
  if (config.find("target_layer_ids") != nullptr) {
    drafter.layout = "DeepSpec";
    drafter.taps = read_layer_taps(config, 0);
    if (drafter.taps.size() != kDeepSpecTaps) {
      bad(config.where(),
          fmt::format("{} target_layer_ids, expected {}", drafter.taps.size(), kDeepSpecTaps));
    }
  } else {
    drafter.layout = "SafeAILab";
    // The reference's table of rotations ends here; a rotation can be computed for any position.
    out.sizes.positions = kLargestCount;
    if (const Json* json = config.find("eagle_config")) {
      const ConfigSection nested(*json, config.where() + ": eagle_config");
      if (nested.find("eagle_aux_hidden_state_layer_ids") != nullptr) {
        drafter.taps = read_aux_taps(nested);
      }
      refuse_other_eagle_steps(nested);
    }
    if (config.find("eagle_aux_hidden_state_layer_ids") != nullptr) {
      drafter.taps = read_aux_taps(config);
    }
  }
}

void read_markov(const ConfigSection& keys, DrafterConfig& drafter) {
  if (keys.find("markov_rank") != nullptr) {
    drafter.markov_rank = read_count(keys, "markov_rank", 0, kLargestCount);
  }
  if (drafter.markov_rank > 0 && keys.find("markov_head_type") != nullptr &&
      keys.text("markov_head_type") != "vanilla") {
    unsupported(keys.where(),
                fmt::format("markov_head_type {}", shown(keys.text("markov_head_type"))));
  }
  drafter.confidence = keys.flag_or("enable_confidence_head", false);
  drafter.confidence_with_markov = keys.flag_or("confidence_head_with_markov", false);
  if (drafter.confidence && drafter.confidence_with_markov && drafter.markov_rank == 0) {
    bad(keys.where(), "confidence_head_with_markov without a Markov head (markov_rank is 0)");
  }
}

void read_block(const ConfigSection& config, DrafterSettings& out) {
  DrafterConfig& drafter = out.drafter;
  read_sizes(config, out.sizes);
  if (config.text("model_type") != "qwen3") {
    unsupported(config.where(), fmt::format("model_type {} of a block drafter, expected qwen3,",
                                            shown(config.text("model_type"))));
  }
  out.sizes.qk_norm = true;
  read_draft_vocab(config, out);
  drafter.target_hidden = out.sizes.hidden;
  // z-lab and SpecForge nest what DeepSpec has at the top.
  const Json* json = config.find("dflash_config");
  const ConfigSection nested(json == nullptr ? config.json() : *json,
                             json == nullptr ? config.where() : config.where() + ": dflash_config");
  const ConfigSection& keys = json == nullptr ? config : nested;
  const std::string projector =
      keys.find("projector_type") == nullptr ? "dflash" : keys.text("projector_type");
  if (projector != "dflash" && projector != "dspark") {
    unsupported(keys.where(), fmt::format("projector_type {}", shown(projector)));
  }
  read_markov(keys, drafter);
  drafter.layout = json == nullptr ? "DeepSpec" : projector == "dspark" ? "SpecForge" : "z-lab";
  if (drafter.layout == "z-lab" && (drafter.markov_rank > 0 || drafter.confidence)) {
    bad(keys.where(), "Markov or confidence head without projector_type dspark");
  }
  drafter.method =
      drafter.markov_rank > 0 || drafter.confidence ? DraftMethod::kDSpark : DraftMethod::kDFlash;
  drafter.from_anchor =
      keys.flag_or("sample_from_anchor",
                   config.flag_or("sample_from_anchor", json == nullptr || projector == "dspark"));
  drafter.block_size = read_count(keys.find("block_size") != nullptr ? keys : config, "block_size",
                                  drafter.from_anchor ? 1 : 2, kLargestBlock);
  drafter.mask_id = static_cast<TokenId>(read_count(keys, "mask_token_id", 0, out.sizes.vocab - 1));
  if (keys.find("target_layer_ids") != nullptr) {
    drafter.taps = read_layer_taps(keys, -1);
  } else if (drafter.layout != "z-lab") {
    bad(keys.where(), "target_layer_ids is missing");
  }
  if (json != nullptr) nested.refuse_unasked(kHarmless);
}

void read_medusa(const ConfigSection& config, DrafterSettings& out) {
  DrafterConfig& drafter = out.drafter;
  drafter.method = DraftMethod::kMedusa;
  if (config.find("vocab_size") != nullptr) {
    out.sizes.vocab = read_count(config, "vocab_size", 1, kLargestCount);
  }
  if (config.find("truncated_vocab_size") != nullptr) {
    drafter.draft_vocab = read_count(config, "truncated_vocab_size", 1, kLargestCount);
  }
  if (config.find("logit_scale") != nullptr && config.number("logit_scale") != 1) {
    unsupported(config.where(), "logit_scale other than 1");
  }
  if (config.find("quantization_config") != nullptr) {
    unsupported(config.where(), "quantization_config");
  }
}

}  // namespace

bool is_drafter_config(const Json& json) { return json.is_object() && method_of(json).has_value(); }

DrafterSettings read_drafter_config(const Json& json, const std::string& where) {
  const ConfigSection config(json, where);
  for (const char* key :
       {"speculators_model_type", "speculators_config", "transformer_layer_config"}) {
    if (config.find(key) != nullptr) unsupported(where, "the format of the library speculators");
  }
  const std::optional<DraftMethod> method = method_of(json);
  if (!method) {
    throw ModelError(ModelFault::kUnknownArch,
                     fmt::format("{}: no key of an EAGLE-3, DSpark, DFlash or Medusa drafter "
                                 "(draft_vocab_size, target_layer_ids, block_size, dflash_config, "
                                 "medusa_num_heads)",
                                 where));
  }
  DrafterSettings out;
  if (*method == DraftMethod::kMedusa) {
    read_medusa(config, out);
    return out;  // the configuration of a full model has the keys of a target too
  }
  if (config.find("num_target_layers") != nullptr) {
    out.drafter.target_layers = read_count(config, "num_target_layers", 1, kLargestCount);
  }
  *method == DraftMethod::kEagle3 ? read_eagle3(config, out) : read_block(config, out);
  config.refuse_unasked(kHarmless);
  return out;
}

}  // namespace asdbench
