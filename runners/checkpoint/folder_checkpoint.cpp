// A model in a folder of HF's layout: config.json, safetensors in one file or in shards, and what
// lies beside them.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "eval/core/error.h"
#include "eval/core/json.h"
#include "eval/core/params.h"
#include "runners/checkpoint/checkpoint_internal.h"
#include "runners/checkpoint/hf_config.h"
#include "runners/checkpoint/safetensors.h"

namespace asdbench {
namespace {

namespace fs = std::filesystem;

// A JSON tree takes many times its text; index and configurations have far under 8 MB.
constexpr std::size_t kLongestJson = std::size_t{32} << 20;

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

std::string read_text(const fs::path& path) {
  const MappedFile file(path);
  if (file.bytes().size() > kLongestJson) {
    throw ModelError(ModelFault::kUnsupported,
                     fmt::format("{}: {} bytes, at most {} are read", path.string(),
                                 file.bytes().size(), kLongestJson));
  }
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

Json read_object(const fs::path& path, ModelFault fault) {
  try {
    Json json = parse_json(read_text(path));
    if (json.is_object()) return json;
  } catch (const DataError& error) {
    throw ModelError(fault, fmt::format("{}: {}", path.string(), error.what()));
  }
  throw ModelError(fault, fmt::format("{}: no JSON object", path.string()));
}

// Buffers that old checkpoints hold and that are computed anew (specs: targets, section 3).
bool is_harmless_buffer(std::string_view name) { return name.ends_with(".rotary_emb.inv_freq"); }

// A shard lies beside its index; any other path could read files that are none of the model's.
void check_shard_name(const std::string& shard, const fs::path& index) {
  const bool plain = !shard.empty() && shard != "." && shard != ".." &&
                     shard.find_first_of(std::string_view("/\\\0", 3)) == std::string::npos;
  if (!plain) {
    throw ModelError(ModelFault::kBadConfig, fmt::format("{}: shard {} is no plain file name",
                                                         index.string(), shown(shard)));
  }
}

class FolderCheckpoint final : public Checkpoint {
 public:
  FolderCheckpoint(const fs::path& folder, const std::string& config_name) {
    path_ = folder;
    const fs::path config_path = folder / config_name;
    config_ =
        read_hf_config(read_object(config_path, ModelFault::kBadConfig), config_path.string());
    TensorMap found =
        is_there(folder / "model.safetensors.index.json") ? read_shards() : read_single();
    settle_head(found);
    tensors_ = take_expected_tensors(config_, std::move(found), folder.string(),
                                     [](std::string_view name) { return std::string(name); });
    read_neighbours();
    check_config(config_, folder.string());
    if (config_.end_ids.empty()) {
      warnings_.emplace_back("no file names an end id (eos_token_id): outputs end by length only");
    }
  }

 private:
  TensorMap read_single() {
    const fs::path path = path_ / "model.safetensors";
    files_.push_back(SafetensorsFile::open(path));
    TensorMap found;
    for (const SafetensorsEntry& entry : files_.back().entries()) add(found, entry);
    return found;
  }

  TensorMap read_shards() {
    const fs::path index = path_ / "model.safetensors.index.json";
    const Json json = read_object(index, ModelFault::kBadHeader);
    const auto map = json.find("weight_map");
    if (map == json.end() || !map->is_object()) {
      throw ModelError(ModelFault::kBadHeader,
                       fmt::format("{}: weight_map is no object", index.string()));
    }
    std::map<std::string, std::set<std::string, std::less<>>> names_of_shard;
    for (const auto& [name, shard] : map->items()) {
      if (!shard.is_string()) {
        throw ModelError(
            ModelFault::kBadHeader,
            fmt::format("{}: the file of tensor {} is no string", index.string(), shown(name)));
      }
      check_shard_name(shard.get<std::string>(), index);
      names_of_shard[shard.get<std::string>()].insert(name);
    }
    TensorMap found;
    for (auto& [shard, names] : names_of_shard) read_shard(shard, names, found);
    return found;
  }

  void read_shard(const std::string& shard, std::set<std::string, std::less<>>& names,
                  TensorMap& found) {
    const fs::path path = path_ / shard;
    files_.push_back(SafetensorsFile::open(path));
    for (const SafetensorsEntry& entry : files_.back().entries()) {
      if (names.erase(entry.name) > 0) {
        add(found, entry);
      } else {
        warnings_.push_back(fmt::format("{}: tensor {} is not in the index and was ignored",
                                        path.string(), shown(entry.name)));
      }
    }
    if (!names.empty()) {
      throw ModelError(ModelFault::kMissingTensor,
                       fmt::format("{}: the index puts tensor {} here, but it is not",
                                   path.string(), shown(*names.begin())));
    }
  }

  void add(TensorMap& found, const SafetensorsEntry& entry) {
    if (!is_harmless_buffer(entry.name)) {
      found.emplace(entry.name, files_.back().weights(entry));
    }
  }

  // Source: specs, targets, section 2, row tie_word_embeddings.
  void settle_head(TensorMap& found) {
    const auto head = found.find("lm_head.weight");
    if (head == found.end()) {
      if (!config_.tied_head) {
        warnings_.emplace_back("lm_head.weight is absent: the embedding is used in its place");
      }
      config_.tied_head = true;
      return;
    }
    if (!config_.tied_head) return;
    const auto embedding = found.find("model.embed_tokens.weight");
    const bool same = embedding != found.end() && embedding->second.type == head->second.type &&
                      std::ranges::equal(embedding->second.bytes, head->second.bytes);
    if (same) {
      found.erase(head);
    } else {
      config_.tied_head = false;
      warnings_.emplace_back(
          "tie_word_embeddings is true, but lm_head.weight differs from the embedding: the file's "
          "is used");
    }
  }

  void read_neighbours() {
    if (is_there(path_ / "tokenizer.json")) tokenizer_kind_ = "tokenizer.json";
    const fs::path generation = path_ / "generation_config.json";
    if (is_there(generation)) {
      const Json json = read_object(generation, ModelFault::kBadConfig);
      if (auto ids = read_end_ids(json, generation.string())) config_.end_ids = *ids;
    }
    const fs::path tokenizer = path_ / "tokenizer_config.json";
    if (is_there(tokenizer)) {
      const Json json = read_object(tokenizer, ModelFault::kBadConfig);
      chat_template_ = template_of(json);
      if (config_.end_ids.empty()) add_end_token(json);
    }
    const fs::path jinja = path_ / "chat_template.jinja";  // newer saves; it wins in HF too
    if (is_there(jinja)) chat_template_ = read_text(jinja);
  }

  // A string, or a list of named ones of which "default" is the chat's.
  static std::string template_of(const Json& tokenizer) {
    const auto found = tokenizer.find("chat_template");
    if (found == tokenizer.end()) return "";
    if (found->is_string()) return found->get<std::string>();
    if (!found->is_array()) return "";
    for (const Json& each : *found) {
      if (each.is_object() && each.value("name", Json()) == "default" &&
          each.value("template", Json()).is_string()) {
        return each.at("template").get<std::string>();
      }
    }
    return "";
  }

  // The tokenizer's end token by its text, which may stand in an object.
  void add_end_token(const Json& tokenizer) {
    Json token = tokenizer.value("eos_token", Json());
    if (token.is_object()) token = token.value("content", Json());
    const Json added = tokenizer.value("added_tokens_decoder", Json::object());
    if (!token.is_string() || !added.is_object()) return;
    for (const auto& [id, entry] : added.items()) {
      if (!entry.is_object() || entry.value("content", Json()) != token) continue;
      const std::optional<std::int64_t> number = parse_integer(id);
      if (number && *number >= 0 && *number <= kLargestCount) {
        config_.end_ids.push_back(static_cast<TokenId>(*number));
      }
    }
  }

  std::vector<SafetensorsFile> files_;
};

}  // namespace

std::unique_ptr<Checkpoint> checkpoint_of_folder(const fs::path& folder,
                                                 const std::string& config_name) {
  return std::make_unique<FolderCheckpoint>(folder, config_name);
}

}  // namespace asdbench
