// What drafting costs beside the target's pass, at the sizes of SmolLM2-135M: both are timed in the
// same passes, so that their ratio is that of one interleaved run.
//
// Needs the fetched model (ASDBENCH_MODELS). Weights of the drafters are random: a cost does not
// depend on them, and every pass keeps one draft whatever they propose.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cstdlib>
#include <deque>
#include <filesystem>
#include <random>

#include "eval/core/error.h"
#include "eval/core/json.h"
#include "eval/core/output_file.h"
#include "eval/core/temporary_folder.h"
#include "runners/checkpoint/safetensors_writer.h"
#include "runners/decoder.h"
#include "runners/models/models.h"

namespace asdbench {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kHidden = 576, kInner = 1536, kHeads = 9, kKeyHeads = 3, kHeadSize = 64,
                       kVocab = 49152, kDraftVocab = 4096, kTaps = 3, kRank = 32, kLayers = 30;
constexpr std::int32_t kDrafts = 5;

/// A safetensors file that is written piece by piece.
class RandomWeights {
 public:
  void add(const std::string& name, const std::vector<std::int64_t>& shape) {
    std::int64_t count = 1;
    for (const std::int64_t extent : shape) count *= extent;
    std::vector<std::uint16_t>& values = values_.emplace_back(static_cast<std::size_t>(count));
    // bf16 of either sign between 2^-7 and 2^-6.
    for (std::uint16_t& value : values) {
      value = static_cast<std::uint16_t>(0x3c00 | (random_() & 0x807f));
    }
    entries_.push_back({name, "BF16", shape, std::as_bytes(std::span(values))});
  }
  void add_block(const std::string& prefix, std::int64_t width, bool norms) {
    const auto linear = [&](const char* name, std::int64_t rows, std::int64_t columns) {
      add(prefix + name + ".weight", {rows, columns});
    };
    add(prefix + "input_layernorm.weight", {kHidden});
    add(prefix + "post_attention_layernorm.weight", {kHidden});
    linear("self_attn.q_proj", kHeads * kHeadSize, width);
    linear("self_attn.k_proj", kKeyHeads * kHeadSize, width);
    linear("self_attn.v_proj", kKeyHeads * kHeadSize, width);
    linear("self_attn.o_proj", kHidden, kHeads * kHeadSize);
    if (norms) {
      add(prefix + "self_attn.q_norm.weight", {kHeadSize});
      add(prefix + "self_attn.k_norm.weight", {kHeadSize});
    }
    linear("mlp.gate_proj", kInner, kHidden);
    linear("mlp.up_proj", kInner, kHidden);
    linear("mlp.down_proj", kHidden, kInner);
  }
  /// Draft id i stands for the target's id i.
  void add_identity() {
    offsets_.assign(kDraftVocab, 0);
    entries_.push_back({"d2t", "I64", {kDraftVocab}, std::as_bytes(std::span(offsets_))});
  }
  void write(const fs::path& folder, const Json& config) const {
    write_output_file(folder / "config.json", config.dump());
    write_safetensors(folder / "model.safetensors", entries_);
  }

 private:
  std::mt19937 random_{7};
  std::deque<std::vector<std::uint16_t>> values_;
  std::vector<std::int64_t> offsets_;
  std::vector<SafetensorsEntry> entries_;
};

Json common_config(std::int64_t layers) {
  return {{"hidden_size", kHidden},
          {"intermediate_size", kInner},
          {"num_attention_heads", kHeads},
          {"num_key_value_heads", kKeyHeads},
          {"num_hidden_layers", layers},
          {"rms_norm_eps", 1e-5},
          {"rope_theta", 1e5},
          {"max_position_embeddings", 8192},
          {"vocab_size", kVocab},
          {"draft_vocab_size", kDraftVocab}};
}

void write_eagle3(const fs::path& folder) {
  RandomWeights weights;
  weights.add("fc.weight", {kHidden, kTaps * kHidden});
  weights.add("midlayer.hidden_norm.weight", {kHidden});
  weights.add_block("midlayer.", 2 * kHidden, false);
  weights.add("norm.weight", {kHidden});
  weights.add("lm_head.weight", {kDraftVocab, kHidden});
  weights.add_identity();
  Json config = common_config(1);
  config["model_type"] = "llama";
  weights.write(folder, config);
}

void write_dspark(const fs::path& folder, std::int64_t layers, std::int64_t block) {
  RandomWeights weights;
  weights.add("fc.weight", {kHidden, kTaps * kHidden});
  weights.add("hidden_norm.weight", {kHidden});
  for (std::int64_t i = 0; i < layers; ++i) {
    weights.add_block(fmt::format("layers.{}.", i), kHidden, true);
  }
  weights.add("norm.weight", {kHidden});
  weights.add("markov_head.markov_w1.weight", {kVocab, kRank});
  weights.add("markov_head.markov_w2.weight", {kDraftVocab, kRank});
  weights.add("confidence_head.proj.weight", {1, kHidden + kRank});
  weights.add("confidence_head.proj.bias", {1});
  weights.add_identity();
  Json config = common_config(layers);
  config["model_type"] = "qwen3";
  config["head_dim"] = kHeadSize;
  config["num_target_layers"] = kLayers;
  config["block_size"] = block;
  config["dflash_config"] = {{"projector_type", "dspark"},
                             {"mask_token_id", 10},
                             {"markov_rank", kRank},
                             {"enable_confidence_head", true},
                             {"confidence_head_with_markov", true},
                             {"target_layer_ids", {1, 14, 26}}};
  weights.write(folder, config);
}

void write_medusa(const fs::path& folder) {
  RandomWeights weights;
  for (int head = 0; head < 3; ++head) {
    weights.add(fmt::format("{}.0.linear.weight", head), {kHidden, kHidden});
    weights.add(fmt::format("{}.0.linear.bias", head), {kHidden});
  }
  weights.write(folder, {{"model_type", "medusa"}, {"version", "2"}});
}

/// Keeps one draft of each pass.
class KeepOne final : public Verifier {
 public:
  VerifierInfo info() const override { return {.name = "keep one"}; }
  Decision decide(const Block& block, const Ledger&, const Rng&) const override {
    Decision decision;
    decision.accepted = block.draft.empty() ? 0 : 1;
    decision.target_token = block.scores.choice[static_cast<std::size_t>(decision.accepted)];
    return decision;
  }
};

Model& target() {
  static Model model = [] {
    Params params("drafters_bench", {});
    params.set("device", "cpu", {});
    params.set("engine", "native", {});
    const char* models = std::getenv("ASDBENCH_MODELS");
    return make_model("smollm2-135m", params, models == nullptr ? "models" : models);
  }();
  return model;
}

// One iteration is a whole pass.
void pass(benchmark::State& state, const std::string& method,
          const std::function<void(const fs::path&)>& write, const std::string& weights) {
  const TemporaryFolder owned;
  const fs::path& folder = owned.path();
  write(folder);
  Params params(method, {});
  params.set("path", folder.string(), {});
  params.set("weights", weights, {});
  if (method != "medusa") params.set("K", std::to_string(kDrafts), {});
  std::unique_ptr<Drafter> drafter;
  for (const DrafterFactory& factory : drafter_factories()) {
    if (factory.name == method) drafter = factory.make(params, {*target().target});
  }
  const KeepOne rule;
  Decoder decoder(*target().target, *drafter, rule,
                  {.drafts = drafter->info().drafts, .requests = 1, .positions = 4096});
  std::unique_ptr<Request> request;
  const auto renew = [&] {
    std::vector<TokenId> prompt(200);
    for (std::size_t i = 0; i < prompt.size(); ++i) prompt[i] = static_cast<TokenId>(100 + 7 * i);
    request = std::make_unique<Request>("bench", std::move(prompt),
                                        RequestLimits{.max_tokens = 400, .ignore_end_ids = true},
                                        std::span<const TokenId>(), Rng());
    decoder.start(*request);
  };
  renew();
  for (auto _ : state) {
    Request* const live[] = {request.get()};
    decoder.pass(live);
    if (!request->finished()) continue;
    state.PauseTiming();
    renew();
    state.ResumeTiming();
  }
  const PassTimes& times = decoder.times();
  const auto passes = static_cast<double>(times.passes);
  state.counters["draft_us"] = static_cast<double>(times.draft_ns) / passes / 1000;
  state.counters["verify_us"] = static_cast<double>(times.verify_ns) / passes / 1000;
  state.counters["rest_us"] = static_cast<double>(times.rule_ns + times.cache_ns) / passes / 1000;
  state.counters["draft_per_verify"] =
      static_cast<double>(times.draft_ns) / static_cast<double>(times.verify_ns);
}
void write_dspark_1(const fs::path& folder) { write_dspark(folder, 1, kDrafts); }
void write_dspark_2(const fs::path& folder) { write_dspark(folder, 2, kDrafts); }

BENCHMARK_CAPTURE(pass, eagle3, "eagle3", write_eagle3, "stored")->UseRealTime();
BENCHMARK_CAPTURE(pass, eagle3_q8_0, "eagle3", write_eagle3, "q8_0")->UseRealTime();
BENCHMARK_CAPTURE(pass, eagle3_q4_0, "eagle3", write_eagle3, "q4_0")->UseRealTime();
BENCHMARK_CAPTURE(pass, dspark_1_layer, "dspark", write_dspark_1, "stored")->UseRealTime();
BENCHMARK_CAPTURE(pass, dspark_2_layers, "dspark", write_dspark_2, "stored")->UseRealTime();
BENCHMARK_CAPTURE(pass, dspark_2_layers_q8_0, "dspark", write_dspark_2, "q8_0")->UseRealTime();
BENCHMARK_CAPTURE(pass, medusa_3_heads, "medusa", write_medusa, "stored")->UseRealTime();

}  // namespace
}  // namespace asdbench
