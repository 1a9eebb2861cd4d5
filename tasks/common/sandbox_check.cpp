// Says whether code can be run contained on this machine, and which setting of the kernel forbids
// it.
#include <fmt/format.h>

#include <fstream>
#include <sstream>
#include <system_error>

#include "tasks/common/sandbox.h"

namespace asdbench {
namespace {

namespace fs = std::filesystem;

std::string content_of(const fs::path& file) {
  std::ifstream in(file);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

/// A kernel setting with a value that forbids what the sandbox needs, and one that does not.
struct Setting {
  const char* path;  // below /proc/sys
  const char* name;
  const char* forbids;
  const char* allows;
};

/// What forbids user namespaces here, one line each; "" when nothing known does.
std::string kernel_faults(const fs::path& proc) {
  constexpr Setting kSettings[] = {
      {"kernel/unprivileged_userns_clone", "kernel.unprivileged_userns_clone", "0", "1"},
      {"user/max_user_namespaces", "user.max_user_namespaces", "0", "10000"},
      {"kernel/apparmor_restrict_unprivileged_userns",
       "kernel.apparmor_restrict_unprivileged_userns", "1", "0"}};
  std::string faults;
  for (const Setting& setting : kSettings) {
    std::string value = content_of(proc / "sys" / setting.path);
    value.resize(value.find_last_not_of(" \n") + 1);
    if (value != setting.forbids) continue;
    faults += fmt::format("\n  the kernel setting {0} is {1}: as root, sysctl -w {0}={2}",
                          setting.name, value, setting.allows);
  }
  std::error_code error;
  if (!fs::exists(proc / "self/ns/user", error)) {
    faults += "\n  this kernel has no user namespaces (CONFIG_USER_NS)";
  }
  if (content_of(proc / "self/status").find("Seccomp:\t2") != std::string::npos) {
    faults +=
        "\n  a seccomp filter applies to this process, as in a container: start the container with "
        "a "
        "profile that allows user namespaces";
  }
  return faults;
}

std::string missing_tool(const fs::path& tool, const char* package) {
  std::error_code error;
  if (fs::exists(tool, error)) return "";
  return fmt::format("{} is missing\n  install the package {}", tool.string(), package);
}

CodeJob one_line() {
  CodeJob job;
  job.program = "def answer():\n    return 42\n";
  job.tests = "assert answer() == 42\n";
  return job;
}

}  // namespace

SandboxState check_sandbox(const SandboxTools& tools) {
  for (const auto& fault :
       {missing_tool(tools.bubblewrap, "bubblewrap"), missing_tool(tools.python, "python3")}) {
    if (!fault.empty()) return {.fault = fault, .python = ""};
  }
  CodeJob job = one_line();
  job.modules = {"numpy"};
  CodeResult result = run_contained(job, tools);
  const bool numpy = result.outcome == CodeOutcome::kPassed;
  if (!numpy && !result.python.empty()) result = run_contained(one_line(), tools);
  if (result.outcome == CodeOutcome::kPassed) {
    return {.fault = "", .python = result.python + (numpy ? ", with numpy" : ", without numpy")};
  }
  const std::string faults = kernel_faults(tools.proc);
  return {.fault = fmt::format(
              "programs cannot be run contained: {}: {}{}", name_of(result.outcome),
              result.detail.empty() ? "bubblewrap said nothing" : result.detail,
              faults.empty() ? "\n  bubblewrap needs user, pid, mount and network namespaces: try "
                               "`unshare --user --pid --mount --net --fork true`"
                             : faults),
          .python = result.python};
}

std::string describe(const SandboxLimits& limits) {
  const auto mebibytes = [](std::uint64_t bytes) { return bytes >> 20; };
  return fmt::format(
      "{} s, {} MiB of memory a process, {} processes, {} MiB a file, {} MiB of scratch space, "
      "no network",
      std::chrono::duration<double>(limits.wall).count(), mebibytes(limits.address_space_bytes),
      limits.processes, mebibytes(limits.file_bytes), mebibytes(limits.scratch_bytes));
}

}  // namespace asdbench
