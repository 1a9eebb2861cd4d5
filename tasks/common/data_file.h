// A whole data file in memory.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

namespace asdbench {

/// The bytes of `file`. DataError when it cannot be read or has more than `limit` bytes.
std::string read_data_file(const std::filesystem::path& file, std::size_t limit);

}  // namespace asdbench
