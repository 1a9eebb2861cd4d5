// The shared tokenizer fixtures, line by line, for all four families.
#include <gtest/gtest.h>

#include "runners/text/tests/fixture_files.h"

namespace asdbench {
namespace {

using testing::load_tokenizer;
using testing::read_ids;
using testing::read_lines;
using testing::tokenizer_folder;

class FixtureTest : public ::testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<Tokenizer> tokenizer_ = load_tokenizer(GetParam());
};

std::string input_of(const Json& entry) {
  if (entry.contains("text")) return entry.at("text").get<std::string>();
  std::string text;
  for (int i = 0; i < entry.at("repeat").at(1).get<int>(); ++i) {
    text += entry.at("repeat").at(0).get<std::string>();
  }
  return text;
}

TEST_P(FixtureTest, EncodesEveryCase) {
  for (const Json& entry : read_lines(tokenizer_folder(GetParam()) / "encode.jsonl")) {
    SCOPED_TRACE(entry.at("id"));
    const std::string text = input_of(entry);
    const std::vector<TokenId> ids = read_ids(entry, "ids");
    EXPECT_EQ(tokenizer_->encode(text), ids);
    EXPECT_EQ(tokenizer_->encode(text, SpecialTokens::kPlain), read_ids(entry, "ids_plain", ids));
    EXPECT_EQ(tokenizer_->encode_full(text), read_ids(entry, "ids_full", ids));
    const std::string decoded = entry.value("decoded", text);
    EXPECT_EQ(tokenizer_->decode(ids), decoded);
    EXPECT_EQ(tokenizer_->decode(ids, true), entry.value("decoded_skip", decoded));
  }
}

TEST_P(FixtureTest, DecodesEveryCase) {
  for (const Json& entry : read_lines(tokenizer_folder(GetParam()) / "decode.jsonl")) {
    SCOPED_TRACE(entry.at("id"));
    const std::vector<TokenId> ids = read_ids(entry, "ids");
    const auto text = entry.at("text").get<std::string>();
    EXPECT_EQ(tokenizer_->decode(ids), text);
    EXPECT_EQ(tokenizer_->decode(ids, true), entry.value("text_skip", text));

    std::string bytes;
    for (const TokenId id : ids) bytes += tokenizer_->bytes(id);
    std::string hex;
    for (const char c : bytes) {
      constexpr std::string_view kDigits = "0123456789abcdef";
      const auto byte = static_cast<unsigned char>(c);
      hex += {kDigits[byte >> 4], kDigits[byte & 15]};
    }
    EXPECT_EQ(hex, entry.at("bytes").get<std::string>());
  }
}

TEST_P(FixtureTest, StreamsEveryCase) {
  for (const Json& entry : read_lines(tokenizer_folder(GetParam()) / "decode.jsonl")) {
    SCOPED_TRACE(entry.at("id"));
    const std::vector<TokenId> ids = read_ids(entry, "ids");
    StreamDecoder all(*tokenizer_);
    StreamDecoder skipping(*tokenizer_, true);
    std::vector<std::string> pieces;
    std::string skipped;
    for (const TokenId id : ids) {
      pieces.push_back(all.push(id));
      skipped += skipping.push(id);
    }
    EXPECT_EQ(pieces, entry.at("stream").get<std::vector<std::string>>());
    EXPECT_EQ(all.flush(), entry.at("flush").get<std::string>());
    EXPECT_EQ(skipped + skipping.flush(),
              entry.value("text_skip", entry.at("text").get<std::string>()));
  }
}

INSTANTIATE_TEST_SUITE_P(Families, FixtureTest,
                         ::testing::Values("llama3", "qwen2", "qwen3", "smollm"),
                         [](const auto& family) { return family.param; });

}  // namespace
}  // namespace asdbench
