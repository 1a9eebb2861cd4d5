// Official files by SHA-256: import, download, verification. A file appears under its name only
// when its content is the official one.
#include "tasks/common/data_catalogue.h"

#include <fmt/format.h>
#include <httplib.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <optional>
#include <system_error>
#include <tuple>

#include "eval/core/digest.h"
#include "eval/core/error.h"
#include "tasks/common/mmlu_files.h"

namespace asdbench {
namespace {

namespace fs = std::filesystem;

constexpr const char* kGithub = "https://raw.githubusercontent.com/";
constexpr const char* kHub = "https://huggingface.co/datasets/";
constexpr const char* kEvalPlus = "https://github.com/evalplus/";
constexpr const char* kEagleLicence = "Apache-2.0 (EAGLE); texts under the terms of their sources";

// The name of a file while it is being written; removed again unless it was renamed.
class PartFile {
 public:
  explicit PartFile(const fs::path& target)
      : target_(target), part_(target.string() + fmt::format(".part-{}", ::getpid())) {
    std::error_code error;
    fs::create_directories(target.parent_path(), error);
    if (error) {
      throw DataError(fmt::format("{}: folder cannot be made: {}", target.parent_path().string(),
                                  error.message()));
    }
  }
  ~PartFile() {
    std::error_code ignored;
    if (!placed_) fs::remove(part_, ignored);
  }
  PartFile(const PartFile&) = delete;
  PartFile& operator=(const PartFile&) = delete;

  const fs::path& path() const { return part_; }

  // Gives the file its name. A hard link, unlike a rename, fails when something took the name
  // meanwhile.
  void place() {
    std::error_code error;
    fs::create_hard_link(part_, target_, error);
    if (error == std::errc::file_exists) {
      throw DataError(target_.string() + ": appeared meanwhile and is not replaced");
    }
    if (error) {  // a file system without hard links
      fs::rename(part_, target_, error);
      if (error) {
        throw DataError(
            fmt::format("{}: cannot be written: {}", target_.string(), error.message()));
      }
      placed_ = true;
    }
  }

 private:
  fs::path target_;
  fs::path part_;
  bool placed_ = false;
};

FileStatus status_of(const fs::path& data, const OfficialFile& file) {
  const fs::path path = data / file.path;
  std::error_code error;
  if (!fs::exists(path, error)) return {&file, FileState::kMissing, ""};
  const std::string found = sha256_file(path);
  if (found == file.sha256) return {&file, FileState::kPresent, ""};
  return {&file, FileState::kDifferent, found};
}

[[noreturn]] void refuse_to_replace(const fs::path& path, const OfficialFile& file,
                                    const std::string& found) {
  throw DataError(fmt::format(
      "{}: another file stands here and is never replaced\n  found SHA-256 {}, expected "
      "{}\n  move it away and try again",
      path.string(), found, file.sha256));
}

// Scheme and host of an address, and the path behind them.
std::pair<std::string, std::string> split_url(const std::string& url) {
  const std::size_t host = url.find("://");
  const std::size_t path = host == std::string::npos ? host : url.find('/', host + 3);
  if (path == std::string::npos) throw DataError(url + ": is no address of a file");
  return {url.substr(0, path), url.substr(path)};
}

const char* archive_of(const OfficialFile& file) {
  ASDBENCH_CHECK(file.task == "mmlu", "every other file has an address of its own");
  return "https://people.eecs.berkeley.edu/~hendrycks/data.tar";
}

std::string instead_of(const OfficialFile& file) {
  return fmt::format(
      "\n  without a network: put {} (SHA-256 {}) into a folder and run `asdbench data import "
      "FOLDER`, or choose `split: samples`",
      file.path, file.sha256);
}

const std::vector<OfficialFile>& single_files() {
  // Source of every row: the data notes beside the official files, checked by SHA-256.
  static const std::vector<OfficialFile> kTable = {
      {"alpaca", "test", "alpaca/alpaca_eval.json", 620778,
       "d92b92c51e8f1962a21193abe74e6f727c2bc8286035f4041505ff38a7c3ae51",
       std::string(kHub) + "tatsu-lab/alpaca_eval/resolve/main/alpaca_eval.json",
       "CC BY-NC 4.0: not for commercial use"},
      {"alpaca", "eagle", "alpaca/question.jsonl", 31220,
       "8ad3e5a7fc61b88d8e25edb81a52a2ce00a04494d5694c122cb11a5cc26a00df",
       std::string(kGithub) + "SafeAILab/EAGLE/main/eagle/data/alpaca/question.jsonl",
       "Apache-2.0 (EAGLE); texts CC BY-NC 4.0: not for commercial use"},
      {"eagle", "gsm8k", "eagle/gsm8k/question.jsonl", 48188,
       "a55920b2f2aac724241124c59e5b8e8168dbbeb2ab0fdbee17d5b0ab6db5ff27",
       std::string(kGithub) + "SafeAILab/EAGLE/main/eagle/data/gsm8k/question.jsonl",
       kEagleLicence},
      {"eagle", "humaneval", "eagle/humaneval/question.jsonl", 63176,
       "ce0244e2b228339e9a11afc63a151719beede1e389fdaec7cd9751d33902180e",
       std::string(kGithub) + "SafeAILab/EAGLE/main/eagle/data/humaneval/question.jsonl",
       kEagleLicence},
      {"eagle", "qa", "eagle/qa/question.jsonl", 8206,
       "04252e41ab00bcc03b11940b4a3766cf40ae0b76a09c4f56968ba952f0b029f3",
       std::string(kGithub) + "SafeAILab/EAGLE/main/eagle/data/qa/question.jsonl", kEagleLicence},
      {"eagle", "sum", "eagle/sum/question.jsonl", 304676,
       "916876f0c42f938a944de96eed16e51425f29f27438cca5c9ef4737c0fedf771",
       std::string(kGithub) + "SafeAILab/EAGLE/main/eagle/data/sum/question.jsonl", kEagleLicence},
      {"gsm8k", "test", "gsm8k/test.jsonl", 749738,
       "3730d312f6e3440559ace48831e51066acaca737f6eabec99bccb9e4b3c39d14",
       std::string(kGithub) + "openai/grade-school-math/master/grade_school_math/data/test.jsonl",
       "MIT"},
      {"gsm8k", "train", "gsm8k/train.jsonl", 4166206,
       "17f347dc51477c50d4efb83959dbb7c56297aba886e5544ee2aaed3024813465",
       std::string(kGithub) + "openai/grade-school-math/master/grade_school_math/data/train.jsonl",
       "MIT"},
      {"humaneval", "test", "humaneval/HumanEval.jsonl.gz", 44877,
       "b796127e635a67f93fb35c04f4cb03cf06f38c8072ee7cee8833d7bee06979ef",
       std::string(kGithub) + "openai/human-eval/master/data/HumanEval.jsonl.gz", "MIT"},
      {"humaneval", "plus", "evalplus/HumanEvalPlus.jsonl.gz", 925932,
       "272720b90ac375502c8ed23cd791c2a93dfb22a911641a494da74a426c09f101",
       std::string(kEvalPlus) +
           "humanevalplus_release/releases/download/v0.1.10/HumanEvalPlus.jsonl.gz",
       "Apache-2.0 and MIT"},
      {"humaneval", "plus-original", "evalplus/HumanEvalPlus-OriginFmt.jsonl.gz", 1350689,
       "daa7661c8189924068069b0872a440b491edb60f8bdf431d5957adc88d18bae5",
       std::string(kEvalPlus) +
           "humanevalplus_release/releases/download/v0.1.10/HumanEvalPlus-OriginFmt.jsonl.gz",
       "Apache-2.0 and MIT"},
      {"math500", "test", "math500/test.jsonl", 446564,
       "35dc41080a3680858b27fa7e0533d2d547825316fc5dafe5d316f4ccc5a06132",
       std::string(kHub) + "HuggingFaceH4/MATH-500/resolve/main/test.jsonl", "MIT"},
      {"mbpp", "full", "mbpp/mbpp.jsonl", 563743,
       "ccf64ceae9c5403bf50a044cb6d505bfd2a2963ee58338ba268fd65beab92a9f",
       std::string(kGithub) + "google-research/google-research/master/mbpp/mbpp.jsonl",
       "Apache-2.0 (repository); CC BY 4.0 (dataset card)"},
      {"mbpp", "sanitized", "mbpp/sanitized-mbpp.json", 255053,
       "ca95deaa9a01ef0a6f439f88bcf0dd3db3563d22f22aad6cae04ebb9a8d8c8e9",
       std::string(kGithub) + "google-research/google-research/master/mbpp/sanitized-mbpp.json",
       "Apache-2.0 (repository); CC BY 4.0 (dataset card)"},
      {"mbpp", "plus", "evalplus/MbppPlus.jsonl.gz", 336032,
       "af43697e8791c4c149bdfd6b489d8b5412507551ac20e28a439f650b8225db63",
       std::string(kEvalPlus) + "mbppplus_release/releases/download/v0.2.0/MbppPlus.jsonl.gz",
       "Apache-2.0"},
      {"mbpp", "plus-original", "evalplus/MbppPlus-OriginFmt.jsonl.gz", 549938,
       "7a5aec547b134fa297ee6c45f829298aa3f58de02547b8d8a5c3d85d9cb10efc",
       std::string(kEvalPlus) +
           "mbppplus_release/releases/download/v0.2.0/MbppPlus-OriginFmt.jsonl.gz",
       "Apache-2.0"},
      {"mt_bench", "test", "mt_bench/question.jsonl", 48929,
       "119565adbab82227089cefdb44c8d7e2cf04dc0a0ec233634c82e7d4e2a944f7",
       std::string(kGithub) +
           "lm-sys/FastChat/main/fastchat/llm_judge/data/mt_bench/question.jsonl",
       "Apache-2.0"},
      {"mt_bench", "reference", "mt_bench/reference_answer/gpt-4.jsonl", 51109,
       "f957a5bc977badb66885ec970e6cd08527845780313f0995764260e5777b9b3f",
       std::string(kGithub) +
           "lm-sys/FastChat/main/fastchat/llm_judge/data/mt_bench/reference_answer/gpt-4.jsonl",
       "Apache-2.0"},
      {"mt_bench", "judge", "mt_bench/judge_prompts.jsonl", 10449,
       "fd283293406d024f44c174b094ef48031d0687a4682fd3a56b29b138f80281b6",
       std::string(kGithub) + "lm-sys/FastChat/main/fastchat/llm_judge/data/judge_prompts.jsonl",
       "Apache-2.0"},
      {"spec_bench", "test", "spec_bench/question.jsonl", 698768,
       "4b6d33e79484f9841c487ee87d1cf6aa8c6066f61d5d482ff09e5a007fafdf04",
       std::string(kGithub) + "hemingkx/Spec-Bench/main/data/spec_bench/question.jsonl",
       "Apache-2.0 (repository); texts under the terms of their sources"},
  };
  return kTable;
}

// All of it is one archive with much more in it, which `fetch` does not unpack.
std::vector<OfficialFile> mmlu_files() {
  std::vector<OfficialFile> files;
  for (std::size_t i = 0; i < kMmluSplits.size(); ++i) {
    const std::string split = kMmluSplits.at(i);
    for (const MmluSubject& subject : mmlu_subjects()) {
      files.push_back({"mmlu", fmt::format("{}/{}", split, subject.name),
                       fmt::format("mmlu/{0}/{1}_{0}.csv", split, subject.name),
                       subject.files.at(i).bytes, subject.files.at(i).sha256, "", "MIT"});
    }
  }
  return files;
}

}  // namespace

const std::vector<OfficialFile>& official_files() {
  static const std::vector<OfficialFile> kAll = [] {
    std::vector<OfficialFile> files = single_files();
    const std::vector<OfficialFile> mmlu = mmlu_files();
    // Where the task's name sorts.
    const auto at = std::find_if(files.begin(), files.end(),
                                 [](const OfficialFile& file) { return file.task > "mmlu"; });
    files.insert(at, mmlu.begin(), mmlu.end());
    return files;
  }();
  return kAll;
}

const OfficialFile& official_file(std::string_view task, std::string_view name) {
  for (const OfficialFile& file : official_files()) {
    if (file.task == task && file.name == name) return file;
  }
  throw InternalError(fmt::format("no official file {}/{}", task, name));
}

std::vector<std::string> catalogue_tasks() {
  std::vector<std::string> tasks;
  for (const OfficialFile& file : official_files()) {
    if (tasks.empty() || tasks.back() != file.task) tasks.push_back(file.task);
  }
  return tasks;
}

std::filesystem::path require_official(const std::filesystem::path& data,
                                       const OfficialFile& file) {
  const fs::path path = data / file.path;
  const FileStatus status = status_of(data, file);
  switch (status.state) {
    case FileState::kPresent:
      return path;
    case FileState::kMissing:
      throw DataError(
          fmt::format("{}: missing\n  run `asdbench data fetch {}`, or `asdbench data import "
                      "FOLDER` with a folder "
                      "that holds it, or choose `split: samples`",
                      path.string(), file.task));
    case FileState::kDifferent:
      break;
  }
  throw DataError(
      fmt::format("{}: not the official file\n  found SHA-256 {}, expected {}\n  move it away, "
                  "then run `asdbench "
                  "data fetch {}` or `asdbench data import FOLDER`",
                  path.string(), status.found_sha256, file.sha256, file.task));
}

std::string_view name_of(FileState state) {
  switch (state) {
    case FileState::kPresent:
      return "present";
    case FileState::kMissing:
      return "missing";
    case FileState::kDifferent:
      break;
  }
  return "different";
}

std::vector<FileStatus> verify_data(const std::filesystem::path& data) {
  std::vector<FileStatus> statuses;
  for (const OfficialFile& file : official_files()) statuses.push_back(status_of(data, file));
  return statuses;
}

ImportReport import_folder(const std::filesystem::path& source, const std::filesystem::path& data) {
  std::error_code error;
  if (!fs::is_directory(source, error)) {
    throw DataError(source.string() + ": is no folder, expected one that holds official files");
  }
  ImportReport report;
  std::map<std::string, fs::path> found;  // by digest
  const auto options = fs::directory_options::skip_permission_denied;
  for (auto entry = fs::recursive_directory_iterator(source, options, error);
       !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    std::error_code unreadable;
    if (!entry->is_regular_file(unreadable) || unreadable) continue;
    const std::uintmax_t bytes = entry->file_size(unreadable);
    // Only files of an official size are worth a digest.
    const bool candidate =
        !unreadable && std::any_of(official_files().begin(), official_files().end(),
                                   [&](const OfficialFile& file) { return file.bytes == bytes; });
    const std::string digest = candidate ? sha256_file(entry->path()) : "";
    const bool official = std::any_of(official_files().begin(), official_files().end(),
                                      [&](const OfficialFile& f) { return f.sha256 == digest; });
    if (official) {
      found.emplace(digest, entry->path());
    } else {
      ++report.unknown_files;
    }
  }
  if (error) {
    throw DataError(fmt::format("{}: cannot be read: {}", source.string(), error.message()));
  }
  for (const OfficialFile& file : official_files()) {
    const auto at = found.find(file.sha256);
    if (at == found.end()) continue;
    const fs::path target = data / file.path;
    const FileStatus status = status_of(data, file);
    if (status.state == FileState::kPresent) {
      report.already_there.push_back(&file);
      continue;
    }
    if (status.state == FileState::kDifferent) {
      refuse_to_replace(target, file, status.found_sha256);
    }
    PartFile part(target);
    fs::copy_file(at->second, part.path(), fs::copy_options::overwrite_existing, error);
    if (error) {
      throw DataError(fmt::format("{}: cannot be copied to {}: {}", at->second.string(),
                                  target.string(), error.message()));
    }
    if (sha256_file(part.path()) != file.sha256) {
      throw DataError(at->second.string() + ": changed while it was copied");
    }
    part.place();
    report.imported.push_back(&file);
  }
  return report;
}

void fetch_file(const std::string& url, const OfficialFile& file,
                const std::filesystem::path& target, const FetchOptions& options) {
  const auto [host, path] = split_url(url);
  if (!host.starts_with("https://") && !host.starts_with("http://127.0.0.1:")) {
    throw DataError(url + ": expected an https address");
  }
  httplib::Client client(host);
  if (!client.is_valid()) throw DataError(host + ": is no address that can be asked");
  client.set_follow_location(true);
  client.set_connection_timeout(options.connect_timeout_s);
  client.set_read_timeout(options.read_timeout_s);

  PartFile part(target);
  std::ofstream out(part.path(), std::ios::binary);
  if (!out) throw DataError(part.path().string() + ": cannot be written");
  Sha256 digest;
  std::uint64_t received = 0;
  int status = 0;
  const auto result = client.Get(
      path,
      [&](const httplib::Response& response) {
        status = response.status;
        return status == 200;
      },
      [&](const char* bytes, std::size_t count) {
        received += count;
        if (received > file.bytes) return false;  // never more than the official size
        digest.update({bytes, count});
        return static_cast<bool>(out.write(bytes, static_cast<std::streamsize>(count)));
      });
  out.close();
  if (status != 0 && status != 200) {
    throw DataError(
        fmt::format("{}: the server answered with status {}{}", url, status, instead_of(file)));
  }
  if (received > file.bytes) {
    throw DataError(fmt::format("{}: more than the {} bytes of the official file{}", url,
                                file.bytes, instead_of(file)));
  }
  if (!result) {
    throw DataError(fmt::format("{}: cannot be downloaded: {}{}", url,
                                httplib::to_string(result.error()), instead_of(file)));
  }
  if (!out) throw DataError(part.path().string() + ": cannot be written");
  const std::string found = digest.finish_hex();
  if (found != file.sha256) {
    throw DataError(
        fmt::format("{}: not the official file\n  found {} bytes with SHA-256 {}, expected "
                    "{} bytes with {}{}",
                    url, received, found, file.bytes, file.sha256, instead_of(file)));
  }
  part.place();
}

std::vector<const OfficialFile*> fetch_task(std::string_view task,
                                            const std::filesystem::path& data,
                                            const FetchOptions& options) {
  const std::vector<std::string> tasks = catalogue_tasks();
  if (std::find(tasks.begin(), tasks.end(), task) == tasks.end()) {
    throw DataError(fmt::format("no official data named \"{}\"{}", task, known_names(task, tasks)));
  }
  std::vector<const OfficialFile*> fetched;
  for (const OfficialFile& file : official_files()) {
    if (file.task != task) continue;
    const FileStatus status = status_of(data, file);
    if (status.state == FileState::kDifferent) {
      refuse_to_replace(data / file.path, file, status.found_sha256);
    }
    if (status.state == FileState::kPresent) continue;
    if (file.url.empty()) {
      throw DataError(fmt::format(
          "{}: its publisher serves it inside an archive only\n  download {} and unpack it, then "
          "run `asdbench data import FOLDER`, or choose `split: samples`",
          file.path, archive_of(file)));
    }
    fetch_file(file.url, file, data / file.path, options);
    fetched.push_back(&file);
  }
  return fetched;
}

}  // namespace asdbench
