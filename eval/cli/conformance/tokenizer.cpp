// Conformance of the tokenizer: encode, decode and chat cases on trained and on real vocabularies.
#include "runners/text/tokenizer.h"

#include <fmt/format.h>

#include <array>
#include <exception>
#include <map>
#include <memory>
#include <set>

#include "eval/cli/conformance/conformance.h"
#include "eval/core/digest.h"
#include "eval/core/error.h"
#include "eval/core/json.h"
#include "eval/core/sample.h"
#include "runners/checkpoint/gguf.h"
#include "runners/checkpoint/mapped_file.h"
#include "runners/models/gguf_tokenizer.h"
#include "runners/text/chat.h"
#include "tasks/common/jsonl.h"

namespace asdbench {
namespace {

namespace fs = std::filesystem;

using Ids = std::vector<TokenId>;

// What a case expected and got where it first went wrong; nothing when it holds.
struct Mismatch {
  std::string field, expected, got;
};
using Outcome = std::optional<Mismatch>;

std::string show(const Ids& ids) {
  constexpr std::size_t kShown = 40;
  const Ids head(ids.begin(),
                 ids.begin() + static_cast<std::ptrdiff_t>(std::min(kShown, ids.size())));
  return fmt::format("[{}{}]", fmt::join(head, " "),
                     ids.size() > kShown ? fmt::format(" ... {} ids", ids.size()) : "");
}

std::string show(const std::string& text) {
  const std::string quoted = Json(text).dump(-1, ' ', true, Json::error_handler_t::replace);
  return quoted.size() <= 200 ? quoted : quoted.substr(0, 200) + "...";
}

std::string show(const std::vector<std::string>& pieces) {
  std::vector<std::string> shown;
  shown.reserve(pieces.size());
  for (const std::string& piece : pieces) shown.push_back(show(piece));
  return fmt::format("[{}]", fmt::join(shown, ", "));
}

template <typename Value>
Outcome compare(const char* field, const Value& expected, const Value& got) {
  if (expected == got) return {};
  return Mismatch{field, show(expected), show(got)};
}

Outcome first_of(std::initializer_list<Outcome> outcomes) {
  for (const Outcome& outcome : outcomes) {
    if (outcome) return outcome;
  }
  return {};
}

Outcome unknown_field(const Json& entry, const std::set<std::string>& known) {
  for (const auto& [field, value] : entry.items()) {
    if (!known.contains(field)) return Mismatch{field, "known fields only", "this one"};
  }
  return {};
}

// One line of the report for one case, whatever `check` throws.
template <typename Check>
void run_case(const std::string& id, ConformanceReport& report, const Check& check) {
  Outcome outcome;
  try {
    outcome = check();
  } catch (const std::exception& error) {
    outcome = Mismatch{"error", "none", error.what()};
  }
  if (outcome) {
    report.fail(id + " " + outcome->field, outcome->expected, outcome->got);
  } else {
    report.pass();
  }
}

std::optional<Ids> find_ids(const Json& entry, const std::string& key) {
  if (entry.contains(key)) return entry.at(key).get<Ids>();
  if (!entry.contains(key + "_rle")) return {};
  Ids ids;
  for (const Json& run : entry.at(key + "_rle")) {
    ids.insert(ids.end(), run.at(1).get<std::size_t>(), run.at(0).get<TokenId>());
  }
  return ids;
}

std::string input_of(const Json& entry) {
  if (entry.contains("text")) return entry.at("text").get<std::string>();
  const auto unit = entry.at("repeat").at(0).get<std::string>();
  std::string text;
  for (auto left = entry.at("repeat").at(1).get<std::int64_t>(); left > 0; --left) text += unit;
  return text;
}

Outcome check_encode(const Tokenizer& tokenizer, const Json& entry) {
  if (Outcome unknown = unknown_field(
          entry, {"id", "text", "repeat", "ids", "ids_rle", "ids_plain", "ids_plain_rle",
                  "ids_full", "ids_full_rle", "decoded", "decoded_skip"})) {
    return unknown;
  }
  const std::string text = input_of(entry);
  const std::optional<Ids> ids = find_ids(entry, "ids");
  if (!ids) return Mismatch{"ids", "ids or ids_rle", "neither"};
  const std::string decoded = entry.value("decoded", text);
  return first_of(
      {compare("ids", *ids, tokenizer.encode(text)),
       compare("ids_plain", find_ids(entry, "ids_plain").value_or(*ids),
               tokenizer.encode(text, SpecialTokens::kPlain)),
       compare("ids_full", find_ids(entry, "ids_full").value_or(*ids), tokenizer.encode_full(text)),
       compare("decoded", decoded, tokenizer.decode(*ids)),
       compare("decoded_skip", entry.value("decoded_skip", decoded),
               tokenizer.decode(*ids, true))});
}

std::string hex(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) out += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return out;
}

Outcome check_decode(const Tokenizer& tokenizer, const Json& entry) {
  if (Outcome unknown =
          unknown_field(entry, {"id", "ids", "bytes", "text", "text_skip", "stream", "flush"})) {
    return unknown;
  }
  const Ids ids = entry.at("ids").get<Ids>();
  std::string bytes;
  std::vector<std::string> pieces;
  StreamDecoder stream(tokenizer);
  for (const TokenId id : ids) {
    bytes += tokenizer.bytes(id);
    pieces.push_back(stream.push(id));
  }
  const auto text = entry.at("text").get<std::string>();
  return first_of(
      {compare("bytes", entry.at("bytes").get<std::string>(), hex(bytes)),
       compare("text", text, tokenizer.decode(ids)),
       compare("text_skip", entry.value("text_skip", text), tokenizer.decode(ids, true)),
       compare("stream", entry.at("stream").get<std::vector<std::string>>(), pieces),
       compare("flush", entry.at("flush").get<std::string>(), stream.flush())});
}

Role role_of(const std::string& name) {
  for (const Role role : {Role::kSystem, Role::kUser, Role::kAssistant}) {
    if (name == name_of(role)) return role;
  }
  throw DataError(fmt::format("role \"{}\"; expected system, user or assistant", name));
}

Outcome check_chat(const Tokenizer& tokenizer, const Json& entry) {
  if (Outcome unknown = unknown_field(entry, {"id", "messages", "rendered", "ids"})) {
    return unknown;
  }
  std::vector<Message> messages;
  for (const Json& message : entry.at("messages")) {
    messages.push_back({role_of(message.at("role")), message.at("content")});
  }
  const std::string rendered = render_chat(ChatFamily::kSmolLm2, messages);
  return first_of({compare("rendered", entry.at("rendered").get<std::string>(), rendered),
                   compare("ids", entry.at("ids").get<Ids>(), tokenizer.encode(rendered))});
}

// The SmolLM2 file that the goldens were made with.
fs::path smollm2_file(const fs::path& models) {
  for (const fs::path& folder : {models / "smollm2-135m", models}) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error)) {
      const fs::path& path = entry.path();
      if (path.extension() == ".gguf" && path.filename().string().starts_with("SmolLM2")) {
        return path;
      }
    }
  }
  throw ModelError(ModelFault::kMissingFile,
                   fmt::format("no SmolLM2*.gguf in {} or {}; `asdbench model fetch smollm2-135m` "
                               "puts it there",
                               (models / "smollm2-135m").string(), models.string()));
}

// Tokenizers by file, each read once. A file that cannot be read raises at every use, so that every
// case that needs it fails by name.
class Tokenizers {
 public:
  const Tokenizer& of(const fs::path& file) {
    auto& slot = loaded_[file.string()];
    if (!slot) {
      slot = std::make_unique<Tokenizer>(file.extension() == ".gguf"
                                             ? gguf_tokenizer_spec(GgufFile::open(file))
                                             : read_tokenizer_json(file));
    }
    return *slot;
  }

 private:
  std::map<std::string, std::unique_ptr<Tokenizer>> loaded_;
};

class Run {
 public:
  Run(const ConformanceOptions& options, ConformanceReport& report)
      : options_(options), report_(report) {}

  void all() {
    const fs::path& path = options_.path;
    for (const fs::path& file : find_cases(path, "encode.jsonl")) {
      lines(file, beside(file), check_encode);
    }
    for (const fs::path& file : find_cases(path, "decode.jsonl")) {
      lines(file, beside(file), check_decode);
    }
    for (const fs::path& file : find_cases(path, "tokenizer.jsonl")) {
      lines(file, {}, check_encode);
    }
    for (const fs::path& file : find_cases(path, "golden.json")) golden(file);
    for (const fs::path& file : find_cases(path, "real.jsonl")) real(file);
    for (const fs::path& file : find_cases(path, "datasets.json")) datasets(file);
  }

 private:
  using Check = Outcome(const Tokenizer&, const Json&);

  // The tokenizer.json in the folder of `cases`; "" for cases of the real SmolLM2.
  static fs::path beside(const fs::path& cases) {
    const fs::path file = cases.parent_path() / "tokenizer.json";
    return fs::exists(file) ? file : fs::path();
  }

  const Tokenizer& tokenizer(const fs::path& file) {
    return tokenizers_.of(file.empty() ? smollm2_file(options_.models_dir) : file);
  }

  void lines(const fs::path& cases, const fs::path& file, Check* check) {
    const std::string folder = fs::absolute(cases).parent_path().filename().string();
    read_jsonl(cases, [&](const JsonlRow& row) {
      run_case(folder + " " + row.object().value("id", row.where()), report_,
               [&] { return check(tokenizer(file), row.object()); });
    });
  }

  static Json read_json(const fs::path& path) {
    const MappedFile file(path);
    return parse_json({reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()});
  }

  // Of the goldens of a model: chats of SmolLM2, and the tokenizer inside a GGUF file, which must
  // pass the cases of the tokenizer fixture it was made from.
  void golden(const fs::path& path) {
    const Json document = read_json(path);
    const fs::path folder = fs::absolute(path).parent_path();
    if (document.contains("chat")) {
      run_case("smollm2 chat template", report_, [&]() -> Outcome {
        const GgufFile file = GgufFile::open(smollm2_file(options_.models_dir));
        const std::string& text = file.text("tokenizer.chat_template");
        if (family_of_template(text) == ChatFamily::kSmolLm2) return {};
        return Mismatch{"sha256", "that of SmolLM2's template", sha256_hex(text)};
      });
      for (const Json& entry : document.at("chat")) {
        run_case("smollm2 " + entry.value("id", "chat"), report_,
                 [&] { return check_chat(tokenizer({}), entry); });
      }
    }
    if (document.contains("tokenizer") && document.contains("file")) {
      // Named from the folder above gguf/models/NAME: "tokenizers/smollm".
      const fs::path fixture = folder.parent_path().parent_path().parent_path() /
                               document.at("tokenizer").get<std::string>();
      const fs::path file = folder / document.at("file").get<std::string>();
      if (!fs::exists(fixture / "encode.jsonl")) {
        report_.fail(document.at("name"), "the cases of its tokenizer at " + fixture.string(),
                     "no such folder");
        return;
      }
      lines(fixture / "encode.jsonl", file, check_encode);
      lines(fixture / "decode.jsonl", file, check_decode);
    }
  }

  // The file of a real vocabulary; "" for SmolLM2, whose vocabulary is in its GGUF file.
  fs::path vocabulary(const std::string& name) const {
    if (name == "smollm2") return {};
    const fs::path folder =
        options_.vocabularies.empty() ? options_.data_dir / "tokenizers" : options_.vocabularies;
    return folder / name / "tokenizer.json";
  }

  void real(const fs::path& cases) {
    read_jsonl(cases, [&](const JsonlRow& row) {
      run_case(row.object().value("id", row.where()), report_,
               [&] { return check_real(row.object()); });
    });
  }

  Outcome check_real(const Json& entry) {
    if (Outcome unknown = unknown_field(
            entry, {"id", "kind", "tokenizer", "text", "add_special_tokens", "ids", "decoded"})) {
      return unknown;
    }
    if (entry.at("kind") != "encode") return Mismatch{"kind", "encode", entry.at("kind").dump()};
    const Tokenizer& used = tokenizer(vocabulary(entry.at("tokenizer")));
    const auto text = entry.at("text").get<std::string>();
    const auto ids = entry.at("ids").get<Ids>();
    const bool full = entry.at("add_special_tokens").get<bool>();
    return first_of({compare("ids", ids, full ? used.encode_full(text) : used.encode(text)),
                     compare("decoded", entry.at("decoded").get<std::string>(), used.decode(ids))});
  }

  void datasets(const fs::path& path) {
    const Json document = read_json(path);
    for (const auto& [name, files] : document.items()) {
      for (const auto& [source, expected] : files.items()) {
        run_case(fmt::format("{} {}", name, source), report_,
                 [&, &vocabulary_name = name, &where = source, &wanted = expected] {
                   return check_dataset(tokenizer(vocabulary(vocabulary_name)), where, wanted);
                 });
      }
    }
  }

  // `source` is FILE:FIELD below the data folder, the field perhaps with an index: "turns[0]".
  Outcome check_dataset(const Tokenizer& used, const std::string& source, const Json& expected) {
    if (Outcome unknown = unknown_field(expected, {"texts", "tokens", "sha256"})) {
      return unknown;
    }
    const std::size_t colon = source.rfind(':');
    if (colon == std::string::npos) return Mismatch{"source", "FILE:FIELD", source};
    std::string pointer = "/" + source.substr(colon + 1);
    if (const std::size_t bracket = pointer.find('['); bracket != std::string::npos) {
      pointer = pointer.substr(0, bracket) + "/" +
                pointer.substr(bracket + 1, pointer.find(']') - bracket - 1);
    }
    std::size_t texts = 0, tokens = 0;
    Sha256 hash;
    read_jsonl(options_.data_dir / source.substr(0, colon), [&](const JsonlRow& row) {
      const Ids ids =
          used.encode(row.object().at(Json::json_pointer(pointer)).get_ref<const std::string&>());
      ++texts;
      tokens += ids.size();
      for (const TokenId id : ids) hash_word(hash, static_cast<std::uint32_t>(id));
      hash_word(hash, 0xFFFFFFFF);
    });
    const std::string form = "{} texts, {} ids, {}";
    return compare("hash",
                   fmt::format(fmt::runtime(form), expected.at("texts").get<std::size_t>(),
                               expected.at("tokens").get<std::size_t>(),
                               expected.at("sha256").get<std::string>()),
                   fmt::format(fmt::runtime(form), texts, tokens, hash.finish_hex()));
  }

  static void hash_word(Sha256& hash, std::uint32_t word) {
    std::array<char, 4> bytes{};
    for (char& byte : bytes) {
      byte = static_cast<char>(word & 0xFF);
      word >>= 8;
    }
    hash.update({bytes.data(), bytes.size()});
  }

  const ConformanceOptions& options_;
  ConformanceReport& report_;
  Tokenizers tokenizers_;
};

}  // namespace

void conformance_tokenizer(const ConformanceOptions& options, ConformanceReport& report) {
  Run(options, report).all();
}

}  // namespace asdbench
