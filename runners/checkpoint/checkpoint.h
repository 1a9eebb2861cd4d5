// Foreign model files as named, checked, mapped tensors under one set of names (those of HF
// checkpoints).
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "eval/core/token_id.h"

namespace asdbench {

/// Element types; the values are GGUF's type ids (specs: targets, section 10.5).
enum class WeightType : std::int32_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ5_0 = 6,
  kQ5_1 = 7,
  kQ8_0 = 8,
  kQ4_K = 12,
  kQ5_K = 13,
  kQ6_K = 14,
  kBF16 = 30,
};

/// "F32", "Q4_1", ...
std::string_view name_of(WeightType type);
/// Values and bytes of one block of the type.
struct BlockSize {
  std::int64_t values;
  std::int64_t bytes;
};
BlockSize block_size(WeightType type);

/// A tensor inside a mapped file. `shape` is row-major ([out, in]); `bytes` need not be aligned.
struct Tensor {
  WeightType type = WeightType::kF32;
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;

  std::int64_t elements() const;
};

/// Widens or dequantises all of a tensor to float32 (specs: targets, section 10.5), in fp32 without
/// contraction. `out` holds elements() values. InternalError on another size.
void dequantise(const Tensor& tensor, std::span<float> out);
/// The same for rows [first, first + count) of a 2-D tensor; `out` is [count, shape[1]].
void dequantise_rows(const Tensor& tensor, std::int64_t first, std::int64_t count,
                     std::span<float> out);

enum class ModelFamily : std::uint8_t { kLlama, kQwen2, kQwen3 };

/// The llama3 rule for rotary frequencies (specs: targets, section 4.3).
struct Llama3Rope {
  double factor;
  double low_freq_factor;
  double high_freq_factor;
  double original_positions;
};

/// What config.json or GGUF metadata say, checked (specs: targets, section 2).
struct ModelConfig {
  ModelFamily family = ModelFamily::kLlama;
  std::int64_t hidden = 0;
  std::int64_t intermediate = 0;
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t vocab = 0;
  std::int64_t positions = 0;
  double rms_eps = 0;
  double rope_theta = 10000;
  std::optional<Llama3Rope> llama3_rope;
  std::vector<float> rope_divisors;  // [head_dim / 2] of a GGUF's rope_freqs.weight; empty: none
  bool tied_head = false;
  bool qkv_bias = false;
  bool output_bias = false;  // on o_proj
  bool qk_norm = false;
  /// GGUF, architecture llama: rows of q and k are stored with half-split pairs made adjacent
  /// (section 10.4).
  bool interleaved_qk_rows = false;
  std::vector<TokenId> end_ids;  // sorted (section 9)
  std::optional<TokenId> bos_id;
};

/// Row of a stored q or k matrix (or bias) that holds row `hf_row` of the HF order: itself, unless
/// interleaved_qk_rows. Source: specs, targets, section 10.4.
std::int64_t stored_qk_row(const ModelConfig& config, std::int64_t hf_row);

class GgufFile;

/// An opened model: configuration and every expected tensor exactly once, shapes checked.
class Checkpoint {
 public:
  virtual ~Checkpoint() = default;
  const ModelConfig& config() const { return config_; }
  /// By HF name ("model.layers.0.self_attn.q_proj.weight"), as stored: with interleaved_qk_rows, q
  /// and k are in the file's order. "lm_head.weight" is the embedding when config().tied_head.
  /// ModelError kMissingTensor when absent.
  const Tensor& tensor(std::string_view name) const;
  /// All values of a tensor as float32 and in HF order, whatever the file stores. `out` holds
  /// elements() values.
  void read(std::string_view name, std::span<float> out) const;
  bool has(std::string_view name) const { return tensors_.find(name) != tensors_.end(); }
  const std::map<std::string, Tensor, std::less<>>& tensors() const { return tensors_; }
  std::int64_t parameters() const;  // tied matrices once
  std::int64_t tensor_bytes() const;
  const std::filesystem::path& path() const { return path_; }
  /// The container, with the tokenizer's metadata; null for folders.
  virtual const GgufFile* gguf() const { return nullptr; }
  /// The chat template that came with the model, verbatim; "" when there is none.
  const std::string& chat_template() const { return chat_template_; }
  /// What the model's tokenizer is, for `inspect`: "gpt2/smollm", "tokenizer.json"; "" when absent.
  const std::string& tokenizer_kind() const { return tokenizer_kind_; }
  /// Warnings for the user: ignored tensors, aliased heads, ...
  const std::vector<std::string>& warnings() const { return warnings_; }

 protected:
  ModelConfig config_;
  std::map<std::string, Tensor, std::less<>> tensors_;
  std::filesystem::path path_;
  std::string chat_template_;
  std::string tokenizer_kind_;
  std::vector<std::string> warnings_;
};

/// Opens a GGUF file, or a folder in HF's layout: a configuration and safetensors, sharded or not.
/// `config_name` names the folder's configuration. ModelError.
std::unique_ptr<Checkpoint> open_checkpoint(const std::filesystem::path& path,
                                            const std::string& config_name = "config.json");

/// Digest of a file, or of the names and digests of a folder's configuration, tokenizer and
/// weights.
std::string sha256_of_checkpoint(const std::filesystem::path& path);

/// What the headers say, as key and value in the order to print them: architecture, sizes, element
/// types, context, end ids, chat template, tokenizer. Reads no weights.
std::vector<std::pair<std::string, std::string>> describe_checkpoint(const Checkpoint& checkpoint);

}  // namespace asdbench
