// Import, verification and download against small files and a server on the local host.
#include "tasks/common/data_catalogue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "eval/core/digest.h"
#include "eval/core/error.h"
#include "eval/core/temporary_folder.h"

namespace asdbench {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write(const fs::path& path, const std::string& content) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << content;
}

template <class Call>
std::string data_error(const Call& call) {
  try {
    call();
  } catch (const DataError& error) {
    return error.what();
  }
  return "no error";
}

class CatalogueTest : public ::testing::Test {
 protected:
  // An empty folder, or one that holds nothing but `expected`, leaves no part files behind.
  std::size_t files_below(const fs::path& path) const {
    std::size_t count = 0;
    for (const auto& entry : fs::recursive_directory_iterator(path)) {
      count += entry.is_regular_file() ? 1 : 0;
    }
    return count;
  }

  const TemporaryFolder owned_;
  const fs::path& folder_ = owned_.path();
};

TEST(Catalogue, RowsAreCompleteAndUnique) {
  std::set<std::string> paths;
  std::set<std::string> digests;
  std::set<std::pair<std::string, std::string>> names;
  for (const OfficialFile& file : official_files()) {
    EXPECT_TRUE(paths.insert(file.path).second) << file.path;
    EXPECT_TRUE(digests.insert(file.sha256).second) << file.path;
    EXPECT_TRUE(names.emplace(file.task, file.name).second) << file.path;
    EXPECT_EQ(file.sha256.size(), 64u) << file.path;
    EXPECT_EQ(file.sha256.find_first_not_of("0123456789abcdef"), std::string::npos) << file.path;
    EXPECT_EQ(file.url.starts_with("https://"), file.task != "mmlu") << file.path;
    EXPECT_FALSE(file.licence.empty()) << file.path;
    EXPECT_GT(file.bytes, 0u) << file.path;
  }
  const std::vector<std::string> tasks = catalogue_tasks();
  EXPECT_TRUE(std::is_sorted(tasks.begin(), tasks.end()));
  EXPECT_EQ(std::set<std::string>(tasks.begin(), tasks.end()).size(), tasks.size());
  EXPECT_THROW(official_file("gsm8k", "valid"), InternalError);
  EXPECT_EQ(std::count(tasks.begin(), tasks.end(), "mmlu"), 1);
  EXPECT_EQ(official_file("mmlu", "dev/virology").path, "mmlu/dev/virology_dev.csv");
}

// No official file is small enough to carry, so an import of foreign files must bring none in.
TEST_F(CatalogueTest, ImportCountsWhatItDoesNotKnow) {
  write(folder_ / "from" / "a" / "test.jsonl", "{}\n");
  write(folder_ / "from" / "same_size", std::string(8206, 'x'));  // bytes of an official file
  const ImportReport report = import_folder(folder_ / "from", folder_ / "data");
  EXPECT_TRUE(report.imported.empty());
  EXPECT_TRUE(report.already_there.empty());
  EXPECT_EQ(report.unknown_files, 2u);
  EXPECT_FALSE(fs::exists(folder_ / "data"));
  EXPECT_THAT(data_error([&] { import_folder(folder_ / "absent", folder_ / "data"); }),
              HasSubstr("absent: is no folder"));
}

TEST_F(CatalogueTest, VerifyTellsMissingFromDifferent) {
  write(folder_ / "gsm8k" / "test.jsonl", "{}\n");
  for (const FileStatus& status : verify_data(folder_)) {
    const bool is_test = status.file->path == "gsm8k/test.jsonl";
    EXPECT_EQ(status.state, is_test ? FileState::kDifferent : FileState::kMissing);
    EXPECT_EQ(status.found_sha256, is_test ? sha256_hex("{}\n") : "");
  }
  EXPECT_EQ(name_of(FileState::kDifferent), "different");
}

TEST_F(CatalogueTest, FetchRefusesToReplaceAndNamesUnknownTasks) {
  write(folder_ / "gsm8k" / "test.jsonl", "mine");
  EXPECT_THAT(data_error([&] { fetch_task("gsm8k", folder_); }),
              AllOf(HasSubstr("never replaced"), HasSubstr(sha256_hex("mine"))));
  EXPECT_EQ(read(folder_ / "gsm8k" / "test.jsonl"), "mine");
  EXPECT_THAT(data_error([&] { fetch_task("gsm8", folder_); }),
              HasSubstr("did you mean \"gsm8k\"?"));
  EXPECT_THAT(data_error([&] { fetch_task("mmlu", folder_); }),
              AllOf(HasSubstr("inside an archive only"), HasSubstr("data.tar")));
}

class DownloadTest : public CatalogueTest {
 protected:
  DownloadTest() {
    server_.Get("/file", [&](const httplib::Request&, httplib::Response& response) {
      response.set_content(content_, "text/plain");
    });
    server_.Get("/moved", [](const httplib::Request&, httplib::Response& response) {
      response.set_redirect("/file");
    });
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::thread([&] { server_.listen_after_bind(); });
    while (!server_.is_running()) std::this_thread::yield();
  }
  ~DownloadTest() override {
    server_.stop();
    thread_.join();
  }
  std::string url(const std::string& path) const {
    return "http://127.0.0.1:" + std::to_string(port_) + path;
  }
  OfficialFile expected(const std::string& content) const {
    return {"t", "n", "t/n.jsonl", content.size(), sha256_hex(content), url("/file"), "none"};
  }

  httplib::Server server_;
  std::thread thread_;
  int port_ = 0;
  std::string content_ = "the official bytes\n";
};

TEST_F(DownloadTest, PlacesTheCheckedFile) {
  const OfficialFile file = expected(content_);
  fetch_file(url("/file"), file, folder_ / "t" / "n.jsonl");
  EXPECT_EQ(read(folder_ / "t" / "n.jsonl"), content_);
  fetch_file(url("/moved"), file, folder_ / "u" / "n.jsonl");
  EXPECT_EQ(read(folder_ / "u" / "n.jsonl"), content_);
  EXPECT_EQ(files_below(folder_), 2u);
  EXPECT_THAT(data_error([&] { fetch_file(url("/file"), file, folder_ / "t" / "n.jsonl"); }),
              HasSubstr("is not replaced"));
}

TEST_F(DownloadTest, RefusesOtherBytesAndLeavesNothing) {
  const fs::path target = folder_ / "t" / "n.jsonl";
  OfficialFile file = expected("the official bytez\n");
  EXPECT_THAT(data_error([&] { fetch_file(url("/file"), file, target); }),
              AllOf(HasSubstr("not the official file"), HasSubstr(sha256_hex(content_)),
                    HasSubstr("data import FOLDER")));
  file = expected("short");
  EXPECT_THAT(data_error([&] { fetch_file(url("/file"), file, target); }),
              HasSubstr("more than the 5 bytes"));
  EXPECT_THAT(data_error([&] { fetch_file(url("/absent"), file, target); }),
              HasSubstr("answered with status 404"));
  EXPECT_EQ(files_below(folder_), 0u);
}

TEST_F(DownloadTest, SaysWhatToDoWithoutANetwork) {
  const OfficialFile file = expected(content_);
  server_.stop();
  EXPECT_THAT(data_error([&] {
                fetch_file(url("/file"), file, folder_ / "n", {2, 2});
              }),
              AllOf(HasSubstr("cannot be downloaded"), HasSubstr("data import FOLDER"),
                    HasSubstr("split: samples")));
  EXPECT_THAT(data_error([&] { fetch_file("http://example.org/file", file, folder_ / "n"); }),
              HasSubstr("expected an https address"));
  EXPECT_THAT(data_error([&] { fetch_file("file", file, folder_ / "n"); }),
              HasSubstr("no address"));
  EXPECT_EQ(files_below(folder_), 0u);
}

TEST_F(CatalogueTest, RequireOfficialSaysHowToGetAMissingFile) {
  EXPECT_THAT(data_error([&] { require_official(folder_, official_file("gsm8k", "train")); }),
              AllOf(HasSubstr("train.jsonl: missing"), HasSubstr("asdbench data fetch gsm8k")));
}

}  // namespace
}  // namespace asdbench
