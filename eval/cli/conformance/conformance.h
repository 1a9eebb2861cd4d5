// Published vectors against this build: one file per kind, one reporter for all.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace asdbench {

/// Collects outcomes; prints nothing by itself.
class ConformanceReport {
 public:
  void pass() { ++passed_; }
  /// One line: id, expected, got.
  void fail(const std::string& id, const std::string& expected, const std::string& got);
  /// Shown but not counted ("contested" cases).
  void note(const std::string& text) { notes_.push_back(text); }
  void expect(const std::string& id, bool ok, const std::string& expected, const std::string& got) {
    ok ? pass() : fail(id, expected, got);
  }

  std::size_t passed() const { return passed_; }
  const std::vector<std::string>& failures() const { return failures_; }
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  std::size_t passed_ = 0;
  std::vector<std::string> failures_, notes_;
};

struct ConformanceOptions {
  std::filesystem::path path;  // a file, or any folder above the cases; for `code` a task
  std::filesystem::path models_dir;
  std::filesystem::path data_dir;
  std::filesystem::path vocabularies;  // NAME/tokenizer.json; "": data_dir/tokenizers
  std::string engine;                  // "", "torch", "native"
  std::string device = "auto";
  bool allow_code_execution = false;  // the user agreed to run what the cases hold
};

/// Runs the cases of one kind. An unknown kind or field of a case is a failure, never a skip;
/// finding no case is a DataError.
using ConformanceKind = void(const ConformanceOptions& options, ConformanceReport& report);

ConformanceKind conformance_asd;
ConformanceKind conformance_code;
ConformanceKind conformance_verifiers;
ConformanceKind conformance_scoring;
ConformanceKind conformance_tokenizer;
ConformanceKind conformance_gguf;
ConformanceKind conformance_model;
ConformanceKind conformance_drafter;
ConformanceKind conformance_stats;
ConformanceKind conformance_protocol;

/// Files named `name` at or below `path`, sorted; `path` itself when it is a file of that name or
/// `name` is "".
std::vector<std::filesystem::path> find_cases(const std::filesystem::path& path,
                                              const std::string& name);

}  // namespace asdbench
