// Room for files that nobody keeps.
#pragma once

#include <filesystem>

namespace asdbench {

/// A new folder of its own below the system's temporary folder, removed with all it holds: two
/// tests at once, or two runs of the same test, never share one. Errors: DataError.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::filesystem::path& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

}  // namespace asdbench
