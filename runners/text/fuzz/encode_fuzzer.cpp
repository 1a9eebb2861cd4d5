// Encodes bytes with a small vocabulary of every family: all bytes come back, in order, and
// streaming shows what decoding shows.
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "eval/core/utf8.h"
#include "runners/text/byte_alphabet.h"
#include "runners/text/normalize.h"
#include "runners/text/tokenizer.h"

namespace {

using asdbench::PreTokenizer;
using asdbench::SpecialTokens;
using asdbench::TokenId;
using asdbench::Tokenizer;

Tokenizer make(PreTokenizer pre, bool nfc) {
  asdbench::TokenizerSpec spec;
  spec.pre = pre;
  spec.nfc = nfc;
  spec.ignore_merges = pre == PreTokenizer::kLlama3;
  for (int byte = 0; byte < 256; ++byte) {
    spec.vocab.emplace_back(asdbench::mapped_byte(static_cast<std::uint8_t>(byte)), byte);
  }
  const std::array<std::pair<const char*, const char*>, 6> merges = {
      {{"a", "a"}, {"aa", "aa"}, {"t", "h"}, {"th", "e"}, {"\u0120", "\u0120"}, {"'", "s"}}};
  for (const auto& [left, right] : merges) {
    spec.vocab.emplace_back(std::string(left) + right, static_cast<TokenId>(spec.vocab.size()));
    spec.merges.emplace_back(left, right);
  }
  spec.added = {{300, "<|s|>", true, false}, {301, "<t>", false, false}, {302, "<|", true, false}};
  return Tokenizer(spec);
}

void check(const Tokenizer& tokenizer, bool nfc, SpecialTokens special, std::string_view text) {
  const std::vector<TokenId> ids = tokenizer.encode(text, special);
  std::string bytes, streamed;
  asdbench::StreamDecoder stream(tokenizer);
  for (const TokenId id : ids) {
    bytes += tokenizer.bytes(id);
    streamed += stream.push(id);
  }
  streamed += stream.flush();
  if (!nfc && bytes != text) __builtin_trap();
  if (streamed != tokenizer.decode(ids) || streamed != asdbench::well_formed(bytes)) {
    __builtin_trap();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Tokenizer smol = make(PreTokenizer::kSmolLm, false);
  static const Tokenizer llama = make(PreTokenizer::kLlama3, false);
  static const Tokenizer qwen = make(PreTokenizer::kQwen2, true);
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const SpecialTokens special : {SpecialTokens::kRecognise, SpecialTokens::kPlain}) {
    check(smol, false, special, text);
    check(llama, false, special, text);
    check(qwen, true, special, text);
  }
  const std::string composed = asdbench::to_nfc(text);
  if (asdbench::to_nfc(composed) != composed) __builtin_trap();
  return 0;
}
