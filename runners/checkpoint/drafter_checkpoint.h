// Drafters in their released layouts: configuration and tensors, checked against each other and
// against a target.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runners/checkpoint/checkpoint.h"
#include "runners/checkpoint/safetensors.h"

namespace asdbench {

/// How a drafter proposes (specs: drafters).
enum class DraftMethod : std::uint8_t { kEagle3, kDSpark, kDFlash, kMedusa };

/// "eagle3", "dspark", "dflash", "medusa".
std::string_view name_of(DraftMethod method);

/// What its files say beside the sizes of its own layers (Checkpoint::config()).
struct DrafterConfig {
  DraftMethod method = DraftMethod::kEagle3;
  std::string layout;  // "SafeAILab", "DeepSpec", "z-lab", "SpecForge", "v1", "v2", "vLLM", ...
  std::int64_t target_hidden = 0;  // width of the hidden states that it reads
  std::int64_t target_layers = 0;  // of the target it was made for; 0: not said
  std::vector<std::int64_t> taps;  // R[k] in the order of concatenation; empty: default_taps()
  std::int64_t draft_vocab = 0;    // rows of its head

  // Block drafters.
  std::int64_t block_size = 0;  // rows of the block it was trained with
  bool from_anchor = false;     // row k predicts position s + k + 1, else s + k and row 0 nothing
  TokenId mask_id = 0;
  std::int64_t markov_rank = 0;  // 0: no Markov head
  bool confidence = false;
  bool confidence_with_markov = false;

  // Medusa.
  std::int64_t heads = 0;
  std::int64_t head_blocks = 0;  // residual blocks of each head
  bool head_bias = false;        // of their linear layers
};

/// A drafter's folder, opened. Its tensors have canonical names:
///   EAGLE-3 and blocks  fc, norm, layers.{i}.* as in a target; hidden_norm (EAGLE-3: of layer 0)
///                       embed_tokens and lm_head where the file has its own
///                       markov_head.markov_w1, markov_w2; confidence_head.proj (weight, bias)
///   Medusa              {head}.{block}.linear (weight, bias); {head}.head where it has its own
class DrafterCheckpoint : public Checkpoint {
 public:
  const DrafterConfig& drafter() const { return drafter_; }
  /// Id of the target for each row of the head, strictly increasing but in Medusa; empty: the same.
  const std::vector<TokenId>& target_ids() const { return target_ids_; }

 protected:
  DrafterConfig drafter_;
  std::vector<TokenId> target_ids_;
};

/// Tensors of a file, with what keeps their bytes alive.
struct FileTensors {
  std::vector<SafetensorsEntry> entries;
  std::shared_ptr<const void> owner;
};

/// Reads a file of pickled tensors (.bin, .pt). Only libtorch can: it is handed in by folders that
/// have it. ModelError.
using PickleReader = std::function<FileTensors(const std::filesystem::path&)>;

/// Opens a drafter's folder; layout and method are recognised from its files. Reads no weights.
///
/// `pickle` may be empty: then a folder that has its weights in a pickle only is refused.
/// Errors:  ModelError: kUnknownArch for a folder that is no drafter, kUnsupported for keys that
/// ask
///          for another computation, else as open_checkpoint. Layout: specs, drafters, 2 to 6.
std::unique_ptr<DrafterCheckpoint> open_drafter(const std::filesystem::path& folder,
                                                const PickleReader& pickle);

/// Whether a folder's configuration looks like that of a drafter rather than of a target.
bool is_drafter(const std::filesystem::path& folder);

/// The taps R[k] of a target that the drafter reads, none for Medusa. ModelError says why the two
/// do not fit.
std::vector<std::int64_t> fit_drafter(const DrafterCheckpoint& drafter, const ModelConfig& target);

/// What the headers say, as describe_checkpoint() does.
std::vector<std::pair<std::string, std::string>> describe_drafter(const DrafterCheckpoint& drafter);

/// ModelError kBadWeights when a tensor holds NaN or an infinity. Reads all weights.
void refuse_nonfinite(const Checkpoint& checkpoint);

}  // namespace asdbench
