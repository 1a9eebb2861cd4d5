// A YAML document as a small checked tree: every node knows its line, nothing is nested deeply.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "eval/core/error.h"
#include "eval/core/params.h"

namespace asdbench {

/// A larger text is refused before it is looked at.
inline constexpr std::size_t kLargestConfigBytes = std::size_t{1} << 20;
/// Deeper nesting is refused while parsing: no recursion of ours or of yaml-cpp goes further.
inline constexpr std::size_t kDeepestConfig = 16;

enum class YamlKind : std::uint8_t { kNull, kScalar, kList, kMap };

struct YamlEntry;

/// A value. Anchors, aliases, tags, several documents and keys that are no plain names do not
/// occur.
struct YamlNode {
  YamlKind kind = YamlKind::kNull;
  bool quoted = false;  // a scalar in quotes is text even if it reads like a number
  std::string text;     // of a scalar
  std::vector<YamlNode> items;
  std::vector<YamlEntry> entries;  // in the order of the file; keys are unique
  std::string file;                // "" for the file itself, else what gave the value ("--set")
  int line = 0;                    // from 1; 0 when it came from the command line

  const YamlEntry* find(std::string_view key) const;
  YamlEntry* find(std::string_view key);
};

struct YamlEntry {
  std::string key;
  int line = 0;
  YamlNode value;
};

/// Parses hostile text. An empty document is a kNull node.
///
/// Errors:  ConfigError with `file`, line and key path for text over kLargestConfigBytes, bytes
/// that are not UTF-8,
///          control characters, nesting over kDeepestConfig, duplicate keys, anchors, aliases,
///          tags, and bad YAML.
YamlNode parse_yaml(std::string_view text, const std::string& file);

/// Where the value of an override came from.
inline constexpr const char* kOverrideOrigin = "--set";

/// Parses the value of the override of `key`; its nodes bear kOverrideOrigin and no line.
YamlNode parse_yaml_value(std::string_view text, const std::string& key);

/// What a node is, for messages: a list, a map, nothing, or the scalar as shown.
std::string describe(const YamlNode& node);

/// "key", "parent.key"; a key that is no plain text is shown in quotes.
std::string join_path(const std::string& path, std::string_view key);

}  // namespace asdbench
