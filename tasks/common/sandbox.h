// Runs untrusted Python contained: bubblewrap, resource limits, and a verdict that only the
// parent's secret can give. Source: specs/scoring.md, section 5.3.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tasks/common/code_reply.h"

namespace asdbench {

/// What the sandbox is made of. Tests put something else in these places.
struct SandboxTools {
  std::filesystem::path bubblewrap = "/usr/bin/bwrap";
  std::filesystem::path python = "/usr/bin/python3";
  std::filesystem::path proc = "/proc";  // where the kernel says what it forbids
};

/// Limits of one program; those on processes and bytes hold for all of its descendants.
struct SandboxLimits {
  std::chrono::milliseconds wall{10'000};
  std::uint64_t address_space_bytes = std::uint64_t{4} << 30;  // of one process
  std::uint64_t file_bytes = std::uint64_t{64} << 20;          // of one file
  std::uint64_t scratch_bytes = std::uint64_t{256} << 20;      // of /tmp and, again, of /dev/shm
  std::uint64_t processes = 64;                                // and threads
  std::uint64_t open_files = 64;                               // of one process
  std::size_t output_bytes = std::size_t{64} << 10;            // kept; more is read and thrown away
};

enum class CodeOutcome : std::uint8_t {
  kPassed,
  kAssertion,
  kException,
  kTimeout,
  kSyntax,
  kMemory,
  kKilled,
  kNoCode,
  kRunnerError,  // ours, not the program's
};

/// "passed", "assertion", "exception", "timeout", "syntax", "memory", "killed", "no_code",
/// "runner_error".
std::string_view name_of(CodeOutcome outcome);

/// A program, or the candidates for one, and its tests.
struct CodeJob {
  std::optional<std::string> program;  // as it is; else the driver chooses among the candidates
  CodeCandidates candidates;
  std::string entry_point;
  std::string prompt;                // what a body continues
  std::string preamble;              // runs before a program that defines the entry point itself
  std::string tests;                 // Python text that runs after it
  std::vector<std::string> modules;  // that the tests import and this Python may lack
  SandboxLimits limits;
};

struct CodeResult {
  CodeOutcome outcome = CodeOutcome::kRunnerError;
  std::string detail;  // the failing test, the error, the signal
  std::string
      rule;  // where the program was found: "fence", "fence_run", "text_run", "body", "program"
  std::string program;  // what was run, at most 40,000 characters; "" when nothing was
  std::string output;   // of the program, as far as kept
  std::string python;   // version
};

/// Runs one job; takes up to twice its wall limit. Whatever the program does, all its processes are
/// gone on return. Without a working sandbox nothing is run and the outcome is kRunnerError.
CodeResult run_contained(const CodeJob& job, const SandboxTools& tools = {});

/// What is known about the sandbox of this machine.
struct SandboxState {
  std::string fault;   // "" when it works; else what is missing and what to do
  std::string python;  // "3.11.2, with numpy"
};

/// Runs a program of one line.
SandboxState check_sandbox(const SandboxTools& tools = {});

/// The limits in words: "10 s, 4 GiB of memory a process, ...".
std::string describe(const SandboxLimits& limits);

}  // namespace asdbench
