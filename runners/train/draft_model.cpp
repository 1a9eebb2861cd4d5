// Pieces that the kinds of drafters share.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "eval/core/error.h"
#include "runners/train/draft_model_internal.h"

namespace asdbench::training {

at::Tensor& DraftModel::add_parameter(const std::string& name, at::Tensor values) {
  parameters_.push_back({name, values.contiguous().set_requires_grad(true)});
  return parameters_.back().tensor;
}

at::Tensor read_weights(const Checkpoint& target, const std::string& name,
                        const std::vector<std::int64_t>& shape) {
  at::Tensor values = at::empty(shape, at::kFloat);
  ASDBENCH_CHECK(target.tensor(name).elements() == values.numel(), name);
  target.read(name, {values.mutable_data_ptr<float>(), static_cast<std::size_t>(values.numel())});
  return values;
}

at::Tensor random_values(const std::vector<std::int64_t>& shape, double deviation,
                         SplitMix64& draw) {
  at::Tensor values = at::empty(shape, at::kFloat);
  const double half_width = deviation * std::sqrt(3.0);
  float* out = values.mutable_data_ptr<float>();
  for (std::int64_t i = 0; i < values.numel(); ++i) {
    out[i] = static_cast<float>((2 * draw.uniform() - 1) * half_width);
  }
  return values;
}

at::Tensor hidden_rows(const std::uint16_t* values, std::int64_t first, std::int64_t rows,
                       std::int64_t hidden) {
  // from_blob takes no const; the copy that follows only reads.
  auto* begin = const_cast<std::uint16_t*>(values + first * hidden);
  return at::from_blob(begin, {rows, hidden}, at::kBFloat16).to(at::kFloat);
}

at::Tensor for_compute(const at::Tensor& weight, at::ScalarType compute) {
  return weight.to(compute);
}

at::Tensor project(const at::Tensor& x, const at::Tensor& weight) {
  return at::linear(x.to(weight.scalar_type()), weight).to(at::kFloat);
}

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  return x * (x.square().mean(-1, /*keepdim=*/true) + eps).rsqrt() * weight;
}

at::Tensor rotate(const at::Tensor& heads, const at::Tensor& angles) {
  const at::Tensor cosine = angles.cos().unsqueeze(1);  // [rows, 1, D / 2]
  const at::Tensor sine = angles.sin().unsqueeze(1);
  const std::vector<at::Tensor> half = heads.chunk(2, -1);
  return at::cat({half[0] * cosine - half[1] * sine, half[1] * cosine + half[0] * sine}, -1);
}

at::Tensor rotary_angles(const at::Tensor& positions, double theta, std::int64_t head_dim) {
  const at::Tensor exponents =
      at::arange(0, head_dim, 2, at::kFloat) / static_cast<double>(head_dim);
  return at::outer(positions.to(at::kFloat), 1.0 / at::pow(theta, exponents));
}

DraftVocabulary::DraftVocabulary(std::span<const Reply> replies, std::int64_t vocab,
                                 std::int64_t size)
    : ids_(static_cast<std::size_t>(vocab)), rows_(static_cast<std::size_t>(vocab), -1) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(vocab), 0);
  for (const Reply& reply : replies) {
    const auto prompt = static_cast<std::size_t>(reply.prompt_tokens());
    for (const TokenId id : reply.tokens().subspan(prompt)) {
      ++counts.at(static_cast<std::size_t>(id));
    }
  }
  std::iota(ids_.begin(), ids_.end(), TokenId{0});
  std::stable_sort(ids_.begin(), ids_.end(), [&](TokenId a, TokenId b) {
    return counts[static_cast<std::size_t>(a)] > counts[static_cast<std::size_t>(b)];
  });
  ids_.resize(static_cast<std::size_t>(std::min(size, vocab)));
  std::sort(ids_.begin(), ids_.end());
  for (std::size_t i = 0; i < ids_.size(); ++i) {
    rows_[static_cast<std::size_t>(ids_[i])] = static_cast<std::int64_t>(i);
  }
}

at::Tensor DraftVocabulary::select(const at::Tensor& of_target) const {
  return of_target.index_select(0, at::tensor(std::vector<std::int64_t>(ids_.begin(), ids_.end())));
}

std::vector<NamedTensor> DraftVocabulary::tensors() const {
  if (ids_.size() == rows_.size()) return {};
  at::Tensor offsets = at::empty({size()}, at::kLong);
  at::Tensor known = at::zeros({static_cast<std::int64_t>(rows_.size())}, at::kBool);
  for (std::int64_t i = 0; i < size(); ++i) {
    const TokenId id = ids_[static_cast<std::size_t>(i)];
    offsets.mutable_data_ptr<std::int64_t>()[i] = id - i;
    known.mutable_data_ptr<bool>()[id] = true;
  }
  return {{"d2t", offsets}, {"t2d", known}};
}

at::Tensor label_probs(const at::Tensor& final_hidden, const at::Tensor& head,
                       const at::Tensor& label, double soft) {
  const at::Tensor probs = at::softmax(project(final_hidden, head), -1).mul_(soft);
  const at::Tensor rest = label.ge(0).to(at::kFloat).unsqueeze(1).mul_(1 - soft);
  return probs.scatter_add(1, label.clamp_min(0).unsqueeze(1), rest);
}

}  // namespace asdbench::training
