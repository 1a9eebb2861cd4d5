// A JSON header with the ranges of all tensors, then their bytes.
#include "runners/checkpoint/safetensors_writer.h"

#include <cstdint>
#include <string_view>
#include <vector>

#include "eval/core/error.h"
#include "eval/core/json.h"
#include "eval/core/output_file.h"

namespace asdbench {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kAlignment = 8;

std::string_view as_text(const std::uint64_t& value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

}  // namespace

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
  write_output_file(path, pieces);
}

}  // namespace asdbench
