// One program in one sandbox: a fork that limits itself and becomes bubblewrap, a driver inside it,
// and a loop that listens until there is a verdict or the time is up, and then kills.
#include "tasks/common/sandbox.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <utility>

#include "eval/core/error.h"
#include "eval/core/json.h"
#include "tasks/common/sandbox_internal.h"

namespace asdbench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::array<std::string_view, 9> kOutcomes = {"passed",  "assertion", "exception",
                                                       "timeout", "syntax",    "memory",
                                                       "killed",  "no_code",   "runner_error"};
constexpr std::chrono::seconds kStartLimit{30};  // of the sandbox itself, on a busy machine
constexpr std::chrono::seconds kKillLimit{10};   // SIGKILL is not refused, but a disk may be slow
constexpr std::uint64_t kStackBytes = std::uint64_t{8} << 20;
constexpr std::size_t kSecretBytes = 32;
constexpr std::size_t kMessageBytes = std::size_t{256} << 10;  // more than a socket's buffer holds
constexpr unsigned kNobody = 65534;  // Debian's user and group without rights

/// A fault of the machine: the program was not run, or what it did is not known.
struct RunnerFault {
  std::string text;
};

[[noreturn]] void fail(const char* what) {
  throw RunnerFault{fmt::format("{}: {}", what, std::strerror(errno))};
}

class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  ~Descriptor() { reset(); }
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    reset();
    number_ = std::exchange(other.number_, -1);
    return *this;
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int get() const { return number_; }
  bool open() const { return number_ >= 0; }
  void reset() {
    if (number_ >= 0) ::close(number_);
    number_ = -1;
  }

 private:
  int number_;
};

// glibc 2.36 declares these two for C only.
Descriptor open_process(pid_t pid) {
  return Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}
void kill_process(const Descriptor& process) {
  ::syscall(SYS_pidfd_send_signal, process.get(), SIGKILL, nullptr, 0);
}

struct Ends {
  Descriptor ours, theirs;
};

Ends make_channel() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) fail("socketpair");
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

Ends make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) fail("pipe");
  Ends pipe{Descriptor(ends[0]), Descriptor(ends[1])};
  if (::fcntl(pipe.ours.get(), F_SETFL, O_NONBLOCK) != 0) fail("fcntl");
  return pipe;
}

/// A file without a name that holds `text`.
Descriptor make_file(std::string_view text) {
  Descriptor file(::memfd_create("asdbench-job", MFD_CLOEXEC));
  if (!file.open()) fail("memfd_create");
  while (!text.empty()) {
    const ssize_t written = ::write(file.get(), text.data(), text.size());
    if (written < 0) fail("the job's file cannot be written");
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  if (::lseek(file.get(), 0, SEEK_SET) != 0) fail("lseek");
  return file;
}

std::string make_secret() {
  std::string secret(kSecretBytes, '\0');
  if (::getrandom(secret.data(), secret.size(), 0) != static_cast<ssize_t>(secret.size())) {
    fail("getrandom");
  }
  return secret;
}

std::string job_text(const CodeJob& job) {
  const CodeCandidates& candidates = job.candidates;
  const Json text = {
      {"program", job.program ? Json(*job.program) : Json(nullptr)},
      {"blocks", candidates.blocks},
      {"outside", candidates.outside.empty() ? Json(nullptr) : Json(candidates.outside)},
      {"bodies", candidates.bodies},
      {"entry_point", job.entry_point},
      {"prompt", job.prompt},
      {"preamble", job.preamble},
      {"tests", job.tests},
      {"modules", job.modules},
      {"processes", job.limits.processes}};
  return text.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// Bubblewrap's arguments. Nothing of the machine is seen but /usr, and nothing can be written but
/// two bounded folders.
std::vector<std::string> sandbox_arguments(const SandboxTools& tools, const SandboxLimits& limits) {
  std::vector<std::string> arguments = {tools.bubblewrap.string(),
                                        "--unshare-user",
                                        "--disable-userns",
                                        "--unshare-ipc",
                                        "--unshare-pid",
                                        "--unshare-net",
                                        "--unshare-uts",
                                        "--unshare-cgroup-try",
                                        "--die-with-parent",
                                        "--new-session",
                                        "--cap-drop",
                                        "ALL",
                                        "--hostname",
                                        "sandbox",
                                        "--info-fd",
                                        "5",
                                        "--ro-bind",
                                        "/usr",
                                        "/usr"};
  const auto add = [&](std::initializer_list<std::string> more) {
    arguments.insert(arguments.end(), more);
  };
  for (const char* name : {"/bin", "/lib", "/lib32", "/lib64"}) {
    std::error_code error;
    if (std::filesystem::is_symlink(name, error)) {
      add({"--symlink", std::filesystem::read_symlink(name, error).string(), name});
    } else {
      add({"--ro-bind-try", name, name});
    }
  }
  for (const char* name : {"/etc/ld.so.cache", "/etc/alternatives", "/etc/localtime"}) {
    add({"--ro-bind-try", name, name});
  }
  const std::string scratch = std::to_string(limits.scratch_bytes);
  add({"--proc",   "/proc",         "--dev",    "/dev",         "--size",
       scratch,    "--tmpfs",       "/dev/shm", "--remount-ro", "/dev",
       "--size",   scratch,         "--tmpfs",  "/tmp",         "--remount-ro",
       "/",        "--chdir",       "/tmp",     "--clearenv",   "--setenv",
       "PATH",     "/usr/bin:/bin", "--setenv", "HOME",         "/tmp",
       "--setenv", "LANG",          "C.UTF-8",  "--setenv",     "PYTHONHASHSEED",
       "0"});
  // -s -P is -I without its deafness to PYTHONHASHSEED; the environment is empty otherwise.
  add({tools.python.string(), "-s", "-P", "-B", "-W", "ignore::SyntaxWarning", "-c",
       std::string(kSandboxDriver)});
  return arguments;
}

/// What the child needs, made before the fork: between fork and exec nothing may allocate.
struct Plan {
  std::vector<char*> arguments;  // null at the end
  std::array<int, 6> descriptors;
  std::array<std::pair<int, rlimit>, 6> limits;
  bool drop_root;
};

// After fork: system calls only. The wrappers of glibc for user ids would wake other threads, hence
// syscall().
[[noreturn]] void become_sandbox(const Plan& plan) {
  const char* step = "descriptors";
  const auto check = [&](long result) {
    if (result >= 0) return;
    const char* reason = strerrorname_np(errno);
    if (reason == nullptr) reason = "?";
    for (const char* text : {"sandbox: ", step, ": ", reason, "\n"}) {
      if (::write(2, text, std::strlen(text)) < 0) break;
    }
    ::_exit(125);  // layers-allow: after fork
  };
  ::setsid();
  std::array<int, 6> high{};
  for (std::size_t i = 0; i < high.size(); ++i) {
    check(high[i] = ::fcntl(plan.descriptors[i], F_DUPFD, 64));
  }
  for (std::size_t i = 0; i < high.size(); ++i) check(::dup2(high[i], static_cast<int>(i)));
  check(::close_range(static_cast<unsigned>(high.size()), ~0U, 0));
  step = "signals";
  sigset_t none;
  ::sigemptyset(&none);
  check(::sigprocmask(SIG_SETMASK, &none, nullptr));
  ::signal(SIGPIPE, SIG_DFL);
  // Should memory run out all the same, this is what has to go first.
  const int score = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (score >= 0 && ::write(score, "1000", 4) < 0) ::close(score);
  step = "limits";
  for (const auto& [resource, limit] : plan.limits) {
    check(::setrlimit(static_cast<__rlimit_resource>(resource), &limit));
  }
  if (plan.drop_root) {
    step = "giving up root";
    check(::syscall(SYS_setgroups, 0, nullptr));
    check(::syscall(SYS_setresgid, kNobody, kNobody, kNobody));
    check(::syscall(SYS_setresuid, kNobody, kNobody, kNobody));
  }
  step = "starting bubblewrap";
  check(::chdir("/"));
  std::array<char*, 1> environment = {nullptr};
  check(::execve(plan.arguments[0], plan.arguments.data(), environment.data()));
  ::_exit(125);  // layers-allow: after fork
}

std::array<std::pair<int, rlimit>, 6> resource_limits(const SandboxLimits& limits) {
  const auto seconds =
      static_cast<rlim_t>(std::chrono::duration_cast<std::chrono::seconds>(limits.wall).count());
  const auto exactly = [](int resource, std::uint64_t value) {
    return std::pair{resource, rlimit{.rlim_cur = value, .rlim_max = value}};
  };
  // The number of processes is limited inside, where only those of the sandbox count.
  return {exactly(RLIMIT_CPU, seconds + 1),         exactly(RLIMIT_AS, limits.address_space_bytes),
          exactly(RLIMIT_FSIZE, limits.file_bytes), exactly(RLIMIT_NOFILE, limits.open_files),
          exactly(RLIMIT_STACK, kStackBytes),       exactly(RLIMIT_CORE, 0)};
}

enum class Phase {
  kStarting,  // nothing of the reply has been looked at
  kChoosing,  // Python compiles what the reply holds
  kRunning,   // the program runs: what the driver says may be the program's word
};

/// One job from fork to the death of all its processes.
class Contained {
 public:
  Contained(const CodeJob& job, const SandboxTools& tools) : job_(job), tools_(tools) {}

  CodeResult run() {
    try {
      start();
      while (!decided_) listen();
    } catch (const RunnerFault& fault) {
      decide(CodeOutcome::kRunnerError, fault.text);
    }
    if (pid_ > 0) stop();
    return std::move(result_);
  }

 private:
  void start();
  void listen();
  void read_channel();
  void take(const Json& message);
  void read_output();
  void read_info();
  void at_deadline();
  void at_exit();
  void stop();
  void decide(CodeOutcome outcome, std::string detail) {
    decided_ = true;
    result_.outcome = outcome;
    result_.detail = std::move(detail);
  }
  void allow(std::chrono::milliseconds time) { deadline_ = Clock::now() + time; }

  const CodeJob& job_;
  const SandboxTools& tools_;
  std::string secret_;
  CodeResult result_;
  Phase phase_ = Phase::kStarting;
  bool decided_ = false;
  Clock::time_point deadline_;
  pid_t pid_ = -1;      // of bubblewrap
  Descriptor process_;  // the same
  Descriptor first_;    // first process of the sandbox: its end is the end of all
  Descriptor channel_, output_, info_;
  std::string info_text_;
};

void Contained::start() {
  secret_ = make_secret();
  std::vector<std::string> words = sandbox_arguments(tools_, job_.limits);
  Ends channel = make_channel(), output = make_pipe(), info = make_pipe();
  const Descriptor file = make_file(job_text(job_));
  const Descriptor nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!nothing.open()) fail("/dev/null");
  Plan plan{.arguments = {},
            .descriptors = {nothing.get(), output.theirs.get(), output.theirs.get(),
                            channel.theirs.get(), file.get(), info.theirs.get()},
            .limits = resource_limits(job_.limits),
            .drop_root = ::geteuid() == 0};
  for (std::string& word : words) plan.arguments.push_back(word.data());
  plan.arguments.push_back(nullptr);
  pid_ = ::fork();
  if (pid_ < 0) fail("fork");
  if (pid_ == 0) become_sandbox(plan);
  channel_ = std::move(channel.ours);
  output_ = std::move(output.ours);
  info_ = std::move(info.ours);
  process_ = open_process(pid_);
  if (!process_.open()) fail("pidfd_open");
  allow(kStartLimit);
}

void Contained::listen() {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline_ - Clock::now());
  if (left.count() <= 0) return at_deadline();
  // A descriptor below 0 is passed over.
  std::array<pollfd, 4> ready = {pollfd{channel_.get(), POLLIN, 0},
                                 pollfd{output_.get(), POLLIN, 0}, pollfd{info_.get(), POLLIN, 0},
                                 pollfd{process_.get(), POLLIN, 0}};
  if (::poll(ready.data(), ready.size(), static_cast<int>(left.count()) + 1) < 0 &&
      errno != EINTR) {
    fail("poll");
  }
  if (ready[2].revents != 0) read_info();
  if (ready[1].revents != 0) read_output();
  if (ready[0].revents != 0) read_channel();
  if (!decided_ && ready[3].revents != 0) at_exit();
}

void Contained::read_channel() {
  std::string buffer(kMessageBytes, '\0');
  while (!decided_ && channel_.open()) {
    const ssize_t got = ::recv(channel_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got < 0 && errno == EAGAIN) return;
    if (got < 0 && errno == ECONNRESET) continue;  // it ended without reading all; more may wait
    if (got <= 0) return channel_.reset();
    const std::string_view message(buffer.data(), static_cast<std::size_t>(got));
    if (phase_ == Phase::kRunning && message == secret_) return decide(CodeOutcome::kPassed, "");
    try {
      take(parse_json(message));
    } catch (const DataError&) {
      continue;  // a program may write here what it likes
    } catch (const Json::exception&) {
      continue;
    }
  }
}

void Contained::take(const Json& message) {
  if (phase_ == Phase::kStarting && message.contains("ready")) {
    result_.python = message.at("python").get<std::string>();
    phase_ = Phase::kChoosing;
    allow(job_.limits.wall);
    if (const Json& missing = message.at("missing"); !missing.empty()) {
      const std::string name = missing.front().get<std::string>();
      decide(CodeOutcome::kRunnerError,
             fmt::format("the tests import {0}, which {1} lacks\n  install the package python3-{0}",
                         name, tools_.python.string()));
    }
    return;
  }
  if (phase_ == Phase::kChoosing && message.contains("rule")) {
    result_.rule = message.at("rule").get<std::string>();
    result_.program = message.at("program").get<std::string>();
    phase_ = Phase::kRunning;
    allow(job_.limits.wall);
    if (::send(channel_.get(), secret_.data(), secret_.size(), MSG_NOSIGNAL) < 0) channel_.reset();
    return;
  }
  // Until the program runs, the driver speaks; afterwards the program may, and can only speak
  // against itself.
  const std::string outcome = message.value("outcome", "");
  const std::array<CodeOutcome, 3> before = {CodeOutcome::kSyntax, CodeOutcome::kNoCode,
                                             CodeOutcome::kRunnerError};
  const std::array<CodeOutcome, 3> after = {CodeOutcome::kAssertion, CodeOutcome::kException,
                                            CodeOutcome::kMemory};
  if (phase_ == Phase::kStarting) return;
  for (const CodeOutcome known : phase_ == Phase::kRunning ? after : before) {
    if (outcome == name_of(known)) return decide(known, message.value("detail", ""));
  }
}

void Contained::read_output() {
  std::array<char, 65536> buffer{};
  constexpr int kReads = 16;  // then the clock is looked at again
  for (int i = 0; i < kReads; ++i) {
    const ssize_t got = ::read(output_.get(), buffer.data(), buffer.size());
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) return output_.reset();
    const std::size_t room = job_.limits.output_bytes - result_.output.size();
    result_.output.append(buffer.data(), std::min(room, static_cast<std::size_t>(got)));
  }
}

/// -1 when there is no such process.
pid_t parent_of(pid_t pid) {
  std::ifstream status(fmt::format("/proc/{}/status", pid));
  for (std::string word; status >> word;) {
    pid_t parent = -1;
    if (word == "PPid:" && status >> parent) return parent;
  }
  return -1;
}

void Contained::read_info() {
  std::array<char, 512> buffer{};
  ssize_t got = 0;
  while ((got = ::read(info_.get(), buffer.data(), buffer.size())) > 0) {
    info_text_.append(buffer.data(), static_cast<std::size_t>(got));
  }
  if (got == 0) info_.reset();
  constexpr std::string_view kKey = "\"child-pid\":";
  const std::size_t key = info_text_.find(kKey);
  if (first_.open() || key == std::string::npos || info_text_.find('}') == std::string::npos)
    return;
  const pid_t first = std::atoi(info_text_.c_str() + key + kKey.size());
  if (first <= 0) return;
  first_ = open_process(first);
  // Had it ended already, the number might belong to another process.
  if (first_.open() && parent_of(first) != pid_) first_.reset();
}

void Contained::at_deadline() {
  if (phase_ == Phase::kStarting) {
    decide(CodeOutcome::kRunnerError, "the sandbox did not start in time");
  } else {
    decide(CodeOutcome::kTimeout,
           fmt::format("no verdict within {} s",
                       std::chrono::duration<double>(job_.limits.wall).count()));
  }
}

void Contained::at_exit() {
  read_channel();  // its last words
  if (decided_) return;
  if (output_.open()) read_output();
  siginfo_t info{};
  if (::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT) != 0) fail("waitid");
  if (phase_ == Phase::kStarting) {
    const std::string_view said = result_.output;
    return decide(CodeOutcome::kRunnerError, std::string(said.substr(0, said.find('\n'))));
  }
  // Bubblewrap hands on how the program ended, as shells do.
  const int status = info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
  constexpr int kSignals = 128;
  if (status == kSignals + SIGXCPU) {
    decide(CodeOutcome::kTimeout, "limit on processor time");
  } else if (status > kSignals && sigabbrev_np(status - kSignals) != nullptr) {
    decide(CodeOutcome::kKilled, fmt::format("killed by SIG{}", sigabbrev_np(status - kSignals)));
  } else if (phase_ == Phase::kChoosing) {
    decide(CodeOutcome::kRunnerError, "the driver ended early: " + result_.output.substr(0, 500));
  } else {
    decide(CodeOutcome::kException,
           fmt::format("the program ended with status {} before its tests did", status));
  }
}

void Contained::stop() {
  if (info_.open()) read_info();
  if (first_.open()) {
    kill_process(first_);
    // The kernel reports the end of a first process only when all others of its namespace are gone.
    pollfd gone{first_.get(), POLLIN, 0};
    const int limit = static_cast<int>(std::chrono::milliseconds(kKillLimit).count());
    int ended = 0;
    do {
      ended = ::poll(&gone, 1, limit);
    } while (ended < 0 && errno == EINTR);
    if (ended != 1) decide(CodeOutcome::kRunnerError, "processes of the program survived SIGKILL");
  }
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  if (output_.open()) read_output();
}

}  // namespace

std::string_view name_of(CodeOutcome outcome) {
  return kOutcomes[static_cast<std::size_t>(outcome)];
}

CodeResult run_contained(const CodeJob& job, const SandboxTools& tools) {
  CodeResult result;
  if (job.program || !job.candidates.empty()) return Contained(job, tools).run();
  result.outcome = CodeOutcome::kNoCode;
  return result;
}

}  // namespace asdbench
