// A read-only memory mapping.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace asdbench {

class MappedFile {
 public:
  /// ModelError kMissingFile when the file cannot be opened or is no regular file.
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace asdbench
