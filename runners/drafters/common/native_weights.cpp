// Shares the matrices that are copies of the target's.
#include "runners/drafters/common/native_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "eval/core/error.h"

namespace asdbench::native {
namespace {

using kernels::PackedMatrix;

/// Whether all values are equal, whatever the types are.
bool same_values(const Tensor& tensor, const PackedMatrix& matrix) {
  if (tensor.shape[0] != matrix.outputs() || tensor.shape[1] != matrix.inputs()) return false;
  std::vector<float> own(static_cast<std::size_t>(matrix.inputs()));
  std::vector<float> others(own.size());
  for (std::int64_t row = 0; row < matrix.outputs(); ++row) {
    dequantise_rows(tensor, row, 1, own);
    matrix.unpack_row(row, others);
    if (own != others) return false;
  }
  return true;
}

PackedMatrix own_or_shared(const FittedDrafter& fitted, const char* name,
                           const PackedMatrix& targets, const DrafterContext& context) {
  const Tensor& tensor = fitted.checkpoint->tensor(name);
  if (same_values(tensor, targets)) return targets;
  context.warn(fmt::format("{}: {} differs from the target's: the drafter's own is used",
                           fitted.checkpoint->path().string(), name));
  return draft_matrix(fitted, name);
}

/// What `make` returns; what cannot be rounded becomes a ModelError.
template <typename Pack>
auto rounded(const FittedDrafter& fitted, const std::string& name, const Pack& make) {
  try {
    return make();
  } catch (const std::invalid_argument& error) {
    throw ModelError(
        ModelFault::kUnsupported,
        fmt::format("{}: {} cannot be packed: {}\n  leave out the drafter's option weights",
                    fitted.checkpoint->path().string(), name, error.what()));
  }
}

}  // namespace

bool is_native(const FittedDrafter& fitted) {
  return dynamic_cast<const NativeTarget*>(fitted.target) != nullptr;
}

NativeTarget& native_target(const FittedDrafter& fitted) {
  auto* target = dynamic_cast<NativeTarget*>(fitted.target);
  ASDBENCH_CHECK(target != nullptr, "a native drafter has a native target");
  return *target;
}

PackedMatrix draft_matrix(const FittedDrafter& fitted, const std::string& name) {
  return rounded(fitted, name,
                 [&] { return pack(fitted.checkpoint->tensor(name), fitted.weights); });
}

BlockWeights draft_block(const FittedDrafter& fitted, const std::string& prefix) {
  return rounded(fitted, prefix,
                 [&] { return pack_block(*fitted.checkpoint, prefix, fitted.weights); });
}

PackedMatrix draft_embedding(const FittedDrafter& fitted, const DrafterContext& context) {
  const PackedMatrix& targets = native_target(fitted).embedding();
  if (!fitted.checkpoint->has("embed_tokens.weight")) return targets;
  return own_or_shared(fitted, "embed_tokens.weight", targets, context);
}

PackedMatrix draft_head(const FittedDrafter& fitted, const DrafterContext& context) {
  const PackedMatrix& targets = native_target(fitted).head();
  const std::vector<TokenId>& ids = fitted.checkpoint->target_ids();
  if (fitted.checkpoint->has("lm_head.weight")) {
    if (!ids.empty()) return draft_matrix(fitted, "lm_head.weight");
    return own_or_shared(fitted, "lm_head.weight", targets, context);
  }
  return ids.empty() ? targets : targets.rows(ids);
}

}  // namespace asdbench::native
