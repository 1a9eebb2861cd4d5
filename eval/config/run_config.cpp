// YAML to RunConfig: every key known, every value of its type and in its range, every name built
// in.
#include "eval/config/run_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <limits>
#include <set>

#include "eval/config/override.h"
#include "eval/config/yaml_tree.h"
#include "eval/core/error.h"

namespace asdbench {
namespace {

constexpr std::int64_t kMostSpeedTokens = 1'000'000;
constexpr std::int64_t kMostSpeedPrompts = 1'000'000;
constexpr std::int64_t kMostSpeedGroups = 10'000;
constexpr std::int64_t kMostWarmUp = 1'000;
constexpr std::size_t kLongestName = 200;

enum class Axis : std::uint8_t { kPlugin, kTarget, kDecoding };

/// Reads a checked tree; `file` opens every message.
class Reader {
 public:
  Reader(const std::filesystem::path& file, const KnownNames& known)
      : file_(file.string()), known_(known) {}

  void read(const YamlNode& root, RunConfig& config) const {
    if (root.kind == YamlKind::kNull) fail(root, "", "the file is empty; expected run and matrix");
    expect(root, "", YamlKind::kMap);
    refuse_unknown(root, "", {"run", "matrix", "skip", "baseline", "speed", "capped", "deploy"});
    read_run(required(root, "", "run"), config);
    read_matrix(required(root, "", "matrix"), config);
    if (const YamlEntry* entry = root.find("deploy")) read_deploy(entry->value, config);
    if (const YamlEntry* entry = root.find("skip")) read_skip(entry->value, config);
    if (const YamlEntry* entry = root.find("baseline")) read_baseline(entry->value, config);
    if (const YamlEntry* entry = root.find("speed")) read_speed(entry->value, config.speed_config);
    if (const YamlEntry* entry = root.find("capped")) {
      config.capped = choice(entry->value, "capped", {"wrong", "as_scored"}) == "wrong"
                          ? CappedPolicy::kWrong
                          : CappedPolicy::kAsScored;
    }
  }

  void read_training(const YamlNode& root, TrainConfig& config) const {
    if (root.kind == YamlKind::kNull) fail(root, "", "the file is empty; expected train and more");
    expect(root, "", YamlKind::kMap);
    refuse_unknown(root, "", {"train", "target", "data", "replies", "drafter"});
    const auto section = [&](const std::string& key) {
      const YamlNode& map = required(root, "", key);
      expect(map, key, YamlKind::kMap);
      return options(map, key, key, "");
    };
    config.train = section("train");
    config.replies = section("replies");
    config.target =
        entry(required(root, "", "target"), "target", "target", Axis::kTarget, known_.targets);
    config.drafter =
        entry(required(root, "", "drafter"), "drafter", "drafter", Axis::kPlugin, known_.drafters);
    const YamlNode& list = required(root, "", "data");
    expect(list, "data", YamlKind::kList);
    if (list.items.empty()) fail(list, "data", "the list is empty; expected at least one entry");
    std::vector<std::string> names = known_.tasks;
    names.emplace_back(kPromptFile);
    for (std::size_t i = 0; i < list.items.size(); ++i) {
      config.data.push_back(
          entry(list.items[i], fmt::format("data[{}]", i), "data", Axis::kPlugin, names));
    }
  }

 private:
  SourceLocation at(const YamlNode& node, const std::string& path) const {
    return at(node.file, node.line, path);
  }
  SourceLocation at(const std::string& origin, int line, const std::string& path) const {
    return {.file = origin.empty() ? file_ : origin, .line = line, .path = path};
  }

  [[noreturn]] void fail(const YamlNode& node, const std::string& path,
                         const std::string& message) const {
    throw ConfigError(fmt::format("{}: {}", at(node, path).text(), message));
  }

  static std::string_view name_of_kind(YamlKind kind) {
    static constexpr std::array<std::string_view, 4> kNames = {"nothing", "one value", "a list",
                                                               "a map"};
    return kNames.at(static_cast<std::size_t>(kind));
  }

  void expect(const YamlNode& node, const std::string& path, YamlKind kind) const {
    if (node.kind == kind) return;
    fail(node, path, fmt::format("found {}; expected {}", describe(node), name_of_kind(kind)));
  }

  const YamlNode& required(const YamlNode& map, const std::string& path,
                           std::string_view key) const {
    const YamlEntry* entry = map.find(key);
    if (entry == nullptr) fail(map, path, fmt::format("the key \"{}\" is missing", key));
    return entry->value;
  }

  void refuse_unknown(const YamlNode& map, const std::string& path,
                      const std::vector<std::string>& keys) const {
    for (const YamlEntry& entry : map.entries) {
      if (std::find(keys.begin(), keys.end(), entry.key) != keys.end()) continue;
      const SourceLocation where = at(entry.value.file, entry.line, path);
      throw ConfigError(fmt::format("{}: unknown key {}{}", where.text(), shown(entry.key),
                                    known_names(entry.key, keys)));
    }
  }

  std::string text(const YamlNode& node, const std::string& path) const {
    expect(node, path, YamlKind::kScalar);
    if (node.text.empty()) fail(node, path, "found an empty text; expected a value");
    return node.text;
  }

  std::string name(const YamlNode& node, const std::string& path) const {
    std::string value = text(node, path);
    if (value.size() > kLongestName) {
      fail(node, path,
           fmt::format("a name of {} bytes; expected at most {}", value.size(), kLongestName));
    }
    return value;
  }

  std::int64_t integer(const YamlNode& node, const std::string& path, std::int64_t minimum,
                       std::int64_t maximum) const {
    expect(node, path, YamlKind::kScalar);
    const auto value = node.quoted ? std::nullopt : parse_integer(node.text);
    const std::string range = maximum == std::numeric_limits<std::int64_t>::max()
                                  ? fmt::format("at least {}", minimum)
                                  : fmt::format("{} to {}", minimum, maximum);
    if (!value) {
      fail(node, path, fmt::format("found {}; expected a whole number, {}", describe(node), range));
    }
    if (*value < minimum || *value > maximum) {
      fail(node, path, fmt::format("{} is out of range; expected {}", *value, range));
    }
    return *value;
  }

  std::string choice(const YamlNode& node, const std::string& path,
                     const std::vector<std::string>& values) const {
    std::string value = text(node, path);
    if (std::find(values.begin(), values.end(), value) == values.end()) {
      fail(node, path, fmt::format("unknown value {}{}", shown(value), known_names(value, values)));
    }
    return value;
  }

  void read_run(const YamlNode& run, RunConfig& config) const {
    expect(run, "run", YamlKind::kMap);
    refuse_unknown(run, "run", {"name", "seed", "phases", "max_failed_samples"});
    constexpr std::int64_t kAny = std::numeric_limits<std::int64_t>::max();
    config.name = name(required(run, "run", "name"), "run.name");
    if (const YamlEntry* entry = run.find("seed")) {
      config.seed = static_cast<std::uint64_t>(integer(entry->value, "run.seed", 0, kAny));
    }
    if (const YamlEntry* entry = run.find("max_failed_samples")) {
      config.max_failed_samples = integer(entry->value, "run.max_failed_samples", 0, kAny);
    }
    if (const YamlEntry* entry = run.find("phases")) read_phases(entry->value, config);
  }

  void read_phases(const YamlNode& phases, RunConfig& config) const {
    expect(phases, "run.phases", YamlKind::kList);
    if (phases.items.empty()) {
      fail(phases, "run.phases", "the list is empty; expected quality, speed, replay");
    }
    config.quality = false;
    const std::map<std::string, bool*> flags = {
        {"quality", &config.quality}, {"speed", &config.speed}, {"replay", &config.replay}};
    for (std::size_t i = 0; i < phases.items.size(); ++i) {
      const std::string path = fmt::format("run.phases[{}]", i);
      bool& phase = *flags.at(choice(phases.items[i], path, {"quality", "speed", "replay"}));
      if (phase) {
        fail(phases.items[i], path, fmt::format("{} is given twice", describe(phases.items[i])));
      }
      phase = true;
    }
  }

  void read_matrix(const YamlNode& matrix, RunConfig& config) const {
    expect(matrix, "matrix", YamlKind::kMap);
    refuse_unknown(matrix, "matrix", {"task", "target", "drafter", "verifier", "decoding"});
    config.tasks = axis(matrix, "task", Axis::kPlugin, known_.tasks);
    config.targets = axis(matrix, "target", Axis::kTarget, known_.targets);
    config.drafters = axis(matrix, "drafter", Axis::kPlugin, known_.drafters);
    config.verifiers = axis(matrix, "verifier", Axis::kPlugin, known_.verifiers);
    if (matrix.find("decoding") != nullptr) {
      config.decodings = axis(matrix, "decoding", Axis::kDecoding, {});
    } else {
      config.decodings = {{"decoding", Params("decoding", at(matrix, "matrix.decoding"))}};
    }
  }

  std::vector<Choice> axis(const YamlNode& matrix, const std::string& key, Axis kind,
                           const std::vector<std::string>& names) const {
    const std::string parent = key == "audit" ? "deploy" : "matrix";
    const std::string path = join_path(parent, key);
    const YamlNode& list = required(matrix, parent, key);
    expect(list, path, YamlKind::kList);
    if (list.items.empty()) fail(list, path, "the list is empty; expected at least one entry");
    std::vector<Choice> choices;
    std::map<std::string, std::size_t> seen;
    for (std::size_t i = 0; i < list.items.size(); ++i) {
      const std::string entry_path = fmt::format("{}[{}]", path, i);
      choices.push_back(entry(list.items[i], entry_path, key, kind, names));
      const std::string identity = choices.back().name + '\n' + choices.back().params.given();
      const auto [first, fresh] = seen.emplace(identity, i);
      if (!fresh) {
        fail(list.items[i], entry_path,
             fmt::format("the same as {}[{}]; expected different entries", path, first->second));
      }
    }
    return choices;
  }

  Choice entry(const YamlNode& node, const std::string& path, const std::string& key, Axis kind,
               const std::vector<std::string>& names) const {
    if (kind == Axis::kDecoding) {
      expect(node, path, YamlKind::kMap);
      return {"decoding", options(node, path, "decoding", "")};
    }
    if (node.kind == YamlKind::kScalar) {
      const std::string found = known_name(node, node.text, path, key, kind, names);
      return {found, Params(found, at(node, path))};
    }
    const std::string forms = kind == Axis::kTarget
                                  ? "a name, {name: {options}} or {path: ..., options}"
                                  : "a name or {name: {options}}";
    if (node.kind != YamlKind::kMap || node.entries.empty()) {
      const std::string found = node.kind == YamlKind::kMap ? "an empty map" : describe(node);
      fail(node, path, fmt::format("found {}; expected {}", found, forms));
    }
    const YamlEntry* file = kind == Axis::kTarget ? node.find("path") : nullptr;
    if (file != nullptr && file->value.kind != YamlKind::kMap) {
      const std::string target = text(file->value, join_path(path, "path"));
      return {target, options(node, path, target, "path")};
    }
    if (node.entries.size() != 1) {
      fail(node, path,
           fmt::format("found a map of {} keys; expected {}", node.entries.size(), forms));
    }
    const YamlEntry& named = node.entries.front();
    const std::string found = known_name(node, named.key, path, key, kind, names);
    const std::string inner = join_path(path, found);
    expect(named.value, inner, YamlKind::kMap);
    return {found, options(named.value, inner, found, "")};
  }

  std::string known_name(const YamlNode& node, const std::string& found, const std::string& path,
                         const std::string& key, Axis kind,
                         const std::vector<std::string>& names) const {
    if (found.empty()) fail(node, path, "found an empty text; expected a name");
    const bool is_path =
        kind == Axis::kTarget && (found.find('/') != std::string::npos || found.ends_with(".gguf"));
    if (!is_path && std::find(names.begin(), names.end(), found) == names.end()) {
      fail(node, path,
           fmt::format("unknown {} {}{}", key, shown(found), known_names(found, names)));
    }
    return found;
  }

  Params options(const YamlNode& map, const std::string& path, const std::string& owner,
                 std::string_view without) const {
    Params params(owner, at(map, path));
    for (const YamlEntry& item : map.entries) {
      if (item.key == without) continue;
      const std::string item_path = join_path(path, item.key);
      if (item.value.kind != YamlKind::kScalar) {
        fail(item.value, item_path,
             fmt::format("found {}; expected one value", describe(item.value)));
      }
      params.set(item.key, item.value.text, at(item.value, item_path));
    }
    return params;
  }

  void read_skip(const YamlNode& list, RunConfig& config) const {
    expect(list, "skip", YamlKind::kList);
    for (std::size_t i = 0; i < list.items.size(); ++i) {
      const YamlNode& node = list.items[i];
      const std::string path = fmt::format("skip[{}]", i);
      expect(node, path, YamlKind::kMap);
      if (node.entries.empty()) fail(node, path, "an empty map would skip every cell");
      refuse_unknown(node, path, {"task", "target", "drafter", "verifier"});
      std::map<std::string, std::string> entry;
      for (const YamlEntry& item : node.entries) {
        const std::string item_path = join_path(path, item.key);
        const std::string found = text(item.value, item_path);
        const std::vector<std::string> names = skippable(item.key, config);
        if (std::find(names.begin(), names.end(), found) == names.end()) {
          fail(item.value, item_path,
               fmt::format("unknown {} {}{}", item.key, shown(found), known_names(found, names)));
        }
        entry.emplace(item.key, found);
      }
      config.skip.push_back(std::move(entry));
    }
  }

  /// Names that a skip entry may hold: what is built in, and for targets the paths of the matrix.
  std::vector<std::string> skippable(const std::string& axis_name, const RunConfig& config) const {
    if (axis_name == "task") return known_.tasks;
    if (axis_name == "drafter") return known_.drafters;
    if (axis_name == "verifier") return known_.verifiers;
    std::set<std::string> names(known_.targets.begin(), known_.targets.end());
    for (const Choice& target : config.targets) names.insert(target.name);
    return {names.begin(), names.end()};
  }

  void read_deploy(const YamlNode& deploy, RunConfig& config) const {
    expect(deploy, "deploy", YamlKind::kMap);
    DeployConfig found{.audit = axis(deploy, "audit", Axis::kPlugin, known_.tasks),
                       .margins = Params("margins", at(deploy, "deploy.margins")),
                       .options = Params("deploy", at(deploy, "deploy"))};
    for (const YamlEntry& entry : deploy.entries) {
      const std::string path = join_path("deploy", entry.key);
      if (entry.key == "audit") continue;
      if (entry.key == "margins") {
        expect(entry.value, path, YamlKind::kMap);
        found.margins = options(entry.value, path, "margins", "");
      } else if (entry.key == "grid") {
        expand_grid(entry.value, config);
      } else {
        found.options.set(entry.key, text(entry.value, path), at(entry.value, path));
      }
    }
    if (found.audit.size() != config.tasks.size()) {
      fail(deploy, "deploy.audit",
           fmt::format("found {} entries; expected one for each of the {} of matrix.task",
                       found.audit.size(), config.tasks.size()));
    }
    for (std::size_t i = 0; i < found.audit.size(); ++i) {
      if (found.audit[i].name == config.tasks[i].name) continue;
      fail(deploy, fmt::format("deploy.audit[{}]", i),
           fmt::format("found {}; expected {}, as matrix.task[{}] has it", found.audit[i].name,
                       config.tasks[i].name, i));
    }
    config.deploy = std::move(found);
  }

  /// {asd: {B: [1, 2], g: [0.25], M: [1, 2]}} adds every combination to the verifiers, the last
  /// option fastest.
  void expand_grid(const YamlNode& grid, RunConfig& config) const {
    constexpr std::size_t kMostSettings = 1000;
    expect(grid, "deploy.grid", YamlKind::kMap);
    for (const YamlEntry& rule : grid.entries) {
      const std::string path = join_path("deploy.grid", rule.key);
      known_name(grid, rule.key, path, "verifier", Axis::kPlugin, known_.verifiers);
      expect(rule.value, path, YamlKind::kMap);
      struct Option {
        std::string key, text;
        SourceLocation where;
      };
      std::vector<std::vector<Option>> settings = {{}};
      for (const YamlEntry& option : rule.value.entries) {
        const std::string option_path = join_path(path, option.key);
        expect(option.value, option_path, YamlKind::kList);
        std::vector<std::vector<Option>> longer;
        for (const std::vector<Option>& setting : settings) {
          for (std::size_t i = 0; i < option.value.items.size(); ++i) {
            const YamlNode& value = option.value.items[i];
            const std::string value_path = fmt::format("{}[{}]", option_path, i);
            longer.push_back(setting);
            longer.back().push_back({option.key, text(value, value_path), at(value, value_path)});
          }
        }
        settings = std::move(longer);
        if (settings.empty() || settings.size() > kMostSettings) {
          fail(option.value, option_path,
               fmt::format("{} settings; expected 1 to {}", settings.size(), kMostSettings));
        }
      }
      for (const std::vector<Option>& combination : settings) {
        // Copies of one Params share what is learnt of them: every setting has its own.
        Choice setting{rule.key, Params(rule.key, at(rule.value, path))};
        for (const Option& option : combination) {
          setting.params.set(option.key, option.text, option.where);
        }
        const bool known = std::any_of(
            config.verifiers.begin(), config.verifiers.end(), [&](const Choice& choice) {
              return choice.name == setting.name && choice.params.given() == setting.params.given();
            });
        if (known) fail(rule.value, path, fmt::format("{} is given twice", setting.params.given()));
        config.verifiers.push_back(std::move(setting));
      }
    }
  }

  void read_baseline(const YamlNode& node, RunConfig& config) const {
    expect(node, "baseline", YamlKind::kMap);
    refuse_unknown(node, "baseline", {"verifier"});
    const YamlNode& verifier = required(node, "baseline", "verifier");
    config.baseline_verifier = choice(verifier, "baseline.verifier", known_.verifiers);
    const bool present =
        std::any_of(config.verifiers.begin(), config.verifiers.end(),
                    [&](const Choice& choice) { return choice.name == config.baseline_verifier; });
    if (!present) {
      fail(verifier, "baseline.verifier",
           fmt::format("\"{}\" is not in matrix.verifier; add it there or name one that is",
                       config.baseline_verifier));
    }
    if (config.baseline_verifier != "strict") {
      fail(verifier, "baseline.verifier",
           fmt::format("found \"{}\"; expected strict, which every ratio is against",
                       config.baseline_verifier));
    }
  }

  void read_speed(const YamlNode& node, SpeedConfig& speed) const {
    expect(node, "speed", YamlKind::kMap);
    refuse_unknown(
        node, "speed",
        {"work", "tokens", "prompts", "groups", "warmup", "warmup_most", "order", "spot_checks"});
    const auto count = [&](std::string_view key, std::int64_t minimum, std::int64_t maximum,
                           std::int32_t& value) {
      const YamlEntry* entry = node.find(key);
      if (entry == nullptr) return;
      value = static_cast<std::int32_t>(
          integer(entry->value, join_path("speed", key), minimum, maximum));
    };
    count("tokens", 1, kMostSpeedTokens, speed.tokens);
    count("prompts", 1, kMostSpeedPrompts, speed.prompts);
    count("groups", 1, kMostSpeedGroups, speed.groups);
    count("warmup", 0, kMostWarmUp, speed.warmup);
    count("warmup_most", 0, kMostWarmUp, speed.warmup_most);
    count("spot_checks", 0, kMostSpeedPrompts, speed.spot_checks);
    if (const YamlEntry* entry = node.find("order")) {
      const bool abba = choice(entry->value, "speed.order", {"abba", "bcb"}) == "abba";
      speed.order = abba ? SpeedOrder::kAbba : SpeedOrder::kBcb;
    }
    if (const YamlEntry* entry = node.find("work")) read_work(entry->value, speed);
  }

  void read_work(const YamlNode& list, SpeedConfig& speed) const {
    expect(list, "speed.work", YamlKind::kList);
    if (list.items.empty()) {
      fail(list, "speed.work", "the list is empty; expected constant, reference, natural");
    }
    speed.work.clear();
    for (std::size_t i = 0; i < list.items.size(); ++i) {
      const std::string path = fmt::format("speed.work[{}]", i);
      const std::string name = choice(list.items[i], path, {"constant", "reference", "natural"});
      const SpeedWork work = name == "constant"    ? SpeedWork::kConstant
                             : name == "reference" ? SpeedWork::kReference
                                                   : SpeedWork::kNatural;
      if (std::find(speed.work.begin(), speed.work.end(), work) != speed.work.end()) {
        fail(list.items[i], path, fmt::format("{} is given twice", name));
      }
      speed.work.push_back(work);
    }
  }

  std::string file_;
  const KnownNames& known_;
};

/// The text of a configuration; one byte more than is allowed at most, so that parse_yaml sees and
/// reports a file that is too large.
std::string read_text(const std::filesystem::path& file) {
  std::error_code status;
  if (!std::filesystem::exists(file, status)) {
    throw ConfigError(
        fmt::format("{}: there is no such file; expected a YAML configuration", file.string()));
  }
  if (!std::filesystem::is_regular_file(file, status)) {
    throw ConfigError(
        fmt::format("{}: is no regular file; expected a YAML configuration", file.string()));
  }
  std::ifstream in(file, std::ios::binary);
  std::string text(kLargestConfigBytes + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (in.bad() || (in.fail() && !in.eof())) {
    throw ConfigError(fmt::format("{}: cannot be read; check its permissions", file.string()));
  }
  text.resize(static_cast<std::size_t>(in.gcount()));
  return text;
}

}  // namespace

const char* name_of(SpeedWork work) {
  return work == SpeedWork::kConstant    ? "constant"
         : work == SpeedWork::kReference ? "reference"
                                         : "natural";
}

RunConfig parse_config(const std::string& text, const std::filesystem::path& file,
                       const KnownNames& known, const std::vector<Override>& overrides) {
  YamlNode root = parse_yaml(text, file.string());
  for (const Override& override : overrides) apply_override(root, override.key, override.value);
  RunConfig config;
  config.file = file;
  config.text = text;
  Reader(file, known).read(root, config);
  return config;
}

RunConfig read_config(const std::filesystem::path& file, const KnownNames& known,
                      const std::vector<Override>& overrides) {
  return parse_config(read_text(file), file, known, overrides);
}

TrainConfig parse_train_config(const std::string& text, const std::filesystem::path& file,
                               const KnownNames& known, const std::vector<Override>& overrides) {
  YamlNode root = parse_yaml(text, file.string());
  for (const Override& override : overrides) apply_override(root, override.key, override.value);
  TrainConfig config;
  config.file = file;
  config.text = text;
  Reader(file, known).read_training(root, config);
  return config;
}

TrainConfig read_train_config(const std::filesystem::path& file, const KnownNames& known,
                              const std::vector<Override>& overrides) {
  return parse_train_config(read_text(file), file, known, overrides);
}

}  // namespace asdbench
