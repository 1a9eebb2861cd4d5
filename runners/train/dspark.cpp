// DSpark in SpecForge's container, without embedding and head (specs: drafters, sections 2
// and 2.7).
//
// A block of B rows is drafted in one pass: the anchor's embedding and B - 1 masks, which see each
// other and the target's features of all positions before the anchor. Row k predicts the id k + 1
// behind the anchor; a Markov head adds what follows from the id before.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "eval/core/error.h"
#include "runners/train/draft_model_internal.h"

namespace asdbench::training {
namespace {

constexpr double kMasked = -std::numeric_limits<double>::infinity();
// Of the confidence head's loss beside that of the drafts.
constexpr double kConfidenceWeight = 0.1;

struct Options {
  std::int64_t layers;
  std::int64_t block;        // B
  std::int64_t markov_rank;  // r
  std::int64_t draft_vocab;  // Vd
  double anchors;            // share of a reply's ids that start a block
  double row_decay;          // weight of a row over the row before
  double soft_labels;        // share of the target's distribution in the labels
};

Options read_options(const Params& params, const ModelConfig& target) {
  Options options{};
  options.layers = params.integer("layers", 2, 1, target.layers);
  options.block = params.integer("block", 5, 1, 16);
  options.markov_rank = params.integer("markov_rank", 32, 1, 1 << 16);
  options.draft_vocab =
      params.integer("draft_vocab", std::min<std::int64_t>(4096, target.vocab), 1, target.vocab);
  options.anchors = params.number("anchors", 0.25, 1e-3, 1);
  options.row_decay = params.number("row_decay", 0.8, 0, 1);
  options.soft_labels = params.number("soft_labels", 0.5, 0, 1);
  params.refuse_unread();
  return options;
}

/// Blocks of several replies. Reply p has `context` rows of features and `anchors` blocks.
struct Batch {
  struct Part {
    std::int64_t first_row, context, first_anchor, anchors;
  };
  std::vector<Part> parts;
  at::Tensor features;      // [N, taps H]
  at::Tensor row_angles;    // [N, D / 2]
  at::Tensor anchor;        // [A] position s of each block's anchor
  at::Tensor angles;        // [A B, D / 2]
  at::Tensor previous;      // [A B] id before the one that the row predicts; row 0: the anchor's
  at::Tensor label;         // [A B] draft id; -1 outside the draft vocabulary and beyond the reply
  at::Tensor final_hidden;  // [A B, H] that chose the id, zeros beyond the reply
};

class DSparkModel final : public DraftModel {
 public:
  DSparkModel(const Params& params, const ModelSource& source)
      : config_(source.target.config()),
        taps_(source.taps.indices),
        compute_(source.compute),
        options_(read_options(params, config_)),
        vocabulary_(source.replies, config_.vocab, options_.draft_vocab),
        mask_id_(unused_id(source.replies, config_.vocab)) {
    SplitMix64 draw(source.seed);
    embedding_ =
        read_weights(source.target, "model.embed_tokens.weight", {config_.vocab, config_.hidden});
    head_ = vocabulary_.select(
        read_weights(source.target, "lm_head.weight", {config_.vocab, config_.hidden}));
    add_parameters(source.target, draw);
  }

  at::Tensor loss(std::span<const Reply* const> replies, SplitMix64& draw) override {
    std::vector<std::vector<std::int64_t>> anchors;
    for (const Reply* reply : replies) anchors.push_back(draw_anchors(*reply, draw));
    const Batch batch = make_batch(replies, anchors);
    const at::Tensor head = for_compute(head_, compute_);
    const Rows rows = run(batch, head);
    const at::Tensor target =
        label_probs(batch.final_hidden, head, batch.label, options_.soft_labels);
    const at::Tensor log_probs = at::log_softmax(rows.logits, -1);
    const at::Tensor counted = batch.label.ge(0).to(at::kFloat) * row_weights(rows.logits.size(0));
    const at::Tensor all = counted.sum().clamp_min(1e-6);
    const at::Tensor drafts = (-(target * log_probs).sum(-1) * counted).sum() / all;
    // The share that speculative sampling would accept: 1 - TV (2.5). Only the head learns from it.
    const at::Tensor overlap =
        at::minimum(log_probs.detach().exp(), label_probs(batch.final_hidden, head, batch.label, 1))
            .sum(-1);
    const at::Tensor wrong = at::binary_cross_entropy_with_logits(
        rows.confidence, overlap.clamp(0, 1), {}, {}, at::Reduction::None);
    return drafts + kConfidenceWeight * (wrong * counted).sum() / all;
  }

  at::Tensor matches(const Reply& reply, std::int64_t drafts) override {
    const std::int64_t places = reply.reply_tokens() - 1;
    std::vector<std::int64_t> anchors(static_cast<std::size_t>(places));
    for (std::int64_t r = 0; r < places; ++r) anchors[static_cast<std::size_t>(r)] = r;
    const Reply* const one[] = {&reply};
    const Batch batch = make_batch(one, {anchors});
    // With every draft before it right, the id before a row is the reply's.
    const Rows rows = run(batch, for_compute(head_, compute_));
    const at::Tensor right = rows.logits.argmax(-1).eq(batch.label).view({places, options_.block});
    at::Tensor matches = at::zeros({places, drafts}, at::kBool);
    const std::int64_t some = std::min(drafts, options_.block);
    matches.narrow(1, 0, some).copy_(right.narrow(1, 0, some));
    return matches;
  }

  Json config() const override {
    std::vector<std::int64_t> layer_ids;  // R[t + 1] is the output of layer t
    for (const std::int64_t index : taps_) layer_ids.push_back(index - 1);
    return {{"architectures", {"DSparkDraftModel"}},
            {"model_type", "qwen3"},
            {"hidden_act", "silu"},
            {"attention_bias", false},
            {"hidden_size", config_.hidden},
            {"intermediate_size", config_.intermediate},
            {"num_attention_heads", config_.heads},
            {"num_key_value_heads", config_.kv_heads},
            {"head_dim", config_.head_dim},
            {"num_hidden_layers", options_.layers},
            {"num_target_layers", config_.layers},
            {"rms_norm_eps", config_.rms_eps},
            {"rope_theta", config_.rope_theta},
            {"max_position_embeddings", config_.positions},
            {"vocab_size", config_.vocab},
            {"draft_vocab_size", vocabulary_.size()},
            {"tie_word_embeddings", false},
            {"torch_dtype", "bfloat16"},
            {"block_size", options_.block},
            {"dflash_config",
             {{"projector_type", "dspark"},
              {"target_layer_ids", layer_ids},
              {"mask_token_id", mask_id_},
              {"markov_rank", options_.markov_rank},
              {"markov_head_type", "vanilla"},
              {"enable_confidence_head", true},
              {"confidence_head_with_markov", true}}}};
  }

  std::vector<NamedTensor> constants() const override { return vocabulary_.tensors(); }

 private:
  struct Layer {
    at::Tensor *input_norm, *post_norm, *query, *key, *value, *output, *query_norm, *key_norm,
        *gate, *up, *down;
  };
  struct Rows {
    at::Tensor logits;      // [A B, Vd]
    at::Tensor confidence;  // [A B], before the sigmoid
  };

  /// The lowest id that no prompt and no reply holds: its embedding marks the places to fill.
  static TokenId unused_id(std::span<const Reply> replies, std::int64_t vocab) {
    std::vector<bool> used(static_cast<std::size_t>(vocab), false);
    for (const Reply& reply : replies) {
      for (const TokenId id : reply.tokens()) used.at(static_cast<std::size_t>(id)) = true;
    }
    const auto found = std::find(used.begin(), used.end(), false);
    return found == used.end() ? 0 : static_cast<TokenId>(found - used.begin());
  }

  /// The layers start as the target's last ones.
  void add_parameters(const Checkpoint& target, SplitMix64& draw) {
    const std::int64_t hidden = config_.hidden;
    const auto taps = static_cast<std::int64_t>(taps_.size());
    const double deviation = 0.5 / std::sqrt(static_cast<double>(hidden));
    parameters_.reserve(static_cast<std::size_t>(7 + 11 * options_.layers));  // addresses stay
    at::Tensor fc = random_values({hidden, taps * hidden}, 0.1 * deviation, draw);
    fc.narrow(1, (taps - 1) * hidden, hidden).add_(at::eye(hidden));
    fc_ = &add_parameter("fc.weight", fc);
    hidden_norm_ = &add_parameter("hidden_norm.weight", at::ones({hidden}));
    norm_ = &add_parameter("norm.weight", read_weights(target, "model.norm.weight", {hidden}));
    for (std::int64_t i = 0; i < options_.layers; ++i) add_layer(target, i);
    const std::int64_t rank = options_.markov_rank;
    markov_in_ = &add_parameter("markov_head.markov_w1.weight",
                                random_values({config_.vocab, rank}, 0.1, draw));
    markov_out_ =
        &add_parameter("markov_head.markov_w2.weight", at::zeros({vocabulary_.size(), rank}));
    confidence_ = &add_parameter("confidence_head.proj.weight", at::zeros({1, hidden + rank}));
    confidence_bias_ = &add_parameter("confidence_head.proj.bias", at::zeros({1}));
  }

  void add_layer(const Checkpoint& target, std::int64_t index) {
    const std::string from =
        fmt::format("model.layers.{}.", config_.layers - options_.layers + index);
    const std::string to = fmt::format("layers.{}.", index);
    const std::int64_t hidden = config_.hidden;
    const std::int64_t inner = config_.intermediate;
    const std::int64_t query_width = config_.heads * config_.head_dim;
    const std::int64_t key_width = config_.kv_heads * config_.head_dim;
    const auto copy = [&](const std::string& name, const std::vector<std::int64_t>& shape) {
      return &add_parameter(to + name, read_weights(target, from + name, shape));
    };
    const auto head_norm = [&](const std::string& name) {
      if (config_.qk_norm) return copy(name, {config_.head_dim});
      return &add_parameter(to + name, at::ones({config_.head_dim}));
    };
    Layer layer{};
    layer.input_norm = copy("input_layernorm.weight", {hidden});
    layer.post_norm = copy("post_attention_layernorm.weight", {hidden});
    layer.query = copy("self_attn.q_proj.weight", {query_width, hidden});
    layer.key = copy("self_attn.k_proj.weight", {key_width, hidden});
    layer.value = copy("self_attn.v_proj.weight", {key_width, hidden});
    layer.output = copy("self_attn.o_proj.weight", {hidden, query_width});
    layer.query_norm = head_norm("self_attn.q_norm.weight");
    layer.key_norm = head_norm("self_attn.k_norm.weight");
    layer.gate = copy("mlp.gate_proj.weight", {inner, hidden});
    layer.up = copy("mlp.up_proj.weight", {inner, hidden});
    layer.down = copy("mlp.down_proj.weight", {hidden, inner});
    layers_.push_back(layer);
  }

  std::vector<std::int64_t> draw_anchors(const Reply& reply, SplitMix64& draw) const {
    const std::int64_t places = reply.reply_tokens() - 1;
    std::vector<std::int64_t> anchors;
    for (std::int64_t r = 0; r < places; ++r) {
      if (draw.uniform() < options_.anchors) anchors.push_back(r);
    }
    if (anchors.empty()) {
      anchors.push_back(static_cast<std::int64_t>(draw.index(static_cast<std::uint64_t>(places))));
    }
    return anchors;
  }

  Batch make_batch(std::span<const Reply* const> replies,
                   const std::vector<std::vector<std::int64_t>>& anchors) const {
    Batch batch;
    std::vector<at::Tensor> features, final_hidden;
    std::vector<std::int64_t> row_position, anchor, position, previous, label;
    for (std::size_t i = 0; i < replies.size(); ++i) {
      const Reply& reply = *replies[i];
      const std::int64_t prompt = reply.prompt_tokens();
      const std::int64_t length = reply.reply_tokens();
      const std::int64_t context = prompt + anchors[i].back();  // up to the last anchor
      batch.parts.push_back({static_cast<std::int64_t>(row_position.size()), context,
                             static_cast<std::int64_t>(anchor.size()),
                             static_cast<std::int64_t>(anchors[i].size())});
      std::vector<at::Tensor> taps;
      for (std::size_t tap = 0; tap < taps_.size(); ++tap) {
        taps.push_back(hidden_rows(reply.tap(tap), 0, context, config_.hidden));
      }
      features.push_back(at::cat(taps, 1));
      for (std::int64_t row = 0; row < context; ++row) row_position.push_back(row);
      std::vector<std::int64_t> chosen_by;  // row of final_hidden
      for (const std::int64_t r : anchors[i]) {
        anchor.push_back(prompt + r);
        for (std::int64_t k = 0; k < options_.block; ++k) {
          const bool inside = r + k + 1 < length;
          const auto at = static_cast<std::size_t>(prompt + std::min(r + k, length - 1));
          position.push_back(prompt + r + k);
          previous.push_back(reply.tokens()[at]);
          label.push_back(inside ? vocabulary_.row(reply.tokens()[at + 1]) : -1);
          chosen_by.push_back(inside ? r + k + 1 : 0);
        }
      }
      final_hidden.push_back(hidden_rows(reply.final_hidden(), 0, length, config_.hidden)
                                 .index_select(0, at::tensor(chosen_by)));
    }
    batch.features = at::cat(features);
    batch.row_angles = angles(row_position);
    batch.anchor = at::tensor(anchor);
    batch.angles = angles(position);
    batch.previous = at::tensor(previous);
    batch.label = at::tensor(label);
    batch.final_hidden = at::cat(final_hidden);
    return batch;
  }

  at::Tensor angles(const std::vector<std::int64_t>& positions) const {
    return rotary_angles(at::tensor(positions), config_.rope_theta, config_.head_dim);
  }

  /// [A B]: decay^k.
  at::Tensor row_weights(std::int64_t rows) const {
    const at::Tensor powers = at::pow(options_.row_decay, at::arange(options_.block, at::kFloat));
    return powers.repeat({rows / options_.block});
  }

  Rows run(const Batch& batch, const at::Tensor& head) const {
    const double eps = config_.rms_eps;
    const at::Tensor context =
        rms_norm(project(batch.features, for_compute(*fc_, compute_)), *hidden_norm_, eps);
    const std::int64_t rows = batch.previous.size(0);
    // Row 0 of a block holds the anchor, the others the mask.
    const at::Tensor is_anchor =
        at::arange(rows, at::kLong).remainder(options_.block).eq(0).unsqueeze(1);
    at::Tensor x = at::where(is_anchor, embedding_.index_select(0, batch.previous),
                             embedding_.select(0, mask_id_));  // [A B, H]
    for (const Layer& layer : layers_) {
      const auto weight = [&](const at::Tensor* of) { return for_compute(*of, compute_); };
      const at::Tensor u = rms_norm(x, *layer.input_norm, eps);
      x = x + project(attend(batch, layer, context, u), weight(layer.output));
      const at::Tensor inner = rms_norm(x, *layer.post_norm, eps);
      x = x +
          project(at::silu(project(inner, weight(layer.gate))) * project(inner, weight(layer.up)),
                  weight(layer.down));
    }
    const at::Tensor out = rms_norm(x, *norm_, eps);
    const at::Tensor before = markov_in_->index_select(0, batch.previous);  // [A B, r]
    const at::Tensor logits =
        project(out, head) + project(before, for_compute(*markov_out_, compute_));
    const at::Tensor seen = at::cat({out, before}, 1).detach();
    return {logits, at::linear(seen, *confidence_, *confidence_bias_).squeeze(1)};
  }

  at::Tensor heads(const at::Tensor& x, const at::Tensor& weight, const at::Tensor* norm,
                   const at::Tensor& angles) const {
    const at::Tensor split = project(x, weight).view({x.size(0), -1, config_.head_dim});
    return norm == nullptr ? split : rotate(rms_norm(split, *norm, config_.rms_eps), angles);
  }

  /// [A B, Nq D]: each block over the context before its anchor, and over itself.
  at::Tensor attend(const Batch& batch, const Layer& layer, const at::Tensor& context,
                    const at::Tensor& u) const {
    const std::int64_t dim = config_.head_dim;
    const std::int64_t kv_heads = config_.kv_heads;
    const std::int64_t group = config_.heads / kv_heads;
    const std::int64_t block = options_.block;
    const double scale = 1 / std::sqrt(static_cast<double>(dim));
    const at::Tensor key = for_compute(*layer.key, compute_);
    const at::Tensor value = for_compute(*layer.value, compute_);
    const at::Tensor queries =
        heads(u, for_compute(*layer.query, compute_), layer.query_norm, batch.angles);
    const at::Tensor own_keys = heads(u, key, layer.key_norm, batch.angles);  // [A B, Nk, D]
    const at::Tensor own_values = heads(u, value, nullptr, batch.angles);
    const at::Tensor keys = heads(context, key, layer.key_norm, batch.row_angles);  // [N, Nk, D]
    const at::Tensor values = heads(context, value, nullptr, batch.row_angles);
    std::vector<at::Tensor> mixed;
    for (const Batch::Part& part : batch.parts) {
      const std::int64_t count = part.anchors;
      const auto blocks = [&](const at::Tensor& rows, std::int64_t per_head) {
        // [Nk, anchors, per_head, B, D]
        return rows.narrow(0, part.first_anchor * block, count * block)
            .view({count, block, kv_heads, per_head, dim})
            .permute({2, 0, 3, 1, 4});
      };
      const at::Tensor own = blocks(queries, group).reshape({kv_heads, count * group * block, dim});
      const at::Tensor past =
          keys.narrow(0, part.first_row, part.context).permute({1, 2, 0});  // [Nk, D, context]
      const at::Tensor later =
          at::arange(part.context, at::kLong)
              .ge(batch.anchor.narrow(0, part.first_anchor, count).unsqueeze(1))
              .view({1, count, 1, part.context});
      const at::Tensor past_scores = at::bmm(own, past)
                                         .view({kv_heads, count, group * block, part.context})
                                         .mul(scale)
                                         .masked_fill(later, kMasked);
      const at::Tensor block_scores = at::matmul(own.view({kv_heads, count, group * block, dim}),
                                                 blocks(own_keys, 1).squeeze(2).transpose(-1, -2)) *
                                      scale;  // [Nk, anchors, g B, B]
      const at::Tensor probs = at::softmax(at::cat({past_scores, block_scores}, -1), -1);
      const at::Tensor from_past =
          at::bmm(probs.narrow(-1, 0, part.context)
                      .reshape({kv_heads, count * group * block, part.context}),
                  values.narrow(0, part.first_row, part.context).transpose(0, 1))
              .view({kv_heads, count, group * block, dim});
      const at::Tensor from_block =
          at::matmul(probs.narrow(-1, part.context, block), blocks(own_values, 1).squeeze(2));
      mixed.push_back((from_past + from_block)
                          .view({kv_heads, count, group, block, dim})
                          .permute({1, 3, 0, 2, 4})
                          .reshape({count * block, config_.heads * dim}));
    }
    return at::cat(mixed);
  }

  ModelConfig config_;
  std::vector<std::int64_t> taps_;
  at::ScalarType compute_;
  Options options_;
  DraftVocabulary vocabulary_;
  TokenId mask_id_;
  at::Tensor embedding_;  // [V, H]
  at::Tensor head_;       // [Vd, H], the target's and fixed: the file does not hold it
  std::vector<Layer> layers_;
  at::Tensor *fc_ = nullptr, *hidden_norm_ = nullptr, *norm_ = nullptr, *markov_in_ = nullptr,
             *markov_out_ = nullptr, *confidence_ = nullptr, *confidence_bias_ = nullptr;
};

}  // namespace

void check_dspark_options(const Params& params, const ModelConfig& target) {
  read_options(params, target);
}

std::unique_ptr<DraftModel> make_dspark_model(const Params& params, const ModelSource& source) {
  return std::make_unique<DSparkModel>(params, source);
}

}  // namespace asdbench::training
