// Byte-level BPE as HF checkpoints and GGUF files describe it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "eval/core/token_id.h"

namespace asdbench {

/// Pre-tokenizers (specs: targets, section 7.2).
enum class PreTokenizer : std::uint8_t { kSmolLm, kLlama3, kQwen2 };

struct AddedToken {
  TokenId id = kNoToken;
  std::string content;
  bool special = false;
  bool normalized = false;
};

/// Everything a tokenizer is made from, whatever file it came from. Strings are in the byte-mapped
/// alphabet.
struct TokenizerSpec {
  PreTokenizer pre = PreTokenizer::kSmolLm;
  std::vector<std::pair<std::string, TokenId>> vocab;
  std::vector<std::pair<std::string, std::string>> merges;  // by rank
  std::vector<AddedToken> added;
  bool ignore_merges = false;
  bool nfc = false;
  std::optional<TokenId> bos_id;  // prepended when special tokens are asked for (Llama-3)
};

/// How special tokens inside a text are treated.
enum class SpecialTokens : std::uint8_t {
  kRecognise,  // added tokens in the text become their ids
  kPlain,      // entries with special = true are ordinary text; the others are still recognised
};

/// Immutable; encode and decode may be called from several threads.
class Tokenizer {
 public:
  /// ModelError: kBadConfig for a merge of unknown tokens, ids out of range, duplicates;
  /// kUnsupported for features that are refused.
  explicit Tokenizer(const TokenizerSpec& spec);
  ~Tokenizer();

  /// Ids of `text`; nothing is prepended.
  std::vector<TokenId> encode(std::string_view text,
                              SpecialTokens special = SpecialTokens::kRecognise) const;
  /// The same with what the post-processor adds in front.
  std::vector<TokenId> encode_full(std::string_view text) const;
  /// Bytes of one id, as they enter the decoded text.
  std::string_view bytes(TokenId id) const;
  bool is_special(TokenId id) const;
  /// Decoded text: concatenated bytes, each maximal ill-formed part shown as one U+FFFD.
  std::string decode(std::span<const TokenId> ids, bool skip_special = false) const;
  std::int64_t vocab_size() const;
  /// Content hash of vocabulary, merges and added tokens, for manifests.
  const std::string& sha256() const;
  /// Bytes (of 256) that no token represents and that encoding drops.
  std::int32_t dropped_bytes() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Reads tokenizer.json (specs: targets, section 7). ModelError.
TokenizerSpec read_tokenizer_json(const std::filesystem::path& path);

/// Emits text as ids arrive, never splitting a UTF-8 sequence (section 7.4).
class StreamDecoder {
 public:
  explicit StreamDecoder(const Tokenizer& tokenizer, bool skip_special = false)
      : tokenizer_(tokenizer), skip_special_(skip_special) {}
  /// The text that is complete after this id; may be empty.
  std::string push(TokenId id);
  /// The rest, ill-formed parts as U+FFFD.
  std::string flush();

 private:
  const Tokenizer& tokenizer_;
  bool skip_special_;
  std::string held_;
};

}  // namespace asdbench
