// The linear layers of one step of SmolLM2-135M (Q4_1, Q8_0 head) for 1 to 32 rows, beside the read
// rate of the machine in the same run and what it makes of the same bytes.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "runners/kernels/attention.h"
#include "runners/kernels/linear.h"
#include "runners/kernels/pool.h"
#include "runners/kernels/read_rate.h"
#include "runners/kernels/slab.h"

namespace asdbench::kernels {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kHidden = 576;
constexpr std::int64_t kIntermediate = 1'536;
constexpr std::int64_t kKeyValue = 192;
constexpr std::int64_t kVocab = 49'152;
constexpr std::int64_t kLayers = 30;
constexpr std::int64_t kMaxRows = 32;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

PackedMatrix random_weights(WeightFormat format, std::int64_t outputs, std::int64_t inputs) {
  static std::mt19937 random(7);
  const std::int64_t blocks = outputs * inputs / 32;
  const auto block = static_cast<std::size_t>(block_bytes(format));
  std::vector<std::byte> bytes(static_cast<std::size_t>(blocks) * block);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  // Scales near 2^-7, so that activations neither vanish nor overflow through the layers.
  for (std::size_t at = 0; at < bytes.size(); at += block) {
    bytes[at + 1] = std::byte{0x20};
    if (format == WeightFormat::kQ4_1) bytes[at + 3] = std::byte{0xac};
  }
  return PackedMatrix::pack(format, outputs, inputs, bytes);
}

struct Layer {
  PackedMatrix query = random_weights(WeightFormat::kQ4_1, kHidden, kHidden);
  PackedMatrix key = random_weights(WeightFormat::kQ4_1, kKeyValue, kHidden);
  PackedMatrix value = random_weights(WeightFormat::kQ4_1, kKeyValue, kHidden);
  PackedMatrix output = random_weights(WeightFormat::kQ4_1, kHidden, kHidden);
  PackedMatrix gate = random_weights(WeightFormat::kQ4_1, kIntermediate, kHidden);
  PackedMatrix up = random_weights(WeightFormat::kQ4_1, kIntermediate, kHidden);
  PackedMatrix down = random_weights(WeightFormat::kQ4_1, kHidden, kIntermediate);
};

struct Model {
  std::vector<Layer> layers{kLayers};
  PackedMatrix head = random_weights(WeightFormat::kQ8_0, kVocab, kHidden);

  std::int64_t bytes() const {
    std::int64_t sum = head.bytes();
    for (const Layer& layer : layers) {
      for (const PackedMatrix* weights : {&layer.query, &layer.key, &layer.value, &layer.output,
                                          &layer.gate, &layer.up, &layer.down}) {
        sum += weights->bytes();
      }
    }
    return sum;
  }
};

const Model& model() {
  static const Model kModel;
  return kModel;
}

/// Of the pool's threads, over more than any cache holds; taken before and after each benchmark.
double read_rate(Pool& pool) {
  static const ReadRate kRate(std::int64_t{768} << 20);
  return kRate.measure(pool);
}

/// All linear layers of a step, in the model's order.
void linears(benchmark::State& state) {
  const std::int64_t rows = state.range(0);
  Pool pool(static_cast<int>(state.range(1)));
  const Model& weights = model();
  std::vector<float> stream(kMaxRows * kHidden, 0.5f);
  std::vector<float> qkv(kMaxRows * (kHidden + 2 * kKeyValue));
  std::vector<float> hidden(kMaxRows * kIntermediate);
  std::vector<float> next(kMaxRows * kHidden);
  std::vector<float> logits(static_cast<std::size_t>(kMaxRows * kVocab));
  constexpr std::int64_t kQkv = kHidden + 2 * kKeyValue;
  const double rate_before = read_rate(pool);
  double fastest = std::numeric_limits<double>::infinity();
  for (auto _ : state) {
    const auto start = Clock::now();
    for (const Layer& layer : weights.layers) {
      const LinearOutput attention[] = {{&layer.query, {qkv.data(), kQkv}},
                                        {&layer.key, {qkv.data() + kHidden, kQkv}},
                                        {&layer.value, {qkv.data() + kHidden + kKeyValue, kQkv}}};
      linear(pool, {stream.data(), kHidden}, rows, attention);
      const LinearOutput output{&layer.output, {next.data(), kHidden}};
      linear(pool, {qkv.data(), kQkv}, rows, {&output, 1});
      linear_swiglu(pool, {stream.data(), kHidden}, rows, layer.gate, layer.up,
                    {hidden.data(), kIntermediate});
      const LinearOutput down{&layer.down, {next.data(), kHidden}};
      linear(pool, {hidden.data(), kIntermediate}, rows, {&down, 1});
    }
    const LinearOutput head{&weights.head, {logits.data(), kVocab}};
    linear(pool, {stream.data(), kHidden}, rows, {&head, 1});
    benchmark::DoNotOptimize(logits.data());
    fastest = std::min(fastest, seconds_since(start));
  }
  // The fastest step against the fastest read: other processes can only slow either down.
  const double rate = std::max(rate_before, read_rate(pool));
  const auto bytes = static_cast<double>(weights.bytes());
  state.counters["MB"] = bytes / 1e6;
  state.counters["fastest_ms"] = 1e3 * fastest;
  state.counters["read_GB/s"] = rate / 1e9;
  state.counters["of_roofline"] = bytes / rate / fastest;
  state.SetLabel(std::string(name_of(active_isa())) + ", " + std::to_string(pool.threads()) +
                 " threads");
}

void arguments(benchmark::internal::Benchmark* bench) {
  for (const int threads : {1, 2}) {
    for (const int rows : {1, 2, 3, 4, 6, 8, 16, 32}) bench->Args({rows, threads});
  }
}
BENCHMARK(linears)
    ->Apply(arguments)
    ->ArgNames({"rows", "threads"})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

/// Attention of one step over all layers, `rows` rows after `past` positions.
void attention_layers(benchmark::State& state) {
  const std::int64_t rows = state.range(0);
  const std::int64_t past = state.range(1);
  constexpr std::int64_t kQueryHeads = 9;
  const CacheShape shape{3, 64, past + rows};
  Pool pool(2);
  std::vector<std::shared_ptr<std::byte>> memory;
  const auto allocate = [&](std::int64_t floats) {
    memory.push_back(allocate_pages(static_cast<std::size_t>(floats) * sizeof(float)));
    auto* values = reinterpret_cast<float*>(memory.back().get());
    std::fill_n(values, floats, 0.25f);
    return values;
  };
  std::vector<LayerCache> caches;
  for (std::int64_t layer = 0; layer < kLayers; ++layer) {
    caches.push_back({shape, allocate(shape.key_floats()), allocate(shape.value_floats())});
  }
  std::vector<float> queries(static_cast<std::size_t>(rows * kHidden), 0.125f);
  std::vector<float> out(queries.size());
  std::vector<float> workspace(
      static_cast<std::size_t>(attention_workspace(rows, kQueryHeads, 64, past + rows)));
  double fastest = std::numeric_limits<double>::infinity();
  for (auto _ : state) {
    const auto start = Clock::now();
    for (const LayerCache& cache : caches) {
      const AttentionBlock block{
          cache, past, rows, {queries.data(), kHidden}, {out.data(), kHidden}};
      attention(pool, {&block, 1}, kQueryHeads, workspace);
    }
    fastest = std::min(fastest, seconds_since(start));
  }
  state.counters["fastest_ms"] = 1e3 * fastest;
  state.SetLabel(std::string(name_of(active_isa())) + ", 2 threads");
}
BENCHMARK(attention_layers)
    ->ArgsProduct({{1, 8}, {256, 2'048}})
    ->ArgNames({"rows", "past"})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

/// One round of the pool with tasks that do nothing: what a layer pays besides its arithmetic.
void pool_round(benchmark::State& state) {
  Pool pool(static_cast<int>(state.range(0)));
  for (auto _ : state) {
    pool.run(12, [](std::int64_t task) { benchmark::DoNotOptimize(task); });
  }
}
BENCHMARK(pool_round)->ArgName("threads")->Arg(1)->Arg(2)->UseRealTime();

}  // namespace
}  // namespace asdbench::kernels
