// A model in a folder of HF's layout: config.json, safetensors in one file or in shards, and what
// lies beside them.
#include <fmt/format.h>

#include <algorithm>

#include "eval/core/error.h"
#include "eval/core/json.h"
#include "eval/core/params.h"
#include "runners/checkpoint/checkpoint_internal.h"
#include "runners/checkpoint/hf_config.h"
#include "runners/checkpoint/tensor_folder.h"

namespace asdbench {
namespace {

namespace fs = std::filesystem;

// Buffers that old checkpoints hold and that are computed anew (specs: targets, section 3).
bool is_harmless_buffer(std::string_view name) { return name.ends_with(".rotary_emb.inv_freq"); }

class FolderCheckpoint final : public Checkpoint {
 public:
  FolderCheckpoint(const fs::path& folder, const std::string& config_name) {
    path_ = folder;
    const fs::path config_path = folder / config_name;
    config_ =
        read_hf_config(read_object(config_path, ModelFault::kBadConfig), config_path.string());
    TensorMap found = read_tensors();
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
  TensorMap read_tensors() {
    tensors_of_files_ = read_safetensors_folder(path_);
    warnings_ = tensors_of_files_.warnings;
    TensorMap found;
    std::size_t medusa_tensors = 0;
    for (const NamedTensor& each : tensors_of_files_.tensors) {
      if (is_harmless_buffer(each.entry.name)) continue;
      if (each.entry.name.starts_with("medusa_head.")) {  // a Medusa model: its heads draft
        ++medusa_tensors;
        continue;
      }
      found.emplace(each.entry.name, as_weights(each.entry, each.file));
    }
    if (medusa_tensors > 0) {
      warnings_.push_back(fmt::format(
          "{} tensors of Medusa heads were ignored; drafter medusa with this path uses them",
          medusa_tensors));
    }
    return found;
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

  FolderTensors tensors_of_files_;
};

}  // namespace

std::unique_ptr<Checkpoint> checkpoint_of_folder(const fs::path& folder,
                                                 const std::string& config_name) {
  return std::make_unique<FolderCheckpoint>(folder, config_name);
}

}  // namespace asdbench
