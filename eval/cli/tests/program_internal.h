// Runs the built program as a user does, in a folder of its own.
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

extern char** environ;

namespace asdbench::testing {

namespace fs = std::filesystem;

inline std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

inline void write_file(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

struct Outcome {
  int code = -1;    // exit code; 128 + signal when it was killed
  std::string out;  // stdout
  std::string err;  // stderr
};

class ProgramTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::temp_directory_path() / fmt::format("asdbench-{}-{}", info->name(), getpid());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  /// A config over the toy target and our samples; `extra` is appended.
  fs::path config(const std::string& name = "config.yaml", const std::string& verifier = "asd") {
    const fs::path path = folder_ / name;
    write_file(path, fmt::format("run: {{name: test, seed: 7, phases: [quality]}}\n"
                                 "matrix:\n"
                                 "  task: [{{gsm8k: {{split: samples, max_tokens: 64}}}}]\n"
                                 "  target: [toy]\n"
                                 "  drafter: [none, {{ngram: {{K: 4}}}}]\n"
                                 "  verifier: [strict, {{{}: {{B: 8, g: 0.25, M: 2}}}}]\n"
                                 "  decoding: [{{batch: 1}}]\n"
                                 "skip: [{{drafter: none, verifier: asd}}]\n",
                                 verifier));
    return path;
  }
  std::string database(const std::string& name = "test.db") { return (folder_ / name).string(); }

  /// `input` is what stdin reads; "": what the test's own does.
  pid_t start(std::vector<std::string> arguments, const std::string& tag = "run",
              const fs::path& input = {}) {
    arguments.insert(arguments.begin(), ASDBENCH_PROGRAM);
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    if (!input.empty()) posix_spawn_file_actions_addopen(&actions, 0, input.c_str(), O_RDONLY, 0);
    constexpr int kFlags = O_WRONLY | O_CREAT | O_TRUNC;
    posix_spawn_file_actions_addopen(&actions, 1, (folder_ / (tag + ".out")).c_str(), kFlags, 0644);
    posix_spawn_file_actions_addopen(&actions, 2, (folder_ / (tag + ".err")).c_str(), kFlags, 0644);
    pid_t child = 0;
    EXPECT_EQ(posix_spawn(&child, ASDBENCH_PROGRAM, &actions, nullptr, argv.data(), environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    return child;
  }
  Outcome wait(pid_t child, const std::string& tag = "run") {
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return {.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
            .out = read_file(folder_ / (tag + ".out")),
            .err = read_file(folder_ / (tag + ".err"))};
  }
  Outcome run(const std::vector<std::string>& arguments, const fs::path& input = {}) {
    return wait(start(arguments, "run", input));
  }
  std::string dump(const std::string& path) {
    const Outcome outcome = run({"report", path, "--outputs", "--format", "jsonl"});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.out;
  }

  fs::path folder_;
};

}  // namespace asdbench::testing
