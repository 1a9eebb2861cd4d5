// Shares the matrices that are copies of the target's.
#include <fmt/format.h>

#include "eval/core/error.h"
#include "runners/drafters/common/torch_weights_internal.h"
#include "runners/models/torch_block_internal.h"

namespace asdbench::torch_blocks {
namespace {

/// `own` unless it equals the target's.
at::Tensor own_or_shared(const FittedDrafter& fitted, const char* name, const at::Tensor& own,
                         const at::Tensor& targets, const DrafterContext& context) {
  if (own.sizes() == targets.sizes() && at::equal(own, targets)) return targets;
  context.warn(fmt::format("{}: {} differs from the target's: the drafter's own is used",
                           fitted.checkpoint->path().string(), name));
  return own;
}

}  // namespace

TorchTarget& torch_target(const FittedDrafter& fitted) {
  auto* target = dynamic_cast<TorchTarget*>(fitted.target);
  ASDBENCH_CHECK(target != nullptr, "a torch drafter has a torch target");
  return *target;
}

at::Tensor draft_embedding(const FittedDrafter& fitted, const DrafterContext& context) {
  const TorchTarget& target = torch_target(fitted);
  if (!fitted.checkpoint->has("embed_tokens.weight")) return target.embedding();
  const at::Tensor own = read(*fitted.checkpoint, target.device(), "embed_tokens.weight");
  return own_or_shared(fitted, "embed_tokens.weight", own, target.embedding(), context);
}

at::Tensor draft_head(const FittedDrafter& fitted, const DrafterContext& context) {
  const TorchTarget& target = torch_target(fitted);
  const std::vector<TokenId>& ids = fitted.checkpoint->target_ids();
  if (fitted.checkpoint->has("lm_head.weight")) {
    const at::Tensor own = read_transposed(*fitted.checkpoint, target.device(), "lm_head.weight");
    if (!ids.empty()) return own;
    return own_or_shared(fitted, "lm_head.weight", own, target.head(), context);
  }
  return ids.empty() ? target.head() : target.head().index_select(1, ids_on(ids, target.device()));
}

PickMap::PickMap(const std::vector<TokenId>& target_ids, std::int64_t head_rows,
                 at::Device device) {
  rows_ = at::arange(head_rows, at::TensorOptions(at::kLong).device(device));
  const at::Tensor ids = target_ids.empty() ? rows_ : ids_on(target_ids, device);
  ids_ = at::cat({ids, at::full({1}, kNoToken, rows_.options())});
}

at::Tensor PickMap::best(const at::Tensor& logits) const {
  return ids_.index_select(0, lowest_best(logits, rows_));
}

at::Tensor rows_at(const float* data, std::int64_t rows, std::int64_t width, at::Device device) {
  return at::from_blob(const_cast<float*>(data), {rows, width},
                       at::TensorOptions(at::kFloat).device(device));
}

at::Tensor ids_on(std::span<const TokenId> ids, at::Device device) {
  const at::Tensor host = at::empty({std::ssize(ids)}, at::kLong);
  std::copy(ids.begin(), ids.end(), host.mutable_data_ptr<std::int64_t>());
  return host.to(device);
}

void copy_ids(const at::Tensor& ids, std::span<TokenId> out) {
  const at::Tensor host = ids.cpu().contiguous();
  const auto* values = host.const_data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < host.numel(); ++i) {
    out[static_cast<std::size_t>(i)] = static_cast<TokenId>(values[i]);
  }
}

}  // namespace asdbench::torch_blocks
