// Byte-level BPE: added tokens, normalisation, pre-tokens, merges; and back to text.
#include "runners/text/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <unordered_map>

#include "eval/core/digest.h"
#include "eval/core/error.h"
#include "eval/core/utf8.h"
#include "runners/text/added_tokens.h"
#include "runners/text/bpe.h"
#include "runners/text/byte_alphabet.h"
#include "runners/text/normalize.h"
#include "runners/text/pre_tokenize.h"
#include "runners/text/token_cache.h"

namespace asdbench {
namespace {

// Bounds the table of entries whatever a file claims; the largest vocabularies known have 262,144.
constexpr TokenId kIdLimit = 1 << 22;

[[noreturn]] void refuse(const std::string& what) {
  throw ModelError(ModelFault::kBadConfig, "tokenizer: " + what);
}

struct Entry {
  std::string bytes;  // as they enter the decoded text
  bool used = false;
  bool special = false;
};

using Ids = std::unordered_map<std::string_view, TokenId>;

void check_id(TokenId id, std::string_view content) {
  if (id < 0 || id >= kIdLimit) {
    refuse(fmt::format("token \"{}\" has id {}; expected 0 to {}", content, id, kIdLimit - 1));
  }
}

// Ids by mapped string; the views point into `spec`.
Ids index_vocab(const TokenizerSpec& spec) {
  if (spec.vocab.empty()) refuse("the vocabulary is empty");
  Ids ids;
  ids.reserve(spec.vocab.size());
  for (const auto& [content, id] : spec.vocab) {
    check_id(id, content);
    if (!ids.emplace(content, id).second) {
      refuse(fmt::format("token \"{}\" occurs twice in the vocabulary", content));
    }
  }
  return ids;
}

void set_entry(std::vector<Entry>& entries, TokenId id, Entry entry) {
  const auto index = static_cast<std::size_t>(id);
  if (entries.size() <= index) entries.resize(index + 1);
  entries[index] = std::move(entry);
}

std::vector<Entry> make_entries(const TokenizerSpec& spec, const Ids& ids) {
  std::vector<Entry> entries;
  for (const auto& [content, id] : spec.vocab) {
    if (static_cast<std::size_t>(id) < entries.size() &&
        entries[static_cast<std::size_t>(id)].used) {
      refuse(fmt::format("id {} occurs twice in the vocabulary, the second time for \"{}\"", id,
                         content));
    }
    // Content outside the byte alphabet stands for its own UTF-8, as the reference decodes it.
    set_entry(entries, id, {unmapped_bytes(content).value_or(content), true, false});
  }
  std::unordered_map<std::string_view, TokenId> added;
  for (const AddedToken& token : spec.added) {
    check_id(token.id, token.content);
    if (token.content.empty()) refuse(fmt::format("added token {} has no content", token.id));
    if (!added.emplace(token.content, token.id).second) {
      refuse(fmt::format("added token \"{}\" occurs twice", token.content));
    }
    const bool taken = static_cast<std::size_t>(token.id) < entries.size() &&
                       entries[static_cast<std::size_t>(token.id)].used;
    const auto in_vocab = ids.find(token.content);
    if (in_vocab == ids.end() ? taken : in_vocab->second != token.id) {
      refuse(fmt::format("added token \"{}\" has id {}, which the vocabulary contradicts",
                         token.content, token.id));
    }
    set_entry(entries, token.id, {token.content, true, token.special});
  }
  return entries;
}

TokenId known_piece(const Ids& ids, const std::string& piece, std::size_t rank) {
  const auto found = ids.find(piece);
  if (piece.empty() || found == ids.end()) {
    refuse(fmt::format("merge {} names \"{}\", which is not in the vocabulary", rank, piece));
  }
  return found->second;
}

std::vector<Merge> make_merges(const TokenizerSpec& spec, const Ids& ids) {
  std::vector<Merge> merges;
  std::vector<std::pair<TokenId, TokenId>> pairs;
  merges.reserve(spec.merges.size());
  pairs.reserve(spec.merges.size());
  for (std::size_t rank = 0; rank < spec.merges.size(); ++rank) {
    const auto& [left, right] = spec.merges[rank];
    merges.push_back({known_piece(ids, left, rank), known_piece(ids, right, rank),
                      known_piece(ids, left + right, rank)});
    pairs.emplace_back(merges.back().left, merges.back().right);
  }
  std::sort(pairs.begin(), pairs.end());
  const auto twice = std::adjacent_find(pairs.begin(), pairs.end());
  if (twice != pairs.end()) {
    refuse(fmt::format("the merge of ids {} and {} occurs twice", twice->first, twice->second));
  }
  return merges;
}

std::array<TokenId, 256> make_byte_ids(const Ids& ids) {
  std::array<TokenId, 256> out{};
  for (std::size_t byte = 0; byte < out.size(); ++byte) {
    const auto found = ids.find(mapped_byte(static_cast<std::uint8_t>(byte)));
    out[byte] = found == ids.end() ? kNoToken : found->second;
  }
  return out;
}

enum class Plain : std::uint8_t { kNo, kYes };

AddedMatcher make_matcher(const TokenizerSpec& spec, bool normalized, Plain plain) {
  std::vector<std::pair<std::string, TokenId>> contents;
  for (const AddedToken& token : spec.added) {
    if (token.normalized != normalized || (plain == Plain::kYes && token.special)) continue;
    const bool compose = normalized && spec.nfc;
    contents.emplace_back(compose ? to_nfc(token.content) : token.content, token.id);
  }
  return AddedMatcher(std::move(contents));
}

// Added tokens of one mode: those looked for in the raw text, then those in the normalised pieces.
struct Matchers {
  Matchers(const TokenizerSpec& spec, Plain plain)
      : raw(make_matcher(spec, false, plain)), normalized(make_matcher(spec, true, plain)) {}
  AddedMatcher raw;
  AddedMatcher normalized;
};

// Everything that decides ids, in a fixed order, each string with its length before it.
std::string hash_of(const TokenizerSpec& spec) {
  Sha256 hash;
  const auto text = [&](std::string_view part) {
    hash.update(fmt::format("{}:", part.size())).update(part);
  };
  hash.update(fmt::format("pre={} nfc={} ignore_merges={} bos={}\n", static_cast<int>(spec.pre),
                          spec.nfc, spec.ignore_merges, spec.bos_id.value_or(kNoToken)));
  std::vector<std::pair<TokenId, std::string_view>> vocab;
  for (const auto& [content, id] : spec.vocab) vocab.emplace_back(id, content);
  std::sort(vocab.begin(), vocab.end());
  for (const auto& [id, content] : vocab) {
    hash.update(fmt::format("v{} ", id));
    text(content);
  }
  for (const auto& [left, right] : spec.merges) {
    hash.update("m");
    text(left);
    text(right);
  }
  std::vector<AddedToken> added = spec.added;
  std::sort(added.begin(), added.end(),
            [](const AddedToken& a, const AddedToken& b) { return a.id < b.id; });
  for (const AddedToken& token : added) {
    hash.update(fmt::format("a{} {} {} ", token.id, token.special, token.normalized));
    text(token.content);
  }
  return hash.finish_hex();
}

}  // namespace

struct Tokenizer::State {
  explicit State(const TokenizerSpec& spec) : State(spec, index_vocab(spec)) {}

  State(const TokenizerSpec& spec, const Ids& ids)
      : pre(spec.pre),
        nfc(spec.nfc),
        ignore_merges(spec.ignore_merges),
        bos_id(spec.bos_id),
        entries(make_entries(spec, ids)),
        byte_ids(make_byte_ids(ids)),
        merges(make_merges(spec, ids), static_cast<TokenId>(entries.size())),
        recognised(spec, Plain::kNo),
        plain(spec, Plain::kYes),
        sha256(hash_of(spec)) {
    if (bos_id && find(*bos_id) == nullptr) {
      refuse(fmt::format("the id {} to prepend is not in the vocabulary", *bos_id));
    }
    if (ignore_merges) index_whole(spec);
  }

  // Pre-tokens that are one token whatever the merges say. Only mapped strings can be pre-tokens.
  void index_whole(const TokenizerSpec& spec) {
    whole.reserve(spec.vocab.size());
    for (const auto& [content, id] : spec.vocab) {
      if (auto bytes = unmapped_bytes(content)) whole.emplace(std::move(*bytes), id);
    }
  }

  const Entry* find(TokenId id) const {
    if (id < 0 || static_cast<std::size_t>(id) >= entries.size()) return nullptr;
    const Entry& entry = entries[static_cast<std::size_t>(id)];
    return entry.used ? &entry : nullptr;
  }

  void encode(std::string_view text, SpecialTokens special, std::vector<TokenId>& out) const {
    const Matchers& added = special == SpecialTokens::kRecognise ? recognised : plain;
    around_matches(added.raw, text, out, [&](std::string_view piece) {
      if (nfc && may_change_in_nfc(piece)) {
        encode_normalized(added, to_nfc(piece), out);
      } else {
        encode_normalized(added, piece, out);
      }
    });
  }

  void encode_normalized(const Matchers& added, std::string_view text,
                         std::vector<TokenId>& out) const {
    around_matches(added.normalized, text, out, [&](std::string_view piece) {
      for (std::size_t begin = 0; begin < piece.size();) {
        const std::size_t end = pre_token_end(pre, piece, begin);
        encode_word(piece.substr(begin, end - begin), out);
        begin = end;
      }
    });
  }

  // Appends the ids of matches to `out` and hands the text between them to `encode_piece`, in
  // order.
  template <typename EncodePiece>
  static void around_matches(const AddedMatcher& matcher, std::string_view text,
                             std::vector<TokenId>& out, const EncodePiece& encode_piece) {
    if (matcher.empty()) return encode_piece(text);
    for (std::size_t at = 0; at < text.size();) {
      const AddedMatch match = matcher.find(text, at);
      if (match.begin > at) encode_piece(text.substr(at, match.begin - at));
      if (match.id != kNoToken) out.push_back(match.id);
      at = match.end;
    }
  }

  void encode_word(std::string_view word, std::vector<TokenId>& out) const {
    if (ignore_merges) {
      const auto found = whole.find(std::string(word));
      if (found != whole.end()) {
        out.push_back(found->second);
        return;
      }
    }
    const bool cached = word.size() > 1 && word.size() <= TokenCache::kMaxKeyBytes;
    if (cached && cache.append(word, out)) return;
    std::vector<TokenId> ids;
    ids.reserve(word.size());
    for (const char c : word) {
      const TokenId id = byte_ids[static_cast<std::uint8_t>(c)];
      if (id != kNoToken) ids.push_back(id);  // dropped as the reference does: neighbours may merge
    }
    apply_merges(merges, ids);
    if (cached) cache.insert(word, ids);
    out.insert(out.end(), ids.begin(), ids.end());
  }

  PreTokenizer pre;
  bool nfc;
  bool ignore_merges;
  std::optional<TokenId> bos_id;
  std::vector<Entry> entries;         // [highest id + 1]
  std::array<TokenId, 256> byte_ids;  // kNoToken: no token represents the byte
  MergeTable merges;
  Matchers recognised, plain;
  std::unordered_map<std::string, TokenId> whole;  // by bytes; empty unless ignore_merges
  std::string sha256;
  mutable TokenCache cache;
};

Tokenizer::Tokenizer(const TokenizerSpec& spec) : state_(std::make_unique<State>(spec)) {}

Tokenizer::~Tokenizer() = default;

std::vector<TokenId> Tokenizer::encode(std::string_view text, SpecialTokens special) const {
  std::vector<TokenId> out;
  state_->encode(text, special, out);
  return out;
}

std::vector<TokenId> Tokenizer::encode_full(std::string_view text) const {
  std::vector<TokenId> out;
  if (state_->bos_id) out.push_back(*state_->bos_id);
  state_->encode(text, SpecialTokens::kRecognise, out);
  return out;
}

std::string_view Tokenizer::bytes(TokenId id) const {
  const Entry* entry = state_->find(id);
  return entry == nullptr ? std::string_view() : entry->bytes;
}

bool Tokenizer::is_special(TokenId id) const {
  const Entry* entry = state_->find(id);
  return entry != nullptr && entry->special;
}

std::string Tokenizer::decode(std::span<const TokenId> ids, bool skip_special) const {
  std::string joined;
  for (const TokenId id : ids) {
    if (!skip_special || !is_special(id)) joined += bytes(id);
  }
  return well_formed(joined);
}

std::int64_t Tokenizer::vocab_size() const {
  return static_cast<std::int64_t>(state_->entries.size());
}

const std::string& Tokenizer::sha256() const { return state_->sha256; }

std::int32_t Tokenizer::dropped_bytes() const {
  return static_cast<std::int32_t>(
      std::count(state_->byte_ids.begin(), state_->byte_ids.end(), kNoToken));
}

std::string StreamDecoder::push(TokenId id) {
  std::string out;
  if (skip_special_ && tokenizer_.is_special(id)) return out;
  held_ += tokenizer_.bytes(id);
  take_complete_utf8(held_, out);
  return out;
}

std::string StreamDecoder::flush() {
  std::string rest = well_formed(held_);
  held_.clear();
  return rest;
}

}  // namespace asdbench
