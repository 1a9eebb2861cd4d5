// Conformance of the GGUF reader: containers, dequantised values, whole models.
#include "runners/checkpoint/gguf.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <set>
#include <span>

#include "eval/cli/conformance/conformance.h"
#include "eval/core/error.h"
#include "eval/core/json.h"
#include "runners/checkpoint/checkpoint.h"
#include "runners/checkpoint/mapped_file.h"
#include "runners/models/gguf_tokenizer.h"

namespace asdbench {
namespace {

namespace fs = std::filesystem;

Json read_json(const fs::path& path) {
  const MappedFile file(path);
  return parse_json({reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()});
}

// One failure for every field of `entry` that this build does not know.
void check_fields(const Json& entry, const std::set<std::string>& known, const std::string& id,
                  ConformanceReport& report) {
  for (const auto& [field, value] : entry.items()) {
    if (!known.contains(field)) report.fail(id, "known fields only", "field \"" + field + "\"");
  }
}

std::vector<float> values_of(const Tensor& tensor) {
  std::vector<float> values(static_cast<std::size_t>(tensor.elements()));
  dequantise(tensor, values);
  return values;
}

// "equal", or where the values first differ from the little-endian float32 at `expected`.
std::string compare(std::span<const float> values, std::span<const std::byte> expected) {
  if (expected.size() < values.size_bytes()) return "fewer values expected than the tensor has";
  for (std::size_t i = 0; i < values.size(); ++i) {
    float wanted;
    std::memcpy(&wanted, expected.data() + i * sizeof wanted, sizeof wanted);
    if (std::bit_cast<std::uint32_t>(values[i]) != std::bit_cast<std::uint32_t>(wanted)) {
      return fmt::format("value {}: {} instead of {}", i, values[i], wanted);
    }
  }
  return "equal";
}

void check_type(const fs::path& folder, const Json& entry, ConformanceReport& report) {
  const std::string id = entry.at("id");
  check_fields(entry,
               {"id", "file", "tensor", "type", "type_id", "rows", "cols", "expected", "content",
                "nonfinite"},
               id, report);
  const GgufFile file = GgufFile::open(folder / entry.at("file").get<std::string>());
  const MappedFile expected(folder / entry.at("expected").get<std::string>());
  std::string got = "no such tensor";
  for (const GgufTensor& each : file.tensors()) {
    if (each.name != entry.at("tensor").get<std::string>()) continue;
    if (name_of(each.tensor.type) != entry.at("type").get<std::string>()) {
      got = fmt::format("type {}", name_of(each.tensor.type));
    } else if (each.tensor.shape != std::vector<std::int64_t>{entry.at("rows"), entry.at("cols")}) {
      got = fmt::format("shape [{}]", fmt::join(each.tensor.shape, ", "));
    } else {
      got = compare(values_of(each.tensor), expected.bytes());
    }
  }
  report.expect(id, got == "equal", "equal", got);
}

// The value in the form that the cases use: integers beyond 2^53 are strings there.
Json as_json(const GgufValue& value, const Json& like) {
  const Json plain = std::visit([](const auto& held) { return Json(held); }, value);
  return like.is_string() && plain.is_number_integer() ? Json(plain.dump()) : plain;
}

void check_mixed(const fs::path& folder, const Json& mixed, ConformanceReport& report) {
  check_fields(mixed, {"file", "alignment", "metadata", "expected", "tensors"}, "mixed", report);
  const GgufFile file = GgufFile::open(folder / mixed.at("file").get<std::string>());
  for (const auto& [key, entry] : mixed.at("metadata").items()) {
    const Json& expected = entry.at("value");
    const GgufValue* value = file.find(key);
    const Json got = value == nullptr ? Json() : as_json(*value, expected);
    report.expect("mixed " + key, got == expected, expected.dump(), got.dump());
  }
  const MappedFile values(folder / mixed.at("expected").get<std::string>());
  for (const Json& entry : mixed.at("tensors")) {
    const std::string name = entry.at("name");
    std::string got = "no such tensor";
    for (const GgufTensor& each : file.tensors()) {
      if (each.name != name) continue;
      got = each.tensor.shape == entry.at("shape").get<std::vector<std::int64_t>>()
                ? compare(values_of(each.tensor),
                          values.bytes().subspan(entry.at("offset").get<std::size_t>()))
                : fmt::format("shape [{}]", fmt::join(each.tensor.shape, ", "));
    }
    report.expect("mixed tensor " + name, got == "equal", "equal", got);
  }
}

void read_container(const fs::path& path) {
  const GgufFile file = GgufFile::open(path);
  for (const GgufTensor& each : file.tensors()) values_of(each.tensor);
}

void load_model(const fs::path& path) {
  const auto checkpoint = open_checkpoint(path);
  const Tokenizer tokenizer(gguf_tokenizer_spec(*checkpoint->gguf()));
}

template <typename Action>
std::string outcome_of(Action action) {
  try {
    action();
    return "ok";
  } catch (const ModelError& error) {
    return std::string(name_of(error.fault()));
  } catch (const std::exception& error) {
    return fmt::format("another error: {}", error.what());
  }
}

void check_fault(const fs::path& folder, const Json& entry, ConformanceReport& report) {
  const std::string id = entry.at("id");
  check_fields(entry, {"id", "file", "kind", "error", "also_ok", "why"}, id, report);
  const fs::path path = folder / entry.at("file").get<std::string>();
  const bool model = folder.filename() == "badmodels";
  const std::string got = outcome_of([&] { model ? load_model(path) : read_container(path); });
  std::set<std::string> allowed;
  const auto allow = [&allowed](const Json& category) {
    allowed.insert(category.is_null() ? "ok" : category.get<std::string>());
  };
  allow(entry.at("error"));
  for (const Json& category : entry.at("also_ok")) allow(category);
  report.expect(id, allowed.contains(got), fmt::format("{}", fmt::join(allowed, " or ")), got);
}

// The model opens with its tokenizer and is what the golden says; its logits are kind `model`.
void check_model(const fs::path& folder, const Json& golden, ConformanceReport& report) {
  const std::string name = golden.at("name");
  std::string got;
  const std::string expected = fmt::format(
      "{}, {} layers of {}, vocabulary {}, {}", golden.at("arch").get<std::string>(),
      golden.at("layers").get<std::int64_t>(), golden.at("hidden_size").get<std::int64_t>(),
      golden.at("vocab_size").get<std::int64_t>(), golden.at("stored_dtype").get<std::string>());
  const std::string outcome = outcome_of([&] {
    const fs::path path = folder / golden.at("file").get<std::string>();
    load_model(path);
    const auto checkpoint = open_checkpoint(path);
    got = fmt::format("{}, {} layers of {}, vocabulary {}, {}",
                      checkpoint->gguf()->text("general.architecture"), checkpoint->config().layers,
                      checkpoint->config().hidden, checkpoint->config().vocab,
                      name_of(checkpoint->tensor("model.embed_tokens.weight").type));
  });
  report.expect(name, outcome == "ok" && got == expected, expected,
                outcome == "ok" ? got : outcome);
}

void check_cases(const fs::path& path, ConformanceReport& report) {
  const Json document = read_json(path);
  const fs::path folder = fs::absolute(path).parent_path();
  if (document.is_object()) {  // folder `types`
    check_fields(document, {"cases", "mixed"}, path.string(), report);
    for (const Json& entry : document.at("cases")) check_type(folder, entry, report);
    check_mixed(folder, document.at("mixed"), report);
    return;
  }
  for (const Json& entry : document) {
    // Cases with `path` are checkpoint folders, which kind `model` runs.
    if (!entry.contains("path")) check_fault(folder, entry, report);
  }
}

}  // namespace

void conformance_gguf(const ConformanceOptions& options, ConformanceReport& report) {
  for (const fs::path& path : find_cases(options.path, "cases.json")) check_cases(path, report);
  for (const fs::path& path : find_cases(options.path, "golden.json")) {
    const Json golden = read_json(path);
    // Goldens without `file` belong to safetensors or to a model that is not stored beside them.
    if (golden.contains("file")) check_model(path.parent_path(), golden, report);
  }
}

}  // namespace asdbench
