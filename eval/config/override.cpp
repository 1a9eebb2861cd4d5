// Walks a dotted path through the tree.
#include "eval/config/override.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "eval/core/error.h"
#include "eval/core/params.h"

namespace asdbench {
namespace {

/// A key of a map, or an index into a list.
struct Step {
  std::string key;
  std::optional<std::size_t> index;
};

[[noreturn]] void fail(const std::string& path, const std::string& message) {
  throw ConfigError(fmt::format("{} {}: {}", kOverrideOrigin, path, message));
}

/// "matrix.task[0].gsm8k" as steps.
std::vector<Step> steps_of(const std::string& path) {
  std::vector<Step> steps;
  std::size_t at = 0;
  while (at <= path.size()) {
    const std::size_t end = std::min(path.find('.', at), path.size());
    const std::string part = path.substr(at, end - at);
    const std::size_t bracket = std::min(part.find('['), part.size());
    if (bracket == 0)
      fail(shown(path), "expected a dotted path such as matrix.task[0].gsm8k.limit");
    steps.push_back({part.substr(0, bracket), std::nullopt});
    for (std::size_t open = bracket; open < part.size();) {
      const std::size_t close = part.find(']', open);
      const auto index = part[open] != '[' || close == std::string::npos
                             ? std::nullopt
                             : parse_integer(part.substr(open + 1, close - open - 1));
      if (!index || *index < 0) {
        fail(shown(path), fmt::format("{} is no index; expected a number in brackets, from [0]",
                                      shown(part.substr(open))));
      }
      steps.push_back({"", static_cast<std::size_t>(*index)});
      open = close + 1;
    }
    if (steps.size() > kDeepestConfig) {
      fail(shown(path), fmt::format("the path has more than {} steps", kDeepestConfig));
    }
    at = end + 1;
  }
  return steps;
}

YamlNode empty_map() {
  YamlNode node;
  node.kind = YamlKind::kMap;
  node.file = kOverrideOrigin;
  return node;
}

YamlNode& step_into_list(YamlNode& node, std::size_t index, const std::string& path) {
  if (node.kind != YamlKind::kList) {
    fail(path, fmt::format("found {} before [{}]; expected a list", describe(node), index));
  }
  if (index >= node.items.size()) {
    fail(path, fmt::format("[{}] is out of range; the list has {} entries, counted from 0", index,
                           node.items.size()));
  }
  return node.items[index];
}

YamlNode& step_into_map(YamlNode& node, const std::string& key, const std::string& path) {
  if (node.kind == YamlKind::kNull) node = empty_map();
  if (node.kind == YamlKind::kScalar && node.text == key) {
    YamlNode named = empty_map();
    named.line = node.line;
    named.file = node.file;
    named.entries.push_back({key, node.line, empty_map()});
    node = std::move(named);
  }
  if (node.kind != YamlKind::kMap) {
    fail(path, fmt::format("found {} before \"{}\"; expected a map", describe(node), key));
  }
  if (YamlEntry* entry = node.find(key)) return entry->value;
  YamlNode absent;
  absent.file = kOverrideOrigin;
  node.entries.push_back({key, 0, std::move(absent)});
  return node.entries.back().value;
}

}  // namespace

void apply_override(YamlNode& root, const std::string& key, const std::string& value) {
  YamlNode parsed = parse_yaml_value(value, key);
  const std::vector<Step> steps = steps_of(key);
  YamlNode* node = &root;
  for (const Step& step : steps) {
    node = step.index ? &step_into_list(*node, *step.index, key)
                      : &step_into_map(*node, step.key, key);
  }
  *node = std::move(parsed);
}

}  // namespace asdbench
