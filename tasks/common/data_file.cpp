// The size is checked before anything is allocated.
#include "tasks/common/data_file.h"

#include <fmt/format.h>

#include <fstream>
#include <system_error>

#include "eval/core/error.h"

namespace asdbench {

std::string read_data_file(const std::filesystem::path& file, std::size_t limit) {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(file, error);
  if (error) {
    throw DataError(fmt::format("{}: cannot be read: {}", file.string(), error.message()));
  }
  if (size > limit) {
    throw DataError(fmt::format("{}: {} bytes, expected at most {}", file.string(), size, limit));
  }
  std::string content(size, '\0');
  std::ifstream in(file, std::ios::binary);
  in.read(content.data(), static_cast<std::streamsize>(size));
  if (!in) {
    throw DataError(
        fmt::format("{}: cannot be read: got {} of {} bytes", file.string(), in.gcount(), size));
  }
  return content;
}

}  // namespace asdbench
