// YAML to SimulateConfig.
#include "eval/config/simulate_config.h"

#include <fmt/format.h>

#include <fstream>

#include "eval/config/override.h"
#include "eval/config/yaml_tree.h"
#include "eval/core/error.h"

namespace asdbench {
namespace {

constexpr std::size_t kMostValues = 1000;

[[noreturn]] void fail(const SimulateConfig& config, const YamlNode& node, const std::string& path,
                       const std::string& message) {
  const SourceLocation where{.file = node.file.empty() ? config.file.string() : node.file,
                             .line = node.line,
                             .path = path};
  throw ConfigError(fmt::format("{}: {}", where.text(), message));
}

std::vector<double> numbers_of(const SimulateConfig& config, const YamlNode& list,
                               const std::string& path) {
  if (list.items.empty() || list.items.size() > kMostValues) {
    fail(config, list, path,
         fmt::format("{} values; expected 1 to {}", list.items.size(), kMostValues));
  }
  std::vector<double> values;
  for (const YamlNode& item : list.items) {
    const auto value = item.kind == YamlKind::kScalar ? parse_number(item.text) : std::nullopt;
    if (!value)
      fail(config, item, path, fmt::format("found {}; expected a number", describe(item)));
    values.push_back(*value);
  }
  return values;
}

}  // namespace

SimulateConfig parse_simulate_config(const std::string& text, const std::filesystem::path& file,
                                     const std::vector<Override>& overrides) {
  YamlNode root = parse_yaml(text, file.string());
  for (const Override& override : overrides) apply_override(root, override.key, override.value);
  SimulateConfig config{.file = file, .options = {}, .lists = {}};
  const YamlEntry* simulate = root.kind == YamlKind::kMap ? root.find("simulate") : nullptr;
  if (simulate == nullptr || root.entries.size() != 1 || simulate->value.kind != YamlKind::kMap) {
    fail(config, root, "", "expected one map \"simulate\" and nothing else");
  }
  config.options =
      Params("simulate", {.file = file.string(), .line = simulate->line, .path = "simulate"});
  for (const YamlEntry& entry : simulate->value.entries) {
    const std::string path = join_path("simulate", entry.key);
    if (entry.value.kind == YamlKind::kList) {
      config.lists[entry.key] = numbers_of(config, entry.value, path);
    } else if (entry.value.kind == YamlKind::kScalar) {
      config.options.set(entry.key, entry.value.text,
                         {.file = file.string(), .line = entry.line, .path = path});
    } else {
      fail(config, entry.value, path,
           fmt::format("found {}; expected a value or a list of numbers", describe(entry.value)));
    }
  }
  return config;
}

SimulateConfig read_simulate_config(const std::filesystem::path& file,
                                    const std::vector<Override>& overrides) {
  std::ifstream in(file, std::ios::binary);
  if (!in) {
    throw ConfigError(
        fmt::format("{}: there is no such file; expected a YAML configuration", file.string()));
  }
  std::string text(kLargestConfigBytes + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  return parse_simulate_config(text, file, overrides);
}

}  // namespace asdbench
