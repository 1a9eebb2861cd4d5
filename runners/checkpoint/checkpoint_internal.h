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

/// "61 F32, 210 Q4_1".
std::string type_histogram(const Checkpoint& checkpoint);

/// Whether no value of an unquantised tensor is NaN or infinite; true for quantised ones.
bool all_finite(const Tensor& tensor);

/// "[2, 3]".
std::string shown_shape(const std::vector<std::int64_t>& shape);

/// No count of a model file exceeds this, so that products of two counts cannot overflow.
inline constexpr std::int64_t kLargestCount = 0x7fffffff;

/// Checks what both formats have in common: counts within 1..kLargestCount, heads divisible,
/// head_dim even, positive eps and theta, ids inside the vocabulary. Sorts end_ids.
void check_config(ModelConfig& config, const std::string& where);

/// head_dim where a file does not state it. ModelError kBadConfig when it does not divide.
std::int64_t derived_head_dim(std::int64_t hidden, std::int64_t heads, const std::string& where);

/// Called for each tensor that a model must have.
using VisitTensor =
    std::function<void(const std::string& name, const std::vector<std::int64_t>& shape)>;

/// The tensors of one decoder block, whose q, k and v read `input_width` values (specs: targets,
/// section 3).
void visit_block(const ModelConfig& config, const std::string& prefix, std::int64_t input_width,
                 const VisitTensor& visit);

/// Takes the tensors that `visit_all` visits out of `found`, which must hold no other.
///
/// `name_in_file` turns a name into the one that the file uses, and `owner` says what they belong
/// to, for messages. Errors: kMissingTensor, kBadShape, kUnexpectedTensor for what is left.
TensorMap take_tensors(const std::function<void(const VisitTensor&)>& visit_all, TensorMap found,
                       const std::string& where, const std::string& owner,
                       const std::function<std::string(std::string_view)>& name_in_file);

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
