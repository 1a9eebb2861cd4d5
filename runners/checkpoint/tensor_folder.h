// The tensors of a folder in HF's layout, in one file or in shards; for this folder only.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "eval/core/error.h"
#include "eval/core/json.h"
#include "runners/checkpoint/checkpoint.h"
#include "runners/checkpoint/safetensors.h"

namespace asdbench {

/// A tensor and the file it is in, for messages.
struct NamedTensor {
  SafetensorsEntry entry;
  std::string file;
};

struct FolderTensors {
  std::vector<NamedTensor> tensors;
  std::vector<std::shared_ptr<const void>> owners;  // keep the bytes mapped
  std::vector<std::string> warnings;
};

/// `model.safetensors`, or the shards that model.safetensors.index.json names. ModelError.
FolderTensors read_safetensors_folder(const std::filesystem::path& folder);
/// One file. ModelError.
FolderTensors read_safetensors_file(const std::filesystem::path& file);

bool is_there(const std::filesystem::path& path);
/// All of a small text file. ModelError kUnsupported beyond 32 MiB.
std::string read_text(const std::filesystem::path& path);
/// A file that holds one JSON object. ModelError `fault`.
Json read_object(const std::filesystem::path& path, ModelFault fault);

}  // namespace asdbench
