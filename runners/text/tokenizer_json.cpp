// tokenizer.json of HF checkpoints, with everything that this suite does not implement refused.
#include <fmt/format.h>

#include <array>
#include <fstream>
#include <limits>
#include <utility>

#include "eval/core/error.h"
#include "eval/core/json.h"
#include "runners/text/byte_alphabet.h"
#include "runners/text/tokenizer.h"

namespace asdbench {
namespace {

// A JSON tree takes up to some 16 times its text; the largest published file has 34 MB.
constexpr std::uintmax_t kMaxFileBytes = 64u << 20;

// The regular expressions of specs, targets, section 7.2. Recognised as text: any other one would
// need an engine of its own.
constexpr std::string_view kQwenRegex =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kLlama3Regex =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

[[noreturn]] void bad(const std::string& where, const std::string& found) {
  throw ModelError(ModelFault::kBadConfig, fmt::format("{}: {}", where, found));
}

[[noreturn]] void unsupported(const std::string& where, const std::string& what) {
  throw ModelError(ModelFault::kUnsupported,
                   fmt::format("{}: {} is not supported; only byte-level BPE as Llama 3, Qwen 2 to "
                               "3 and SmolLM2 use it is",
                               where, what));
}

/// A node of the document with its path, for messages that say where.
class Node {
 public:
  Node(const Json& json, std::string where) : json_(&json), where_(std::move(where)) {}

  const std::string& where() const { return where_; }
  const Json& json() const { return *json_; }
  bool is_null() const { return json_->is_null(); }

  /// A member; a JSON null when it is absent.
  Node at(const std::string& key) const {
    static const Json null;
    if (!json_->is_object()) bad(where_, fmt::format("expected an object, found {}", kind()));
    const auto found = json_->find(key);
    return {found == json_->end() ? null : *found, where_ + "." + key};
  }
  std::vector<Node> items() const {
    if (!json_->is_array()) bad(where_, fmt::format("expected a list, found {}", kind()));
    std::vector<Node> out;
    out.reserve(json_->size());
    for (std::size_t i = 0; i < json_->size(); ++i) {
      out.emplace_back((*json_)[i], fmt::format("{}[{}]", where_, i));
    }
    return out;
  }
  const std::string& text() const {
    if (!json_->is_string()) bad(where_, fmt::format("expected a string, found {}", kind()));
    return json_->get_ref<const std::string&>();
  }
  bool flag(bool fallback) const {
    if (is_null()) return fallback;
    if (!json_->is_boolean()) bad(where_, fmt::format("expected true or false, found {}", kind()));
    return json_->get<bool>();
  }
  TokenId id() const {
    if (!json_->is_number_unsigned() ||
        json_->get<std::uint64_t>() >
            static_cast<std::uint64_t>(std::numeric_limits<TokenId>::max())) {
      bad(where_, fmt::format("expected an id from 0, found {}", brief()));
    }
    return json_->get<TokenId>();
  }
  std::string type() const { return at("type").text(); }
  /// The value as text, cut short.
  std::string brief() const {
    if (json_->is_structured()) return kind();
    const std::string text = json_->dump();
    return text.size() <= 60 ? text : text.substr(0, 60) + "...";
  }

 private:
  std::string kind() const { return json_->type_name(); }

  const Json* json_;
  std::string where_;
};

std::string read_file(const std::filesystem::path& path) {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (error || !std::filesystem::is_regular_file(path, error)) {
    throw ModelError(ModelFault::kMissingFile,
                     fmt::format("{}: no such file; expected a tokenizer.json", path.string()));
  }
  if (size > kMaxFileBytes) {
    bad(path.string(), fmt::format("{} bytes; expected at most {}", size, kMaxFileBytes));
  }
  std::string text(size, '\0');
  std::ifstream in(path, std::ios::binary);
  in.read(text.data(), static_cast<std::streamsize>(size));
  if (!in) {
    throw ModelError(ModelFault::kTruncated, fmt::format("{}: cannot be read", path.string()));
  }
  return text;
}

Json parse(const std::string& text, const std::string& where) {
  try {
    return parse_json(text);
  } catch (const DataError& error) {
    bad(where, error.what());
  }
}

bool read_normalizer(const Node& node) {
  if (node.is_null()) return false;
  if (node.type() != "NFC") unsupported(node.where(), fmt::format("a {} normalizer", node.type()));
  return true;
}

void expect_byte_level(const Node& node, bool use_regex) {
  if (node.type() != "ByteLevel") unsupported(node.where(), node.type());
  if (node.at("add_prefix_space").flag(true)) unsupported(node.where(), "add_prefix_space");
  if (node.at("use_regex").flag(true) != use_regex) {
    unsupported(node.where(), fmt::format("use_regex = {} after this first step", !use_regex));
  }
}

PreTokenizer read_split(const Node& node) {
  if (node.at("behavior").text() != "Isolated" || node.at("invert").flag(false)) {
    unsupported(node.where(), "a Split other than Isolated and not inverted");
  }
  const Node regex = node.at("pattern").at("Regex");
  if (!regex.is_null() && regex.text() == kQwenRegex) return PreTokenizer::kQwen2;
  if (!regex.is_null() && regex.text() == kLlama3Regex) return PreTokenizer::kLlama3;
  unsupported(regex.where(), fmt::format("the pattern {}", regex.brief()));
}

PreTokenizer read_pre_tokenizer(const Node& node) {
  if (node.is_null() || node.type() != "Sequence") {
    unsupported(node.where(), "anything but a Sequence of two steps");
  }
  const std::vector<Node> steps = node.at("pretokenizers").items();
  if (steps.size() != 2) unsupported(node.where(), fmt::format("{} steps", steps.size()));
  if (steps[0].type() == "Digits") {
    if (!steps[0].at("individual_digits").flag(false)) {
      unsupported(steps[0].where(), "grouping of digits");
    }
    expect_byte_level(steps[1], true);
    return PreTokenizer::kSmolLm;
  }
  if (steps[0].type() != "Split") unsupported(steps[0].where(), steps[0].type());
  expect_byte_level(steps[1], false);
  return read_split(steps[0]);
}

// The id that a template puts before the text; templates that do anything else are refused.
std::optional<TokenId> read_template(const Node& node) {
  const std::vector<Node> parts = node.at("single").items();
  const auto is_text = [](const Node& part) { return !part.at("Sequence").is_null(); };
  if (parts.size() == 1 && is_text(parts[0])) return {};
  if (parts.size() != 2 || is_text(parts[0]) || !is_text(parts[1])) {
    unsupported(node.where(), "a template other than one token before the text");
  }
  const std::string name = parts[0].at("SpecialToken").at("id").text();
  const std::vector<Node> ids = node.at("special_tokens").at(name).at("ids").items();
  if (ids.size() != 1) unsupported(node.where(), fmt::format("{} ids for {}", ids.size(), name));
  return ids[0].id();
}

std::optional<TokenId> read_post_processor(const Node& node) {
  // ByteLevel here only trims offsets, which nobody asks for.
  if (node.is_null() || node.type() == "ByteLevel") return {};
  if (node.type() == "TemplateProcessing") return read_template(node);
  if (node.type() != "Sequence") unsupported(node.where(), node.type());
  std::optional<TokenId> bos;
  for (const Node& step : node.at("processors").items()) {
    if (step.type() == "ByteLevel") continue;
    if (step.type() != "TemplateProcessing" || bos) unsupported(step.where(), step.type());
    bos = read_template(step);
  }
  return bos;
}

std::pair<std::string, std::string> read_merge(const Node& node) {
  if (node.json().is_array()) {
    const std::vector<Node> parts = node.items();
    if (parts.size() != 2) bad(node.where(), fmt::format("{} parts; expected 2", parts.size()));
    return {parts[0].text(), parts[1].text()};
  }
  const std::string& text = node.text();
  const std::size_t space = text.find(' ');
  if (space == std::string::npos || text.find(' ', space + 1) != std::string::npos) {
    bad(node.where(), fmt::format("expected two tokens and one space, found {}", node.brief()));
  }
  return {text.substr(0, space), text.substr(space + 1)};
}

void refuse_text(const Node& node) {
  if (!node.is_null() && !node.text().empty()) unsupported(node.where(), node.brief());
}

void refuse_flag(const Node& node) {
  if (node.flag(false)) unsupported(node.where(), "true");
}

bool has_all_bytes(const Json& vocab) {
  for (int byte = 0; byte < 256; ++byte) {
    if (!vocab.contains(mapped_byte(static_cast<std::uint8_t>(byte)))) return false;
  }
  return true;
}

void read_model(const Node& node, TokenizerSpec& spec) {
  if (node.type() != "BPE") unsupported(node.where(), fmt::format("a {} model", node.type()));
  const Node dropout = node.at("dropout");
  if (!dropout.is_null() && dropout.json() != Json(0)) unsupported(dropout.where(), "dropout");
  refuse_flag(node.at("byte_fallback"));
  refuse_text(node.at("continuing_subword_prefix"));
  refuse_text(node.at("end_of_word_suffix"));
  spec.ignore_merges = node.at("ignore_merges").flag(false);

  const Node vocab = node.at("vocab");
  if (!vocab.json().is_object()) {
    bad(vocab.where(), fmt::format("expected an object, found {}", vocab.json().type_name()));
  }
  spec.vocab.reserve(vocab.json().size());
  for (const auto& [content, id] : vocab.json().items()) {
    spec.vocab.emplace_back(content, Node(id, vocab.where() + "." + content).id());
  }
  // With every byte in the vocabulary nothing is ever unknown, and the token has no effect.
  if (!node.at("unk_token").is_null() && !has_all_bytes(vocab.json())) {
    unsupported(node.at("unk_token").where(), "an unknown token");
  }
  const std::vector<Node> merges = node.at("merges").items();
  spec.merges.reserve(merges.size());
  for (const Node& merge : merges) spec.merges.push_back(read_merge(merge));
}

AddedToken read_added(const Node& node) {
  for (const char* name : {"lstrip", "rstrip", "single_word"}) refuse_flag(node.at(name));
  return {node.at("id").id(), node.at("content").text(), node.at("special").flag(false),
          node.at("normalized").flag(false)};
}

}  // namespace

TokenizerSpec read_tokenizer_json(const std::filesystem::path& path) {
  const std::string name = path.string();
  const Json json = parse(read_file(path), name);
  const Node root(json, name);
  TokenizerSpec spec;
  // "truncation" and "padding" are defaults of the library that wrote the file, not part of what
  // the model was trained on; the reference resets them before it encodes.
  spec.nfc = read_normalizer(root.at("normalizer"));
  spec.pre = read_pre_tokenizer(root.at("pre_tokenizer"));
  spec.bos_id = read_post_processor(root.at("post_processor"));
  const Node decoder = root.at("decoder");
  if (decoder.is_null() || decoder.type() != "ByteLevel") {
    unsupported(decoder.where(), "a decoder other than ByteLevel");
  }
  read_model(root.at("model"), spec);
  const Node added = root.at("added_tokens");
  if (!added.is_null()) {
    for (const Node& token : added.items()) spec.added.push_back(read_added(token));
  }
  return spec;
}

}  // namespace asdbench
