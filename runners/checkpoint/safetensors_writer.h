// Writes the safetensors container, and other small files of a checkpoint, whole or not at all.
#pragma once

#include <filesystem>
#include <span>
#include <string_view>

#include "runners/checkpoint/safetensors.h"

namespace asdbench {

/// Writes the pieces one after the other beside `path` and moves the file to its place when it is
/// complete; a file of that name is replaced. DataError when it cannot be written.
void write_whole_file(const std::filesystem::path& path, std::span<const std::string_view> pieces);

/// Writes `entries` in their order; `bytes` of each must have the size that dtype and shape say.
///
/// Data begin at a multiple of 8 bytes, so that a reader of our own may use them where they lie.
/// Errors:  DataError as above; InternalError for entries that SafetensorsFile would refuse.
/// Source:  specs, targets, section 6.
void write_safetensors(const std::filesystem::path& path,
                       std::span<const SafetensorsEntry> entries);

}  // namespace asdbench
