// mkdtemp chooses the name and makes the folder in one step.
#include "eval/core/temporary_folder.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <system_error>

#include "eval/core/error.h"

namespace asdbench {

TemporaryFolder::TemporaryFolder() {
  std::string pattern = std::filesystem::temp_directory_path() / "asdbench-XXXXXX";
  if (::mkdtemp(pattern.data()) == nullptr) {
    throw DataError(
        fmt::format("{}: a folder cannot be made: {}\n  check TMPDIR and the disk's space", pattern,
                    std::strerror(errno)));
  }
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace asdbench
