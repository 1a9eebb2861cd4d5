// The tokenizer inside a GGUF file encodes as the tokenizer.json of its family does.
#include "runners/models/gguf_tokenizer.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "eval/core/error.h"
#include "eval/core/json.h"

namespace asdbench {
namespace {

// Vendored where the container and the tokenizer are tested.
const std::filesystem::path kGguf =
    std::filesystem::path(ASDBENCH_SOURCE_DIR) / "runners/checkpoint/tests/data/gguf";
const std::filesystem::path kTokenizers =
    std::filesystem::path(ASDBENCH_SOURCE_DIR) / "runners/text/tests/data/tokenizers";

std::vector<TokenId> read_ids(const Json& entry, const std::string& name,
                              const std::vector<TokenId>& fallback) {
  if (entry.contains(name)) return entry.at(name).get<std::vector<TokenId>>();
  if (!entry.contains(name + "_rle")) return fallback;
  std::vector<TokenId> ids;
  for (const Json& run : entry.at(name + "_rle")) {
    ids.insert(ids.end(), run.at(1).get<std::size_t>(), run.at(0).get<TokenId>());
  }
  return ids;
}

std::string input_of(const Json& entry) {
  if (entry.contains("text")) return entry.at("text").get<std::string>();
  std::string text;
  for (int i = 0; i < entry.at("repeat").at(1).get<int>(); ++i) {
    text += entry.at("repeat").at(0).get<std::string>();
  }
  return text;
}

class GgufTokenizer : public ::testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(GgufTokenizer, EncodesTheCasesOfItsFamily) {
  const auto& [model, family] = GetParam();
  const Tokenizer tokenizer(
      gguf_tokenizer_spec(GgufFile::open(kGguf / "models" / model / "model.gguf")));
  std::ifstream in(kTokenizers / family / "encode.jsonl");
  std::size_t cases = 0;
  for (std::string line; std::getline(in, line); ++cases) {
    const Json entry = parse_json(line);
    SCOPED_TRACE(entry.at("id"));
    const std::string text = input_of(entry);
    const std::vector<TokenId> ids = read_ids(entry, "ids", {});
    EXPECT_EQ(tokenizer.encode(text), ids);
    EXPECT_EQ(tokenizer.encode(text, SpecialTokens::kPlain), read_ids(entry, "ids_plain", ids));
    EXPECT_EQ(tokenizer.encode_full(text), read_ids(entry, "ids_full", ids));
  }
  EXPECT_GT(cases, 50U);
}

INSTANTIATE_TEST_SUITE_P(Families, GgufTokenizer,
                         ::testing::Values(std::pair("llama_smollm_f16", "smollm"),
                                           std::pair("llama_l3rope_q8_0", "llama3"),
                                           std::pair("qwen2_q5_1", "qwen2"),
                                           std::pair("qwen3_bf16", "qwen3")),
                         [](const auto& each) { return std::string(each.param.second); });

std::string fault_of(const std::string& content) {
  const auto bytes = std::as_bytes(std::span(content.data(), content.size()));
  try {
    const Tokenizer tokenizer(gguf_tokenizer_spec(GgufFile::parse(bytes, "memory")));
    return "ok";
  } catch (const ModelError& error) {
    return std::string(name_of(error.fault()));
  }
}

std::string read_model(const std::string& name) {
  std::ifstream in(kGguf / "badmodels" / name, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(GgufTokenizerFaults, AreNamed) {
  EXPECT_EQ(fault_of(read_model("good.gguf")), "ok");
  EXPECT_EQ(fault_of(read_model("pre_unknown.gguf")), "unsupported");
  EXPECT_EQ(fault_of(read_model("tokenizer_spm.gguf")), "unsupported");
  EXPECT_EQ(fault_of(read_model("merge_unknown.gguf")), "bad_config");
  EXPECT_EQ(fault_of(read_model("merge_no_space.gguf")), "bad_config");
}

// Replaces `from`, which must occur once, by the equally long `to` in the good model.
std::string fault_of_edit(const std::string& from, const std::string& to) {
  std::string content = read_model("good.gguf");
  const std::size_t at = content.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  EXPECT_EQ(from.size(), to.size());
  content.replace(at, from.size(), to);
  return fault_of(content);
}

TEST(GgufTokenizerFaults, CoverEveryKeyThatIsRead) {
  EXPECT_EQ(fault_of_edit("tokenizer.ggml.model", "tokenizer.ggml.mXdel"), "bad_config");
  EXPECT_EQ(fault_of_edit("tokenizer.ggml.pre", "tokenizer.ggml.pXe"), "bad_config");
  EXPECT_EQ(fault_of_edit("tokenizer.ggml.tokens", "tokenizer.ggml.tXkens"), "bad_config");
  EXPECT_EQ(fault_of_edit("tokenizer.ggml.token_type", "tokenizer.ggml.token_tXpe"), "bad_config");
  EXPECT_EQ(fault_of_edit("tokenizer.ggml.merges", "tokenizer.ggml.mXrges"), "bad_config");
  // Array of int32, 261 entries, the first three of type 3.
  const std::string head = std::string("token_type\t\0\0\0\5\0\0\0\5\1\0\0\0\0\0\0", 26);
  EXPECT_EQ(fault_of_edit(head + '\3', head + '\7'), "bad_config");
  EXPECT_EQ(fault_of_edit(head + '\3', head + '\5'), "ok");  // unused
  // With a beginning token asked for, its id has to be one of the file's.
  const std::string add("add_bos_token\7\0\0\0", 17);
  EXPECT_EQ(fault_of_edit(add + '\0', add + '\1'), "ok");
}

}  // namespace
}  // namespace asdbench
