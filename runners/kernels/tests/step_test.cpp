// A whole decoder step built from the kernels, as an engine uses them: the same bits token by
// token, in blocks, in batches, on one thread and two, and no allocation.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

#include "runners/kernels/attention.h"
#include "runners/kernels/linear.h"
#include "runners/kernels/tests/matrices.h"

namespace {

std::atomic<std::int64_t> allocations{0};

}  // namespace

// Not inlined: g++ 12 would take the malloc inside for a mismatch with the delete.
__attribute__((noinline)) void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
__attribute__((noinline)) void operator delete(void* memory) noexcept { std::free(memory); }
__attribute__((noinline)) void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace asdbench::kernels::testing {
namespace {

constexpr std::int64_t kHidden = 96;
constexpr std::int64_t kHeads = 6;
constexpr std::int64_t kCacheHeads = 2;
constexpr std::int64_t kHeadSize = 16;
constexpr std::int64_t kIntermediate = 160;
constexpr std::int64_t kVocab = 130;
constexpr std::int64_t kCapacity = 300;
constexpr std::int64_t kMaxRows = 40;
constexpr std::int64_t kLayers = 2;
constexpr float kEpsilon = 1e-5f;

PackedMatrix weights(WeightFormat format, std::int64_t outputs, std::int64_t inputs, Isa isa) {
  static std::uint32_t seed = 100;
  return random_matrix(format, outputs, inputs, seed++).packed(isa);
}

struct Layer {
  PackedMatrix query, key, value, output, gate, up, down;
};

/// One request's tokens so far and its caches.
struct Sequence {
  std::int64_t length = 0;
  std::vector<std::vector<float>> keys;  // one a layer
  std::vector<std::vector<float>> values;

  Sequence() {
    const CacheShape shape{kCacheHeads, kHeadSize, kCapacity};
    keys.assign(kLayers, std::vector<float>(static_cast<std::size_t>(shape.key_floats())));
    values.assign(kLayers, std::vector<float>(static_cast<std::size_t>(shape.value_floats())));
  }

  LayerCache cache(std::int64_t layer) {
    const auto at = static_cast<std::size_t>(layer);
    return {{kCacheHeads, kHeadSize, kCapacity}, keys[at].data(), values[at].data()};
  }
};

/// Tokens that one sequence appends in a step.
struct Part {
  Sequence* sequence;
  std::vector<int> tokens;
};

class Model {
 public:
  Model(Isa isa, int threads) : isa_(isa), pool_(threads) {
    for (std::int64_t i = 0; i < kLayers; ++i) {
      layers_.push_back({weights(WeightFormat::kQ4_1, kHeads * kHeadSize, kHidden, isa),
                         weights(WeightFormat::kQ5_0, kCacheHeads * kHeadSize, kHidden, isa),
                         weights(WeightFormat::kQ8_0, kCacheHeads * kHeadSize, kHidden, isa),
                         weights(WeightFormat::kQ4_0, kHidden, kHeads * kHeadSize, isa),
                         weights(WeightFormat::kQ4_1, kIntermediate, kHidden, isa),
                         weights(WeightFormat::kBf16, kIntermediate, kHidden, isa),
                         weights(WeightFormat::kF16, kHidden, kIntermediate, isa)});
    }
    head_ = weights(WeightFormat::kQ8_0, kVocab, kHidden, isa);
    norm_ = random_values(kHidden, 99);
    workspace_.resize(
        static_cast<std::size_t>(attention_workspace(kMaxRows, kHeads, kHeadSize, kCapacity)));
    logits_.resize(kMaxRows * kVocab);
  }

  /// Logits [rows, kVocab] of all parts in order; lengths grow by the tokens.
  std::span<const float> forward(std::span<Part> parts) {
    std::int64_t rows = 0;
    for (const Part& part : parts) {
      for (const int token : part.tokens) {
        head_.unpack_row(
            token, std::span(stream_).subspan(static_cast<std::size_t>(rows++ * kHidden), kHidden));
      }
    }
    for (std::int64_t i = 0; i < kLayers; ++i) run_layer(i, parts, rows);
    rms_norm({stream_, kHidden}, rows, kHidden, norm_.data(), kEpsilon, {normed_, kHidden}, isa_);
    const LinearOutput head{&head_, {logits_.data(), kVocab}};
    linear(pool_, {normed_, kHidden}, rows, {&head, 1});
    for (Part& part : parts) part.sequence->length += std::ssize(part.tokens);
    return std::span(logits_).first(static_cast<std::size_t>(rows * kVocab));
  }

 private:
  static constexpr std::int64_t kQuery = kHeads * kHeadSize;
  static constexpr std::int64_t kKey = kCacheHeads * kHeadSize;
  static constexpr std::int64_t kQkv = kQuery + 2 * kKey;

  void run_layer(std::int64_t index, std::span<Part> parts, std::int64_t rows) {
    const Layer& layer = layers_[static_cast<std::size_t>(index)];
    rms_norm({stream_, kHidden}, rows, kHidden, norm_.data(), kEpsilon, {normed_, kHidden}, isa_);
    const LinearOutput qkv[] = {{&layer.query, {qkv_, kQkv}},
                                {&layer.key, {qkv_ + kQuery, kQkv}},
                                {&layer.value, {qkv_ + kQuery + kKey, kQkv}}};
    linear(pool_, {normed_, kHidden}, rows, qkv);
    AttentionBlock blocks[8];
    std::size_t count = 0;
    std::int64_t row = 0;
    for (Part& part : parts) {
      Sequence& sequence = *part.sequence;
      blocks[count++] = {sequence.cache(index),
                         sequence.length,
                         std::ssize(part.tokens),
                         {qkv_ + row * kQkv, kQkv},
                         {mixed_ + row * kQuery, kQuery}};
      for (std::int64_t i = 0; i < std::ssize(part.tokens); ++i, ++row) {
        float* query = qkv_ + row * kQkv;
        float cosine[kHeadSize / 2];
        float sine[kHeadSize / 2];
        rope_angles(sequence.length + i, frequency_, cosine, sine);
        rope(query, kHeads + kCacheHeads, kHeadSize / 2, cosine, sine);
        store_keys_values(sequence.cache(index), sequence.length + i, query + kQuery,
                          query + kQuery + kKey);
      }
    }
    attention(pool_, {blocks, count}, kHeads, workspace_, isa_);
    const LinearOutput output{&layer.output, {stream_, kHidden}, nullptr, {stream_, kHidden}};
    linear(pool_, {mixed_, kQuery}, rows, {&output, 1});
    rms_norm({stream_, kHidden}, rows, kHidden, norm_.data(), kEpsilon, {normed_, kHidden}, isa_);
    linear_swiglu(pool_, {normed_, kHidden}, rows, layer.gate, layer.up, {inner_, kIntermediate});
    const LinearOutput down{&layer.down, {stream_, kHidden}, nullptr, {stream_, kHidden}};
    linear(pool_, {inner_, kIntermediate}, rows, {&down, 1});
  }

  Isa isa_;
  Pool pool_;
  std::vector<Layer> layers_;
  PackedMatrix head_;
  std::vector<float> norm_;
  std::vector<float> frequency_ = {1.0f, 0.4f, 0.2f, 0.1f, 0.04f, 0.02f, 0.01f, 0.004f};
  std::vector<float> workspace_;
  std::vector<float> logits_;
  float stream_[kMaxRows * kHidden];
  float normed_[kMaxRows * kHidden];
  float qkv_[kMaxRows * kQkv];
  float mixed_[kMaxRows * kQuery];
  float inner_[kMaxRows * kIntermediate];
};

std::vector<int> tokens_from(int first, int count) {
  std::vector<int> tokens;
  for (int i = 0; i < count; ++i) tokens.push_back((first + 37 * i) % static_cast<int>(kVocab));
  return tokens;
}

class StepTest : public ::testing::TestWithParam<Isa> {};

TEST_P(StepTest, TokenByTokenInBlocksAndInBatchesTheLogitsHaveTheSameBits) {
  for (const int threads : {1, 2}) {
    Model model(GetParam(), threads);
    const std::vector<int> tokens = tokens_from(5, 150);  // two chunks of attention
    Sequence single;
    std::vector<float> expected;
    for (const int token : tokens) {
      Part part{&single, {token}};
      const std::span<const float> logits = model.forward({&part, 1});
      expected.insert(expected.end(), logits.begin(), logits.end());
    }
    Sequence other;  // a neighbour with a length of its own
    Part warm{&other, tokens_from(11, 33)};
    model.forward({&warm, 1});
    Sequence blocked;
    std::vector<float> found;
    std::size_t next = 0;
    for (std::size_t size = 1; next < tokens.size(); size = size % 17 + 1) {
      const std::size_t count = std::min(size, tokens.size() - next);
      Part parts[] = {{&other, tokens_from(static_cast<int>(size), static_cast<int>(size % 4) + 1)},
                      {&blocked,
                       {tokens.begin() + static_cast<std::ptrdiff_t>(next),
                        tokens.begin() + static_cast<std::ptrdiff_t>(next + count)}}};
      const std::span<const float> logits =
          model.forward(parts).subspan(parts[0].tokens.size() * static_cast<std::size_t>(kVocab));
      found.insert(found.end(), logits.begin(), logits.end());
      next += count;
      // Drafts that are not kept leave nothing behind.
      Part wrong{&blocked, tokens_from(99, 3)};
      model.forward({&wrong, 1});
      blocked.length -= 3;
    }
    EXPECT_TRUE(same_bits(found, expected)) << threads << " threads";
    EXPECT_FALSE(std::isnan(expected.back()));
  }
}

TEST_P(StepTest, AStepAllocatesNothing) {
  Model model(GetParam(), 2);
  Sequence sequence;
  Part part{&sequence, tokens_from(3, 9)};
  model.forward({&part, 1});
  const std::int64_t before = allocations.load();
  for (int i = 0; i < 20; ++i) model.forward({&part, 1});
  EXPECT_EQ(allocations.load(), before);
  EXPECT_GT(before, 0) << "the counter counts";
}

INSTANTIATE_TEST_SUITE_P(On, StepTest, ::testing::ValuesIn(supported_isas()),
                         [](const auto& isa) { return std::string(name_of(isa.param)); });

}  // namespace
}  // namespace asdbench::kernels::testing
