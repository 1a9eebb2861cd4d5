// Writes the safetensors container, whole or not at all.
#pragma once

#include <filesystem>
#include <span>

#include "runners/checkpoint/safetensors.h"

namespace asdbench {

/// Writes `entries` in their order; `bytes` of each must have the size that dtype and shape say.
///
/// Data begin at a multiple of 8 bytes, so that a reader of our own may use them where they lie.
/// Errors:  StoreError when it cannot be written; InternalError for entries that SafetensorsFile
/// would refuse. Source:  specs, targets, section 6.
void write_safetensors(const std::filesystem::path& path,
                       std::span<const SafetensorsEntry> entries);

}  // namespace asdbench
