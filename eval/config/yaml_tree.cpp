// Builds the tree from yaml-cpp's events, so that limits hold while parsing and not after it.
#include "eval/config/yaml_tree.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "eval/core/error.h"
#include "eval/core/utf8.h"

namespace asdbench {
namespace {

[[noreturn]] void fail(const std::string& file, int line, const std::string& path,
                       const std::string& message) {
  const SourceLocation where{.file = file, .line = line, .path = path};
  throw ConfigError(fmt::format("{}: {}", where.text(), message));
}

/// Refuses what yaml-cpp must not be shown: it guesses encodings from NUL bytes and replaces bad
/// UTF-8 silently.
void check_bytes(std::string_view text, const std::string& file) {
  if (text.size() > kLargestConfigBytes) {
    fail(file, 0, "",
         fmt::format("more than {} bytes; expected at most that", kLargestConfigBytes));
  }
  int line = 1;
  for (std::size_t i = 0; i < text.size();) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const Utf8Part part = utf8_part(text, i);
    if (part.form != Utf8Form::kWellFormed) {
      fail(file, line, "", fmt::format("byte {:#04x} is not UTF-8; expected UTF-8 text", byte));
    }
    if ((byte < 0x20 && byte != '\n' && byte != '\r' && byte != '\t') || byte == 0x7F) {
      fail(file, line, "", fmt::format("control character {:#04x}; expected text", byte));
    }
    if (byte == '\n') ++line;
    i += part.length;
  }
}

class TreeBuilder final : public YAML::EventHandler {
 public:
  /// `file` opens messages; a value with an `origin` is from the command line and has no line.
  TreeBuilder(std::string file, std::string origin)
      : file_(std::move(file)), origin_(std::move(origin)) {
    root_.file = origin_;
  }

  YamlNode take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) refuse(mark, "a second document begins; expected one document a file");
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    check(mark, "", anchor);
    if (expects_key()) refuse(mark, "a key is empty; expected a name");
    add(node_at(mark, YamlKind::kNull));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    refuse(mark, "aliases (*name) are not supported; write the value out");
  }
  void OnAnchor(const YAML::Mark& mark, const std::string&) override {
    refuse(mark, "anchors (&name) are not supported; write the value out");
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    check(mark, tag, anchor);
    if (expects_key()) {
      begin_entry(mark, value);
      return;
    }
    YamlNode node = node_at(mark, YamlKind::kScalar);
    node.text = value;
    node.quoted = tag == "!";
    add(std::move(node));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, YamlKind::kList);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, YamlKind::kMap);
  }
  void OnMapEnd() override { close(); }

  int line_of(const YAML::Mark& mark) const { return origin_.empty() ? mark.line + 1 : 0; }

 private:
  struct Level {
    YamlNode node;
    std::set<std::string> keys;        // of node.entries, and the pending one
    std::optional<YamlEntry> pending;  // a key whose value is still to come
  };

  YamlNode node_at(const YAML::Mark& mark, YamlKind kind) const {
    YamlNode node;
    node.kind = kind;
    node.line = line_of(mark);
    node.file = origin_;
    return node;
  }

  bool expects_key() const {
    return !open_.empty() && open_.back().node.kind == YamlKind::kMap && !open_.back().pending;
  }

  std::string path() const {
    std::string out;
    for (const Level& level : open_) {
      if (level.node.kind == YamlKind::kList) {
        out += fmt::format("[{}]", level.node.items.size());
      } else if (level.pending) {
        out = join_path(out, level.pending->key);
      }
    }
    return out;
  }

  [[noreturn]] void refuse(const YAML::Mark& mark, const std::string& message) const {
    fail(file_, line_of(mark), path(), message);
  }

  // yaml-cpp reports a plain scalar as "?", a quoted one as "!", and collections without a tag as
  // "?" or "".
  void check(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) const {
    if (anchor != YAML::NullAnchor) {
      refuse(mark, "anchors (&name) are not supported; write the value out");
    }
    if (!tag.empty() && tag != "?" && tag != "!") {
      refuse(mark, fmt::format("the tag {} is not supported; write the plain value", shown(tag)));
    }
  }

  void begin_entry(const YAML::Mark& mark, const std::string& key) {
    Level& level = open_.back();
    if (!level.keys.insert(key).second) {
      refuse(mark, fmt::format("the key {} is given twice", shown(key)));
    }
    level.pending = YamlEntry{key, line_of(mark), {}};
  }

  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor, YamlKind kind) {
    check(mark, tag, anchor);
    if (expects_key())
      refuse(mark, "a key is a list or a map; expected a name (is a bracket left open?)");
    if (open_.size() == kDeepestConfig) {
      refuse(mark, fmt::format("nested more than {} deep", kDeepestConfig));
    }
    open_.push_back({node_at(mark, kind), {}, std::nullopt});
  }

  void close() {
    YamlNode node = std::move(open_.back().node);
    open_.pop_back();
    add(std::move(node));
  }

  void add(YamlNode node) {
    if (open_.empty()) {
      root_ = std::move(node);
    } else if (Level& parent = open_.back(); parent.node.kind == YamlKind::kList) {
      parent.node.items.push_back(std::move(node));
    } else {
      // yaml-cpp places an absent value where the next token stands; people look for it at its key.
      if (node.kind == YamlKind::kNull) node.line = parent.pending->line;
      parent.pending->value = std::move(node);
      parent.node.entries.push_back(std::move(*parent.pending));
      parent.pending.reset();
    }
  }

  std::string file_;
  std::string origin_;
  int documents_ = 0;
  std::vector<Level> open_;
  YamlNode root_;
};

YamlNode parse(std::string_view text, const std::string& file, const std::string& origin) {
  check_bytes(text, file);
  TreeBuilder builder(file, origin);
  // The comment at the end: yaml-cpp 0.7 takes an unterminated quote for closed when the text ends
  // in a line break.
  std::istringstream in(std::string(text) + "\n#");
  try {
    YAML::Parser parser(in);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::Exception& error) {
    // An unexpected end is reported behind the last line.
    const std::string_view written = text.substr(0, text.find_last_not_of(" \t\r\n") + 1);
    const auto last = std::count(written.begin(), written.end(), '\n') + 1;
    const int line = std::min(builder.line_of(error.mark), static_cast<int>(last));
    fail(file, line, "", fmt::format("not valid YAML: {}", error.msg));
  }
  return builder.take();
}

}  // namespace

const YamlEntry* YamlNode::find(std::string_view key) const {
  const auto found = std::find_if(entries.begin(), entries.end(),
                                  [&](const YamlEntry& entry) { return entry.key == key; });
  return found == entries.end() ? nullptr : &*found;
}

YamlEntry* YamlNode::find(std::string_view key) {
  const auto found = std::find_if(entries.begin(), entries.end(),
                                  [&](const YamlEntry& entry) { return entry.key == key; });
  return found == entries.end() ? nullptr : &*found;
}

YamlNode parse_yaml(std::string_view text, const std::string& file) {
  return parse(text, file, "");
}

YamlNode parse_yaml_value(std::string_view text, const std::string& key) {
  return parse(text, fmt::format("{} {}", kOverrideOrigin, key), kOverrideOrigin);
}

std::string describe(const YamlNode& node) {
  switch (node.kind) {
    case YamlKind::kNull:
      return "nothing";
    case YamlKind::kList:
      return "a list";
    case YamlKind::kMap:
      return "a map";
    case YamlKind::kScalar:
      break;
  }
  return shown(node.text);
}

std::string join_path(const std::string& path, std::string_view key) {
  const std::string quoted = shown(key);
  const bool plain = quoted.size() == key.size() + 2 && quoted.substr(1, key.size()) == key;
  return fmt::format("{}{}{}", path, path.empty() ? "" : ".", plain ? key : quoted);
}

}  // namespace asdbench
