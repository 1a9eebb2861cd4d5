// Programs that try to get out, to stay, to exhaust the machine or to forge their verdict. All of
// these tests need user namespaces; where there are none they fail and say which setting is
// missing.
#include "tasks/common/sandbox.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "eval/core/temporary_folder.h"

namespace asdbench {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kTests = "assert f(1) == 2\nassert f(10) == 11\n";

CodeJob job_of(const std::string& program, const std::string& tests = kTests) {
  CodeJob job;
  job.program = program;
  job.tests = tests;
  job.limits.wall = std::chrono::seconds(30);  // a busy machine is slow
  return job;
}

// A program whose `f` runs `body` and then is right.
std::string right_after(const std::string& body) {
  return "def f(x):\n" + body + "    return x + 1\n";
}

std::string name(const CodeResult& result) { return std::string(name_of(result.outcome)); }

// Command lines of all processes of this machine.
std::string all_processes() {
  std::string all;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    std::ifstream in(entry.path() / "cmdline");
    std::ostringstream text;
    text << in.rdbuf();
    all += text.str() + "\n";
  }
  return all;
}

class Sandbox : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(check_sandbox().fault, ""); }
  // Whatever ran before, the next sample runs.
  void TearDown() override { EXPECT_EQ(name(run_contained(job_of(right_after("")))), "passed"); }
};

TEST_F(Sandbox, TellsOutcomesApart) {
  const auto outcome = [](const std::string& program, const std::string& tests = kTests) {
    return name(run_contained(job_of(program, tests)));
  };
  EXPECT_EQ(outcome("def f(x): return x + 1"), "passed");
  EXPECT_EQ(outcome("def f(x): return x + 2"), "assertion");
  EXPECT_EQ(outcome("def f(x): return y"), "exception");
  EXPECT_EQ(outcome("def f(x): return x +"), "syntax");
  EXPECT_EQ(outcome("return 1"), "syntax") << "parses, and does not compile";
  EXPECT_EQ(outcome("def f(x): raise SystemExit(0)"), "exception");
  EXPECT_EQ(outcome("def f(x): raise KeyboardInterrupt"), "exception");
  EXPECT_EQ(outcome("def f(x): return f(x)"), "exception");
  EXPECT_EQ(outcome("import os, signal\ndef f(x): os.kill(os.getpid(), signal.SIGSEGV)"), "killed");
  EXPECT_EQ(outcome("def f(x): return bytes(12 << 30) and 2"), "memory");
  EXPECT_EQ(outcome("def f(x): return int(input())"), "exception") << "standard input is empty";
  EXPECT_EQ(outcome("def f(x): return x + 1", "assert f(1) =="), "runner_error");
  EXPECT_EQ(name(run_contained({})), "no_code");
}

TEST_F(Sandbox, DetailNamesTheTestThatFailed) {
  const CodeResult wrong = run_contained(job_of("def f(x): return 2"));
  EXPECT_EQ(wrong.detail, "AssertionError:  at: assert f(10) == 11");
  EXPECT_EQ(run_contained(job_of("def f(x): return y")).detail,
            "NameError: name 'y' is not defined at: assert f(1) == 2");
  EXPECT_EQ(run_contained(job_of("import os, signal\ndef f(x): os.kill(os.getpid(), 9)")).detail,
            "killed by SIGKILL");
}

TEST_F(Sandbox, TimeRunsOutForLoopsAndForLongCallsAlike) {
  for (const char* body : {"    while True: pass\n", "    sum(range(10 ** 12))\n",
                           "    import signal, time\n"
                           "    for s in range(1, 32):\n"
                           "        try: signal.signal(s, signal.SIG_IGN)\n"
                           "        except OSError: pass\n"
                           "    time.sleep(1000)\n"}) {
    CodeJob job = job_of(right_after(body));
    job.limits.wall = std::chrono::milliseconds(500);
    const auto start = std::chrono::steady_clock::now();
    const CodeResult result = run_contained(job);
    EXPECT_EQ(name(result), "timeout") << body;
    EXPECT_EQ(result.detail, "no verdict within 0.5 s");
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
  }
}

TEST_F(Sandbox, ProcessorTimeIsLimitedWhenTheClockIsNot) {
  const CodeResult result =
      run_contained(job_of("import resource\n"
                           "def f(x): return resource.getrlimit(resource.RLIMIT_CPU)[1]\n",
                           "assert f(1) == 31\n"));
  EXPECT_EQ(name(result), "passed") << "30 s of wall clock allow 31 s of processor time";
}

TEST_F(Sandbox, ForkBombsAreBounded) {
  // Processes that fork for as long as they can, and a count of how many there were.
  const CodeResult result = run_contained(
      job_of(right_after("    import os\n"
                         "    n = 0\n"
                         "    try:\n"
                         "        while True:\n"
                         "            if os.fork() == 0:\n"
                         "                os.execv('/bin/sleep', ['sleep', '31415'])\n"
                         "            n += 1\n"
                         "    except OSError as error:\n"
                         "        raise RuntimeError(f'{n} and then {error}')\n")));
  EXPECT_EQ(name(result), "exception");
  EXPECT_THAT(result.detail, StartsWith("RuntimeError: 6"));
  EXPECT_THAT(result.detail, HasSubstr("temporarily unavailable"));
  EXPECT_THAT(all_processes(), Not(HasSubstr("31415")));
  CodeJob bomb = job_of("import os\nwhile True: os.fork()\n");
  bomb.limits.wall = std::chrono::seconds(1);
  EXPECT_NE(name(run_contained(bomb)), "passed");
  CodeJob threads = job_of(
      "import threading, time\nfor _ in range(1000):\n"
      "    threading.Thread(target=time.sleep, args=(99,)).start()\n");
  EXPECT_THAT(run_contained(threads).detail, HasSubstr("can't start new thread"));
}

TEST_F(Sandbox, NothingSurvivesAPassOrATimeOut) {
  const std::string daemon =
      "    import os, subprocess\n"
      "    subprocess.Popen(['/bin/sleep', '27182'], start_new_session=True)\n"
      "    if os.fork() == 0:\n"
      "        os.setsid()\n"
      "        if os.fork() == 0: os.execv('/bin/sleep', ['sleep', '27182'])\n"
      "        os._exit(0)\n";
  EXPECT_EQ(name(run_contained(job_of(right_after(daemon)))), "passed");
  EXPECT_THAT(all_processes(), Not(HasSubstr("27182")));
  CodeJob slow = job_of(right_after(daemon + "    while True: pass\n"));
  slow.limits.wall = std::chrono::seconds(1);
  EXPECT_EQ(name(run_contained(slow)), "timeout");
  EXPECT_THAT(all_processes(), Not(HasSubstr("27182")));
}

TEST_F(Sandbox, ThreadsThatAreLeftDoNotMatter) {
  EXPECT_EQ(name(run_contained(job_of(
                right_after("    import threading, time\n"
                            "    threading.Thread(target=time.sleep, args=(100,)).start()\n")))),
            "passed");
}

TEST_F(Sandbox, MemoryIsLimited) {
  CodeJob job = job_of(right_after("    a = []\n    while True: a.append(bytearray(1 << 20))\n"));
  job.limits.address_space_bytes = std::uint64_t{256} << 20;
  EXPECT_EQ(name(run_contained(job)), "memory");
  job = job_of(right_after("    a = []\n    while True: a.append(bytes(1000))\n"));
  job.limits.address_space_bytes = std::uint64_t{256} << 20;
  EXPECT_EQ(name(run_contained(job)), "memory") << "small pieces too";
}

TEST_F(Sandbox, DiskIsLimited) {
  EXPECT_THAT(run_contained(job_of("for _ in range(4096):\n"
                                   "    open('big', 'ab').write(b'0' * (1 << 20))\n"))
                  .detail,
              HasSubstr("File too large"));
  CodeJob many = job_of(
      "for folder in ('/tmp', '/dev/shm'):\n"
      "    try:\n"
      "        for i in range(4096): open(f'{folder}/{i}', 'wb').write(b'0' * (1 << 20))\n"
      "        raise SystemError(folder)\n"
      "    except OSError as error:\n"
      "        assert 'No space left' in str(error), error\n"
      "def f(x): return x + 1\n");
  many.limits.scratch_bytes = std::uint64_t{16} << 20;
  const CodeResult result = run_contained(many);
  EXPECT_EQ(name(result), "passed") << result.detail;
}

TEST_F(Sandbox, OnlyScratchCanBeWrittenAndNothingOfTheMachineIsSeen) {
  const std::string here = fs::current_path().string();
  const CodeResult result = run_contained(job_of(
      "import os\n"
      "open('scratch.txt', 'w').write('a')\n"
      "for path in ('/x', '/usr/x', '/etc/x', '/dev/x', '/proc/x', '/bin/x', "
      "'/proc/sys/kernel/hostname',\n"
      "             '/usr/bin/python3', '/dev/mem', '/proc/sysrq-trigger'):\n"
      "    try: open(path, 'a').write('a')\n"
      "    except OSError: continue\n"
      "    raise SystemError(path)\n"
      "assert sorted(os.listdir('/')) <= ['bin', 'dev', 'etc', 'lib', 'lib32', 'lib64', 'proc', "
      "'tmp', 'usr'], os.listdir('/')\n"
      "for path in ('" +
      here + "', '/root', '/home', '/var', '/etc/passwd', '/proc/1/root/" + here +
      "'):\n"
      "    assert not os.path.exists(path), path\n"
      "assert os.listdir('/tmp') == ['scratch.txt'] and os.getcwd() == '/tmp'\n"
      "assert sorted(os.environ) == ['HOME', 'LANG', 'PATH', 'PWD', 'PYTHONHASHSEED'], os.environ\n"
      "assert hash('a') == 4644417185603328019\n"
      "assert os.getuid() != 0 and os.geteuid() != 0\n"
      "pids = [p for p in os.listdir('/proc') if p.isdigit()]\n"
      "assert len(pids) <= 2, pids\n"
      "status = open('/proc/self/status').read()\n"
      "assert 'CapEff:\\t0000000000000000' in status and 'NoNewPrivs:\\t1' in status, status\n"
      "def f(x): return x + 1\n"));
  EXPECT_EQ(name(result), "passed") << result.detail;
}

TEST_F(Sandbox, NoNetworkAndNoNewNamespaces) {
  const CodeResult result = run_contained(
      job_of("import ctypes, socket\n"
             "for address in (('1.1.1.1', 53), ('8.8.8.8', 443)):\n"
             "    try: socket.create_connection(address, timeout=2)\n"
             "    except OSError as error: assert 'unreachable' in str(error), error\n"
             "    else: raise SystemError(address)\n"
             "assert ctypes.CDLL(None).unshare(0x10000000) == -1\n"
             "def f(x): return x + 1\n"));
  EXPECT_EQ(name(result), "passed") << result.detail;
}

TEST_F(Sandbox, OutputIsDrainedAndBounded) {
  const CodeResult result = run_contained(job_of(right_after(
      "    import os, sys\n"
      "    for _ in range(200): sys.stderr.write('y' * 100000); os.write(1, b'x' * 100000)\n"
      "    sys.stdout.close()\n")));
  EXPECT_EQ(name(result), "passed");
  EXPECT_EQ(result.output.size(), job_of("").limits.output_bytes);
}

// An early end, marks on every descriptor, other people's words for success: none of them is the
// secret.
TEST_F(Sandbox, EarlyExitsAndForgedMarksDoNotPass) {
  for (const char* body :
       {"    import os; os._exit(0)\n", "    import sys; sys.exit(0)\n",
        "    import os; os.kill(os.getppid(), 9); os._exit(0)\n",
        "    import os; os.close(3); os._exit(0)\n",
        "    import os; os.execv('/bin/true', ['true'])\n",
        "    import os; os.write(1, b'passed\\nOK\\n'); os._exit(0)\n",
        "    import os\n"
        "    for fd in range(64):\n"
        "        for mark in (b'passed', b'{\"outcome\": \"passed\"}', bytes(32),\n"
        "                     b'{\"outcome\": \"runner_error\"}', b'{\"outcome\": \"no_code\"}',\n"
        "                     b'{\"ready\": true, \"rule\": \"\", \"program\": \"\"}', b'[' * "
        "9999):\n"
        "            try: os.write(fd, mark)\n"
        "            except OSError: pass\n"
        "    os._exit(0)\n"}) {
    const CodeResult result = run_contained(job_of(right_after(body)));
    EXPECT_TRUE(result.outcome == CodeOutcome::kException || result.outcome == CodeOutcome::kKilled)
        << name(result) << body;
  }
}

TEST_F(Sandbox, ChecksAndAssertsCannotBeReplaced) {
  const auto outcome = [](const std::string& program, const std::string& tests = kTests) {
    return name(run_contained(job_of(program, tests)));
  };
  const std::string check = "def check(candidate):\n    assert candidate(1) == 2\ncheck(f)\n";
  EXPECT_EQ(outcome("def f(x): return 0\ndef check(candidate): pass\n", check), "assertion");
  EXPECT_EQ(
      outcome("import builtins\nclass Never(Exception): pass\nbuiltins.AssertionError = Never\n"
              "__builtins__['AssertionError'] = Never\n"
              "def f(x): return 0\n"),
      "assertion");
  EXPECT_EQ(
      outcome(
          "import builtins\nbuiltins.exec = builtins.eval = builtins.compile = lambda *_: None\n"
          "def f(x): return 0\n"),
      "assertion");
  EXPECT_EQ(
      outcome(
          "import os, posix\nposix.write = os.write = lambda *_: None\ndef f(x): return x + 1\n"),
      "passed");
}

// Whatever the interpreter lets a program see of its own process: frames, their variables,
// everything the collector knows. What is found is sent back in every way.
TEST_F(Sandbox, TheSecretIsNotFoundInTheInterpreter) {
  const CodeResult result = run_contained(job_of(
      "import gc, os, sys\n"
      "def f(x):\n"
      "    seen, found, frame = set(), [], sys._getframe()\n"
      "    todo = gc.get_objects()\n"
      "    while frame:\n"
      "        todo += [frame, frame.f_locals, frame.f_globals, frame.f_code.co_consts]\n"
      "        frame = frame.f_back\n"
      "    while todo:\n"
      "        thing = todo.pop()\n"
      "        if id(thing) in seen: continue\n"
      "        seen.add(id(thing))\n"
      "        if isinstance(thing, (bytes, bytearray, str)) and len(thing) in (32, 64): "
      "found.append(thing)\n"
      "        todo += gc.get_referents(thing)\n"
      "    for thing in found:\n"
      "        try: os.write(3, thing if isinstance(thing, bytes) else str(thing).encode())\n"
      "        except OSError: pass\n"
      "    raise RuntimeError(f'{len(seen)} seen')\n"));
  EXPECT_EQ(name(result), "exception");
  EXPECT_THAT(result.detail, ::testing::ContainsRegex("RuntimeError: [0-9]{5,} seen"))
      << "the search took place";
}

TEST_F(Sandbox, NoTracerJumpsOverTests) {
  const CodeResult result =
      run_contained(job_of("import sys\n"
                           "def f(x):\n"
                           "    def jump(frame, event, _):\n"
                           "        if event == 'line': frame.f_lineno = 3\n"
                           "        return jump\n"
                           "    sys._getframe(1).f_trace = jump\n"
                           "    sys.settrace(jump)\n"
                           "    return 2\n",
                           "assert f(1) == 2\nassert f(2) == 3\ndone = True\n"));
  EXPECT_EQ(name(result), "exception");
  EXPECT_THAT(result.detail, HasSubstr("sys.settrace is not allowed"));
}

TEST_F(Sandbox, ProgramsRunAsScriptsDo) {
  const CodeResult result = run_contained(
      job_of("from __future__ import annotations\n"
             "import dataclasses, enum, pickle, multiprocessing, tempfile\n"
             "@dataclasses.dataclass\n"
             "class Point:\n    x: int\n"
             "class Colour(enum.Enum): RED = 1\n"
             "assert pickle.loads(pickle.dumps(Point(3))) == Point(3) and "
             "pickle.loads(pickle.dumps(Colour.RED)) is Colour.RED\n"
             "assert tempfile.TemporaryFile().write(b'a') == 1\n"
             "def double(x): return 2 * x\n"
             "def f(x):\n"
             "    with multiprocessing.Pool(2) as pool: assert pool.map(double, [1, 2]) == [2, 4]\n"
             "    return x + 1 if __name__ == '__main__' else 0\n"));
  EXPECT_EQ(name(result), "passed") << result.detail << result.output;
}

// Programs chosen from candidates: what Python's compiler has to say is asked inside.
std::string choice(const CodeCandidates& candidates, std::string* program = nullptr,
                   std::chrono::seconds wall = std::chrono::seconds(30)) {
  CodeJob job = job_of("");
  job.limits.wall = wall;
  job.program.reset();
  job.candidates = candidates;
  job.entry_point = "f";
  job.prompt = "import math\ndef f(x):\n    \"\"\" Adds one. \"\"\"\n";
  job.preamble = "import math\n";
  const CodeResult result = run_contained(job);
  if (program != nullptr) *program = result.program;
  return result.rule + " " + name(result);
}

TEST_F(Sandbox, ChoosesWhatCompiles) {
  const std::string good = "def f(x):\n    return x + math.floor(1.5)\n";
  EXPECT_EQ(choice({.blocks = {good, "def f(x): return 0"}, .outside = "", .bodies = {}}),
            "fence passed");
  EXPECT_EQ(
      choice({.blocks = {"def f(x): return", "def f(x): (", good}, .outside = "", .bodies = {}}),
      "fence assertion");
  EXPECT_EQ(choice({.blocks = {"def f(x): (", good}, .outside = "", .bodies = {}}), "fence passed");
  EXPECT_EQ(choice({.blocks = {good + "This is it.\n"}, .outside = "", .bodies = {}}),
            "fence_run passed");
  EXPECT_EQ(choice({.blocks = {},
                    .outside = "Here is it.\nimport os\nOr so.\n" + good + "It adds one.\n",
                    .bodies = {}}),
            "text_run passed");
  EXPECT_EQ(choice({.blocks = {}, .outside = "", .bodies = {"    return x + 1\n"}}), "body passed");
  EXPECT_EQ(choice({.blocks = {}, .outside = "", .bodies = {"return x + 1\n"}}), "body passed");
  EXPECT_EQ(choice({.blocks = {}, .outside = "", .bodies = {"     y = x\n    return y + 1\n"}}),
            "body passed");
  EXPECT_EQ(choice({.blocks = {}, .outside = "", .bodies = {"I cannot.", "    return x + 1\n"}}),
            "body passed");
  EXPECT_EQ(choice({.blocks = {"def f(x: return 1"}, .outside = "", .bodies = {}}), " syntax");
  EXPECT_EQ(choice({.blocks = {}, .outside = "", .bodies = {"I cannot do that."}}), " no_code");
}

TEST_F(Sandbox, DropsDemonstrationsAndKeepsDefinitions) {
  std::string program;
  EXPECT_EQ(
      choice({.blocks =
                  {"import os\n"
                   "try:\n    import numpy_of_mine\nexcept ImportError:\n    numpy_of_mine = None\n"
                   "ONE: int = 1\n"
                   "@staticmethod\ndef g(x): return x\n"
                   "def f(x): return x + ONE  # adds\n"
                   "print(f(1))\nassert f(1) == 7\nn = int(input())\n"
                   "for i in range(3):\n    f(i)\n"
                   "if __name__ == '__main__':\n    f(None)\n"},
              .outside = "",
              .bodies = {}},
             &program),
      "fence passed");
  EXPECT_EQ(program,
            "import math\nimport os\n"
            "try:\n    import numpy_of_mine\nexcept ImportError:\n    numpy_of_mine = None\n"
            "ONE: int = 1\n"
            "@staticmethod\ndef g(x): return x\n"
            "def f(x): return x + ONE  # adds\n");
  EXPECT_EQ(choice({.blocks = {"def f(x): return x + 1\nx = 3; print(input())\n"},
                    .outside = "",
                    .bodies = {}}),
            "fence passed");
}

TEST_F(Sandbox, HostileRepliesEndInTime) {
  const auto repeated = [](std::string_view unit, std::size_t size) {
    std::string text;
    while (text.size() < size) text += unit;
    return text;
  };
  for (const std::string& text : std::vector<std::string>{
           "def f(x): return " + repeated("(", 100'000),
           "def f(x): return " + repeated("-", 100'000) + "1",
           "def f(x): return 1" + repeated("+1", 200'000),
           "def f(x): pass\n" + repeated("x = (\n", 30'000),
           repeated("x = 1\n", 60'000) + "def f(x) return\n",
           repeated("x = '''\n", 50'000) + "def f(x): return 1\n",
           "def f(x):\n" + repeated("    if x:\n", 1000),
           std::string("def f(x): return '\0'\n", 22), "def f(x): return '\xff\xed\xa0\x80'\n",
           "f = " + repeated("[", 300) + repeated("]", 300) + "\n"}) {
    const std::string found = choice({.blocks = {text}, .outside = text, .bodies = {text}}, nullptr,
                                     std::chrono::seconds(5));
    EXPECT_THAT(found,
                ::testing::AnyOf(" syntax", "fence exception", "fence assertion",
                                 "fence_run assertion", "fence_run exception", "text_run assertion",
                                 "body assertion", "body exception", " timeout"))
        << text.substr(0, 40);
  }
}

TEST(SandboxFaults, AreNamedAndNothingIsRun) {
  const TemporaryFolder owned;
  const fs::path& folder = owned.path();
  // As root the sandbox starts as another user, who must find the tools.
  fs::permissions(folder, fs::perms(0755));
  fs::create_directories(folder / "sys/kernel");
  fs::create_directories(folder / "self/ns");
  SandboxTools tools{.bubblewrap = folder / "bwrap", .python = "/usr/bin/python3", .proc = folder};
  EXPECT_THAT(check_sandbox(tools).fault,
              HasSubstr("bwrap is missing\n  install the package bubblewrap"));
  std::ofstream(tools.bubblewrap)
      << "#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n";
  ::chmod(tools.bubblewrap.c_str(), 0755);
  std::ofstream(folder / "self/ns/user") << "";
  EXPECT_THAT(check_sandbox(tools).fault, HasSubstr("programs cannot be run contained"));
  EXPECT_THAT(check_sandbox(tools).fault, HasSubstr("unshare --user"));
  std::ofstream(folder / "sys/kernel/unprivileged_userns_clone") << "0\n";
  std::ofstream(folder / "self/status") << "Name:\tx\nSeccomp:\t2\n";
  const std::string fault = check_sandbox(tools).fault;
  EXPECT_THAT(fault, HasSubstr("No permissions to create new namespace"));
  EXPECT_THAT(fault, HasSubstr("kernel.unprivileged_userns_clone is 0: as root, sysctl -w "
                               "kernel.unprivileged_userns_clone=1"));
  EXPECT_THAT(fault, HasSubstr("seccomp"));
  const CodeResult result = run_contained(job_of("def f(x): return x + 1"), tools);
  EXPECT_EQ(name(result), "runner_error");
  EXPECT_THAT(result.detail, HasSubstr("No permissions"));
  tools.python = folder / "python3";
  EXPECT_THAT(check_sandbox(tools).fault, HasSubstr("install the package python3"));
}

}  // namespace
}  // namespace asdbench
