// Reads vocabulary, merges and added tokens out of GGUF metadata.
#include "runners/models/gguf_tokenizer.h"

#include <fmt/format.h>

#include <limits>

#include "eval/core/error.h"

namespace asdbench {
namespace {

enum class TokenType : std::int64_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6,
};

[[noreturn]] void fail(ModelFault fault, const std::string& message) {
  throw ModelError(fault, "tokenizer in the GGUF file: " + message);
}

bool flag_or(const GgufFile& file, std::string_view key, bool fallback) {
  const GgufValue* value = file.find(key);
  if (value == nullptr) return fallback;
  const bool* flag = std::get_if<bool>(value);
  if (flag == nullptr) fail(ModelFault::kBadConfig, fmt::format("{} is no bool", key));
  return *flag;
}

PreTokenizer read_pre(const GgufFile& file) {
  const std::string& pre = file.text("tokenizer.ggml.pre");
  if (pre == "smollm") return PreTokenizer::kSmolLm;
  if (pre == "llama-bpe" || pre == "llama3" || pre == "llama-v3") return PreTokenizer::kLlama3;
  if (pre == "qwen2") return PreTokenizer::kQwen2;
  fail(ModelFault::kUnsupported,
       fmt::format("tokenizer.ggml.pre is \"{:.40}\"; supported are smollm, llama-bpe (llama3, "
                   "llama-v3) and qwen2",
                   pre));
}

void add_tokens(const GgufFile& file, TokenizerSpec& spec) {
  const std::vector<std::string>& tokens = file.texts("tokenizer.ggml.tokens");
  const std::vector<std::int64_t> types = file.integers("tokenizer.ggml.token_type");
  if (types.size() != tokens.size()) {
    fail(ModelFault::kBadConfig,
         fmt::format("{} tokens, but {} token types", tokens.size(), types.size()));
  }
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    switch (static_cast<TokenType>(types[i])) {
      case TokenType::kControl:
        spec.added.push_back({id, tokens[i], /*special=*/true});
        break;
      case TokenType::kUserDefined:
        spec.added.push_back({id, tokens[i], /*special=*/false});
        break;
      case TokenType::kNormal:
      case TokenType::kUnknown:
      case TokenType::kByte:
        spec.vocab.emplace_back(tokens[i], id);
        break;
      case TokenType::kUnused:
        break;
      default:
        fail(ModelFault::kBadConfig,
             fmt::format("token {} has type {}, expected 1 to 6", i, types[i]));
    }
  }
}

void add_merges(const GgufFile& file, TokenizerSpec& spec) {
  const std::vector<std::string>& merges = file.texts("tokenizer.ggml.merges");
  spec.merges.reserve(merges.size());
  for (std::size_t rank = 0; rank < merges.size(); ++rank) {
    const std::string& merge = merges[rank];
    const std::size_t blank = merge.find(' ');
    if (blank == std::string::npos || merge.find(' ', blank + 1) != std::string::npos) {
      fail(ModelFault::kBadConfig,
           fmt::format("merge {} is \"{:.40}\", expected two tokens with one blank between them",
                       rank, merge));
    }
    spec.merges.emplace_back(merge.substr(0, blank), merge.substr(blank + 1));
  }
}

}  // namespace

TokenizerSpec gguf_tokenizer_spec(const GgufFile& file) {
  const std::string& model = file.text("tokenizer.ggml.model");
  if (model != "gpt2") {
    fail(ModelFault::kUnsupported,
         fmt::format("tokenizer.ggml.model is \"{:.40}\"; only byte-level BPE (\"gpt2\") is "
                     "supported",
                     model));
  }
  if (flag_or(file, "tokenizer.ggml.add_space_prefix", false)) {
    fail(ModelFault::kUnsupported, "tokenizer.ggml.add_space_prefix is true");
  }
  TokenizerSpec spec;
  spec.pre = read_pre(file);
  spec.ignore_merges = spec.pre == PreTokenizer::kLlama3;
  // Not stated by the file, and llama.cpp does not do it; HF's tokenizers of the family do.
  spec.nfc = spec.pre == PreTokenizer::kQwen2;
  add_tokens(file, spec);
  add_merges(file, spec);
  if (flag_or(file, "tokenizer.ggml.add_bos_token", spec.pre == PreTokenizer::kLlama3)) {
    const std::int64_t bos = file.integer("tokenizer.ggml.bos_token_id");
    const auto tokens = static_cast<std::int64_t>(file.texts("tokenizer.ggml.tokens").size());
    if (bos < 0 || bos >= tokens) {
      fail(ModelFault::kBadConfig,
           fmt::format("tokenizer.ggml.bos_token_id is {} of {} tokens", bos, tokens));
    }
    spec.bos_id = static_cast<TokenId>(bos);
  }
  return spec;
}

}  // namespace asdbench
