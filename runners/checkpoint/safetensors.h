// The safetensors container: a JSON header and dense data, every range checked before it is used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runners/checkpoint/checkpoint.h"
#include "runners/checkpoint/mapped_file.h"

namespace asdbench {

/// A tensor as the header describes it; `shape` is row-major, `bytes` need not be aligned.
struct SafetensorsEntry {
  std::string name;
  std::string dtype;  // "F32", "BF16", "I64", ...; one of the documented names
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;
};

/// An opened container; entries point into the mapping. Source: specs, targets, section 6.
class SafetensorsFile {
 public:
  /// ModelError: kTruncated, kBadHeader, kBadOffsets, kBadShape, kBadDtype, kMissingFile. A name
  /// that occurs twice is kBadHeader.
  static SafetensorsFile open(const std::filesystem::path& path);
  /// The same over bytes that must outlive the object; `name` stands in messages.
  static SafetensorsFile parse(std::span<const std::byte> bytes, const std::string& name);

  /// In the order of their data.
  const std::vector<SafetensorsEntry>& entries() const { return entries_; }

  /// as_weights() with the container's name.
  Tensor weights(const SafetensorsEntry& entry) const;

 private:
  std::shared_ptr<MappedFile> file_;
  std::vector<SafetensorsEntry> entries_;
  std::string name_;
};

/// An entry as weights; `file` stands in messages. ModelError kBadDtype unless it is F32, F16 or
/// BF16.
Tensor as_weights(const SafetensorsEntry& entry, const std::string& file);

}  // namespace asdbench
