// Rules of byte-level BPE on small vocabularies made for one rule each, and hostile input.
#include "runners/text/tokenizer.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "eval/core/error.h"
#include "eval/core/rng.h"
#include "runners/text/byte_alphabet.h"
#include "runners/text/tests/fixture_files.h"

namespace asdbench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::load_tokenizer;

using Ids = std::vector<TokenId>;

// Ids 0..255 are the bytes; every merge adds its result as the next id.
TokenizerSpec byte_spec(const std::vector<std::pair<std::string, std::string>>& merges = {}) {
  TokenizerSpec spec;
  for (int byte = 0; byte < 256; ++byte) {
    spec.vocab.emplace_back(mapped_byte(static_cast<std::uint8_t>(byte)), byte);
  }
  for (const auto& [left, right] : merges) {
    spec.vocab.emplace_back(left + right, static_cast<TokenId>(spec.vocab.size()));
    spec.merges.emplace_back(left, right);
  }
  return spec;
}

ModelFault fault_of(const TokenizerSpec& spec, std::string* message = nullptr) {
  try {
    const Tokenizer tokenizer(spec);
  } catch (const ModelError& error) {
    if (message != nullptr) *message = error.what();
    return error.fault();
  }
  ADD_FAILURE() << "accepted";
  return ModelFault::kMissingFile;
}

Ids byte_ids(std::string_view text) {
  Ids ids;
  for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
  return ids;
}

TEST(Tokenizer, MergesTheLowestRankFirst) {
  const Tokenizer tokenizer(byte_spec({{"b", "c"}, {"a", "b"}, {"bc", "d"}, {"a", "bcd"}}));
  EXPECT_THAT(tokenizer.encode("abcd"), ElementsAre(259));  // bc, bcd, abcd
  EXPECT_THAT(tokenizer.encode("abd"), ElementsAre(257, 'd'));
}

TEST(Tokenizer, MergesTheLeftmostAmongEqualRanks) {
  const Tokenizer tokenizer(byte_spec({{"a", "a"}, {"aa", "aa"}}));
  EXPECT_THAT(tokenizer.encode("aaa"), ElementsAre(256, 'a'));
  EXPECT_THAT(tokenizer.encode("aaaaaaa"), ElementsAre(257, 256, 'a'));
}

TEST(Tokenizer, IgnoreMergesTakesWholePreTokens) {
  TokenizerSpec spec = byte_spec({{"a", "b"}});
  spec.vocab.emplace_back("abc", 257);
  EXPECT_THAT(Tokenizer(spec).encode("abc"), ElementsAre(256, 'c'));
  spec.ignore_merges = true;
  const Tokenizer tokenizer(spec);
  EXPECT_THAT(tokenizer.encode("abc"), ElementsAre(257));
  EXPECT_THAT(tokenizer.encode("abcd"), ElementsAre(256, 'c', 'd'));
}

TEST(Tokenizer, DropsBytesWithoutATokenAndMergesAcrossThem) {
  TokenizerSpec spec = byte_spec({{"a", "c"}});
  spec.vocab.erase(spec.vocab.begin() + 'b');
  const Tokenizer tokenizer(spec);
  EXPECT_EQ(tokenizer.dropped_bytes(), 1);
  EXPECT_THAT(tokenizer.encode("abc"), ElementsAre(256));
  EXPECT_THAT(tokenizer.encode("b"), IsEmpty());
  EXPECT_EQ(load_tokenizer("llama3")->dropped_bytes(), 0);
}

TEST(Tokenizer, FindsAddedTokensLeftmostThenLongest) {
  TokenizerSpec spec = byte_spec();
  spec.added = {{256, "<a>", true, false},
                {257, "<a><b>", true, false},
                {258, "><b>c", true, false},
                {'<', "<", false, false}};
  const Tokenizer tokenizer(spec);
  EXPECT_THAT(tokenizer.encode("x<a><b>c"), ElementsAre('x', 257, 'c'));
  EXPECT_THAT(tokenizer.encode("<a><c"), ElementsAre(256, '<', 'c'));
  EXPECT_THAT(tokenizer.encode("><b>c"), ElementsAre(258));
  EXPECT_THAT(tokenizer.encode("<a"), ElementsAre('<', 'a'));
}

TEST(Tokenizer, PlainModeKeepsOnlyTokensThatAreNotSpecial) {
  TokenizerSpec spec = byte_spec();
  spec.added = {{256, "<s>", true, false}, {257, "<think>", false, false}};
  const Tokenizer tokenizer(spec);
  EXPECT_THAT(tokenizer.encode("<s><think>"), ElementsAre(256, 257));
  EXPECT_THAT(tokenizer.encode("<s><think>", SpecialTokens::kPlain),
              ElementsAre('<', 's', '>', 257));
  const Ids ids = {256, 257};
  EXPECT_EQ(tokenizer.decode(ids), "<s><think>");
  EXPECT_EQ(tokenizer.decode(ids, true), "<think>");
}

TEST(Tokenizer, NormalizedAddedTokensMatchAfterNfc) {
  TokenizerSpec spec = byte_spec();
  spec.pre = PreTokenizer::kQwen2;
  spec.nfc = true;
  spec.added = {{256, "\u1E17", false, true}};
  EXPECT_THAT(Tokenizer(spec).encode("xe\u0304\u0301"), ElementsAre('x', 256));
  spec.added[0].normalized = false;
  EXPECT_EQ(Tokenizer(spec).encode("xe\u0304\u0301"), byte_ids("x\u1E17"));
}

TEST(Tokenizer, PrependsTheBosIdInFullEncodingOnly) {
  TokenizerSpec spec = byte_spec();
  spec.added = {{256, "<s>", true, false}};
  spec.bos_id = 256;
  const Tokenizer tokenizer(spec);
  EXPECT_THAT(tokenizer.encode_full("a"), ElementsAre(256, 'a'));
  EXPECT_THAT(tokenizer.encode_full(""), ElementsAre(256));
  EXPECT_THAT(tokenizer.encode("a"), ElementsAre('a'));
}

// Every byte of ill-formed UTF-8 is a character of its own: nothing is replaced on the way in.
TEST(Tokenizer, KeepsIllFormedBytes) {
  for (const PreTokenizer pre :
       {PreTokenizer::kSmolLm, PreTokenizer::kLlama3, PreTokenizer::kQwen2}) {
    TokenizerSpec spec = byte_spec();
    spec.pre = pre;
    spec.nfc = pre == PreTokenizer::kQwen2;
    const Tokenizer tokenizer(spec);
    for (const std::string_view text :
         {"\xFF", "a\xC3", "\xE2\x82", "\xED\xA0\x80", "\xF4\x90\x80\x80", "e\xCC", "\x80\x80 x",
          "\xCC\x81\xC0\xAF\xCC", "'\xC5", " \xF0\x9F\x98"}) {
      EXPECT_EQ(tokenizer.encode(text), byte_ids(text));
    }
    EXPECT_EQ(tokenizer.decode(tokenizer.encode("a\xE2\x82z")), "a\uFFFDz");
  }
}

TEST(Tokenizer, UnknownIdsHaveNoBytes) {
  const Tokenizer tokenizer(byte_spec());
  for (const TokenId id : {-1, 256, 1 << 30, -(1 << 30)}) {
    EXPECT_EQ(tokenizer.bytes(id), "");
    EXPECT_FALSE(tokenizer.is_special(id));
  }
  EXPECT_EQ(tokenizer.decode(Ids{'a', 999, 'b'}), "ab");
  EXPECT_EQ(tokenizer.vocab_size(), 256);
}

TEST(Tokenizer, ContentOutsideTheByteAlphabetStandsForItself) {
  TokenizerSpec spec = byte_spec();
  spec.vocab.emplace_back("\u4f60\u597d", 256);
  EXPECT_EQ(Tokenizer(spec).decode(Ids{256}), "\u4f60\u597d");
}

TEST(Tokenizer, RefusesContradictionsByName) {
  struct Case {
    const char* name;
    void (*damage)(TokenizerSpec&);
    const char* says;
  };
  const Case cases[] = {
      {"empty", [](TokenizerSpec& s) { s.vocab.clear(); }, "vocabulary is empty"},
      {"left", [](TokenizerSpec& s) { s.merges[1].first = "zz"; }, "merge 1 names \"zz\""},
      {"right", [](TokenizerSpec& s) { s.merges[1].second = "qq"; }, "merge 1 names \"qq\""},
      {"result",
       [](TokenizerSpec& s) {
         s.merges.push_back({"x", "y"});
       },
       "names \"xy\""},
      {"no left",
       [](TokenizerSpec& s) {
         s.merges.push_back({"", "a"});
       },
       "merge 2 names \"\""},
      {"no right",
       [](TokenizerSpec& s) {
         s.merges.push_back({"a", ""});
       },
       "merge 2 names \"\""},
      {"twice", [](TokenizerSpec& s) { s.merges.push_back(s.merges[0]); }, "occurs twice"},
      {"same content",
       [](TokenizerSpec& s) {
         s.vocab.push_back({"ab", 300});
       },
       "\"ab\" occurs twice"},
      {"same id",
       [](TokenizerSpec& s) {
         s.vocab.push_back({"new", 'a'});
       },
       "id 97 occurs twice"},
      {"negative",
       [](TokenizerSpec& s) {
         s.vocab.push_back({"new", -1});
       },
       "has id -1"},
      {"huge",
       [](TokenizerSpec& s) {
         s.vocab.push_back({"new", 2147483647});
       },
       "has id 2147483647"},
      {"added huge",
       [](TokenizerSpec& s) {
         s.added.push_back({1 << 22, "<x>", true, false});
       },
       "has id 4194304"},
      {"added empty",
       [](TokenizerSpec& s) {
         s.added.push_back({400, "", true, false});
       },
       "no content"},
      {"added taken",
       [](TokenizerSpec& s) {
         s.added.push_back({'a', "<x>", true, false});
       },
       "contradicts"},
      {"added elsewhere",
       [](TokenizerSpec& s) {
         s.added.push_back({400, "ab", true, false});
       },
       "contradicts"},
      {"added twice",
       [](TokenizerSpec& s) {
         s.added = {{400, "<x>", true, false}, {401, "<x>", true, false}};
       },
       "occurs twice"},
      {"added same id",
       [](TokenizerSpec& s) {
         s.added = {{400, "<x>", true, false}, {400, "<y>", true, false}};
       },
       "contradicts"},
      {"bos", [](TokenizerSpec& s) { s.bos_id = 999; }, "id 999 to prepend"},
  };
  for (const Case& entry : cases) {
    SCOPED_TRACE(entry.name);
    TokenizerSpec spec = byte_spec({{"a", "b"}, {"ab", "c"}});
    entry.damage(spec);
    std::string message;
    EXPECT_EQ(fault_of(spec, &message), ModelFault::kBadConfig);
    EXPECT_THAT(message, HasSubstr(entry.says));
  }
}

TEST(Tokenizer, HashFollowsContentAndNotOrder) {
  const TokenizerSpec spec = byte_spec({{"a", "b"}, {"b", "c"}});
  TokenizerSpec shuffled = spec;
  std::reverse(shuffled.vocab.begin(), shuffled.vocab.end());
  EXPECT_EQ(Tokenizer(spec).sha256(), Tokenizer(shuffled).sha256());
  EXPECT_EQ(Tokenizer(spec).sha256().size(), 64U);
  TokenizerSpec other = spec;
  std::swap(other.merges[0], other.merges[1]);
  EXPECT_NE(Tokenizer(spec).sha256(), Tokenizer(other).sha256());
  other = spec;
  other.added = {{300, "<s>", true, false}};
  EXPECT_NE(Tokenizer(spec).sha256(), Tokenizer(other).sha256());
}

// A quadratic step anywhere would take minutes here.
TEST(Tokenizer, EncodesLongRunsInReasonableTime) {
  std::vector<std::pair<std::string, std::string>> doubling;
  for (std::string unit = "a"; unit.size() < 64; unit += unit) doubling.emplace_back(unit, unit);
  constexpr std::size_t kLength = 400'000;
  for (const PreTokenizer pre :
       {PreTokenizer::kSmolLm, PreTokenizer::kLlama3, PreTokenizer::kQwen2}) {
    TokenizerSpec spec = byte_spec(doubling);
    spec.pre = pre;
    spec.nfc = true;
    spec.added = {{300, "<|special|>", true, false}};
    const Tokenizer tokenizer(spec);
    EXPECT_EQ(tokenizer.encode(std::string(kLength, 'a')), Ids(kLength / 64, 261));
    for (const std::string_view unit : {" ", "\n", " \n", "1", "'", "<", "<|special|", "!", "\xFF",
                                        "\u4e2d", "\u0301\u0316", "e\u0301", "\u00a0"}) {
      std::string text;
      while (text.size() < kLength) text += unit;
      const Ids ids = tokenizer.encode(text);
      EXPECT_FALSE(ids.empty());
      const bool composes = unit == "\u0301\u0316" || unit == "e\u0301";
      EXPECT_TRUE(composes || ids == byte_ids(text));
    }
  }
}

TEST(Tokenizer, RoundTripsRandomTextOfAllFamilies) {
  SplitMix64 random(17);
  const std::vector<std::string> units = {
      "a",          "the ", "'S",     "'ll",     " ",      "\n",         "\r\n",
      "\t",         "12",   "\u00e9", "e\u0301", "\u4f60", "\U0001F600", "<|im_end|>",
      "<|eot_id|>", "_",    "!?",     "\u00a0",  "\u2003", "\u0f3a"};
  for (const char* family : {"llama3", "qwen2", "qwen3"}) {  // smollm lacks some bytes
    const auto tokenizer = load_tokenizer(family);
    for (int repeat = 0; repeat < 200; ++repeat) {
      std::string text;
      for (std::uint64_t i = random.index(40); i > 0; --i)
        text += units[random.index(units.size())];
      const std::string once = tokenizer->decode(tokenizer->encode(text));
      EXPECT_TRUE(once == text || std::string_view(family) != "llama3");
      EXPECT_EQ(tokenizer->decode(tokenizer->encode(once)), once);  // NFC text is a fixed point
      EXPECT_EQ(tokenizer->decode(tokenizer->encode(text, SpecialTokens::kPlain)), once);
    }
  }
}

TEST(Tokenizer, ServesSeveralThreads) {
  const auto tokenizer = load_tokenizer("smollm");
  std::vector<std::string> texts;
  std::vector<Ids> expected;
  for (int i = 0; i < 500; ++i) {
    texts.push_back(fmt::format("word{} item{} the{}th of {}", i, i * 7, i % 13, i * i));
    expected.push_back(load_tokenizer("smollm")->encode(texts.back()));
  }
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  for (std::size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t repeat = 0; repeat < 4; ++repeat) {
        for (std::size_t i = 0; i < texts.size(); ++i) {
          const std::size_t at = (i * (t + 1) + t) % texts.size();
          if (tokenizer->encode(texts[at]) != expected[at]) ++wrong[t];
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(wrong, ElementsAre(0, 0, 0, 0));
}

// More distinct words than the cache holds: shards are emptied on the way, ids stay right.
TEST(Tokenizer, GivesTheSameIdsBeyondTheCacheSize) {
  const Tokenizer tokenizer(byte_spec({{"x", "y"}}));
  for (int repeat = 0; repeat < 2; ++repeat) {
    for (int i = 0; i < 100'000; ++i) {
      std::string word = "xy";
      for (int rest = i; rest > 0; rest /= 26) word += static_cast<char>('a' + rest % 26);
      ASSERT_EQ(tokenizer.encode(word).front(), 256) << word;
      ASSERT_EQ(tokenizer.decode(tokenizer.encode(word)), word);
    }
  }
}

TEST(StreamDecoder, HoldsBackNoMoreThanThreeBytes) {
  const Tokenizer tokenizer(byte_spec());
  SplitMix64 random(29);
  for (int repeat = 0; repeat < 200; ++repeat) {
    StreamDecoder stream(tokenizer);
    Ids ids;
    std::string text;
    for (std::uint64_t i = random.index(60); i > 0; --i) {
      // Mostly lead and continuation bytes, so that sequences begin, break and complete.
      constexpr std::string_view kBytes = "\xF0\x9F\x98\x80\xED\xA0\xE2\x82\xAC\xC3\xA9\xF4\x8Fz";
      ids.push_back(static_cast<unsigned char>(kBytes[random.index(kBytes.size())]));
      text += stream.push(ids.back());
      const std::string all = tokenizer.decode(ids);
      ASSERT_EQ(all.substr(0, text.size()), text);   // what was emitted stays true
      ASSERT_LE(all.size() - text.size(), 3U * 3U);  // three bytes held, at worst three U+FFFD
    }
    text += stream.flush();
    ASSERT_EQ(text, tokenizer.decode(ids));
    ASSERT_EQ(stream.flush(), "");
  }
}

}  // namespace
}  // namespace asdbench
