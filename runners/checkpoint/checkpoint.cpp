// Checks and lookups that do not depend on the file format, and the choice of the format.
#include "runners/checkpoint/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "eval/core/digest.h"
#include "eval/core/error.h"
#include "runners/checkpoint/checkpoint_internal.h"

namespace asdbench {
namespace {

constexpr std::string_view kHead = "lm_head.weight";
constexpr std::string_view kEmbedding = "model.embed_tokens.weight";

std::string_view name_of(ModelFamily family) {
  switch (family) {
    case ModelFamily::kLlama:
      return "llama";
    case ModelFamily::kQwen2:
      return "qwen2";
    case ModelFamily::kQwen3:
      return "qwen3";
  }
  throw InternalError("unknown model family");
}

// Every tensor of a decoder. Source: specs, targets, section 3.
void visit_expected(const ModelConfig& config, const VisitTensor& visit) {
  visit(std::string(kEmbedding), {config.vocab, config.hidden});
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    visit_block(config, fmt::format("model.layers.{}.", layer), config.hidden, visit);
  }
  visit("model.norm.weight", {config.hidden});
  if (!config.tied_head) visit(std::string(kHead), {config.vocab, config.hidden});
}

bool is_query_or_key(std::string_view name) {
  return name.find(".self_attn.q_proj.") != std::string_view::npos ||
         name.find(".self_attn.k_proj.") != std::string_view::npos;
}

}  // namespace

std::string shown_shape(const std::vector<std::int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

void check_config(ModelConfig& config, const std::string& where) {
  const auto fail = [&where](const std::string& message) {
    throw ModelError(ModelFault::kBadConfig, fmt::format("{}: {}", where, message));
  };
  const std::array<std::pair<const char*, std::int64_t>, 8> counts = {{
      {"hidden size", config.hidden},
      {"intermediate size", config.intermediate},
      {"number of layers", config.layers},
      {"number of heads", config.heads},
      {"number of key/value heads", config.kv_heads},
      {"head size", config.head_dim},
      {"vocabulary size", config.vocab},
      {"number of positions", config.positions},
  }};
  for (const auto& [name, count] : counts) {
    if (count < 1 || count > kLargestCount) {
      fail(fmt::format("{} is {}, expected 1 to {}", name, count, kLargestCount));
    }
  }
  if (config.heads % config.kv_heads != 0) {
    fail(fmt::format("{} heads cannot share {} key/value heads evenly", config.heads,
                     config.kv_heads));
  }
  if (config.head_dim % 2 != 0) {
    fail(fmt::format("head size {} is odd; rotary embedding needs pairs", config.head_dim));
  }
  if (!std::isfinite(config.rms_eps) || config.rms_eps <= 0) {
    fail(fmt::format("RMS norm epsilon is {}, expected a positive number", config.rms_eps));
  }
  if (!std::isfinite(config.rope_theta) || config.rope_theta <= 0) {
    fail(fmt::format("rotary base is {}, expected a positive number", config.rope_theta));
  }
  for (const TokenId id : config.end_ids) {
    if (id < 0 || id >= config.vocab) {
      fail(fmt::format("end id {} is outside the vocabulary of {}", id, config.vocab));
    }
  }
  if (config.bos_id && (*config.bos_id < 0 || *config.bos_id >= config.vocab)) {
    fail(fmt::format("begin id {} is outside the vocabulary of {}", *config.bos_id, config.vocab));
  }
  std::sort(config.end_ids.begin(), config.end_ids.end());
  config.end_ids.erase(std::unique(config.end_ids.begin(), config.end_ids.end()),
                       config.end_ids.end());
}

std::int64_t derived_head_dim(std::int64_t hidden, std::int64_t heads, const std::string& where) {
  if (heads < 1 || hidden % heads != 0) {
    throw ModelError(
        ModelFault::kBadConfig,
        fmt::format("{}: hidden size {} does not divide into {} heads, and no head size is given",
                    where, hidden, heads));
  }
  return hidden / heads;
}

void visit_block(const ModelConfig& config, const std::string& prefix, std::int64_t input_width,
                 const VisitTensor& visit) {
  const std::int64_t query_rows = config.heads * config.head_dim;
  const std::int64_t key_rows = config.kv_heads * config.head_dim;
  const auto linear = [&](const char* name, std::int64_t rows, std::int64_t columns, bool bias) {
    visit(prefix + name + ".weight", {rows, columns});
    if (bias) visit(prefix + name + ".bias", {rows});
  };
  visit(prefix + "input_layernorm.weight", {config.hidden});
  linear("self_attn.q_proj", query_rows, input_width, config.qkv_bias);
  linear("self_attn.k_proj", key_rows, input_width, config.qkv_bias);
  linear("self_attn.v_proj", key_rows, input_width, config.qkv_bias);
  linear("self_attn.o_proj", config.hidden, query_rows, config.output_bias);
  if (config.qk_norm) {
    visit(prefix + "self_attn.q_norm.weight", {config.head_dim});
    visit(prefix + "self_attn.k_norm.weight", {config.head_dim});
  }
  visit(prefix + "post_attention_layernorm.weight", {config.hidden});
  linear("mlp.gate_proj", config.intermediate, config.hidden, false);
  linear("mlp.up_proj", config.intermediate, config.hidden, false);
  linear("mlp.down_proj", config.hidden, config.intermediate, false);
}

TensorMap take_tensors(const std::function<void(const VisitTensor&)>& visit_all, TensorMap found,
                       const std::string& where, const std::string& owner,
                       const std::function<std::string(std::string_view)>& name_in_file) {
  TensorMap taken;
  visit_all([&](const std::string& name, const std::vector<std::int64_t>& shape) {
    auto node = found.extract(name);
    if (node.empty()) {
      throw ModelError(
          ModelFault::kMissingTensor,
          fmt::format("{}: tensor {} is missing, expected with shape {}; the file is incomplete or "
                      "its metadata describe another model",
                      where, shown(name_in_file(name)), shown_shape(shape)));
    }
    if (node.mapped().shape != shape) {
      throw ModelError(
          ModelFault::kBadShape,
          fmt::format("{}: tensor {} has shape {}, expected {}", where, shown(name_in_file(name)),
                      shown_shape(node.mapped().shape), shown_shape(shape)));
    }
    taken.insert(std::move(node));
  });
  if (!found.empty()) {
    throw ModelError(ModelFault::kUnexpectedTensor,
                     fmt::format("{}: tensor {} belongs to no part of {}", where,
                                 shown(name_in_file(found.begin()->first)), owner));
  }
  return taken;
}

TensorMap take_expected_tensors(const ModelConfig& config, TensorMap found,
                                const std::string& where,
                                const std::function<std::string(std::string_view)>& name_in_file) {
  return take_tensors(
      [&](const VisitTensor& visit) { visit_expected(config, visit); }, std::move(found), where,
      fmt::format("a {} model with {} layers", name_of(config.family), config.layers),
      name_in_file);
}

std::int64_t stored_qk_row(const ModelConfig& config, std::int64_t hf_row) {
  if (!config.interleaved_qk_rows) return hf_row;
  const std::int64_t head = hf_row / config.head_dim;
  const std::int64_t row = hf_row % config.head_dim;
  const std::int64_t pairs = config.head_dim / 2;
  return head * config.head_dim + 2 * (row % pairs) + row / pairs;
}

const Tensor& Checkpoint::tensor(std::string_view name) const {
  const bool tied = config_.tied_head && name == kHead;
  const auto found = tensors_.find(tied ? kEmbedding : name);
  if (found == tensors_.end()) {
    throw ModelError(ModelFault::kMissingTensor,
                     fmt::format("{}: there is no tensor {}", path_.string(), shown(name)));
  }
  return found->second;
}

void Checkpoint::read(std::string_view name, std::span<float> out) const {
  const Tensor& stored = tensor(name);
  if (!config_.interleaved_qk_rows || !is_query_or_key(name)) return dequantise(stored, out);
  const std::int64_t rows = stored.shape[0];
  if (stored.shape.size() == 1) {  // a bias: its rows are single values
    std::vector<float> values(out.size());
    dequantise(stored, values);
    for (std::int64_t row = 0; row < rows; ++row) {
      out[static_cast<std::size_t>(row)] =
          values[static_cast<std::size_t>(stored_qk_row(config_, row))];
    }
    return;
  }
  const auto columns = static_cast<std::size_t>(stored.shape[1]);
  ASDBENCH_CHECK(static_cast<std::int64_t>(out.size()) == stored.elements(),
                 fmt::format("{} values into {}", stored.elements(), out.size()));
  for (std::int64_t row = 0; row < rows; ++row) {
    dequantise_rows(stored, stored_qk_row(config_, row), 1,
                    out.subspan(static_cast<std::size_t>(row) * columns, columns));
  }
}

std::int64_t Checkpoint::parameters() const {
  std::int64_t sum = 0;
  for (const auto& [name, tensor] : tensors_) sum += tensor.elements();
  return sum;
}

std::int64_t Checkpoint::tensor_bytes() const {
  std::size_t sum = 0;
  for (const auto& [name, tensor] : tensors_) sum += tensor.bytes.size();
  return static_cast<std::int64_t>(sum);
}

std::unique_ptr<Checkpoint> open_checkpoint(const std::filesystem::path& path,
                                            const std::string& config_name) {
  std::error_code ignored;  // what cannot be looked at is reported when it is opened
  if (std::filesystem::is_directory(path, ignored)) return checkpoint_of_folder(path, config_name);
  return checkpoint_of_gguf(GgufFile::open(path), path);
}

std::string sha256_of_checkpoint(const std::filesystem::path& path) {
  if (!std::filesystem::is_directory(path)) return sha256_file(path);
  constexpr std::array<std::string_view, 4> kKinds = {".json", ".safetensors", ".bin", ".pt"};
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    const std::string kind = entry.path().extension().string();
    if (std::find(kKinds.begin(), kKinds.end(), kind) != kKinds.end()) {
      files[entry.path().filename().string()] = sha256_file(entry.path());
    }
  }
  std::string list;
  for (const auto& [name, digest] : files) list += fmt::format("{} {}\n", name, digest);
  return sha256_hex(list);
}

std::string type_histogram(const Checkpoint& checkpoint) {
  std::map<std::string_view, std::int64_t> types;
  for (const auto& [name, tensor] : checkpoint.tensors()) ++types[name_of(tensor.type)];
  std::vector<std::string> histogram;
  histogram.reserve(types.size());
  for (const auto& [type, count] : types) histogram.push_back(fmt::format("{} {}", count, type));
  return fmt::format("{}", fmt::join(histogram, ", "));
}

void refuse_nonfinite(const Checkpoint& checkpoint) {
  for (const auto& [name, tensor] : checkpoint.tensors()) {
    if (all_finite(tensor)) continue;
    throw ModelError(
        ModelFault::kBadWeights,
        fmt::format("{}: tensor {} holds NaN or an infinity; the file is damaged, fetch "
                    "it again",
                    checkpoint.path().string(), shown(name)));
  }
}

std::vector<std::pair<std::string, std::string>> describe_checkpoint(const Checkpoint& checkpoint) {
  const ModelConfig& config = checkpoint.config();
  std::string rope = fmt::format("base {}", config.rope_theta);
  if (config.llama3_rope) rope += fmt::format(", llama3 scaling x{}", config.llama3_rope->factor);
  if (!config.rope_divisors.empty()) rope += ", divisors in the file";
  const std::string& chat = checkpoint.chat_template();
  return {
      {"path", checkpoint.path().string()},
      {"format", checkpoint.gguf() != nullptr
                     ? fmt::format("GGUF version {}", checkpoint.gguf()->version())
                     : "safetensors"},
      {"architecture", std::string(name_of(config.family))},
      {"parameters", fmt::format("{}", checkpoint.parameters())},
      {"tensors", fmt::format("{} ({})", checkpoint.tensors().size(), type_histogram(checkpoint))},
      {"tensor bytes", fmt::format("{}", checkpoint.tensor_bytes())},
      {"layers", fmt::format("{}", config.layers)},
      {"hidden size", fmt::format("{}", config.hidden)},
      {"intermediate size", fmt::format("{}", config.intermediate)},
      {"heads", fmt::format("{} of {} with {} key/value heads", config.heads, config.head_dim,
                            config.kv_heads)},
      {"vocabulary rows", fmt::format("{}", config.vocab)},
      {"context", fmt::format("{}", config.positions)},
      {"rotary embedding", rope},
      {"output head", config.tied_head ? "tied to the embedding" : "own matrix"},
      {"end ids",
       config.end_ids.empty() ? "none" : fmt::format("{}", fmt::join(config.end_ids, ", "))},
      {"chat template sha256", chat.empty() ? "none" : sha256_hex(chat)},
      {"tokenizer", checkpoint.tokenizer_kind().empty() ? "none" : checkpoint.tokenizer_kind()},
  };
}

}  // namespace asdbench
