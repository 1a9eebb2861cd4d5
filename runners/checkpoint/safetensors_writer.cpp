// A JSON header with the ranges of all tensors, then their bytes.
#include "runners/checkpoint/safetensors_writer.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include "eval/core/error.h"
#include "eval/core/json.h"

namespace asdbench {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kAlignment = 8;

[[noreturn]] void fail(const fs::path& path, const char* what) {
  throw DataError(fmt::format("{}: {}: {}\n  check the folder's permissions and the disk's space",
                              path.string(), what, std::strerror(errno)));
}

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

/// Removes the half-written file unless it was moved away.
struct RemoveFile {
  const fs::path& path;
  ~RemoveFile() {
    std::error_code ignored;
    fs::remove(path, ignored);
  }
};

std::string_view as_text(const std::uint64_t& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

}  // namespace

void write_whole_file(const fs::path& path, std::span<const std::string_view> pieces) {
  const fs::path half = path.string() + fmt::format(".{}.part", getpid());
  const RemoveFile remove{half};
  std::unique_ptr<std::FILE, CloseFile> file(std::fopen(half.c_str(), "wb"));
  if (file == nullptr) fail(half, "cannot be made");
  for (const std::string_view piece : pieces) {
    if (piece.empty()) continue;  // it may have no address
    if (std::fwrite(piece.data(), 1, piece.size(), file.get()) != piece.size()) {
      fail(half, "writing failed");
    }
  }
  if (std::fflush(file.get()) != 0) fail(half, "writing failed");
  file.reset();
  std::error_code error;
  fs::rename(half, path, error);
  if (error) {
    throw DataError(fmt::format("{}: cannot be put in place: {}", path.string(), error.message()));
  }
}

void write_safetensors(const fs::path& path, std::span<const SafetensorsEntry> entries) {
  Json header = Json::object();
  std::uint64_t end = 0;
  for (const SafetensorsEntry& entry : entries) {
    ASDBENCH_CHECK(!header.contains(entry.name), "two tensors of one name: " + entry.name);
    const std::uint64_t begin = end;
    end += entry.bytes.size();
    header[entry.name] = {
        {"dtype", entry.dtype}, {"shape", entry.shape}, {"data_offsets", {begin, end}}};
  }
  std::string text = header.dump();
  text.resize((text.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  const std::uint64_t length = text.size();

  std::vector<std::string_view> pieces = {as_text(length), text};
  for (const SafetensorsEntry& entry : entries) {
    pieces.emplace_back(reinterpret_cast<const char*>(entry.bytes.data()), entry.bytes.size());
  }
  write_whole_file(path, pieces);
}

}  // namespace asdbench
