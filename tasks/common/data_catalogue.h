// The official data files: what they are, by size and SHA-256, and how they come into the data
// folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace asdbench {

struct OfficialFile {
  std::string task;     // "gsm8k"
  std::string name;     // within the task: "test", "train", ...
  std::string path;     // below the data folder: "gsm8k/test.jsonl"
  std::uint64_t bytes;  // exact
  std::string sha256;   // 64 lower-case hex digits
  std::string url;      // https, the original publisher's; "" where none serves it by itself
  std::string licence;
};

/// All files known by content.
const std::vector<OfficialFile>& official_files();
/// InternalError when there is none of that task and name.
const OfficialFile& official_file(std::string_view task, std::string_view name);
/// Tasks that have a row, each once, sorted.
std::vector<std::string> catalogue_tasks();

/// Path of the file below `data`, its size and SHA-256 checked. DataError when it is missing (what
/// to type), unreadable, or not the official one (digest found, digest expected).
std::filesystem::path require_official(const std::filesystem::path& data, const OfficialFile& file);

enum class FileState { kPresent, kMissing, kDifferent };
/// "present", "missing", "different".
std::string_view name_of(FileState state);

struct FileStatus {
  const OfficialFile* file;
  FileState state;
  std::string found_sha256;  // of a file that differs; else ""
};
/// State of every official file below `data`.
std::vector<FileStatus> verify_data(const std::filesystem::path& data);

struct ImportReport {
  std::vector<const OfficialFile*> imported;
  std::vector<const OfficialFile*> already_there;
  std::size_t unknown_files = 0;  // looked at, and of no official content
};
/// Copies every official file found at or below `source`, in whatever layout, into `data`, by
/// content. DataError when `source` is no folder, a copy fails, or another file stands at the place
/// of an official one (it is never replaced). Each copy appears whole or not at all.
ImportReport import_folder(const std::filesystem::path& source, const std::filesystem::path& data);

struct FetchOptions {
  int connect_timeout_s = 15;
  int read_timeout_s = 60;
};
/// Downloads what `task` lacks over HTTPS into `data`; returns what was downloaded. DataError for
/// an unknown task, a file without a public address, an unreachable network (with what to do
/// instead), a reply of another size or digest, or a different file that is already there.
std::vector<const OfficialFile*> fetch_task(std::string_view task,
                                            const std::filesystem::path& data,
                                            const FetchOptions& options = {});

/// Downloads one file from `url`, which is either https or, for tests, http on the local host, and
/// places it at `target`. DataError as above.
void fetch_file(const std::string& url, const OfficialFile& file,
                const std::filesystem::path& target, const FetchOptions& options = {});

}  // namespace asdbench
