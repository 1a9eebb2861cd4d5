// Tensors of drafters under canonical names, and whether a drafter fits a target.
#include "runners/checkpoint/drafter_checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>

#include "eval/core/error.h"
#include "runners/checkpoint/checkpoint_internal.h"
#include "runners/checkpoint/drafter_config.h"
#include "runners/checkpoint/tensor_folder.h"

namespace asdbench {
namespace {

namespace fs = std::filesystem;

// SafeAILab's rule: the inputs of layers 2, n / 2 and n - 3.
constexpr std::size_t kSafeAiLabTaps = 3;
// More heads than any drafter has; bounds what names may ask for.
constexpr std::int64_t kMostHeads = 64;

[[noreturn]] void fail(ModelFault fault, const std::string& where, const std::string& message) {
  throw ModelError(fault, fmt::format("{}: {}", where, message));
}

/// Removes `prefix` where `text` begins with it.
bool drop_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

/// The canonical name of a tensor of an EAGLE-3 or block drafter.
std::string canonical_name(std::string_view name, DraftMethod method) {
  drop_prefix(name, "model.");
  if (drop_prefix(name, "midlayer.")) {
    return canonical_name(fmt::format("layers.0.{}", name), method);
  }
  if (method == DraftMethod::kEagle3 && name == "layers.0.hidden_norm.weight") {
    return "hidden_norm.weight";
  }
  return std::string(name);
}

/// A small decimal number at the start of `text`, without leading zeros.
std::optional<std::int64_t> take_number(std::string_view& text) {
  std::int64_t value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  const auto length = static_cast<std::size_t>(end - text.data());
  if (status != std::errc() || value < 0 || value >= kMostHeads ||
      (length > 1 && text.front() == '0')) {
    return std::nullopt;
  }
  text.remove_prefix(length);
  return value;
}

/// The canonical name of a tensor of Medusa heads; nullopt for tensors of a base model beside them.
/// `{i}.{m}.weight`, the head after m blocks, is `{i}.{m}.head` here until m is known.
std::optional<std::string> medusa_name(std::string_view name, bool full_model) {
  const bool prefixed = drop_prefix(name, "medusa_head.") || drop_prefix(name, "medusa_heads.");
  if (full_model && !prefixed) return std::nullopt;
  const std::string stem(name);
  if (drop_prefix(name, "blocks.")) {
    const auto head = take_number(name);
    if (head && drop_prefix(name, ".layers.")) {
      const auto block = take_number(name);
      if (block && name.starts_with('.')) return fmt::format("{}.{}.linear{}", *head, *block, name);
    }
    return stem;
  }
  if (drop_prefix(name, "lm_heads.")) {
    const auto head = take_number(name);
    return head && name == ".weight" ? fmt::format("{}.head.weight", *head) : stem;
  }
  const auto head = take_number(name);
  if (head && drop_prefix(name, ".")) {
    const auto block = take_number(name);
    if (block && name == ".weight") return fmt::format("{}.{}.head.weight", *head, *block);
  }
  return stem;
}

/// Ids stored as I64 or I32.
std::vector<std::int64_t> read_ids(const NamedTensor& tensor) {
  const SafetensorsEntry& entry = tensor.entry;
  if ((entry.dtype != "I64" && entry.dtype != "I32") || entry.shape.size() != 1) {
    fail(ModelFault::kBadDtype, tensor.file,
         fmt::format("tensor {} holds {} {}, expected a list of I64 or I32", shown(entry.name),
                     entry.dtype, shown_shape(entry.shape)));
  }
  std::vector<std::int64_t> ids(static_cast<std::size_t>(entry.shape[0]));
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (entry.dtype == "I64") {
      std::memcpy(&ids[i], entry.bytes.data() + i * 8, 8);
    } else {
      std::int32_t id = 0;
      std::memcpy(&id, entry.bytes.data() + i * 4, 4);
      ids[i] = id;
    }
  }
  return ids;
}

/// Places that are true in a tensor of BOOL or U8.
std::vector<std::int64_t> read_set(const NamedTensor& tensor, std::int64_t vocab) {
  const SafetensorsEntry& entry = tensor.entry;
  if ((entry.dtype != "BOOL" && entry.dtype != "U8") ||
      entry.shape != std::vector<std::int64_t>{vocab}) {
    fail(ModelFault::kBadShape, tensor.file,
         fmt::format("tensor {} is {} {}, expected BOOL [{}]", shown(entry.name), entry.dtype,
                     shown_shape(entry.shape), vocab));
  }
  std::vector<std::int64_t> places;
  for (std::size_t i = 0; i < entry.bytes.size(); ++i) {
    if (entry.bytes[i] != std::byte{0}) places.push_back(static_cast<std::int64_t>(i));
  }
  return places;
}

class OpenedDrafter final : public DrafterCheckpoint {
 public:
  OpenedDrafter(const fs::path& folder, const PickleReader& pickle) {
    path_ = folder;
    const fs::path config_path = folder / "config.json";
    const Json json = read_object(config_path, ModelFault::kBadConfig);
    DrafterSettings settings = read_drafter_config(json, config_path.string());
    config_ = std::move(settings.sizes);
    drafter_ = std::move(settings.drafter);
    files_ = read_files(pickle);
    warnings_ = files_.warnings;
    if (drafter_.method == DraftMethod::kMedusa) {
      open_medusa(json.contains("hidden_size") && json.contains("num_hidden_layers") &&
                  json.contains("medusa_num_heads"));
    } else {
      open_layers();
    }
  }

 private:
  FolderTensors read_files(const PickleReader& pickle) const {
    const bool medusa = drafter_.method == DraftMethod::kMedusa;
    if (medusa && is_there(path_ / "medusa_lm_head.safetensors")) {
      return read_safetensors_file(path_ / "medusa_lm_head.safetensors");
    }
    const bool safetensors =
        is_there(path_ / "model.safetensors") || is_there(path_ / "model.safetensors.index.json");
    const fs::path file = path_ / (medusa ? "medusa_lm_head.pt" : "pytorch_model.bin");
    if (safetensors || !is_there(file)) return read_safetensors_folder(path_);
    if (!pickle) {
      fail(ModelFault::kUnsupported, file.string(),
           "pickled weights, which only libtorch reads, and this build has none\n  configure with "
           "-DASDBENCH_WITH_TORCH=ON, or convert the file to safetensors");
    }
    FileTensors read = pickle(file);
    FolderTensors out;
    for (SafetensorsEntry& entry : read.entries) {
      out.tensors.push_back({std::move(entry), file.string()});
    }
    out.owners.push_back(std::move(read.owner));
    return out;
  }

  /// Adds a tensor under its canonical name.
  void add(TensorMap& found, const std::string& name, const NamedTensor& tensor) {
    if (!found.emplace(name, as_weights(tensor.entry, tensor.file)).second) {
      fail(ModelFault::kDuplicateTensor, tensor.file,
           fmt::format("tensors {} and {} are the same one", shown(stored_names_.at(name)),
                       shown(tensor.entry.name)));
    }
    stored_names_.emplace(name, tensor.entry.name);
  }

  std::string stored_name(std::string_view canonical) const {
    const auto found = stored_names_.find(canonical);
    return found == stored_names_.end() ? std::string(canonical) : found->second;
  }

  // ---- EAGLE-3, DSpark, DFlash

  void open_layers() {
    TensorMap found;
    const NamedTensor* d2t = nullptr;
    const NamedTensor* t2d = nullptr;
    for (const NamedTensor& each : files_.tensors) {
      const std::string name = canonical_name(each.entry.name, drafter_.method);
      if (name == "d2t") {
        d2t = &each;
      } else if (name == "t2d") {
        t2d = &each;
      } else {
        add(found, name, each);
      }
    }
    if (drafter_.method == DraftMethod::kEagle3) settle_eagle_heads(found);
    const bool own_embedding = found.contains("embed_tokens.weight");
    const bool own_head = found.contains("lm_head.weight");
    tensors_ =
        take_tensors([&](const VisitTensor& visit) { visit_all(visit, own_embedding, own_head); },
                     std::move(found), path_.string(),
                     fmt::format("a {} drafter with {} layers ({} layout)",
                                 name_of(drafter_.method), config_.layers, drafter_.layout),
                     [&](std::string_view name) { return stored_name(name); });
    read_target_ids(d2t, t2d);
  }

  /// What the tensors say and the configuration may leave out, or say wrongly: q/k norms, and a
  /// head size that the reference derives whatever the file has.
  void settle_eagle_heads(const TensorMap& found) {
    config_.qk_norm = found.contains("layers.0.self_attn.q_norm.weight");
    const auto query = found.find("layers.0.self_attn.q_proj.weight");
    if (query == found.end() || query->second.shape.empty()) return;
    const std::int64_t rows = query->second.shape[0];
    const bool derived_fits = config_.hidden % config_.heads == 0 && rows == config_.hidden &&
                              drafter_.layout == "SafeAILab";
    if (rows != config_.heads * config_.head_dim && derived_fits) {
      warnings_.push_back(fmt::format(
          "head_dim {} does not agree with the weights: {} is used, as the reference does",
          config_.head_dim, config_.hidden / config_.heads));
      config_.head_dim = config_.hidden / config_.heads;
    }
  }

  std::size_t taps() const {
    if (!drafter_.taps.empty()) return drafter_.taps.size();
    return drafter_.method == DraftMethod::kEagle3 ? kSafeAiLabTaps
                                                   : static_cast<std::size_t>(config_.layers);
  }

  void visit_all(const VisitTensor& visit, bool own_embedding, bool own_head) const {
    const bool eagle = drafter_.method == DraftMethod::kEagle3;
    visit("fc.weight",
          {config_.hidden, static_cast<std::int64_t>(taps()) * drafter_.target_hidden});
    visit("hidden_norm.weight", {config_.hidden});
    for (std::int64_t i = 0; i < config_.layers; ++i) {
      visit_block(config_, fmt::format("layers.{}.", i), (eagle ? 2 : 1) * config_.hidden, visit);
    }
    visit("norm.weight", {config_.hidden});
    if (own_embedding) visit("embed_tokens.weight", {config_.vocab, config_.hidden});
    if (eagle || own_head) visit("lm_head.weight", {drafter_.draft_vocab, config_.hidden});
    if (drafter_.markov_rank > 0) {
      visit("markov_head.markov_w1.weight", {config_.vocab, drafter_.markov_rank});
      visit("markov_head.markov_w2.weight", {drafter_.draft_vocab, drafter_.markov_rank});
    }
    if (drafter_.confidence) {
      visit("confidence_head.proj.weight",
            {1, config_.hidden + (drafter_.confidence_with_markov ? drafter_.markov_rank : 0)});
      visit("confidence_head.proj.bias", {1});
    }
  }

  /// d2t holds offsets: target id = draft id + d2t[draft id]. Source: specs, drafters, 4.2.
  void read_target_ids(const NamedTensor* d2t, const NamedTensor* t2d) {
    if (d2t == nullptr) {
      if (drafter_.draft_vocab == config_.vocab) return;
      fail(ModelFault::kMissingTensor, path_.string(),
           fmt::format("tensor \"d2t\" is missing: the head has {} of {} ids", drafter_.draft_vocab,
                       config_.vocab));
    }
    const std::vector<std::int64_t> offsets = read_ids(*d2t);
    if (static_cast<std::int64_t>(offsets.size()) != drafter_.draft_vocab) {
      fail(ModelFault::kBadShape, d2t->file,
           fmt::format("tensor \"d2t\" has {} entries, expected {}", offsets.size(),
                       drafter_.draft_vocab));
    }
    std::vector<std::int64_t> ids;
    for (std::size_t i = 0; i < offsets.size(); ++i) {
      const auto draft_id = static_cast<std::int64_t>(i);
      const std::int64_t least = ids.empty() ? 0 : ids.back() + 1;
      if (offsets[i] < least - draft_id || offsets[i] >= config_.vocab - draft_id) {
        fail(ModelFault::kBadConfig, d2t->file,
             fmt::format("d2t[{}] is {}: target ids (index + entry) must rise and stay below {}; "
                         "entries are offsets, not ids",
                         i, offsets[i], config_.vocab));
      }
      ids.push_back(draft_id + offsets[i]);
    }
    if (t2d != nullptr && read_set(*t2d, config_.vocab) != ids) {
      fail(ModelFault::kBadConfig, d2t->file,
           "d2t does not lead to the ids that t2d marks; entries of d2t are offsets, not ids");
    }
    target_ids_.assign(ids.begin(), ids.end());
  }

  // ---- Medusa

  void open_medusa(bool full_model) {
    TensorMap found;
    const NamedTensor* token_map = nullptr;
    for (const NamedTensor& each : files_.tensors) {
      if (each.entry.name == "token_map") {
        token_map = &each;
      } else if (const auto name = medusa_name(each.entry.name, full_model)) {
        add(found, *name, each);
      }
    }
    const bool vllm = std::any_of(files_.tensors.begin(), files_.tensors.end(), [](auto& each) {
      return each.entry.name.find("blocks.") != std::string::npos;
    });
    count_medusa(found);
    name_medusa_heads(found);
    std::int64_t own_heads = 0;
    while (own_heads < drafter_.heads && found.contains(fmt::format("{}.head.weight", own_heads))) {
      ++own_heads;
    }
    drafter_.layout = vllm ? "vLLM" : full_model ? "full model" : own_heads > 0 ? "v1" : "v2";
    std::int64_t head_rows = 0;
    if (own_heads > 0) head_rows = rows_of(found, "0.head.weight");
    if (config_.vocab == 0) config_.vocab = head_rows;
    tensors_ = take_tensors(
        [&](const VisitTensor& visit) {
          for (std::int64_t head = 0; head < drafter_.heads; ++head) {
            for (std::int64_t block = 0; block < drafter_.head_blocks; ++block) {
              const std::string linear = fmt::format("{}.{}.linear.", head, block);
              visit(linear + "weight", {config_.hidden, config_.hidden});
              if (drafter_.head_bias) visit(linear + "bias", {config_.hidden});
            }
            // One head for all (original_lm_head), one each, or none: the target's.
            if (head < std::max<std::int64_t>(own_heads, own_heads > 1 ? drafter_.heads : 0)) {
              visit(fmt::format("{}.head.weight", head), {head_rows, config_.hidden});
            }
          }
        },
        std::move(found), path_.string(),
        fmt::format("Medusa heads ({} of {} blocks)", drafter_.heads, drafter_.head_blocks),
        [&](std::string_view name) { return stored_name(name); });
    read_token_map(token_map, head_rows);
  }

  static std::int64_t rows_of(const TensorMap& found, const std::string& name) {
    const std::vector<std::int64_t>& shape = found.at(name).shape;
    return shape.empty() ? 0 : shape[0];
  }

  /// Heads and blocks from the names: configurations in circulation count wrongly.
  void count_medusa(const TensorMap& found) {
    for (const auto& [name, tensor] : found) {
      std::string_view rest = name;
      const auto head = take_number(rest);
      if (!head || !drop_prefix(rest, ".")) continue;
      drafter_.heads = std::max(drafter_.heads, *head + 1);
      const auto block = take_number(rest);
      if (!block || !rest.starts_with(".linear.")) continue;
      drafter_.head_blocks = std::max(drafter_.head_blocks, *block + 1);
      drafter_.head_bias = drafter_.head_bias || rest == ".linear.bias";
      if (rest == ".linear.weight" && config_.hidden == 0 && !tensor.shape.empty()) {
        config_.hidden = tensor.shape[0];
      }
    }
    if (drafter_.heads == 0 || drafter_.head_blocks == 0 || config_.hidden == 0) {
      fail(ModelFault::kMissingTensor, path_.string(),
           "no Medusa head: expected tensors such as \"0.0.linear.weight\" or "
           "\"blocks.0.layers.0.weight\"");
    }
    drafter_.target_hidden = config_.hidden;
  }

  /// `{i}.{m}.head.weight` becomes `{i}.head.weight`, for m blocks.
  void name_medusa_heads(TensorMap& found) {
    for (std::int64_t head = 0; head < drafter_.heads; ++head) {
      const std::string name = fmt::format("{}.{}.head.weight", head, drafter_.head_blocks);
      auto node = found.extract(name);
      if (node.empty()) continue;
      node.key() = fmt::format("{}.head.weight", head);
      stored_names_[node.key()] = stored_name(name);
      if (!found.insert(std::move(node)).inserted) {
        fail(ModelFault::kDuplicateTensor, path_.string(), fmt::format("head {} twice", head));
      }
    }
  }

  /// Rows of the heads that count, as absolute ids of the target.
  void read_token_map(const NamedTensor* token_map, std::int64_t head_rows) {
    const std::int64_t rows = drafter_.draft_vocab == 0 ? config_.vocab : drafter_.draft_vocab;
    drafter_.draft_vocab = rows;
    if (rows == config_.vocab) {
      if (head_rows != 0 && head_rows != rows) {
        fail(ModelFault::kBadShape, path_.string(),
             fmt::format("heads of {} rows for a vocabulary of {}", head_rows, rows));
      }
      return;  // a map beside a full vocabulary is not read
    }
    if (rows > config_.vocab || token_map == nullptr) {
      fail(token_map == nullptr ? ModelFault::kMissingTensor : ModelFault::kBadConfig,
           path_.string(),
           fmt::format("heads of {} rows for a vocabulary of {} need a tensor \"token_map\"", rows,
                       config_.vocab));
    }
    const std::vector<std::int64_t> ids = read_ids(*token_map);
    if (static_cast<std::int64_t>(ids.size()) != rows ||
        (head_rows != rows && head_rows != config_.vocab && head_rows != 0)) {
      fail(ModelFault::kBadShape, token_map->file,
           fmt::format("token_map has {} entries and the heads {} rows, expected {}", ids.size(),
                       head_rows, rows));
    }
    for (const std::int64_t id : ids) {
      if (id < 0 || id >= config_.vocab) {
        fail(ModelFault::kBadConfig, token_map->file,
             fmt::format("token_map holds {}, expected 0 to {}", id, config_.vocab - 1));
      }
    }
    target_ids_.assign(ids.begin(), ids.end());
  }

  FolderTensors files_;
  std::map<std::string, std::string, std::less<>> stored_names_;  // by canonical name
};

/// The layers that z-lab's drafters tap when the file names none, as R indices.
std::vector<std::int64_t> dflash_taps(std::int64_t drafter_layers, std::int64_t target_layers) {
  if (drafter_layers == 1) return {target_layers / 2 + 1};
  std::vector<std::int64_t> taps;
  for (std::int64_t i = 0; i < drafter_layers; ++i) {
    // Python's round: half to even, as is the default rounding of nearbyint.
    const double at =
        1 + static_cast<double>(i * (target_layers - 4)) / static_cast<double>(drafter_layers - 1);
    taps.push_back(static_cast<std::int64_t>(std::nearbyint(at)) + 1);
  }
  return taps;
}

std::vector<std::int64_t> default_taps(const DrafterCheckpoint& drafter,
                                       std::int64_t target_layers) {
  if (drafter.drafter().method != DraftMethod::kEagle3) {
    return dflash_taps(drafter.config().layers, target_layers);
  }
  std::vector<std::int64_t> taps = {2, target_layers / 2, target_layers - 3};
  std::sort(taps.begin(), taps.end());
  if (taps.front() < 0 || std::adjacent_find(taps.begin(), taps.end()) != taps.end()) {
    fail(ModelFault::kBadConfig, drafter.path().string(),
         fmt::format("a target of {} layers has no three distinct inputs of layers 2, n/2 and n-3; "
                     "7 layers or more do",
                     target_layers));
  }
  return taps;
}

}  // namespace

std::string_view name_of(DraftMethod method) {
  constexpr std::array<std::string_view, 4> kNames = {"eagle3", "dspark", "dflash", "medusa"};
  return kNames.at(static_cast<std::size_t>(method));
}

std::unique_ptr<DrafterCheckpoint> open_drafter(const fs::path& folder,
                                                const PickleReader& pickle) {
  return std::make_unique<OpenedDrafter>(folder, pickle);
}

bool is_drafter(const fs::path& folder) {
  return is_there(folder / "config.json") &&
         is_drafter_config(read_object(folder / "config.json", ModelFault::kBadConfig));
}

std::vector<std::int64_t> fit_drafter(const DrafterCheckpoint& checkpoint,
                                      const ModelConfig& target) {
  const DrafterConfig& drafter = checkpoint.drafter();
  const std::string where = checkpoint.path().string();
  const auto differ = [&](const char* what, std::int64_t own, std::int64_t others) {
    fail(
        ModelFault::kBadConfig, where,
        fmt::format("made for a target with {} {}, this one has {}; use a drafter that was trained "
                    "for this target",
                    what, own, others));
  };
  const std::int64_t vocab = checkpoint.config().vocab;
  if (vocab != 0 && vocab != target.vocab) differ("a vocabulary of", vocab, target.vocab);
  if (drafter.target_hidden != target.hidden) {
    differ("a hidden size of", drafter.target_hidden, target.hidden);
  }
  if (drafter.target_layers != 0 && drafter.target_layers != target.layers) {
    differ("a depth of", drafter.target_layers, target.layers);
  }
  if (drafter.method == DraftMethod::kMedusa) return {};
  if (checkpoint.config().hidden != target.hidden) {
    for (const char* name : {"embed_tokens.weight", "lm_head.weight"}) {
      if (checkpoint.has(name)) continue;
      fail(ModelFault::kMissingTensor, where,
           fmt::format("tensor \"{}\" is missing, and the target's has another width ({}, not {})",
                       name, target.hidden, checkpoint.config().hidden));
    }
  }
  const std::vector<std::int64_t> taps =
      drafter.taps.empty() ? default_taps(checkpoint, target.layers) : drafter.taps;
  for (const std::int64_t tap : taps) {
    if (tap < 0 || tap > target.layers) {
      fail(ModelFault::kBadConfig, where,
           fmt::format("taps the output of layer {}, the target has layers 0 to {}", tap - 1,
                       target.layers - 1));
    }
  }
  return taps;
}

std::vector<std::pair<std::string, std::string>> describe_drafter(
    const DrafterCheckpoint& checkpoint) {
  const DrafterConfig& drafter = checkpoint.drafter();
  const ModelConfig& config = checkpoint.config();
  const auto yes = [](bool there) { return there ? "its own" : "the target's"; };
  std::vector<std::pair<std::string, std::string>> facts = {
      {"path", checkpoint.path().string()},
      {"format", "drafter, safetensors or pickle"},
      {"method", std::string(name_of(drafter.method))},
      {"layout", drafter.layout},
      {"parameters", fmt::format("{}", checkpoint.parameters())},
      {"tensors", fmt::format("{} ({})", checkpoint.tensors().size(), type_histogram(checkpoint))},
      {"tensor bytes", fmt::format("{}", checkpoint.tensor_bytes())},
      {"hidden size", fmt::format("{}", config.hidden)}};
  if (drafter.method == DraftMethod::kMedusa) {
    facts.emplace_back("heads", fmt::format("{} of {} blocks", drafter.heads, drafter.head_blocks));
    facts.emplace_back("output head", yes(checkpoint.has("0.head.weight")));
  } else {
    facts.emplace_back("layers", fmt::format("{}", config.layers));
    facts.emplace_back("heads", fmt::format("{} of {} with {} key/value heads", config.heads,
                                            config.head_dim, config.kv_heads));
    facts.emplace_back("taps R[k]", drafter.taps.empty()
                                        ? "by the target's depth"
                                        : fmt::format("{}", fmt::join(drafter.taps, ", ")));
    facts.emplace_back("rotary embedding", fmt::format("base {}", config.rope_theta));
    facts.emplace_back("embedding", yes(checkpoint.has("embed_tokens.weight")));
    facts.emplace_back("output head", yes(checkpoint.has("lm_head.weight")));
  }
  if (drafter.block_size > 0) {
    facts.emplace_back("block", fmt::format("{} rows, {} drafts", drafter.block_size,
                                            drafter.block_size - (drafter.from_anchor ? 0 : 1)));
    facts.emplace_back("Markov rank", fmt::format("{}", drafter.markov_rank));
    facts.emplace_back("confidence head", drafter.confidence ? "yes" : "no");
  }
  if (config.vocab > 0) {
    facts.emplace_back("vocabulary", fmt::format("{} of {}", drafter.draft_vocab, config.vocab));
  }
  return facts;
}

}  // namespace asdbench
