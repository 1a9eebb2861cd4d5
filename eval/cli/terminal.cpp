// Terminal output, signals and default folders.
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "eval/cli/terminal_internal.h"
#include "eval/core/error.h"
#include "eval/report/table.h"

namespace asdbench::cli {
namespace {

std::atomic<bool> stop_requested{false};
bool line_is_drawn = false;

bool stderr_is_terminal() {
  static const bool is_terminal = isatty(STDERR_FILENO) == 1;
  return is_terminal;
}

extern "C" void on_signal(int signal) {
  stop_requested.store(true);
  std::signal(signal, SIG_DFL);  // the second one must always work
}

std::filesystem::path from_environment(const char* name, const char* fallback) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : fallback;
}

void erase_line() {
  if (line_is_drawn) std::fputs("\r\033[K", stderr);
  line_is_drawn = false;
}

}  // namespace

void print(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    throw StoreError(fmt::format("standard output: writing failed: {}", std::strerror(errno)));
  }
}

void note(std::string_view text) {
  erase_line();
  const std::string safe = printable(text, Lines::kKept);  // it may quote a hostile file
  std::fwrite(safe.data(), 1, safe.size(), stderr);
  std::fputc('\n', stderr);
}

void install_interrupt_handler() {
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // a file over its size limit is a write error, not the end
}

bool interrupted() { return stop_requested.load(std::memory_order_relaxed); }

void ProgressLine::show(const ProgressEvent& event) {
  if (!stderr_is_terminal()) return;
  const auto now = std::chrono::steady_clock::now();
  const std::string phase = event.phase + event.what;
  if (phase != phase_) {
    phase_ = phase;
    started_ = now;
    first_done_ = event.done;
  } else if (now - drawn_ < std::chrono::milliseconds(50) && event.done < event.total) {
    return;  // faster than anybody reads
  }
  drawn_ = now;
  std::string text = fmt::format("{}: {}", event.phase, event.what);
  if (event.total > 0) {
    text += fmt::format("  {}/{}", event.done, event.total);
    const double seconds = std::chrono::duration<double>(now - started_).count();
    const auto finished = static_cast<double>(event.done - first_done_);
    if (finished > 0 && seconds > 0) {
      const double rate = finished / seconds;
      text += fmt::format("  {:.2f}/s, {} left", rate,
                          duration_text(static_cast<double>(event.total - event.done) / rate));
    }
  }
  erase_line();
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
  line_is_drawn = true;
}

void ProgressLine::clear() {
  if (stderr_is_terminal()) erase_line();
}

std::string duration_text(double seconds) {
  const auto whole = static_cast<std::int64_t>(seconds + 0.5);
  if (whole >= 3600) return fmt::format("{} h {:02} min", whole / 3600, whole % 3600 / 60);
  if (whole >= 60) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} s", whole);
}

Paths default_paths() {
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  const auto share = program.parent_path().parent_path() / "share" / "asdbench";
  // Beside an installed program, else in the sources that it was built from.
  const auto shipped = [&](const char* name, const char* source) {
    const std::filesystem::path installed = share / name;
    return std::filesystem::is_directory(installed, error) ? installed
                                                           : std::filesystem::path(source);
  };
  return {.models = from_environment("ASDBENCH_MODELS", "models"),
          .data = from_environment("ASDBENCH_DATA", "data"),
          .samples = shipped("tasks/samples", ASDBENCH_SAMPLES_DIR),
          .drafters = shipped("drafters", ASDBENCH_DRAFTERS_DIR)};
}

void require_database(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    throw StoreError(
        fmt::format("{}: no such file; expected a database that `asdbench run` has written", path));
  }
}

}  // namespace asdbench::cli
