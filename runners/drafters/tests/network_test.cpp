// Network drafters over tiny targets: caches that equal a fresh prefill's, exactness, limits, and
// files that must be refused. The recorded rounds themselves are run by `asdbench conformance`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "eval/core/temporary_folder.h"
#include "runners/checkpoint/drafter_checkpoint.h"
#include "runners/decoder.h"
#include "runners/drafters/common/block_drafter.h"
#include "runners/drafters/common/fitted_drafter.h"
#include "runners/drafters/tests/fixtures.h"

namespace asdbench {
namespace {

namespace fs = std::filesystem;
using testing_support::drafter_data;
using testing_support::drafter_fixtures;
using testing_support::DrafterFixture;
using testing_support::fixture_drafter;
using testing_support::fixture_target;
using testing_support::golden_of;
using testing_support::open_fixture;

constexpr std::int64_t kPositions = 200;

/// Accepts a chosen number of drafts, whatever the target thinks, and then takes its choice.
class Scripted final : public Verifier {
 public:
  VerifierInfo info() const override { return {.name = "scripted"}; }
  Decision decide(const Block& block, const Ledger&, const Rng&) const override {
    Decision decision;
    const auto drafts = static_cast<std::int32_t>(block.draft.size());
    for (; decision.accepted < std::min(accept, drafts); ++decision.accepted) {
      const auto at = static_cast<std::size_t>(decision.accepted);
      if (block.draft[at] != block.scores.choice[at]) {
        decision.exceptions.push_back({.position = decision.accepted,
                                       .draft = block.draft[at],
                                       .choice = block.scores.choice[at]});
      }
    }
    decision.target_token = token != kNoToken
                                ? token
                                : block.scores.choice[static_cast<std::size_t>(decision.accepted)];
    return decision;
  }
  std::int32_t accept = 0;
  TokenId token = kNoToken;  // instead of the target's
};

Request request_of(std::vector<TokenId> prompt, std::int32_t slot = 0,
                   std::int32_t max_tokens = 100) {
  Request request("test", std::move(prompt), {.max_tokens = max_tokens}, {}, Rng());
  request.slot = slot;
  return request;
}

std::vector<TokenId> prompt_of(const std::string& fixture) {
  return golden_of(fixture).at("runs").at(0).at("prompt").get<std::vector<TokenId>>();
}

std::vector<TokenId> drafted(const Request& request) { return request.draft; }

/// What a drafter that has only now been given the whole history proposes.
std::vector<TokenId> fresh_draft(DrafterFixture& fixture, std::span<const TokenId> history) {
  Scripted rule;
  Decoder decoder(*fixture.target, *fixture.drafter, rule,
                  {.drafts = fixture.drafter->info().drafts, .positions = kPositions});
  Request request = request_of({history.begin(), history.end() - 1});
  rule.token = history.back();
  decoder.start(request);
  rule.token = kNoToken;
  Request* const live[] = {&request};
  decoder.pass(live);
  EXPECT_EQ(request.error(), "");
  return drafted(request);
}

class NetworkDrafter : public ::testing::TestWithParam<std::string> {};

// P9 for the drafter: after every mix of rejections, acceptances and exceptions its next proposal
// is the one that a fresh prefill of what was committed leads to.
TEST_P(NetworkDrafter, CacheEqualsThatOfAFreshPrefill) {
  DrafterFixture fixture = open_fixture(GetParam());
  DrafterFixture fresh = open_fixture(GetParam());
  const std::int32_t drafts = fixture.drafter->info().drafts;
  Scripted rule;
  Decoder decoder(*fixture.target, *fixture.drafter, rule,
                  {.drafts = drafts, .positions = kPositions});
  Request request = request_of(prompt_of(GetParam()));
  decoder.start(request);
  Request* const live[] = {&request};
  constexpr std::int32_t kAll = 64;
  std::int32_t round = 0;
  for (const std::int32_t accept : {kAll, 0, 1, 3, kAll, 0, 2, 5, 1, kAll, 4, 0}) {
    const std::vector<TokenId> history(request.history().begin(), request.history().end());
    rule.accept = accept;
    decoder.pass(live);
    ASSERT_EQ(request.error(), "");
    ASSERT_EQ(drafted(request), fresh_draft(fresh, history)) << "round " << round++;
  }
  EXPECT_FALSE(request.exceptions().empty());
}

TEST_P(NetworkDrafter, RequestsOfABatchDraftWhatTheyDraftAlone) {
  DrafterFixture fixture = open_fixture(GetParam());
  const std::int32_t drafts = fixture.drafter->info().drafts;
  const std::vector<TokenId> prompt = prompt_of(GetParam());
  const auto prompt_at = [&](std::int32_t slot) {
    std::vector<TokenId> changed = prompt;
    changed[0] += slot;
    changed.resize(prompt.size() - static_cast<std::size_t>(slot));
    return changed;
  };
  Scripted rule;
  rule.accept = 1;
  std::vector<std::vector<TokenId>> alone;
  for (std::int32_t slot = 0; slot < 3; ++slot) {
    Decoder decoder(*fixture.target, *fixture.drafter, rule,
                    {.drafts = drafts, .requests = 3, .positions = kPositions});
    Request request = request_of(prompt_at(slot), slot, 12);
    decoder.run(request);
    alone.emplace_back(request.output().begin(), request.output().end());
  }
  Decoder decoder(*fixture.target, *fixture.drafter, rule,
                  {.drafts = drafts, .requests = 3, .positions = kPositions});
  Request a = request_of(prompt_at(0), 0, 12), b = request_of(prompt_at(1), 1, 12),
          c = request_of(prompt_at(2), 2, 12);
  decoder.start(b);
  decoder.start(a);
  Request* two[] = {&b, &a};
  decoder.pass(two);
  decoder.start(c);  // a prefill between the passes of others
  Request* three[] = {&c, &b, &a};
  while (!a.finished() || !b.finished() || !c.finished()) decoder.pass(three);
  EXPECT_THAT(a.output(), ::testing::ElementsAreArray(alone[0]));
  EXPECT_THAT(b.output(), ::testing::ElementsAreArray(alone[1]));
  EXPECT_THAT(c.output(), ::testing::ElementsAreArray(alone[2]));
}

// The last passes have no room for all drafts, nor a block for all its rows.
TEST_P(NetworkDrafter, DraftsUpToTheLastPosition) {
  DrafterFixture fixture = open_fixture(GetParam());
  const std::int32_t drafts = fixture.drafter->info().drafts;
  const TargetInfo info = fixture.target->info();
  ASSERT_EQ(info.positions, 512);
  Scripted rule;
  rule.accept = 64;
  Decoder decoder(*fixture.target, *fixture.drafter, rule,
                  {.drafts = drafts, .positions = info.positions});
  Request request = request_of(std::vector<TokenId>(490, 5), 0, 1000);
  decoder.run(request);
  EXPECT_EQ(request.error(), "");
  EXPECT_EQ(request.finish(), FinishReason::kContextLimit);
  EXPECT_EQ(request.history().size(), 512U);
}

TEST_P(NetworkDrafter, LawHasTheDraftAsItsBestId) {
  class Reader final : public Verifier {
   public:
    VerifierInfo info() const override { return {.name = "reader", .needs_draft_logits = true}; }
    Decision decide(const Block& block, const Ledger&, const Rng&) const override {
      for (std::size_t i = 0; i < block.draft.size(); ++i) {
        const auto row = block.draft_logits->row(static_cast<std::int64_t>(i));
        const auto best = std::max_element(row.begin(), row.end()) - row.begin();
        EXPECT_EQ(best, block.draft[i]);
        ++rows;
      }
      Decision decision;
      decision.target_token = block.scores.choice[0];
      return decision;
    }
    mutable int rows = 0;
  };
  DrafterFixture fixture = open_fixture(GetParam());
  Reader rule;
  Decoder decoder(*fixture.target, *fixture.drafter, rule,
                  {.drafts = fixture.drafter->info().drafts, .positions = kPositions});
  Request request = request_of(prompt_of(GetParam()), 0, 6);
  decoder.run(request);
  EXPECT_EQ(request.error(), "");
  EXPECT_GE(rule.rows, 10);
}

// Drafts from rounded weights follow the committed ids as exactly as others.
TEST_P(NetworkDrafter, RoundedWeightsDraftTheSameFromAFreshPrefill) {
  for (const char* weights : {"q8_0", "q4_0"}) {
    DrafterFixture fixture = open_fixture(GetParam(), {{"weights", weights}});
    DrafterFixture fresh = open_fixture(GetParam(), {{"weights", weights}});
    const std::int32_t drafts = fixture.drafter->info().drafts;
    Scripted rule;
    Decoder decoder(*fixture.target, *fixture.drafter, rule,
                    {.drafts = drafts, .positions = kPositions});
    Request request = request_of(prompt_of(GetParam()));
    decoder.start(request);
    Request* const live[] = {&request};
    for (const std::int32_t accept : {64, 0, 2, 1}) {
      const std::vector<TokenId> history(request.history().begin(), request.history().end());
      rule.accept = accept;
      decoder.pass(live);
      ASSERT_EQ(request.error(), "");
      ASSERT_EQ(drafted(request), fresh_draft(fresh, history)) << weights;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, NetworkDrafter, ::testing::ValuesIn(drafter_fixtures()),
                         [](const auto& name) { return name.param; });

// ---- options

std::string config_error(const std::string& method, const std::string& folder,
                         const std::string& target, const testing_support::DraftOptions& options) {
  const auto made = fixture_target(drafter_data() / "targets" / target);
  try {
    fixture_drafter(method, drafter_data() / folder, *made, options);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(NetworkOptions, RefusesWhatDoesNotFit) {
  using ::testing::HasSubstr;
  EXPECT_THAT(config_error("dspark", "dspark_trained", "qwen3_a", {{"K", "8"}}),
              HasSubstr("1 to 7"));
  EXPECT_THAT(config_error("dflash", "dflash_zlab", "llama_a", {{"block", "5"}, {"K", "5"}}),
              HasSubstr("1 to 4"));
  EXPECT_THAT(config_error("dflash", "dflash_zlab", "llama_a", {{"block", "9"}}),
              HasSubstr("2 to 8"));
  EXPECT_THAT(config_error("dflash", "dflash_zlab", "llama_a", {{"confidence", "0.5"}}),
              HasSubstr("no option \"confidence\""));
  EXPECT_THAT(config_error("dspark", "dspark_trained", "qwen3_a", {{"confidence", "1.5"}}),
              HasSubstr("0 to 1"));
  EXPECT_THAT(config_error("eagle3", "dspark_trained", "qwen3_a", {}), HasSubstr("kind dspark"));
  EXPECT_THAT(config_error("eagle3", "eagle3_deepspec", "qwen3_a", {{"taps", "1,2"}}),
              HasSubstr("2 indices; this drafter reads 5"));
  EXPECT_THAT(config_error("eagle3", "eagle3_deepspec", "qwen3_a", {{"taps", "1,2,3,4,8"}}),
              HasSubstr("0 to 7"));
}

TEST(NetworkOptions, ConfidenceCutsAndShorterBlocksDraftLess) {
  for (const double least : {0.0, 0.5, 1.0}) {
    DrafterFixture fixture =
        open_fixture("dspark_trained", {{"confidence", std::to_string(least)}});
    Scripted rule;
    Decoder decoder(*fixture.target, *fixture.drafter, rule,
                    {.drafts = 7, .positions = kPositions});
    Request request = request_of(prompt_of("dspark_trained"));
    decoder.start(request);
    Request* const live[] = {&request};
    decoder.pass(live);
    const auto* block = dynamic_cast<const BlockDrafter*>(fixture.drafter.get());
    ASSERT_NE(block, nullptr);
    const auto confidences = block->confidences(0);
    ASSERT_GE(confidences.size(), request.draft.size());
    for (std::size_t i = 0; i < request.draft.size(); ++i) {
      EXPECT_GE(static_cast<double>(confidences[i]), least);
    }
    const bool cut = request.draft.size() < 7;
    EXPECT_EQ(cut, least > 0);
    EXPECT_EQ(confidences.size(), request.draft.size() + (cut ? 1 : 0));
  }
}

TEST(NetworkOptions, ChainsOfLittleConfidenceAreCut) {
  std::vector<std::string> engines = {"native"};
#ifdef ASDBENCH_TORCH_ENGINE
  engines.emplace_back("torch");
#endif
  std::vector<TokenId> history = prompt_of("eagle3_safeailab_reduced");
  history.push_back(7);
  for (const std::string& engine : engines) {
    const auto draft_with = [&](const char* least) {
      DrafterFixture fixture =
          open_fixture("eagle3_safeailab_reduced", {{"confidence", least}}, engine);
      return fresh_draft(fixture, history);
    };
    const std::vector<TokenId> all = draft_with("0");
    ASSERT_EQ(all.size(), 5U);
    std::size_t before = all.size();
    bool shorter = false;
    for (const char* least : {"0.000001", "0.1", "0.3", "0.5", "0.7", "1"}) {
      const std::vector<TokenId> some = draft_with(least);
      ASSERT_LE(some.size(), before) << engine << " " << least;
      EXPECT_TRUE(std::equal(some.begin(), some.end(), all.begin())) << engine << " " << least;
      shorter |= some.size() > 0 && some.size() < all.size();
      before = some.size();
    }
    EXPECT_TRUE(shorter) << engine;
    EXPECT_EQ(before, 0U) << "no chain is certain";
  }
}

// A pass without drafts is one of plain decoding; the caches stay right.
TEST(NetworkOptions, CutChainsLeaveCachesThatEqualAFreshPrefills) {
  const testing_support::DraftOptions options = {{"confidence", "0.45"}};
  DrafterFixture fixture = open_fixture("eagle3_safeailab_reduced", options);
  DrafterFixture fresh = open_fixture("eagle3_safeailab_reduced", options);
  Scripted rule;
  Decoder decoder(*fixture.target, *fixture.drafter, rule, {.drafts = 5, .positions = kPositions});
  Request request = request_of(prompt_of("eagle3_safeailab_reduced"));
  decoder.start(request);
  Request* const live[] = {&request};
  std::set<std::size_t> sizes;
  for (int round = 0; round < 16; ++round) {
    const std::vector<TokenId> history(request.history().begin(), request.history().end());
    rule.accept = round % 3 == 0 ? 0 : 64;
    decoder.pass(live);
    ASSERT_EQ(request.error(), "");
    ASSERT_EQ(drafted(request), fresh_draft(fresh, history)) << round;
    sizes.insert(drafted(request).size());
  }
  EXPECT_GT(sizes.size(), 1U) << "drafts of one size only";
}

TEST(NetworkOptions, OverriddenTapsAndRotationChangeTheDraft) {
  const std::vector<TokenId> prompt = prompt_of("eagle3_safeailab_reduced");
  const auto draft_with = [&](const testing_support::DraftOptions& options) {
    DrafterFixture fixture = open_fixture("eagle3_safeailab_reduced", options);
    std::vector<TokenId> history = prompt;
    history.push_back(7);
    return fresh_draft(fixture, history);
  };
  const auto expected = draft_with({});
  EXPECT_EQ(draft_with({{"taps", "2,3,4"}}), expected) << "the rule's own taps";
  EXPECT_NE(draft_with({{"taps", "0,1,5"}}), expected);
  EXPECT_EQ(draft_with({{"rope_theta", "10000"}}), expected);
}

TEST(NetworkOptions, RoundedWeightsAreNearTheStoredOnes) {
  std::vector<TokenId> history = prompt_of("dspark_trained");
  int equal = 0;
  int all = 0;
  for (const TokenId pending : {3, 16, 40, 77, 120}) {
    history.push_back(pending);
    DrafterFixture stored = open_fixture("dspark_trained");
    DrafterFixture rounded = open_fixture("dspark_trained", {{"weights", "q8_0"}});
    const auto expected = fresh_draft(stored, history);
    const auto got = fresh_draft(rounded, history);
    ASSERT_EQ(got.size(), expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) equal += got[i] == expected[i] ? 1 : 0;
    all += static_cast<int>(got.size());
  }
  EXPECT_GE(10 * equal, 8 * all) << equal << " of " << all;
}

TEST(NetworkOptions, WeightsAreRoundedOnOurKernelsOnly) {
  using ::testing::HasSubstr;
  EXPECT_THAT(config_error("eagle3", "eagle3_deepspec", "qwen3_a", {{"weights", "q5_0"}}),
              HasSubstr("unknown weights \"q5_0\""));
#ifdef ASDBENCH_TORCH_ENGINE
  const auto target = fixture_target(drafter_data() / "targets" / "qwen3_a", "torch");
  try {
    fixture_drafter("eagle3", drafter_data() / "eagle3_deepspec", *target, {{"weights", "q8_0"}});
    ADD_FAILURE() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("engine: native"));
  }
#endif
}

// ---- files

/// A copy of a fixture that can be changed.
class Changed {
 public:
  explicit Changed(const std::string& fixture) {
    fs::copy(drafter_data() / fixture, path_,
             fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  }
  const fs::path& path() const { return path_; }

  void set(const std::string& key, const Json& value) const {
    std::ifstream in(path_ / "config.json");
    Json json = parse_json(std::string{std::istreambuf_iterator<char>(in), {}});
    json[key] = value;
    std::ofstream(path_ / "config.json") << json.dump();
  }
  /// Overwrites the first bytes of a tensor.
  void spoil(const std::string& tensor, const void* bytes, std::size_t count) const {
    const fs::path file = path_ / "model.safetensors";
    std::size_t at = 0;
    {
      const auto container = SafetensorsFile::open(file);
      for (const SafetensorsEntry& entry : container.entries()) {
        if (entry.name == tensor) {
          at = fs::file_size(file) -
               (static_cast<std::size_t>(container.entries().back().bytes.data() +
                                         container.entries().back().bytes.size() -
                                         entry.bytes.data()));
        }
      }
    }
    ASSERT_GT(at, 0U) << tensor;
    std::fstream out(file, std::ios::binary | std::ios::in | std::ios::out);
    out.seekp(static_cast<std::streamoff>(at));
    out.write(static_cast<const char*>(bytes), static_cast<std::streamsize>(count));
  }

 private:
  const TemporaryFolder owned_;
  const fs::path& path_ = owned_.path();
};

/// The fault of loading `folder` for its fixture's target, "loaded" when there is none.
std::string fault_of(const std::string& fixture, const fs::path& folder) {
  const Json golden = golden_of(fixture);
  const auto target =
      fixture_target(drafter_data() / fixture / golden.at("target").get<std::string>());
  try {
    fixture_drafter(golden.at("kind"), folder, *target);
  } catch (const ModelError& error) {
    EXPECT_GT(std::string(error.what()).size(), 30U);
    return std::string(name_of(error.fault()));
  }
  return "loaded";
}

TEST(NetworkFiles, RefusesLyingConfigurations) {
  struct Case {
    const char* fixture;
    const char* key;
    Json value;
    const char* fault;
  };
  for (const Case& each : std::vector<Case>{
           {"eagle3_safeailab_reduced", "hidden_size", 64, "bad_shape"},
           {"eagle3_safeailab_reduced", "draft_vocab_size", 113, "bad_shape"},
           {"eagle3_safeailab_reduced", "draft_vocab_size", 321, "bad_config"},
           {"eagle3_safeailab_reduced", "vocab_size", 1 << 30, "bad_shape"},
           {"eagle3_safeailab_reduced", "num_hidden_layers", 2, "bad_config"},
           {"eagle3_safeailab_reduced", "norm_before_fc", true, "unsupported"},
           {"eagle3_safeailab_reduced", "norm_before_fc", false, "loaded"},
           {"eagle3_safeailab_reduced",
            "rope_scaling",
            {{"type", "linear"}, {"factor", 2}},
            "unsupported"},
           {"eagle3_safeailab_reduced",
            "eagle_config",
            {{"eagle_aux_hidden_state_layer_ids", {1, 2, 3}}},
            "loaded"},
           {"eagle3_safeailab_reduced",
            "eagle_config",
            {{"use_mtp_layernorm", true}},
            "unsupported"},
           {"eagle3_safeailab_reduced", "quantization_config", {{"bits", 8}}, "unsupported"},
           {"eagle3_deepspec", "target_layer_ids", {0, 1, 3, 4}, "bad_config"},
           {"eagle3_deepspec", "target_layer_ids", {0, 1, 3, 5, 4}, "bad_config"},
           {"eagle3_deepspec", "num_target_layers", 8, "bad_config"},
           {"dspark_trained", "block_size", 0, "bad_config"},
           {"dspark_trained", "block_size", 1 << 30, "bad_config"},
           {"dspark_trained", "mask_token_id", 384, "bad_config"},
           {"dspark_trained", "markov_rank", 32, "bad_shape"},
           {"dspark_trained", "markov_rank", 0, "bad_config"},
           {"dspark_trained", "markov_head_type", "gated", "unsupported"},
           {"dspark_trained", "num_hidden_layers", 1 << 30, "missing_tensor"},
           {"dspark_trained", "num_hidden_layers", 2, "unexpected_tensor"},
           {"dspark_trained", "model_type", "llama", "unsupported"},
           {"dspark_trained", "layer_types", Json::array({"sliding_attention"}), "unsupported"},
           {"dspark_trained", "speculators_model_type", "dspark", "unsupported"},
           {"dflash_zlab", "dflash_config", {{"mask_token_id", 316}}, "bad_shape"},
           {"dflash_zlab",
            "dflash_config",
            {{"mask_token_id", 316}, {"target_layer_ids", {1, 3, 5}}, {"causal", true}},
            "unsupported"},
           {"medusa_vllm", "truncated_vocab_size", 161, "bad_shape"},
           {"medusa_vllm", "truncated_vocab_size", 500, "bad_config"},
           {"medusa_vllm", "logit_scale", 2, "unsupported"},
           {"medusa_vllm", "vocab_size", 400, "bad_config"},
           {"medusa_v1", "medusa_num_heads", 2, "loaded"}}) {
    const Changed changed(each.fixture);
    changed.set(each.key, each.value);
    EXPECT_EQ(fault_of(each.fixture, changed.path()), each.fault)
        << each.fixture << " " << each.key << " " << each.value;
  }
}

TEST(NetworkFiles, RefusesDamagedWeights) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::uint16_t bf16_infinity = 0x7f80;
  const Changed eagle("eagle3_safeailab_reduced");
  eagle.spoil("midlayer.mlp.up_proj.weight", &nan, sizeof nan);
  EXPECT_EQ(fault_of("eagle3_safeailab_reduced", eagle.path()), "bad_weights");
  const Changed dspark("dspark_random_bf16");
  dspark.spoil("fc.weight", &bf16_infinity, sizeof bf16_infinity);
  EXPECT_EQ(fault_of("dspark_random_bf16", dspark.path()), "bad_weights");
  const Changed absent("dflash_zlab");
  fs::remove(absent.path() / "model.safetensors");
  EXPECT_EQ(fault_of("dflash_zlab", absent.path()), "missing_file");
  const Changed shards("dflash_zlab");
  std::ofstream(shards.path() / "model.safetensors.index.json")
      << R"({"weight_map": {"fc.weight": "model-00001-of-00002.safetensors"}})";
  EXPECT_EQ(fault_of("dflash_zlab", shards.path()), "missing_file");
  EXPECT_EQ(fault_of("dflash_zlab", drafter_data() / "targets"), "missing_file");
  EXPECT_EQ(fault_of("dflash_zlab", drafter_data() / "targets" / "llama_a"), "unknown_arch");
}

TEST(NetworkFiles, AnOwnEmbeddingThatEqualsTheTargetsIsShared) {
  const auto target = fixture_target(drafter_data() / "targets" / "qwen3_a");
  std::vector<std::string> warnings;
  const auto warnings_of = [&](const fs::path& folder) {
    warnings.clear();
    Params params("dspark", {});
    params.set("path", folder.string(), {});
    const DrafterContext context{
        *target, {}, [&](const std::string& text) { warnings.push_back(text); }};
    make_block_drafter(params, context, DraftMethod::kDSpark);
    return warnings;
  };
  EXPECT_THAT(warnings_of(drafter_data() / "dspark_trained"), ::testing::IsEmpty());
  const Changed changed("dspark_trained");
  const float other = 0.25F;
  changed.spoil("embed_tokens.weight", &other, sizeof other);
  EXPECT_THAT(warnings_of(changed.path()),
              ::testing::ElementsAre(::testing::HasSubstr("embed_tokens.weight differs")));
}

TEST(NetworkFiles, CountsOfReleasedLayouts) {
  const auto counts = [](const char* fixture) {
    const auto drafter = open_drafter(drafter_data() / fixture, {});
    return std::pair(drafter->drafter().layout, drafter->tensors().size());
  };
  // d2t and t2d are no weights.
  EXPECT_EQ(counts("eagle3_safeailab_reduced"), std::pair(std::string("SafeAILab"), 13UL));
  EXPECT_EQ(counts("eagle3_deepspec"), std::pair(std::string("DeepSpec"), 16UL));
  EXPECT_EQ(counts("dspark_trained"), std::pair(std::string("DeepSpec"), 42UL));
  EXPECT_EQ(counts("dflash_zlab"), std::pair(std::string("z-lab"), 25UL));
  EXPECT_EQ(counts("medusa_v1"), std::pair(std::string("v1"), 12UL));
  EXPECT_EQ(counts("medusa_v2_shared_head"), std::pair(std::string("v2"), 12UL));
  EXPECT_EQ(counts("medusa_full_model"), std::pair(std::string("full model"), 9UL));
  EXPECT_EQ(counts("medusa_vllm"), std::pair(std::string("vLLM"), 9UL));
}

// SpecForge's container of a DSpark drafter: fields nested, embedding and head the target's.
TEST(NetworkFiles, SpecForgesContainerDraftsTheSame) {
  const Changed nested("dspark_trained");
  Json inner = {{"projector_type", "dspark"}};
  for (const char* key : {"markov_rank", "markov_head_type", "enable_confidence_head",
                          "confidence_head_with_markov", "mask_token_id", "target_layer_ids"}) {
    std::ifstream in(drafter_data() / "dspark_trained" / "config.json");
    inner[key] = parse_json(std::string{std::istreambuf_iterator<char>(in), {}}).at(key);
    nested.set(key, nullptr);
  }
  nested.set("dflash_config", inner);
  nested.set("architectures", Json::array({"DSparkDraftModel"}));
  EXPECT_EQ(open_drafter(nested.path(), {})->drafter().layout, "SpecForge");
  std::vector<TokenId> history = prompt_of("dspark_trained");
  history.push_back(16);
  DrafterFixture original = open_fixture("dspark_trained");
  DrafterFixture specforge = open_fixture("dspark_trained");
  specforge.drafter = fixture_drafter("dspark", nested.path(), *specforge.target);
  EXPECT_EQ(fresh_draft(specforge, history), fresh_draft(original, history));
}

TEST(NetworkFiles, PickledHeadsEqualThoseInSafetensors) {
  const Changed pickled("medusa_v2_shared_head");
  fs::remove(pickled.path() / "medusa_lm_head.safetensors");
#ifdef ASDBENCH_TORCH_ENGINE
  std::vector<TokenId> history = prompt_of("medusa_v2_shared_head");
  history.push_back(3);
  DrafterFixture original = open_fixture("medusa_v2_shared_head");
  DrafterFixture other = open_fixture("medusa_v2_shared_head");
  other.drafter = fixture_drafter("medusa", pickled.path(), *other.target);
  EXPECT_EQ(fresh_draft(other, history), fresh_draft(original, history));
  std::ofstream(pickled.path() / "medusa_lm_head.pt") << "PK no zip file";
  EXPECT_EQ(fault_of("medusa_v2_shared_head", pickled.path()), "bad_header");
  std::ofstream(pickled.path() / "medusa_lm_head.pt") << "a legacy pickle";
  EXPECT_EQ(fault_of("medusa_v2_shared_head", pickled.path()), "bad_header");
#else
  EXPECT_EQ(fault_of("medusa_v2_shared_head", pickled.path()), "unsupported");
#endif
}

#ifdef ASDBENCH_TORCH_ENGINE
// The engines agree, but where the drafter's two best logits nearly tie.
TEST_P(NetworkDrafter, BothEnginesDraftTheSame) {
  DrafterFixture native = open_fixture(GetParam());
  DrafterFixture torch = open_fixture(GetParam(), {}, "torch");
  std::vector<TokenId> history = prompt_of(GetParam());
  int equal = 0;
  for (const TokenId pending : {3, 40, 77, 120}) {
    history.push_back(pending);
    equal += fresh_draft(native, history) == fresh_draft(torch, history) ? 1 : 0;
  }
  EXPECT_GE(equal, 3);
}
#endif

}  // namespace
}  // namespace asdbench
