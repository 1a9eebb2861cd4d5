// What is written reads back, and a failed write leaves what was there.
#include "runners/checkpoint/safetensors_writer.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "eval/core/error.h"
#include "eval/core/temporary_folder.h"

namespace asdbench {
namespace {

namespace fs = std::filesystem;

class SafetensorsWriter : public ::testing::Test {
 protected:
  const TemporaryFolder owned_;
  const fs::path& folder_ = owned_.path();
};

TEST_F(SafetensorsWriter, WrittenTensorsReadBackByteForByteAndAligned) {
  const std::vector<float> weights = {1.0F, -2.5F, 3.25F, 0.0F, 5.0F, -6.0F};
  const std::vector<std::int64_t> offsets = {0, 7, -1};
  const std::vector<std::byte> mask = {std::byte{1}, std::byte{0}, std::byte{1}};
  const std::vector<SafetensorsEntry> entries = {
      {"offsets", "I64", {3}, std::as_bytes(std::span(offsets))},
      {"weights \"quoted\"", "F32", {2, 3}, std::as_bytes(std::span(weights))},
      {"mask", "BOOL", {3}, mask},
      {"nothing", "F32", {0, 4}, {}}};
  const fs::path path = folder_ / "model.safetensors";
  write_safetensors(path, entries);

  const SafetensorsFile file = SafetensorsFile::open(path);
  ASSERT_EQ(file.entries().size(), entries.size());
  for (const SafetensorsEntry& expected : entries) {
    bool found = false;
    for (const SafetensorsEntry& entry : file.entries()) {
      if (entry.name != expected.name) continue;
      found = true;
      EXPECT_EQ(entry.dtype, expected.dtype);
      EXPECT_EQ(entry.shape, expected.shape);
      ASSERT_EQ(entry.bytes.size(), expected.bytes.size());
      if (entry.name == "offsets") {
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(entry.bytes.data()) % 8, 0U);
      }
      if (!expected.bytes.empty()) {
        EXPECT_EQ(std::memcmp(entry.bytes.data(), expected.bytes.data(), expected.bytes.size()), 0);
      }
    }
    EXPECT_TRUE(found) << expected.name;
  }
}

TEST_F(SafetensorsWriter, NothingHalfWrittenStaysBehind) {
  write_safetensors(folder_ / "file", {});
  // A folder stands where the file should go: the content is complete, its place is not free.
  fs::create_directories(folder_ / "taken" / "inside");
  EXPECT_THROW(write_safetensors(folder_ / "taken", {}), StoreError);
  EXPECT_THROW(write_safetensors(folder_ / "absent" / "file", {}), StoreError);
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder_)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (std::vector<std::string>{"file", "taken"}));
}

TEST_F(SafetensorsWriter, TwoTensorsOfOneNameAreAMistakeOfOurs) {
  const std::vector<SafetensorsEntry> entries = {{"a", "F32", {0}, {}}, {"a", "F32", {0}, {}}};
  EXPECT_THROW(write_safetensors(folder_ / "model.safetensors", entries), InternalError);
}

}  // namespace
}  // namespace asdbench
