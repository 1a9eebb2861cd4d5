// Tokenizer speed in bytes of English text per second of one thread.
//
// ASDBENCH_TOKENIZER names a .gguf or tokenizer.json file; without it SmolLM2's file is looked for
// in ASDBENCH_MODELS (models). The text is GSM8K's test file in ASDBENCH_DATA (data).
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>

#include "eval/core/json.h"
#include "runners/checkpoint/gguf.h"
#include "runners/models/gguf_tokenizer.h"
#include "runners/text/tokenizer.h"

namespace {

namespace fs = std::filesystem;

using asdbench::Tokenizer;
using asdbench::TokenizerSpec;

fs::path folder(const char* variable, const char* fallback) {
  const char* value = std::getenv(variable);
  return value == nullptr ? fallback : value;
}

fs::path vocabulary() {
  if (const char* file = std::getenv("ASDBENCH_TOKENIZER")) return file;
  return folder("ASDBENCH_MODELS", "models") / "smollm2-135m" / "SmolLM2-135M-Instruct.Q4_1.gguf";
}

const TokenizerSpec& spec() {
  static const TokenizerSpec kInstance =
      vocabulary().extension() == ".gguf"
          ? asdbench::gguf_tokenizer_spec(asdbench::GgufFile::open(vocabulary()))
          : asdbench::read_tokenizer_json(vocabulary());
  return kInstance;
}

const std::string& english() {
  static const std::string kInstance = [] {
    const fs::path file = folder("ASDBENCH_DATA", "data") / "gsm8k" / "test.jsonl";
    std::ifstream in(file);
    std::string text;
    for (std::string line; std::getline(in, line);) {
      const asdbench::Json row = asdbench::parse_json(line);
      text += row.at("question").get<std::string>() + "\n" + row.at("answer").get<std::string>();
    }
    if (text.empty()) throw std::runtime_error(file.string() + ": no text");
    return text;
  }();
  return kInstance;
}

void set_rates(benchmark::State& state, std::size_t bytes, std::size_t ids) {
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes));
  state.counters["bytes_per_id"] = static_cast<double>(bytes) / static_cast<double>(ids);
}

// Nothing is in the cache when the text begins; its own repetitions still help.
void encode_first_time(benchmark::State& state) {
  std::size_t ids = 0;
  for (auto _ : state) {
    state.PauseTiming();
    auto tokenizer = std::make_unique<Tokenizer>(spec());
    state.ResumeTiming();
    ids = tokenizer->encode(english()).size();
    state.PauseTiming();
    tokenizer.reset();
    state.ResumeTiming();
  }
  set_rates(state, english().size(), ids);
}
BENCHMARK(encode_first_time)->Unit(benchmark::kMillisecond);

void encode_again(benchmark::State& state) {
  const Tokenizer tokenizer(spec());
  std::size_t ids = tokenizer.encode(english()).size();
  for (auto _ : state) ids = tokenizer.encode(english()).size();
  set_rates(state, english().size(), ids);
}
BENCHMARK(encode_again)->Unit(benchmark::kMillisecond);

void decode(benchmark::State& state) {
  const Tokenizer tokenizer(spec());
  const auto ids = tokenizer.encode(english());
  for (auto _ : state) benchmark::DoNotOptimize(tokenizer.decode(ids));
  set_rates(state, english().size(), ids.size());
}
BENCHMARK(decode)->Unit(benchmark::kMillisecond);

// One pre-token of the given length: the time must grow as n log n.
void encode_one_letter(benchmark::State& state) {
  const Tokenizer tokenizer(spec());
  const std::string text(static_cast<std::size_t>(state.range(0)), 'a');
  std::size_t ids = 1;
  for (auto _ : state) ids = tokenizer.encode(text).size();
  set_rates(state, text.size(), ids);
  state.SetComplexityN(state.range(0));
}
BENCHMARK(encode_one_letter)
    ->RangeMultiplier(10)
    ->Range(1'000, 1'000'000)
    ->Complexity(benchmark::oNLogN)
    ->Unit(benchmark::kMillisecond);

}  // namespace
