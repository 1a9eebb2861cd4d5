// What only the command line does: print, draw progress, notice Ctrl-C, find folders.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "eval/run/experiment.h"
#include "eval/run/session.h"

namespace asdbench::cli {

/// Writes to stdout; StoreError when it cannot (a full disk, a closed pipe).
void print(std::string_view text);
/// Writes a line to stderr, above the progress line if there is one.
void note(std::string_view text);

/// Makes SIGINT and SIGTERM ask for a clean stop; a second one ends the program at once.
void install_interrupt_handler();
bool interrupted();

/// A line on stderr that rewrites itself, only when stderr is a terminal: rate and time left.
class ProgressLine {
 public:
  void show(const ProgressEvent& event);
  void clear();

 private:
  std::string phase_;
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  std::int64_t first_done_ = 0;
  std::chrono::steady_clock::time_point drawn_;
};

/// "1 h 02 min", "3 min 20 s", "12 s".
std::string duration_text(double seconds);

/// ASDBENCH_MODELS or "models", ASDBENCH_DATA or "data", and the samples of the installation or the
/// source tree.
Paths default_paths();

/// StoreError when there is no such file: opened for writing, it would be made.
void require_database(const std::string& path);

/// Version, commit and whether the tree had changes when this program was built.
struct BuildInfo {
  std::string version, commit, compiler, build_type;
  bool dirty = false, torch = false, cuda = false;
};
BuildInfo build_info();

/// What this build and this machine are, in the order of printing; stored with every run.
using Facts = std::vector<std::pair<std::string, std::string>>;
Facts machine_facts();

}  // namespace asdbench::cli
