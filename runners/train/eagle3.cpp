// EAGLE-3 in SafeAILab's layout, trained on its own features (specs: drafters, section 4).
//
// Training-time unrolling: step 0 reads the target's features, step k the features that step k - 1
// put out, as drafting does. A row of step k at position i attends to the rows of step 0 up to
// i - k and to the rows of steps 1 to k at positions i - k + 1 to i: what the cache holds when k
// drafts were made.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "eval/core/error.h"
#include "runners/train/draft_model_internal.h"

namespace asdbench::training {
namespace {

constexpr double kMasked = -std::numeric_limits<double>::infinity();

/// The rows of several replies below each other. A reply of P + n ids has P - 1 context rows, which
/// give keys and values only, and n - 1 query rows: position i = P - 1 + r predicts reply id r + 1.
struct Batch {
  struct Part {
    std::int64_t first_row, first_query, context, queries;
  };
  std::vector<Part> parts;
  at::Tensor features;   // [N, 3 H] taps of all rows
  at::Tensor embedded;   // [N, H] embedding of the id after each row's
  at::Tensor angles;     // [N, D / 2]
  at::Tensor query_row;  // [M] row of each query
  at::Tensor place;      // [M] r
  at::Tensor label;      // [M] draft id of reply id r + 1; -1 outside the draft vocabulary
  at::Tensor target;     // [M, Vd] what the draft logits should say, as probabilities
};

struct Options {
  std::int64_t unroll;        // steps that the loss sees
  double step_decay;          // weight of a step over the step before
  double soft_labels;         // share of the target's distribution in the labels, beside its choice
  std::int64_t draft_vocab;   // Vd
  std::int64_t intermediate;  // of the layer's MLP
};

Options read_options(const Params& params, const ModelConfig& target) {
  if (target.hidden % target.head_dim != 0) {
    throw ModelError(ModelFault::kUnsupported,
                     fmt::format("hidden size {} is no multiple of the head size {}, which this "
                                 "layout derives from it",
                                 target.hidden, target.head_dim));
  }
  Options options{};
  options.unroll = params.integer("unroll", 4, 1, 16);
  options.step_decay = params.number("step_decay", 0.9, 0, 1);
  options.soft_labels = params.number("soft_labels", 0.5, 0, 1);
  options.draft_vocab =
      params.integer("draft_vocab", std::min<std::int64_t>(4096, target.vocab), 1, target.vocab);
  options.intermediate = params.integer("intermediate", target.intermediate, 1, 1 << 20);
  params.refuse_unread();
  return options;
}

class Eagle3Model final : public DraftModel {
 public:
  Eagle3Model(const Params& params, const ModelSource& source)
      : config_(source.target.config()),
        taps_(source.taps.indices.size()),
        compute_(source.compute),
        options_(read_options(params, config_)),
        vocabulary_(source.replies, config_.vocab, options_.draft_vocab) {
    heads_ = config_.hidden / config_.head_dim;
    kv_heads_ = heads_ % config_.kv_heads == 0 ? config_.kv_heads : heads_;
    SplitMix64 draw(source.seed);
    embedding_ =
        read_weights(source.target, "model.embed_tokens.weight", {config_.vocab, config_.hidden});
    const at::Tensor head =
        read_weights(source.target, "lm_head.weight", {config_.vocab, config_.hidden});
    target_head_ = vocabulary_.select(head);
    add_parameters(source.target, draw);
  }

  at::Tensor loss(std::span<const Reply* const> replies, SplitMix64& /*draw*/) override {
    const Batch batch = make_batch(replies, Labels::kSoft);
    at::Tensor total = at::zeros({});
    double weights = 0;
    double weight = 1;
    run(batch, options_.unroll, [&](std::int64_t step, const at::Tensor& logits) {
      const at::Tensor rows = -(batch.target * at::log_softmax(logits, -1)).sum(-1);
      // The first `step` rows of a reply would continue rows of the prompt.
      const at::Tensor counted =
          at::logical_and(batch.label.ge(0), batch.place.ge(step)).to(at::kFloat);
      total = total + (rows * counted).sum() / counted.sum().clamp_min(1) * weight;
      weights += weight;
      weight *= options_.step_decay;
    });
    return total / weights;
  }

  at::Tensor matches(const Reply& reply, std::int64_t drafts) override {
    const Reply* const one[] = {&reply};
    const Batch batch = make_batch(one, Labels::kHard);
    const std::int64_t queries = batch.label.size(0);
    at::Tensor matches = at::zeros({queries, drafts}, at::kBool);
    run(batch, drafts, [&](std::int64_t step, const at::Tensor& logits) {
      const at::Tensor right =
          logits.argmax(-1).eq(batch.label);  // row r + step: chain r, draft step
      if (queries > step) {
        matches.narrow(0, 0, queries - step)
            .select(1, step)
            .copy_(right.narrow(0, step, queries - step));
      }
    });
    return matches;
  }

  Json config() const override {
    Json json = {{"architectures", {"LlamaForCausalLM"}},
                 {"model_type", "llama"},
                 {"hidden_act", "silu"},
                 {"hidden_size", config_.hidden},
                 {"intermediate_size", options_.intermediate},
                 {"num_attention_heads", heads_},
                 {"num_key_value_heads", kv_heads_},
                 {"num_hidden_layers", 1},
                 {"rms_norm_eps", config_.rms_eps},
                 {"rope_theta", config_.rope_theta},
                 {"max_position_embeddings", config_.positions},
                 {"vocab_size", config_.vocab},
                 {"tie_word_embeddings", false},
                 {"torch_dtype", "bfloat16"},
                 {"draft_vocab_size", options_.draft_vocab}};
    return json;
  }

  std::vector<NamedTensor> constants() const override { return vocabulary_.tensors(); }

 private:
  enum class Labels : std::uint8_t { kHard, kSoft };

  /// The layer starts as the target's last one behind the last tap, so that it begins in the
  /// target's own space; what has no counterpart there starts small.
  void add_parameters(const Checkpoint& target, SplitMix64& draw) {
    const std::int64_t hidden = config_.hidden;
    const std::string last = fmt::format("model.layers.{}.", config_.layers - 1);
    const bool same_heads = heads_ == config_.heads && kv_heads_ == config_.kv_heads;
    const double deviation = 0.5 / std::sqrt(static_cast<double>(hidden));
    const auto copy = [&](const std::string& name, const std::vector<std::int64_t>& shape,
                          bool fits) {
      return fits ? read_weights(target, last + name, shape)
                  : random_values(shape, deviation, draw);
    };
    // [out, 2 H]: the embedding's half is new, the feature's half is the target's.
    const auto projection = [&](const std::string& name, std::int64_t out, bool fits) {
      return at::cat(
          {random_values({out, hidden}, deviation, draw), copy(name, {out, hidden}, fits)}, 1);
    };
    const auto ones = [&] { return at::ones({hidden}); };
    const std::int64_t taps = static_cast<std::int64_t>(taps_);
    at::Tensor fc = random_values({hidden, taps * hidden}, 0.1 * deviation, draw);
    fc.narrow(1, (taps - 1) * hidden, hidden).add_(at::eye(hidden));
    const std::int64_t query_width = heads_ * config_.head_dim;
    const std::int64_t key_width = kv_heads_ * config_.head_dim;
    const bool same_mlp = options_.intermediate == config_.intermediate;

    parameters_.reserve(13);  // references to the tensors stay valid
    fc_ = &add_parameter("fc.weight", fc);
    input_norm_ = &add_parameter("midlayer.input_layernorm.weight", ones());
    hidden_norm_ = &add_parameter("midlayer.hidden_norm.weight",
                                  copy("input_layernorm.weight", {hidden}, true));
    post_norm_ = &add_parameter("midlayer.post_attention_layernorm.weight",
                                copy("post_attention_layernorm.weight", {hidden}, true));
    const bool plain_qk = same_heads && !config_.qk_norm;
    query_ = &add_parameter("midlayer.self_attn.q_proj.weight",
                            projection("self_attn.q_proj.weight", query_width, plain_qk));
    key_ = &add_parameter("midlayer.self_attn.k_proj.weight",
                          projection("self_attn.k_proj.weight", key_width, plain_qk));
    value_ = &add_parameter("midlayer.self_attn.v_proj.weight",
                            projection("self_attn.v_proj.weight", key_width, same_heads));
    output_ = &add_parameter("midlayer.self_attn.o_proj.weight",
                             copy("self_attn.o_proj.weight", {hidden, query_width}, same_heads));
    gate_ = &add_parameter("midlayer.mlp.gate_proj.weight",
                           copy("mlp.gate_proj.weight", {options_.intermediate, hidden}, same_mlp));
    up_ = &add_parameter("midlayer.mlp.up_proj.weight",
                         copy("mlp.up_proj.weight", {options_.intermediate, hidden}, same_mlp));
    down_ = &add_parameter("midlayer.mlp.down_proj.weight",
                           copy("mlp.down_proj.weight", {hidden, options_.intermediate}, same_mlp));
    norm_ = &add_parameter("norm.weight", read_weights(target, "model.norm.weight", {hidden}));
    head_ = &add_parameter("lm_head.weight", target_head_.clone());
  }

  Batch make_batch(std::span<const Reply* const> replies, Labels labels) const {
    Batch batch;
    std::vector<at::Tensor> features, final_hidden;
    std::vector<std::int64_t> next, position, query_row, place, label;
    for (const Reply* reply : replies) {
      const std::int64_t context = reply->prompt_tokens() - 1;
      const std::int64_t queries = reply->reply_tokens() - 1;
      const std::int64_t rows = context + queries;
      const auto first_row = static_cast<std::int64_t>(next.size());
      batch.parts.push_back(
          {first_row, static_cast<std::int64_t>(query_row.size()), context, queries});
      std::vector<at::Tensor> taps;
      for (std::size_t i = 0; i < taps_; ++i) {
        taps.push_back(hidden_rows(reply->tap(i), 0, rows, config_.hidden));
      }
      features.push_back(at::cat(taps, 1));
      for (std::int64_t i = 0; i < rows; ++i) {
        next.push_back(reply->tokens()[static_cast<std::size_t>(i + 1)]);
        position.push_back(i);
      }
      for (std::int64_t r = 0; r < queries; ++r) {
        query_row.push_back(first_row + context + r);
        place.push_back(r);
        const TokenId id = reply->tokens()[static_cast<std::size_t>(context + r + 2)];
        label.push_back(vocabulary_.row(id));
      }
      if (labels == Labels::kSoft) {
        final_hidden.push_back(hidden_rows(reply->final_hidden(), 1, queries, config_.hidden));
      }
    }
    batch.features = at::cat(features);
    batch.embedded = embedding_.index_select(0, at::tensor(next));
    batch.angles = rotary_angles(at::tensor(position), config_.rope_theta, config_.head_dim);
    batch.query_row = at::tensor(query_row);
    batch.place = at::tensor(place);
    batch.label = at::tensor(label);
    if (labels == Labels::kSoft) {
      batch.target = label_probs(at::cat(final_hidden), for_compute(target_head_, compute_),
                                 batch.label, options_.soft_labels);
    }
    return batch;
  }

  struct StepKeys {
    at::Tensor keys, values;  // [M, Nk, D]
  };

  /// Calls `use(step, logits [M, Vd])` for `steps` steps.
  template <typename Use>
  void run(const Batch& batch, std::int64_t steps, const Use& use) const {
    const double eps = config_.rms_eps;
    const auto weight = [&](const at::Tensor* of) { return for_compute(*of, compute_); };
    // Converted once: each is used by every step.
    const at::Tensor query = weight(query_), key = weight(key_), value = weight(value_),
                     output = weight(output_), gate = weight(gate_), up = weight(up_),
                     down = weight(down_), head = weight(head_);
    const at::Tensor embedded = rms_norm(batch.embedded, *input_norm_, eps);
    const at::Tensor features = project(batch.features, weight(fc_));  // [N, H]
    const at::Tensor rows = at::cat({embedded, rms_norm(features, *hidden_norm_, eps)}, 1);
    const StepKeys target_keys = project_keys(rows, key, value, batch.angles);

    const at::Tensor query_embedded = embedded.index_select(0, batch.query_row);
    const at::Tensor query_angles = batch.angles.index_select(0, batch.query_row);
    at::Tensor feature = features.index_select(0, batch.query_row);  // [M, H]
    std::vector<StepKeys> drafted;                                   // of steps 1, 2, ...
    for (std::int64_t step = 0; step < steps; ++step) {
      const at::Tensor x =
          at::cat({query_embedded, rms_norm(feature, *hidden_norm_, eps)}, 1);  // [M, 2 H]
      const at::Tensor queries =
          rotate(project(x, query).view({-1, heads_, config_.head_dim}), query_angles);
      if (step > 0) drafted.push_back(project_keys(x, key, value, query_angles));
      const at::Tensor y = feature + project(attend(batch, queries, target_keys, drafted), output);
      const at::Tensor inner = rms_norm(y, *post_norm_, eps);
      const at::Tensor out = y + project(at::silu(project(inner, gate)) * project(inner, up), down);
      use(step, project(rms_norm(out, *norm_, eps), head));
      feature = shift(out, 1);
    }
  }

  StepKeys project_keys(const at::Tensor& x, const at::Tensor& key, const at::Tensor& value,
                        const at::Tensor& angles) const {
    const std::vector<std::int64_t> heads = {-1, kv_heads_, config_.head_dim};
    return {rotate(project(x, key).view(heads), angles), project(x, value).view(heads)};
  }

  /// Row i becomes row i - by. The first rows of a reply then hold another's: they are finite, and
  /// the loss leaves them out.
  static at::Tensor shift(const at::Tensor& rows, std::int64_t by) {
    if (by == 0) return rows;
    const std::int64_t count = rows.size(0);
    const std::int64_t kept = std::max<std::int64_t>(count - by, 0);
    return at::cat({rows.narrow(0, 0, count - kept), rows.narrow(0, 0, kept)});
  }

  /// [M, Nq D]: each query over the rows of step 0 that the cache holds and over the drafted rows.
  at::Tensor attend(const Batch& batch, const at::Tensor& queries, const StepKeys& target_keys,
                    const std::vector<StepKeys>& drafted) const {
    const auto step = static_cast<std::int64_t>(drafted.size());
    const std::int64_t dim = config_.head_dim;
    const std::int64_t group = heads_ / kv_heads_;
    const double scale = 1 / std::sqrt(static_cast<double>(dim));
    const at::Tensor grouped = queries.view({-1, kv_heads_, group, dim});  // [M, Nk, g, D]
    std::vector<at::Tensor> own_scores, own_values;  // of each drafted step: [M, Nk, g], [M, Nk, D]
    for (std::int64_t j = 0; j < step; ++j) {
      const StepKeys& keys = drafted[static_cast<std::size_t>(j)];
      const std::int64_t by = step - 1 - j;
      own_scores.push_back((grouped * shift(keys.keys, by).unsqueeze(2)).sum(-1));
      own_values.push_back(shift(keys.values, by));
    }
    std::vector<at::Tensor> mixed;
    for (const Batch::Part& part : batch.parts) {
      const std::int64_t count = part.queries;
      const std::int64_t rows = part.context + part.queries;
      // The query heads of a group stand together, so that they form one matrix per kv head.
      const at::Tensor own = grouped.narrow(0, part.first_query, count)
                                 .permute({1, 2, 0, 3})
                                 .reshape({kv_heads_, group * count, dim});
      const at::Tensor keys = target_keys.keys.narrow(0, part.first_row, rows).permute({1, 2, 0});
      const at::Tensor values = target_keys.values.narrow(0, part.first_row, rows).transpose(0, 1);
      const at::Tensor hidden = at::full({count, rows}, kMasked).triu_(part.context + 1 - step);
      std::vector<at::Tensor> scores = {
          at::bmm(own, keys).view({kv_heads_, group, count, rows}) * scale + hidden};
      for (const at::Tensor& each : own_scores) {
        scores.push_back(each.narrow(0, part.first_query, count).permute({1, 2, 0}).unsqueeze(-1) *
                         scale);
      }
      const at::Tensor probs = at::softmax(at::cat(scores, -1), -1);  // [Nk, g, m, rows + step]
      at::Tensor sum =
          at::bmm(probs.narrow(-1, 0, rows).reshape({kv_heads_, group * count, rows}), values)
              .view({kv_heads_, group, count, dim});
      for (std::int64_t j = 0; j < step; ++j) {
        const at::Tensor value = own_values[static_cast<std::size_t>(j)]
                                     .narrow(0, part.first_query, count)
                                     .transpose(0, 1)
                                     .unsqueeze(1);  // [Nk, 1, m, D]
        sum = sum + probs.narrow(-1, rows + j, 1) * value;
      }
      mixed.push_back(sum.permute({2, 0, 1, 3}).reshape({count, heads_ * dim}));
    }
    return at::cat(mixed);
  }

  ModelConfig config_;
  std::size_t taps_;
  at::ScalarType compute_;
  Options options_;
  DraftVocabulary vocabulary_;
  std::int64_t heads_ = 0, kv_heads_ = 0;
  at::Tensor embedding_;    // [V, H]
  at::Tensor target_head_;  // [Vd, H] the target's head for the draft vocabulary
  at::Tensor *fc_ = nullptr, *input_norm_ = nullptr, *hidden_norm_ = nullptr, *post_norm_ = nullptr,
             *query_ = nullptr, *key_ = nullptr, *value_ = nullptr, *output_ = nullptr,
             *gate_ = nullptr, *up_ = nullptr, *down_ = nullptr, *norm_ = nullptr, *head_ = nullptr;
};

}  // namespace

void check_eagle3_options(const Params& params, const ModelConfig& target) {
  read_options(params, target);
}

std::unique_ptr<DraftModel> make_eagle3_model(const Params& params, const ModelSource& source) {
  return std::make_unique<Eagle3Model>(params, source);
}

}  // namespace asdbench::training
