// Medusa heads in the layout of version 2: residual blocks before the target's own head (specs:
// drafters, section 6).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "runners/train/draft_model_internal.h"

namespace asdbench::training {
namespace {

struct Options {
  std::int64_t heads;
  std::int64_t layers;       // blocks of a head
  std::int64_t draft_vocab;  // ids that every step compares
  std::int64_t negatives;    // further ids, drawn for each step
  double head_decay;         // weight of a head over the head before
  double soft_labels;        // share of the target's distribution in the labels
};

Options read_options(const Params& params, const ModelConfig& target) {
  Options options{};
  options.heads = params.integer("heads", 4, 1, 16);
  options.layers = params.integer("layers", 1, 1, 16);
  options.draft_vocab =
      params.integer("draft_vocab", std::min<std::int64_t>(4096, target.vocab), 1, target.vocab);
  options.negatives = params.integer("negatives", 2048, 0, target.vocab);
  options.head_decay = params.number("head_decay", 0.8, 0, 1);
  options.soft_labels = params.number("soft_labels", 0.5, 0, 1);
  params.refuse_unread();
  return options;
}

class MedusaModel final : public DraftModel {
 public:
  MedusaModel(const Params& params, const ModelSource& source)
      : config_(source.target.config()),
        target_path_(source.target.path().stem().string()),
        compute_(source.compute),
        options_(read_options(params, config_)),
        vocabulary_(source.replies, config_.vocab, options_.draft_vocab),
        head_(read_weights(source.target, "lm_head.weight", {config_.vocab, config_.hidden})) {
    SplitMix64 draw(source.seed);
    const double deviation = 0.02 / std::sqrt(static_cast<double>(config_.hidden));
    parameters_.reserve(static_cast<std::size_t>(2 * options_.heads * options_.layers));
    for (std::int64_t i = 0; i < options_.heads; ++i) {
      for (std::int64_t j = 0; j < options_.layers; ++j) {
        add_parameter(fmt::format("{}.{}.linear.weight", i, j),
                      random_values({config_.hidden, config_.hidden}, deviation, draw));
        add_parameter(fmt::format("{}.{}.linear.bias", i, j), at::zeros({config_.hidden}));
      }
    }
  }

  /// Over the ids that replies use and a draw of all others, which would cost ten times as much and
  /// only have to stay below.
  at::Tensor loss(std::span<const Reply* const> replies, SplitMix64& draw) override {
    const at::Tensor others = draw_others(draw);  // [negatives, H]
    const at::Tensor frequent = for_compute(vocabulary_.select(head_), compute_);
    const at::Tensor head = at::cat({frequent, for_compute(others, compute_)});
    at::Tensor total = at::zeros({});
    double weights = 0;
    double weight = 1;
    for (std::int64_t i = 0; i < options_.heads; ++i) {
      const Rows rows = make_rows(replies, i);
      if (rows.label.size(0) == 0) break;  // every reply is shorter
      const at::Tensor known =
          label_probs(rows.chosen_by, frequent, rows.label, options_.soft_labels);
      const at::Tensor target = at::cat({known, at::zeros({known.size(0), others.size(0)})}, 1);
      const at::Tensor log_probs = at::log_softmax(project(run_head(i, rows.hidden), head), -1);
      const at::Tensor counted = rows.label.ge(0).to(at::kFloat);
      total = total +
              (-(target * log_probs).sum(-1) * counted).sum() / counted.sum().clamp_min(1) * weight;
      weights += weight;
      weight *= options_.head_decay;
    }
    return total / weights;
  }

  /// Over the whole vocabulary, as the heads are used.
  at::Tensor matches(const Reply& reply, std::int64_t drafts) override {
    const std::int64_t places = reply.reply_tokens() - 1;
    at::Tensor matches = at::zeros({places, drafts}, at::kBool);
    const at::Tensor head = for_compute(head_, compute_);
    for (std::int64_t i = 0; i < std::min(drafts, options_.heads) && i < places; ++i) {
      const std::int64_t rows = places - i;
      const at::Tensor hidden = hidden_rows(reply.final_hidden(), 0, rows, config_.hidden);
      const at::Tensor ids = project(run_head(i, hidden), head).argmax(-1);
      matches.select(1, i).narrow(0, 0, rows).copy_(ids.eq(ids_behind(reply, i)));
    }
    return matches;
  }

  Json config() const override {
    return {{"model_type", "medusa"},
            {"medusa_num_heads", options_.heads},
            {"medusa_num_layers", options_.layers},
            {"base_model_name_or_path", target_path_},
            {"version", "2"}};
  }

  std::string weights_file() const override { return "medusa_lm_head.safetensors"; }

 private:
  struct Rows {
    at::Tensor hidden;     // [M, H] the state that the head reads
    at::Tensor label;      // [M] row of the vocabulary, or -1
    at::Tensor chosen_by;  // [M, H] the state that chose the id
  };

  /// Reply ids i + 1, i + 2, ...: head i reads the state that chose id r and predicts id r + 1 + i.
  static at::Tensor ids_behind(const Reply& reply, std::int64_t head) {
    const auto first = static_cast<std::size_t>(reply.prompt_tokens() + 1 + head);
    const std::span<const TokenId> ids = reply.tokens().subspan(first);
    return at::tensor(std::vector<std::int64_t>(ids.begin(), ids.end()));
  }

  Rows make_rows(std::span<const Reply* const> replies, std::int64_t head) const {
    std::vector<at::Tensor> hidden, chosen_by;
    std::vector<std::int64_t> label;
    for (const Reply* reply : replies) {
      const std::int64_t rows = reply->reply_tokens() - 1 - head;
      if (rows <= 0) continue;
      const at::Tensor all =
          hidden_rows(reply->final_hidden(), 0, reply->reply_tokens(), config_.hidden);
      hidden.push_back(all.narrow(0, 0, rows));
      chosen_by.push_back(all.narrow(0, 1 + head, rows));
      const auto first = static_cast<std::size_t>(reply->prompt_tokens() + 1 + head);
      for (const TokenId id : reply->tokens().subspan(first)) label.push_back(vocabulary_.row(id));
    }
    if (label.empty()) return {.hidden = {}, .label = at::empty({0}, at::kLong), .chosen_by = {}};
    return {at::cat(hidden), at::tensor(label), at::cat(chosen_by)};
  }

  at::Tensor draw_others(SplitMix64& draw) const {
    std::vector<std::int64_t> ids;
    for (std::int64_t i = 0; i < options_.negatives; ++i) {
      const auto id = static_cast<TokenId>(draw.index(static_cast<std::uint64_t>(config_.vocab)));
      if (vocabulary_.row(id) < 0) ids.push_back(id);
    }
    return head_.index_select(0, at::tensor(ids, at::kLong));
  }

  at::Tensor run_head(std::int64_t index, const at::Tensor& hidden) const {
    at::Tensor x = hidden;
    for (std::int64_t j = 0; j < options_.layers; ++j) {
      const auto at = static_cast<std::size_t>(2 * (index * options_.layers + j));
      const at::Tensor& weight = parameters_[at].tensor;
      const at::Tensor& bias = parameters_[at + 1].tensor;
      x = x + at::silu(project(x, for_compute(weight, compute_)) + bias);
    }
    return x;
  }

  ModelConfig config_;
  std::string target_path_;
  at::ScalarType compute_;
  Options options_;
  DraftVocabulary vocabulary_;
  at::Tensor head_;  // [V, H], the target's and fixed
};

}  // namespace

void check_medusa_options(const Params& params, const ModelConfig& target) {
  read_options(params, target);
}

std::unique_ptr<DraftModel> make_medusa_model(const Params& params, const ModelSource& source) {
  return std::make_unique<MedusaModel>(params, source);
}

}  // namespace asdbench::training
