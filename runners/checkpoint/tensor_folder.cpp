// Reads the safetensors of a folder, and the small files beside them.
#include "runners/checkpoint/tensor_folder.h"

#include <fmt/format.h>

#include <map>
#include <set>

#include "runners/checkpoint/mapped_file.h"

namespace asdbench {
namespace {

namespace fs = std::filesystem;

// A JSON tree takes many times its text; index and configurations have far under 8 MB.
constexpr std::size_t kLongestJson = std::size_t{32} << 20;

// A shard lies beside its index; any other path could read files that are none of the model's.
void check_shard_name(const std::string& shard, const fs::path& index) {
  const bool plain = !shard.empty() && shard != "." && shard != ".." &&
                     shard.find_first_of(std::string_view("/\\\0", 3)) == std::string::npos;
  if (!plain) {
    throw ModelError(ModelFault::kBadConfig, fmt::format("{}: shard {} is no plain file name",
                                                         index.string(), shown(shard)));
  }
}

// Adds the tensors of `file` that are in `names`; all of them when it is null.
void add_file(const fs::path& path, std::set<std::string, std::less<>>* names, FolderTensors& out) {
  auto file = std::make_shared<const SafetensorsFile>(SafetensorsFile::open(path));
  for (const SafetensorsEntry& entry : file->entries()) {
    if (names == nullptr || names->erase(entry.name) > 0) {
      out.tensors.push_back({entry, path.string()});
    } else {
      out.warnings.push_back(fmt::format("{}: tensor {} is not in the index and was ignored",
                                         path.string(), shown(entry.name)));
    }
  }
  if (names != nullptr && !names->empty()) {
    throw ModelError(ModelFault::kMissingTensor,
                     fmt::format("{}: the index puts tensor {} here, but it is not", path.string(),
                                 shown(*names->begin())));
  }
  out.owners.push_back(std::move(file));
}

FolderTensors read_shards(const fs::path& index) {
  const Json json = read_object(index, ModelFault::kBadHeader);
  const auto map = json.find("weight_map");
  if (map == json.end() || !map->is_object()) {
    throw ModelError(ModelFault::kBadHeader,
                     fmt::format("{}: weight_map is no object", index.string()));
  }
  std::map<std::string, std::set<std::string, std::less<>>> names_of_shard;
  for (const auto& [name, shard] : map->items()) {
    if (!shard.is_string()) {
      throw ModelError(ModelFault::kBadHeader, fmt::format("{}: the file of tensor {} is no string",
                                                           index.string(), shown(name)));
    }
    check_shard_name(shard.get<std::string>(), index);
    names_of_shard[shard.get<std::string>()].insert(name);
  }
  FolderTensors out;
  for (auto& [shard, names] : names_of_shard) add_file(index.parent_path() / shard, &names, out);
  return out;
}

}  // namespace

FolderTensors read_safetensors_folder(const fs::path& folder) {
  const fs::path index = folder / "model.safetensors.index.json";
  return is_there(index) ? read_shards(index) : read_safetensors_file(folder / "model.safetensors");
}

FolderTensors read_safetensors_file(const fs::path& file) {
  FolderTensors out;
  add_file(file, nullptr, out);
  return out;
}

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

std::string read_text(const fs::path& path) {
  const MappedFile file(path);
  if (file.bytes().size() > kLongestJson) {
    throw ModelError(ModelFault::kUnsupported,
                     fmt::format("{}: {} bytes, at most {} are read", path.string(),
                                 file.bytes().size(), kLongestJson));
  }
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

Json read_object(const fs::path& path, ModelFault fault) {
  try {
    Json json = parse_json(read_text(path));
    if (json.is_object()) return json;
  } catch (const DataError& error) {
    throw ModelError(fault, fmt::format("{}: {}", path.string(), error.what()));
  }
  throw ModelError(fault, fmt::format("{}: no JSON object", path.string()));
}

}  // namespace asdbench
