// tokenizer.json: what is recognised, and what is refused and how.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "eval/core/error.h"
#include "runners/text/tests/fixture_files.h"

namespace asdbench {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;
using testing::tokenizer_folder;

class TokenizerJsonTest : public ::testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(file_); }

  void write(std::string_view text) const { std::ofstream(file_, std::ios::binary) << text; }

  // Reads `text` as a file and makes a tokenizer of it, as a caller would.
  Tokenizer load(std::string_view text) const {
    write(text);
    return Tokenizer(read_tokenizer_json(file_));
  }

  ModelFault fault_of(std::string_view text, std::string* message = nullptr) const {
    try {
      load(text);
    } catch (const ModelError& error) {
      if (message != nullptr) *message = error.what();
      return error.fault();
    }
    ADD_FAILURE() << "accepted";
    return ModelFault::kMissingFile;
  }

  static Json document(const std::string& family) {
    std::ifstream in(tokenizer_folder(family) / "tokenizer.json");
    return parse_json(std::string(std::istreambuf_iterator<char>(in), {}));
  }

  const std::filesystem::path file_ =
      std::filesystem::temp_directory_path() /
      ("asdbench_tokenizer_json_" + std::to_string(getpid()) + ".json");
};

TEST_F(TokenizerJsonTest, RecognisesTheFourFamilies) {
  struct Case {
    const char* family;
    PreTokenizer pre;
    bool nfc, ignore_merges;
    std::optional<TokenId> bos_id;
  };
  for (const Case& entry : {Case{"llama3", PreTokenizer::kLlama3, false, true, 906},
                            Case{"qwen2", PreTokenizer::kQwen2, true, false, {}},
                            Case{"qwen3", PreTokenizer::kQwen2, true, false, {}},
                            Case{"smollm", PreTokenizer::kSmolLm, false, false, {}}}) {
    const TokenizerSpec spec =
        read_tokenizer_json(tokenizer_folder(entry.family) / "tokenizer.json");
    EXPECT_EQ(spec.pre, entry.pre) << entry.family;
    EXPECT_EQ(spec.nfc, entry.nfc) << entry.family;
    EXPECT_EQ(spec.ignore_merges, entry.ignore_merges) << entry.family;
    EXPECT_EQ(spec.bos_id, entry.bos_id) << entry.family;
  }
}

TEST_F(TokenizerJsonTest, ReadsBothSpellingsOfMerges) {
  Json lists = document("smollm");
  Json strings = lists;
  for (Json& merge : strings["model"]["merges"]) {
    merge = merge[0].get<std::string>() + " " + merge[1].get<std::string>();
  }
  EXPECT_EQ(load(lists.dump()).sha256(), load(strings.dump()).sha256());
}

struct Damage {
  const char* path;   // JSON pointer into a good document
  const char* value;  // JSON put there
  ModelFault fault;
  const char* says;  // part of the message
};

TEST_F(TokenizerJsonTest, RefusesWhatItDoesNotImplement) {
  constexpr ModelFault kBad = ModelFault::kBadConfig;
  constexpr ModelFault kUnsupported = ModelFault::kUnsupported;
  const Damage cases[] = {
      {"/normalizer", R"({"type":"NFKC"})", kUnsupported, "NFKC normalizer"},
      {"/normalizer", R"({"type":"Sequence","normalizers":[]})", kUnsupported, ".normalizer"},
      {"/normalizer", "3", kBad, "expected an object"},
      {"/normalizer", "{}", kBad, ".normalizer.type"},
      {"/pre_tokenizer", "null", kUnsupported, ".pre_tokenizer"},
      {"/pre_tokenizer", R"({"type":"Whitespace"})", kUnsupported, ".pre_tokenizer"},
      {"/pre_tokenizer/pretokenizers", "[]", kUnsupported, "0 steps"},
      {"/pre_tokenizer/pretokenizers", "{}", kBad, "expected a list"},
      {"/pre_tokenizer/pretokenizers/0/type", "\"Punctuation\"", kUnsupported, "Punctuation"},
      {"/pre_tokenizer/pretokenizers/0/pattern/Regex", "\"a+\"", kUnsupported, "\"a+\""},
      {"/pre_tokenizer/pretokenizers/0/pattern", R"({"String":" "})", kUnsupported, "Regex"},
      {"/pre_tokenizer/pretokenizers/0/behavior", "\"Removed\"", kUnsupported, "Isolated"},
      {"/pre_tokenizer/pretokenizers/0/invert", "true", kUnsupported, "inverted"},
      {"/pre_tokenizer/pretokenizers/1/type", "\"Metaspace\"", kUnsupported, "Metaspace"},
      {"/pre_tokenizer/pretokenizers/1/add_prefix_space", "true", kUnsupported, "add_prefix"},
      {"/pre_tokenizer/pretokenizers/1/use_regex", "true", kUnsupported, "use_regex"},
      {"/post_processor", R"({"type":"BertProcessing"})", kUnsupported, "BertProcessing"},
      {"/post_processor/processors/1/single", "[]", kUnsupported, "template"},
      {"/post_processor/processors/1/single/0", R"({"Sequence":{"id":"A"}})", kUnsupported,
       "template"},
      {"/post_processor/processors/1/special_tokens/<|begin_of_text|>/ids", "[1,2]", kUnsupported,
       "2 ids"},
      {"/post_processor/processors/1/special_tokens/<|begin_of_text|>/ids", "[100000]", kBad,
       "100000"},
      {"/post_processor/processors/1/special_tokens", "{}", kBad, "<|begin_of_text|>"},
      {"/decoder", "null", kUnsupported, ".decoder"},
      {"/decoder/type", "\"WordPiece\"", kUnsupported, ".decoder"},
      {"/model/type", "\"Unigram\"", kUnsupported, "Unigram"},
      {"/model/type", "null", kBad, ".model.type"},
      {"/model/dropout", "0.1", kUnsupported, "dropout"},
      {"/model/byte_fallback", "true", kUnsupported, "byte_fallback"},
      {"/model/byte_fallback", "1", kBad, "expected true or false"},
      {"/model/continuing_subword_prefix", "\"##\"", kUnsupported, "##"},
      {"/model/end_of_word_suffix", "\"</w>\"", kUnsupported, "</w>"},
      {"/model/vocab", "[]", kBad, ".model.vocab"},
      {"/model/vocab", "{}", kBad, "empty"},
      {"/model/vocab/a", "-1", kBad, ".model.vocab.a"},
      {"/model/vocab/a", "1.5", kBad, "1.5"},
      {"/model/vocab/a", "\"1\"", kBad, ".model.vocab.a"},
      {"/model/vocab/a", "4294967296", kBad, "4294967296"},
      {"/model/vocab/a", "99999999999999999999999", kBad, ".model.vocab.a"},
      {"/model/vocab/a", "2147483647", kBad, "2147483647"},
      {"/model/vocab/a", "5", kBad, "id 5 occurs twice"},
      {"/model/merges", "null", kBad, ".model.merges"},
      {"/model/merges/3", "\"ab\"", kBad, ".model.merges[3]"},
      {"/model/merges/3", "\"a b c\"", kBad, ".model.merges[3]"},
      {"/model/merges/3", "\"a  b\"", kBad, ".model.merges[3]"},
      {"/model/merges/3", "[\"a\"]", kBad, "1 parts"},
      {"/model/merges/3", "[\"a\",1]", kBad, ".model.merges[3][1]"},
      {"/model/merges/3", "7", kBad, ".model.merges[3]"},
      {"/model/merges/3", "[\"nowhere\",\"a\"]", kBad, "merge 3 names \"nowhere\""},
      {"/model/merges/3", "[\"\",\"a\"]", kBad, "merge 3"},
      {"/model/merges/3", "\" \"", kBad, "merge 3"},
      {"/added_tokens", "{}", kBad, ".added_tokens"},
      {"/added_tokens/0/lstrip", "true", kUnsupported, "lstrip"},
      {"/added_tokens/0/rstrip", "true", kUnsupported, "rstrip"},
      {"/added_tokens/0/single_word", "true", kUnsupported, "single_word"},
      {"/added_tokens/0/id", "null", kBad, ".added_tokens[0].id"},
      {"/added_tokens/0/content", "null", kBad, ".added_tokens[0].content"},
      {"/added_tokens/0/content", "\"\"", kBad, "no content"},
      {"/added_tokens/0", "[]", kBad, ".added_tokens[0]"},
  };
  const Json good = document("llama3");
  ASSERT_NO_THROW(load(good.dump()));
  for (const Damage& damage : cases) {
    SCOPED_TRACE(std::string(damage.path) + " = " + damage.value);
    Json bad = good;
    const Json::json_pointer pointer(damage.path);
    ASSERT_TRUE(bad.contains(pointer));
    bad[pointer] = parse_json(damage.value);
    std::string message;
    EXPECT_EQ(fault_of(bad.dump(), &message), damage.fault) << message;
    EXPECT_THAT(message, HasSubstr(damage.says));
  }
}

TEST_F(TokenizerJsonTest, AnUnknownTokenMattersOnlyWhenAByteIsMissing) {
  Json all_bytes = document("llama3");
  all_bytes["model"]["unk_token"] = "<|end_of_text|>";
  EXPECT_NO_THROW(load(all_bytes.dump()));
  Json some_bytes = document("smollm");
  some_bytes["model"]["unk_token"] = "<|endoftext|>";
  EXPECT_EQ(fault_of(some_bytes.dump()), ModelFault::kUnsupported);
}

TEST_F(TokenizerJsonTest, RefusesDigitsInGroups) {
  Json json = document("smollm");
  json["pre_tokenizer"]["pretokenizers"][0]["individual_digits"] = false;
  EXPECT_EQ(fault_of(json.dump()), ModelFault::kUnsupported);
}

TEST_F(TokenizerJsonTest, SurvivesTextThatIsNoTokenizer) {
  for (const std::string& text :
       {std::string(), std::string("[]"), std::string("null"), std::string("{}"),
        std::string("{\"model\""), std::string("\xFF\xFE"), std::string(100'000, '['),
        std::string(R"({"model":{"type":"BPE"},"model":{}})")}) {
    SCOPED_TRACE(text.substr(0, 40));
    std::string message;
    const ModelFault fault = fault_of(text, &message);
    EXPECT_TRUE(fault == ModelFault::kBadConfig || fault == ModelFault::kUnsupported);
    EXPECT_THAT(message, StartsWith(file_.string()));
  }
}

TEST_F(TokenizerJsonTest, EveryTruncationIsRefused) {
  const std::string text = document("smollm").dump();
  for (std::size_t length = 0; length < text.size(); length += 37) {
    EXPECT_EQ(fault_of(text.substr(0, length)), ModelFault::kBadConfig) << length;
  }
}

TEST_F(TokenizerJsonTest, SaysWhenTheFileIsMissing) {
  for (const std::filesystem::path& path :
       {std::filesystem::path("nowhere/tokenizer.json"), std::filesystem::temp_directory_path()}) {
    try {
      read_tokenizer_json(path);
      ADD_FAILURE() << path;
    } catch (const ModelError& error) {
      EXPECT_EQ(error.fault(), ModelFault::kMissingFile);
    }
  }
}

TEST_F(TokenizerJsonTest, RefusesFilesThatAreTooLargeUnread) {
  write("{");
  std::filesystem::resize_file(file_, (64u << 20) + 1);  // sparse
  EXPECT_THROW(read_tokenizer_json(file_), ModelError);
}

}  // namespace
}  // namespace asdbench
