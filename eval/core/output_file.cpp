// Beside the file, then in its place.
#include "eval/core/output_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <string>

#include "eval/core/error.h"

namespace asdbench {
namespace {

namespace fs = std::filesystem;

bool is_database(const fs::path& path) {
  constexpr std::string_view kMagic = "SQLite format 3";
  std::array<char, kMagic.size()> start{};
  std::ifstream in(path, std::ios::binary);
  return in.read(start.data(), start.size()) &&
         std::string_view(start.data(), start.size()) == kMagic;
}

void write(const fs::path& path, std::span<const std::string_view> pieces, const fs::path& named) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  for (const std::string_view piece : pieces) {
    out.write(piece.data(), static_cast<std::streamsize>(piece.size()));
  }
  out.close();
  if (!out) {
    std::error_code ignored;
    if (path != named) fs::remove(path, ignored);
    throw StoreError(fmt::format("{}: writing failed; is the disk full or the folder read-only?",
                                 named.string()));
  }
}

}  // namespace

void write_output_file(const fs::path& path, std::string_view text) {
  write_output_file(path, std::span(&text, 1));
}

void write_output_file(const fs::path& path, std::span<const std::string_view> pieces) {
  std::error_code error;
  const fs::path file = fs::is_symlink(path, error) ? fs::weakly_canonical(path, error) : path;
  if (fs::exists(file, error) && !fs::is_regular_file(file, error))
    return write(file, pieces, file);
  if (is_database(file)) {
    throw ConfigError(
        fmt::format("{}: is a database, which would be lost; expected another file to write to",
                    path.string()));
  }
  const fs::path half = fmt::format("{}.{}.part", file.string(), getpid());
  write(half, pieces, path);
  fs::rename(half, file, error);
  if (error) {
    const std::string why = error.message();
    fs::remove(half, error);
    throw StoreError(fmt::format("{}: cannot be replaced: {}", path.string(), why));
  }
}

}  // namespace asdbench
