// What the readers of both file formats share; for this folder only.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "eval/core/error.h"
#include "runners/checkpoint/checkpoint.h"
#include "runners/checkpoint/gguf.h"

namespace asdbench {

using TensorMap = std::map<std::string, Tensor, std::less<>>;

/// The type with this GGUF id; nullopt for ids that are unknown or hold no weights we can read.
std::optional<WeightType> weight_type_of_id(std::int32_t id);

/// "[2, 3]".
std::string shown_shape(const std::vector<std::int64_t>& shape);

/// No count of a model file exceeds this, so that products of two counts cannot overflow.
inline constexpr std::int64_t kLargestCount = 0x7fffffff;

/// Checks what both formats have in common: counts within 1..kLargestCount, heads divisible,
/// head_dim even, positive eps and theta, ids inside the vocabulary. Sorts end_ids.
void check_config(ModelConfig& config, const std::string& where);

/// head_dim where a file does not state it. ModelError kBadConfig when it does not divide.
std::int64_t derived_head_dim(std::int64_t hidden, std::int64_t heads, const std::string& where);

/// Takes every expected tensor out of `found`; an untied head is expected unless tied_head.
///
/// `name_in_file` turns an HF name into the one that the file uses, for messages.
/// Errors: kMissingTensor, kBadShape, kUnexpectedTensor for what is left.
/// Never allocates by the configured number of layers.
TensorMap take_expected_tensors(const ModelConfig& config, TensorMap found,
                                const std::string& where,
                                const std::function<std::string(std::string_view)>& name_in_file);

/// A checkpoint over an opened container. ModelError.
std::unique_ptr<Checkpoint> checkpoint_of_gguf(GgufFile file, const std::filesystem::path& path);

/// A checkpoint over a folder in HF's layout. ModelError.
std::unique_ptr<Checkpoint> checkpoint_of_folder(const std::filesystem::path& folder,
                                                 const std::string& config_name);

}  // namespace asdbench
