// Files that are written for a user: whole or not at all, and never over a database.
#pragma once

#include <filesystem>
#include <span>
#include <string_view>

namespace asdbench {

/// Writes `text` as the file `path`. A regular file is replaced at once when all bytes are there,
/// so that a full disk leaves what was there before; anything else (a pipe, a terminal) is written
/// to. Errors: ConfigError when the file is an SQLite database; StoreError when writing fails.
void write_output_file(const std::filesystem::path& path, std::string_view text);
/// The same for a file whose content lies in several places.
void write_output_file(const std::filesystem::path& path, std::span<const std::string_view> pieces);

}  // namespace asdbench
