// The subjects of MMLU, and what the official file of each is.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace asdbench {

struct MmluFile {
  std::uint64_t bytes;
  std::string sha256;
};

/// Splits in the order of MmluSubject::files.
inline constexpr std::array<const char*, 3> kMmluSplits = {"test", "dev", "val"};

struct MmluSubject {
  std::string name;      // "abstract_algebra"
  std::string category;  // "STEM", "humanities", "social sciences", "other"
  std::array<MmluFile, 3> files;
};

/// All 57, sorted by name.
const std::vector<MmluSubject>& mmlu_subjects();

}  // namespace asdbench
