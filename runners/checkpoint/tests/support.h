// What the tests of this folder share: vendored files, cases, bytes that end where they say.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "eval/core/error.h"
#include "eval/core/json.h"
#include "eval/core/temporary_folder.h"

namespace asdbench::testing {

inline std::filesystem::path data_dir() { return ASDBENCH_TEST_DATA; }

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in.good()) << path;
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void write_file(const std::filesystem::path& path, std::string_view content) {
  std::ofstream out(path, std::ios::binary);
  out.write(content.data(), static_cast<std::streamsize>(content.size()));
  ASSERT_TRUE(out.good()) << path;
}

inline std::vector<float> read_floats(const std::filesystem::path& path) {
  const std::string bytes = read_file(path);
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

/// Bytes in an allocation of exactly their size, so that the address sanitizer sees a read behind
/// the end.
class ExactBytes {
 public:
  explicit ExactBytes(std::string_view content)
      : size_(content.size()), bytes_(new std::byte[content.size()]) {
    if (size_ > 0) std::memcpy(bytes_.get(), content.data(), size_);
  }
  std::span<const std::byte> span() const { return {bytes_.get(), size_}; }

 private:
  std::size_t size_;
  std::unique_ptr<std::byte[]> bytes_;
};

/// "ok" when `action` returns, the name of the fault when it throws a ModelError. Any other
/// exception fails the test.
template <typename Action>
std::string outcome_of(Action action) {
  try {
    action();
    return "ok";
  } catch (const ModelError& error) {
    EXPECT_GT(std::string(error.what()).size(), 20U);
    return std::string(name_of(error.fault()));
  }
}

/// Whether an outcome is one that a case of the shared fixtures allows (README of the fixtures).
inline bool allowed(const Json& entry, const std::string& outcome) {
  std::vector<std::string> good;
  const auto add = [&good](const Json& value) {
    good.push_back(value.is_null() ? "ok" : value.get<std::string>());
  };
  add(entry.at("error"));
  for (const Json& value : entry.at("also_ok")) add(value);
  return std::find(good.begin(), good.end(), outcome) != good.end();
}

}  // namespace asdbench::testing
