// From a configured name to a target with its tokenizer, chat template and digest.
#include "runners/models/models.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "eval/core/digest.h"
#include "eval/core/error.h"
#include "runners/checkpoint/checkpoint.h"
#include "runners/models/gguf_tokenizer.h"
#include "runners/models/native_transformer.h"
#include "runners/models/planted_target.h"
#include "runners/models/torch_transformer.h"
#include "runners/models/toy_target.h"

namespace asdbench {
namespace {

namespace fs = std::filesystem;

/// "" when a GPU can be used, else the reason that a person is told.
std::string why_no_gpu() {
#ifdef ASDBENCH_TORCH_ENGINE
  return torch_gpu_missing();
#else
  return "this build has no libtorch";
#endif
}

/// Models that have a name: where `asdbench model fetch` puts them below the models folder.
const std::map<std::string, fs::path, std::less<>>& named_files() {
  static const std::map<std::string, fs::path, std::less<>> kFiles = {
      {"smollm2-135m", "smollm2-135m/SmolLM2-135M-Instruct.Q4_1.gguf"}};
  return kFiles;
}

Model built_in(std::unique_ptr<Target> target, const Params& params) {
  if (params.choice("device", "auto", {"auto", "cpu", "cuda"}) == "cuda") {
    params.fail("device", fmt::format("{} runs on the CPU only", target->info().name));
  }
  Model model;
  model.target = std::move(target);
  return model;
}

/// The element type that holds most bytes.
std::string stored_type(const Checkpoint& checkpoint) {
  std::map<WeightType, std::size_t> bytes;
  for (const auto& [name, tensor] : checkpoint.tensors()) bytes[tensor.type] += tensor.bytes.size();
  const auto most = std::max_element(bytes.begin(), bytes.end(),
                                     [](auto& a, auto& b) { return a.second < b.second; });
  return std::string(name_of(most->first));
}

ChatFamily family_of(const ModelConfig& config, PreTokenizer pre) {
  if (config.family == ModelFamily::kQwen3) return ChatFamily::kQwen3;
  if (config.family == ModelFamily::kQwen2) return ChatFamily::kQwen25;
  return pre == PreTokenizer::kLlama3 ? ChatFamily::kLlama31 : ChatFamily::kSmolLm2;
}

/// Chooses the renderer by family and compares the file's own template with the known ones
/// (specs/targets.md, 8.5).
void choose_chat(const Checkpoint& checkpoint, PreTokenizer pre, const Params& params,
                 Model& model) {
  const ChatFamily family = family_of(checkpoint.config(), pre);
  model.chat = family;
  if (family == ChatFamily::kQwen3) model.chat_options.thinking = params.flag("thinking", false);
  const bool strict = params.flag("strict_template", false);
  const std::string& own = checkpoint.chat_template();
  if (!own.empty()) model.template_sha256 = sha256_hex(own);
  if (family_of_template(own) == family) return;
  const std::string what =
      own.empty() ? "the file has no chat template"
                  : fmt::format("the file's chat template (SHA-256 {}) is not a known one",
                                model.template_sha256);
  if (strict) {
    throw ModelError(
        ModelFault::kUnsupported,
        fmt::format("{}: {}\n  strict_template: false renders by the family's template",
                    checkpoint.path().string(), what));
  }
  model.warnings.push_back(what + "; prompts are rendered by the family's template");
}

Model open_model(const std::string& name, const Params& params, const fs::path& models_dir,
                 HiddenTap tap) {
  EngineOptions options;
  options.device = params.choice("device", "auto", {"auto", "cpu", "cuda"});
  options.engine = params.choice("engine", "auto", {"auto", "native", "torch"});
  options.threads = static_cast<std::int32_t>(params.integer("threads", 0, 0, 1024));
  options.activations = params.choice("activations", "float32", {"float32", "bf16", "int8"});
  params.choice("dtype", "float32", {"float32"});
  options.tap = std::move(tap);

  const fs::path path = find_checkpoint(name, models_dir);
  const std::unique_ptr<Checkpoint> checkpoint = open_checkpoint(path);
  Model model;
  model.warnings = checkpoint->warnings();
  const GgufFile* gguf = checkpoint->gguf();
  TokenizerSpec spec =
      gguf != nullptr ? gguf_tokenizer_spec(*gguf) : read_tokenizer_json(path / "tokenizer.json");
  const PreTokenizer pre = spec.pre;
  model.tokenizer = std::make_shared<const Tokenizer>(spec);
  if (model.tokenizer->vocab_size() > checkpoint->config().vocab) {
    throw ModelError(
        ModelFault::kBadConfig,
        fmt::format("{}: the tokenizer has {} ids, the embedding only {} rows", path.string(),
                    model.tokenizer->vocab_size(), checkpoint->config().vocab));
  }
  choose_chat(*checkpoint, pre, params, model);

  TargetInfo info;
  info.name = named_files().contains(name) ? name : path.stem().string();
  info.sha256 = sha256_of_checkpoint(path);
  LoadedTarget loaded = load_target(*checkpoint, std::move(info), options);
  model.target = std::move(loaded.target);
  model.warnings.insert(model.warnings.end(), loaded.warnings.begin(), loaded.warnings.end());
  return model;
}

}  // namespace

std::vector<TokenId> Model::prompt_ids(const Prompt& prompt, std::string* rendered) const {
  std::string text;
  std::vector<TokenId> ids;
  if (tokenizer != nullptr) {
    ASDBENCH_CHECK(chat.has_value(), "a model with a tokenizer has a chat template");
    if (prompt.messages.empty()) {
      text = prompt.text;
      ids = tokenizer->encode_full(text);  // no template that would bring a first token
    } else {
      text = render_chat(*chat, prompt.messages, chat_options);
      ids = tokenizer->encode(text);
    }
  } else {
    text = prompt.text;
    for (const Message& message : prompt.messages) {
      text += fmt::format("{}: {}\n", name_of(message.role), message.content);
    }
    const std::int64_t vocab = target->info().vocab;
    for (const char c : text) {
      ids.push_back(static_cast<TokenId>(static_cast<unsigned char>(c) % vocab));
    }
  }
  if (rendered != nullptr) *rendered = std::move(text);
  return ids;
}

std::string Model::text(std::span<const TokenId> output) const {
  const std::vector<TokenId> ends = target->info().end_ids;
  if (!output.empty() && std::binary_search(ends.begin(), ends.end(), output.back())) {
    output = output.first(output.size() - 1);
  }
  if (tokenizer != nullptr) return tokenizer->decode(output);
  // A built-in target has no words: its ids become printable ASCII characters.
  std::string text;
  for (const TokenId id : output) text += static_cast<char>(' ' + id % 95);
  return text;
}

LoadedTarget load_target(const Checkpoint& checkpoint, TargetInfo info,
                         const EngineOptions& options) {
  info.weight_dtype = stored_type(checkpoint);
  if (options.engine == "native" && options.device == "cuda") {
    throw ConfigError(
        "engine native runs on the CPU; expected device cpu or auto, or engine torch");
  }
  const bool may_use_gpu = options.engine != "native" && options.device != "cpu";
  const std::string no_gpu = may_use_gpu ? why_no_gpu() : "";
  const bool on_gpu = may_use_gpu && no_gpu.empty();
  if (options.engine == "torch" || options.device == "cuda" || on_gpu) {
    if (options.activations != "float32") {
      throw ConfigError(fmt::format(
          "activations {} are an option of the engine native; expected float32, or engine native",
          options.activations));
    }
#ifdef ASDBENCH_TORCH_ENGINE
    return make_torch_transformer(checkpoint, std::move(info), options);
#else
    throw ConfigError(
        "this build has no engine torch, which GPUs need\n  configure with "
        "-DASDBENCH_WITH_TORCH=ON");
#endif
  }
  LoadedTarget loaded = make_native_transformer(checkpoint, std::move(info), options);
  if (may_use_gpu) loaded.warnings.push_back("device auto: using the CPU: " + no_gpu);
  return loaded;
}

// A known model's file, a file or a folder, or the only .gguf of a folder that has no
// configuration.
fs::path find_checkpoint(const std::string& name, const fs::path& models_dir) {
  if (const auto named = named_files().find(name); named != named_files().end()) {
    fs::path file = models_dir / named->second;
    if (!fs::exists(file)) {
      throw ModelError(ModelFault::kMissingFile,
                       fmt::format("model {}: {} is not there\n  run: asdbench model fetch {}",
                                   name, file.string(), name));
    }
    return file;
  }
  fs::path path = name;
  if (!fs::is_directory(path) || fs::exists(path / "config.json")) return path;
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(path)) {
    if (entry.path().extension() == ".gguf") found.push_back(entry.path());
  }
  if (found.size() != 1) {
    throw ModelError(
        ModelFault::kMissingFile,
        fmt::format("{}: a folder without config.json and with {} .gguf files, expected exactly "
                    "one\n  name the file itself",
                    path.string(), found.size()));
  }
  return found.front();
}

Model make_model(const std::string& name, const Params& params, const fs::path& models_dir,
                 HiddenTap tap) {
  if (name == "toy") return built_in(make_toy_target(params), params);
  if (name == "planted") return built_in(make_planted_target(params), params);
  return open_model(name, params, models_dir, std::move(tap));
}

std::shared_ptr<const Tokenizer> open_tokenizer(const std::string& name,
                                                const fs::path& models_dir) {
  if (fs::path(name).filename() == "tokenizer.json") {
    return std::make_shared<const Tokenizer>(read_tokenizer_json(name));
  }
  const fs::path path = find_checkpoint(name, models_dir);
  if (fs::is_directory(path)) {
    return std::make_shared<const Tokenizer>(read_tokenizer_json(path / "tokenizer.json"));
  }
  return std::make_shared<const Tokenizer>(gguf_tokenizer_spec(GgufFile::open(path)));
}

std::optional<std::int64_t> step_bytes(const std::string& name, const fs::path& models_dir) {
  if (name == "toy" || name == "planted") return std::nullopt;
  // The native engine reads every weight as stored.
  return open_checkpoint(find_checkpoint(name, models_dir))->tensor_bytes();
}

std::vector<std::string> known_models() {
  std::vector<std::string> names = {"planted", "toy"};
  for (const auto& [name, file] : named_files()) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace asdbench
