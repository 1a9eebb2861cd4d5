// The whole program from outside: exit codes, messages, resume after every kind of end, golden
// output.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "eval/cli/tests/program_internal.h"

namespace asdbench {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::Outcome;
using testing::ProgramTest;
using testing::read_file;
using testing::write_file;

TEST_F(ProgramTest, RunPrintsTheMatrixAndASecondRunDecodesNothing) {
  const Outcome first = run({"run", config().string(), "--db", database()});
  EXPECT_EQ(first.code, 0) << first.err;
  EXPECT_THAT(first.out, HasSubstr("task gsm8k (our samples, not the official set) · target toy"));
  EXPECT_THAT(first.out, HasSubstr("check greedy_outputs_equal: pass (40 pairs, 0 first differ"));
  EXPECT_THAT(first.out, HasSubstr("decoded 120 samples, reused 0"));
  const std::string before = dump(database());
  const Outcome second = run({"run", config().string(), "--db", database()});
  EXPECT_EQ(second.code, 0) << second.err;
  EXPECT_THAT(second.out, HasSubstr("decoded 0 samples, reused 120"));
  EXPECT_EQ(dump(database()), before);
  const Outcome larger = run({"run", config().string(), "--db", database(), "--limit", "5"});
  EXPECT_THAT(larger.out, HasSubstr("decoded 0 samples, reused 15"));
}

TEST_F(ProgramTest, TwoRunsDumpTheSame) {
  ASSERT_EQ(run({"run", config().string(), "--db", database("a.db")}).code, 0);
  ASSERT_EQ(run({"run", config().string(), "--db", database("b.db")}).code, 0);
  const std::string dump_a = dump(database("a.db"));
  EXPECT_GT(dump_a.size(), 10000U);
  EXPECT_EQ(dump_a, dump(database("b.db")));
}

TEST_F(ProgramTest, ShardsTogetherAreTheWhole) {
  for (const char* shard : {"1/3", "2/3", "3/3"}) {
    ASSERT_EQ(run({"run", config().string(), "--db", database("a.db"), "--shard", shard}).code, 0);
  }
  ASSERT_EQ(run({"run", config().string(), "--db", database("b.db")}).code, 0);
  EXPECT_EQ(dump(database("a.db")), dump(database("b.db")));
}

TEST_F(ProgramTest, BatchedOutputsEqualOneAtATime) {
  ASSERT_EQ(run({"run", config().string(), "--db", database("a.db")}).code, 0);
  const Outcome batched = run(
      {"run", config().string(), "--db", database("b.db"), "--set", "matrix.decoding[0].batch=7"});
  ASSERT_EQ(batched.code, 0) << batched.err;
  // The batch is a coordinate of the cell; everything else must agree.
  std::string one = dump(database("a.db"));
  std::string seven = dump(database("b.db"));
  for (std::size_t at = 0; (at = seven.find("\"batch\":7", at)) != std::string::npos;) {
    seven.replace(at, 9, "\"batch\":1");
  }
  EXPECT_NE(one.find("\"batch\":1"), std::string::npos);
  EXPECT_EQ(one, seven);
}

// Kills at several moments; whatever was recorded stays, and the resumed run ends where an
// undisturbed one does.
TEST_F(ProgramTest, KilledAnywhereAndResumedDumpsTheSame) {
  ASSERT_EQ(run({"run", config().string(), "--db", database("whole.db")}).code, 0);
  const std::string expected = dump(database("whole.db"));
  for (const int milliseconds : {1, 10, 20, 40, 80}) {
    const std::string path = database(fmt::format("killed-{}.db", milliseconds));
    const pid_t child = start({"run", config().string(), "--db", path});
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    kill(child, SIGKILL);
    wait(child);
    const Outcome resumed = run({"run", config().string(), "--db", path});
    EXPECT_EQ(resumed.code, 0) << resumed.err;
    EXPECT_EQ(dump(path), expected) << milliseconds;
  }
}

// A second turn needs the reply to the first, which a killed run may have stored alone.
TEST_F(ProgramTest, ConversationsAndChoicesResumeWhereTheyWereKilled) {
  const fs::path path = folder_ / "turns.yaml";
  write_file(path,
             "run: {name: test, seed: 7, phases: [quality]}\n"
             "matrix:\n"
             "  task:\n"
             "    - mt_bench: {split: samples, limit: 4, max_tokens: 100}\n"
             "    - mmlu: {split: samples, variant: loglik, limit: 8}\n"
             "  target: [toy]\n"
             "  drafter: [none, {ngram: {K: 4}}]\n"
             "  verifier: [strict, {asd: {B: 8, g: 0.25, M: 2}}]\n"
             "skip: [{drafter: none, verifier: asd}]\n");
  const Outcome whole = run({"run", path.string(), "--db", database("whole.db")});
  ASSERT_EQ(whole.code, 0) << whole.err;
  // Three cells of 4 conversations of two turns; one cell of 8 choices, for all rules alike.
  EXPECT_THAT(whole.out, HasSubstr("decoded 32 samples, reused 0"));
  const std::string expected = dump(database("whole.db"));
  for (const int milliseconds : {5, 40}) {
    const std::string file = database(fmt::format("killed-{}.db", milliseconds));
    const pid_t child = start({"run", path.string(), "--db", file});
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    kill(child, SIGKILL);
    wait(child);
    ASSERT_EQ(run({"run", path.string(), "--db", file}).code, 0);
    EXPECT_EQ(dump(file), expected) << milliseconds;
  }
}

TEST_F(ProgramTest, InterruptStopsCleanlyAndTheRunGoesOn) {
  // 2 ms a step: some 1.5 s of work.
  const std::vector<std::string> command = {
      "run",     config().string(),
      "--db",    database(),
      "--limit", "4",
      "--set",   "matrix.target[0]={planted: {step_us: 2000}}"};
  const pid_t child = start(command);
  // Once the database is there the program decodes; a busy machine may take its time until then.
  for (int i = 0; i < 3000 && !fs::exists(database()); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  kill(child, SIGINT);
  const Outcome stopped = wait(child);
  EXPECT_EQ(stopped.code, 130) << stopped.err;
  EXPECT_THAT(stopped.err, HasSubstr("run the same command again"));
  const Outcome resumed = run(command);
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_THAT(resumed.out, Not(HasSubstr("decoded 0 samples")));
  const Outcome again = run(command);
  EXPECT_THAT(again.out, HasSubstr("decoded 0 samples, reused 12"));
}

TEST_F(ProgramTest, TwoRunsOnOneDatabaseLoseAndDoubleNothing) {
  const pid_t first = start({"run", config().string(), "--db", database("both.db")}, "first");
  const pid_t second = start({"run", config().string(), "--db", database("both.db")}, "second");
  const Outcome a = wait(first, "first");
  const Outcome b = wait(second, "second");
  // Both may finish, or one may be told that the other writes; never a crash.
  for (const Outcome& outcome : {a, b}) {
    EXPECT_TRUE(outcome.code == 0 || outcome.code == 3) << outcome.code << outcome.err;
  }
  ASSERT_EQ(run({"run", config().string(), "--db", database("both.db")}).code, 0);
  ASSERT_EQ(run({"run", config().string(), "--db", database("alone.db")}).code, 0);
  EXPECT_EQ(dump(database("both.db")), dump(database("alone.db")));
}

TEST_F(ProgramTest, SpeedPhaseGivesRatiosAndIsNotRepeated) {
  const std::vector<std::string> command = {"run",     config().string(),
                                            "--db",    database(),
                                            "--limit", "3",
                                            "--set",   "run.phases=[quality, speed]",
                                            "--set",   "speed.tokens=16",
                                            "--set",   "speed.prompts=2",
                                            "--set",   "speed.groups=3"};
  const Outcome first = run(command);
  EXPECT_EQ(first.code, 0) << first.err;
  EXPECT_THAT(first.out, HasSubstr("timed 3 speed groups"));
  const Outcome second = run(command);
  EXPECT_THAT(second.out, HasSubstr("timed 0 speed groups"));
}

TEST_F(ProgramTest, SplitAndGraderAreForEveryTask) {
  const fs::path path = folder_ / "official.yaml";
  write_file(path,
             "run: {name: test}\n"
             "matrix:\n"
             "  task: [gsm8k, {mmlu: {split: val}}, alpaca]\n"
             "  target: [toy]\n"
             "  drafter: [none]\n"
             "  verifier: [strict]\n");
  const Outcome plan = run({"plan", path.string(), "--split", "samples"});
  EXPECT_EQ(plan.code, 0) << plan.err;
  EXPECT_THAT(plan.out, HasSubstr("mmlu"));
  const Outcome grader = run({"plan", path.string(), "--split", "samples", "--grader", "qwen"});
  EXPECT_EQ(grader.code, 2);
  EXPECT_THAT(grader.err, HasSubstr("unknown grader \"qwen\""));
}

TEST_F(ProgramTest, TheKindsOfWorkAndTriplesAndReplayAreMeasuredAndReported) {
  const fs::path file = folder_ / "kinds.yaml";
  write_file(file,
             "run: {name: kinds, seed: 7, phases: [quality, speed, replay]}\n"
             "matrix:\n"
             "  task: [{gsm8k: {split: samples, max_tokens: 40}}]\n"
             "  target: [{planted: {step_us: 100, mean_tokens: 30}}]\n"
             "  drafter: [none, {planted: {K: 4, acceptance: 0.6, near: 0.5}}]\n"
             "  verifier: [strict, {asd: {B: inf, g: 1, M: inf}}]\n"
             "  decoding: [{batch: 2}]\n"
             "skip: [{drafter: none, verifier: asd}]\n"
             "speed: {work: [constant, reference, natural], tokens: 32, prompts: 5, groups: 2,\n"
             "  warmup: 0, warmup_most: 0, order: bcb}\n");
  const std::vector<std::string> command = {"run",      file.string(), "--db",
                                            database(), "--limit",     "8"};
  const Outcome first = run(command);
  ASSERT_EQ(first.code, 0) << first.err;
  // Two triples (strict around plain, ASD around strict), two groups, three kinds of work.
  EXPECT_THAT(first.out, HasSubstr("replayed 8, timed 12 speed groups"));
  EXPECT_THAT(first.out, HasSubstr("Measured speed and what tokens per pass predict"));
  EXPECT_THAT(first.out, HasSubstr("check timed_outputs_repeat: pass (36 checked)"));
  const Outcome second = run(command);
  EXPECT_THAT(second.out, HasSubstr("decoded 0 samples, reused 24, timed 0 speed groups"));
  const auto rows_of = [&](const std::string& view) {
    const std::string csv = run({"report", database(), "--format", "csv", "--view", view}).out;
    return std::count(csv.begin(), csv.end(), '\n') - 1;
  };
  EXPECT_EQ(rows_of("speed_set"), 3);
  EXPECT_EQ(rows_of("bracketed"), 12);
  EXPECT_EQ(rows_of("speed_prompt"), 12 * 3 * 5);
  EXPECT_EQ(rows_of("speed_interval"), 3 * 3) << "each work: strict on plain, ASD on both";
  EXPECT_EQ(rows_of("spot_check"), 3 * 3 * 2);
  EXPECT_EQ(rows_of("replay"), 8);
  EXPECT_GE(rows_of("concurrency"), 3);
  const std::string report = run({"report", database(), "--format", "md"}).out;
  for (const char* part : {"Time to answer", "Baseline, cell, baseline", "Fixed concurrency",
                           "Replay: the blocks of strict runs", "reference"}) {
    EXPECT_THAT(report, HasSubstr(part));
  }
}

TEST_F(ProgramTest, ReferenceLengthsNeedStrictReplies) {
  const Outcome outcome = run({"run", config().string(), "--db", database(), "--set",
                               "run.phases=[speed]", "--set", "speed.work=[reference]"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("the database has none of task gsm8k"));
  EXPECT_THAT(outcome.err, HasSubstr("set run.phases to [quality, speed]"));
}

TEST_F(ProgramTest, UsageErrorsSayWhereAndEndWithTwo) {
  const Outcome misspelt = run({"run", config("typo.yaml", "azd").string(), "--db", database()});
  EXPECT_EQ(misspelt.code, 2);
  EXPECT_THAT(misspelt.err, HasSubstr("typo.yaml:6: matrix.verifier[1]: unknown verifier \"azd\""));
  EXPECT_THAT(misspelt.err, HasSubstr("did you mean \"asd\"?"));
  EXPECT_FALSE(fs::exists(database())) << "a refused config leaves no database behind";
  const Outcome absent = run({"run", (folder_ / "absent.yaml").string()});
  EXPECT_EQ(absent.code, 2);
  EXPECT_THAT(absent.err, HasSubstr("absent.yaml"));
  EXPECT_EQ(run({"run", config().string(), "--shard", "3/2"}).code, 2);
  EXPECT_EQ(run({"run", config().string(), "--set", "speed.groups"}).code, 2);
  EXPECT_EQ(run({"frobnicate"}).code, 2);
  EXPECT_EQ(run({}).code, 2);
  const Outcome warm = run({"run", config().string(), "--db", database(), "--set",
                            "matrix.decoding[0].temperature=0.7"});
  EXPECT_EQ(warm.code, 2);
  EXPECT_THAT(warm.err, HasSubstr("temperature must be 0"));
  const Outcome deep = run(
      {"run", config().string(), "--db", database(), "--set", "matrix.drafter[1].ngram.K=1000"});
  EXPECT_EQ(deep.code, 2);
  EXPECT_THAT(deep.err, HasSubstr("K"));
}

TEST_F(ProgramTest, OneSettingSpelledTwiceIsRefusedAndAMisspeltOneIsNamed) {
  const auto refusal = [&](const std::string& override) {
    const Outcome outcome = run({"run", config().string(), "--db", database(), "--set", override});
    EXPECT_EQ(outcome.code, 2) << outcome.out;
    return outcome.err;
  };
  EXPECT_THAT(refusal("matrix.verifier[0]={asd: {B: 8.0, g: 0.25, M: 2, tie_policy: headroom}}"),
              HasSubstr("matrix.verifier[1].asd: the same setting as"));
  EXPECT_THAT(refusal("matrix.drafter[0]={ngram: {K: 4, min_n: 2}}"),
              HasSubstr("matrix.drafter[1].ngram: the same setting as"));
  EXPECT_THAT(refusal("matrix.verifier[1]={asd: {B: 8, gg: 0.25, M: 2}}"),
              HasSubstr("asd needs \"g\", a number of at least 0; found \"gg\""));
  const std::string steering = refusal("matrix.verifier[1]=a\xE2\x80\xAEsd\x1B[2J");
  EXPECT_THAT(steering, Not(HasSubstr("\xE2\x80\xAE")));
  EXPECT_THAT(steering, Not(HasSubstr("\x1B")));
  EXPECT_THAT(run({"run", config().string(), "--db", ""}).err, HasSubstr("the name is empty"));
}

TEST_F(ProgramTest, APlanBeforeItsModelSaysThatItIsNotThere) {
  const Outcome outcome = run({"plan", config().string(), "--set",
                               "matrix.target[0]={path: " + (folder_ / "absent").string() + "}"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("absent"));
}

TEST_F(ProgramTest, EnvironmentErrorsEndWithThree) {
  write_file(folder_ / "garbage.db", std::string(5000, 'x'));
  const Outcome garbage = run({"report", database("garbage.db")});
  EXPECT_EQ(garbage.code, 3);
  EXPECT_THAT(garbage.err, HasSubstr("garbage.db"));
  EXPECT_EQ(run({"report", database("absent.db")}).code, 3);
  const Outcome folder = run({"run", config().string(), "--db", folder_.string()});
  EXPECT_EQ(folder.code, 3);
  const Outcome model =
      run({"run", config().string(), "--db", database(), "--set",
           "matrix.target[0]={path: " + (folder_ / "absent.gguf").string() + "}"});
  EXPECT_EQ(model.code, 3) << model.err;
  EXPECT_THAT(model.err, HasSubstr("absent.gguf"));
  EXPECT_EQ(run({"conformance", "asd", (folder_ / "nothing").string()}).code, 3);
}

TEST_F(ProgramTest, AShardWithoutSamplesIsRefused) {
  const Outcome outcome =
      run({"run", config().string(), "--db", database(), "--limit", "2", "--shard", "3/3"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("shard 3/3 of task gsm8k holds none"));
}

// Another grader asks for no new decoding, and for no reply to be left out.
TEST_F(ProgramTest, AnotherGraderScoresWhatIsStored) {
  const std::vector<std::string> command = {"run", config().string(), "--db", database(),
                                            "--limit"};
  const auto with = [&](std::vector<std::string> more) {
    std::vector<std::string> all = command;
    all.insert(all.end(), more.begin(), more.end());
    return run(all);
  };
  ASSERT_EQ(with({"3"}).code, 0);
  const Outcome outcome = with({"5", "--set", "matrix.task[0].gsm8k.grader=lm-eval-flexible"});
  EXPECT_THAT(outcome.out, HasSubstr("decoded 6 samples, reused 9"));
  EXPECT_THAT(outcome.out, HasSubstr("n = 5"));
}

TEST_F(ProgramTest, PipesAreRefusedNotWaitedFor) {
  ASSERT_EQ(mkfifo(database("pipe").c_str(), 0600), 0);
  const Outcome report = run({"report", database("pipe")});
  EXPECT_EQ(report.code, 3);
  EXPECT_THAT(report.err, HasSubstr("no regular file"));
  EXPECT_EQ(run({"run", config().string(), "--db", database("pipe")}).code, 3);
}

TEST_F(ProgramTest, AnyDatabaseNameFitsIntoJson) {
  const Outcome outcome =
      run({"run", config().string(), "--db", database("b\xff.db"), "--limit", "1", "--json"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
}

TEST_F(ProgramTest, TheCappedPolicyChoosesTheAccuracyColumn) {
  ASSERT_EQ(run({"run", config().string(), "--db", database(), "--limit", "2"}).code, 0);
  EXPECT_THAT(run({"report", database()}).out, HasSubstr("capped; accuracy as scored"));
  EXPECT_THAT(run({"report", database(), "--capped", "as_scored"}).out,
              HasSubstr("capped; accuracy with capped wrong"));
}

// A file-size limit stands in for a full disk: every write past it fails.
TEST_F(ProgramTest, FullDiskIsAnErrorAndLosesNothing) {
  const std::string path = database("full.db");
  rlimit old_limit{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  rlimit small = old_limit;
  small.rlim_cur = 200 * 1024;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const pid_t child = start({"run", config().string(), "--db", path});
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old_limit), 0);
  const Outcome full = wait(child);
  EXPECT_EQ(full.code, 3) << full.err;
  EXPECT_THAT(full.err, HasSubstr("full.db"));
  const Outcome resumed = run({"run", config().string(), "--db", path});
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  ASSERT_EQ(run({"run", config().string(), "--db", database("whole.db")}).code, 0);
  EXPECT_EQ(dump(path), dump(database("whole.db")));
}

TEST_F(ProgramTest, AReportReplacesAReportAndNeverADatabase) {
  ASSERT_EQ(run({"run", config().string(), "--db", database()}).code, 0);
  const std::string before = dump(database());
  const Outcome refused = run({"report", database(), "-o", database()});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("is a database"));
  EXPECT_EQ(dump(database()), before);
  const fs::path page = folder_ / "page.html";
  write_file(page, "an older report");
  rlimit old_limit{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  rlimit small = old_limit;
  small.rlim_cur = 40 * 1024;  // less than a page, more than what SQLite needs to read
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const pid_t child = start({"report", database(), "--format", "html", "-o", page.string()});
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &old_limit), 0);
  const Outcome full = wait(child);
  EXPECT_EQ(full.code, 3);
  EXPECT_THAT(full.err, HasSubstr("page.html: writing failed"));
  EXPECT_EQ(read_file(page), "an older report");
  EXPECT_EQ(run({"report", database(), "--format", "html", "-o", page.string()}).code, 0);
  EXPECT_THAT(read_file(page), HasSubstr("gsm8k"));
  for (const auto& entry : fs::directory_iterator(folder_)) {
    EXPECT_NE(entry.path().extension(), ".part");
  }
}

TEST_F(ProgramTest, GoldenTextOfListPlanAndReport) {
  const fs::path golden = fs::path(ASDBENCH_TEST_DATA);
  EXPECT_EQ(run({"list"}).out, read_file(golden / "list.txt"));
  const Outcome plan = run({"plan", config().string()});
  EXPECT_EQ(plan.code, 0) << plan.err;
  // The last paragraph holds the machine's read rate.
  EXPECT_EQ(plan.out.substr(0, plan.out.find("\n\n")) + "\n", read_file(golden / "plan.txt"));
  ASSERT_EQ(run({"run", config().string(), "--db", database()}).code, 0);
  EXPECT_EQ(run({"report", database()}).out, read_file(golden / "report.txt"));
  // The last section tells of this machine and this moment.
  const std::string markdown = run({"report", database(), "--format", "md"}).out;
  EXPECT_EQ(markdown.substr(0, markdown.find("## Runs and environment")),
            read_file(golden / "report.md"));
  EXPECT_EQ(run({"report", database(), "--format", "csv"}).out, read_file(golden / "report.csv"));
  EXPECT_EQ(run({"report", database(), "--format", "json"}).out, read_file(golden / "report.json"));
}

TEST_F(ProgramTest, ReportsInEveryFormatAndComparisons) {
  ASSERT_EQ(run({"run", config().string(), "--db", database(), "--limit", "3"}).code, 0);
  const std::string published = ASDBENCH_SOURCE_DIR "/configs/paper/published/asd-main.yaml";
  for (const char* format : {"terminal", "md", "html", "latex"}) {
    const Outcome outcome = run({"report", database(), "--format", format, "--compare", published});
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("4.20")) << format;
  }
  EXPECT_THAT(run({"report", database(), "--format", "csv", "--view", "acceptance"}).out,
              HasSubstr("cell_id,requests,passes"));
  EXPECT_THAT(run({"report", database(), "--schema"}).out, HasSubstr("## view first_difference"));
  const fs::path typo = folder_ / "published.yaml";
  write_file(typo, "source: a\nreference: b\ndate: 2026\nrow: []\n");
  const Outcome refused = run({"report", database(), "--compare", typo.string()});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("published.yaml:4: unknown key \"row\""));
  const Outcome absent = run({"report", database(), "--format", "csv", "--view", "acceptence"});
  EXPECT_EQ(absent.code, 2);
  EXPECT_THAT(absent.err, HasSubstr("did you mean \"acceptance\"?"));
}

TEST_F(ProgramTest, ConfigurationsOfThePaperAreRead) {
  for (const char* folder : {"paper", "throughput"}) {
    for (const auto& entry :
         fs::directory_iterator(fs::path(ASDBENCH_SOURCE_DIR "/configs") / folder)) {
      if (entry.path().extension() != ".yaml") continue;
      // Official data may not be there (3); the configuration itself must be right.
      const Outcome plan = run({"plan", entry.path().string()});
      EXPECT_TRUE(plan.code == 0 || plan.code == 3) << entry.path() << plan.err;
    }
  }
}

TEST_F(ProgramTest, EveryCommandHasHelpWithAnExample) {
  for (const char* command : {"run", "plan", "report", "rescore", "judge", "list", "env", "data",
                              "model", "sandbox", "conformance"}) {
    const Outcome help = run({command, "--help"});
    EXPECT_EQ(help.code, 0) << command;
    EXPECT_THAT(help.out, HasSubstr("Example:\n  asdbench " + std::string(command))) << command;
  }
}

TEST_F(ProgramTest, TrainingRefusesWhatItCannotLearnFrom) {
  const fs::path path = folder_ / "train.yaml";
  const auto error = [&](const std::string& target, const std::string& data,
                         const std::string& drafter) {
    write_file(path, fmt::format("train: {{name: x}}\ntarget: {}\ndata: [{}]\nreplies: {{}}\n"
                                 "drafter: {}\n",
                                 target, data, drafter));
    const Outcome outcome = run({"train", path.string()});
    EXPECT_EQ(outcome.code, 2) << outcome.err;
    return outcome.err;
  };
  EXPECT_THAT(error("toy", "prompts", "eagle3"), HasSubstr("has no hidden states to learn from"));
  EXPECT_THAT(error("smollm2-135m", "{gsm8k: {split: test}}", "eagle3"),
              HasSubstr(":3: data[0].gsm8k.split: split test of gsm8k is for measuring"));
  EXPECT_THAT(error("smollm2-135m", "{gsm8k: {split: samples}}", "eagle3"),
              HasSubstr("split samples of gsm8k is for measuring"));
  EXPECT_THAT(error("smollm2-135m", "prompts", "ngram"), HasSubstr("unknown drafter \"ngram\""));
}

const char* const kTinyModel = "runners/models/tests/data/llama_smollm_f16/model.gguf";

TEST_F(ProgramTest, BenchTimesStepsAndSaysWhatTheMemoryAllows) {
  const Outcome table = run(
      {"bench", kTinyModel, "--rows", "1,3", "--prompt", "9", "--seconds", "0", "--threads", "1"});
  EXPECT_EQ(table.code, 0) << table.err;
  EXPECT_THAT(table.out, HasSubstr("engine native, 1 threads"));
  EXPECT_THAT(table.out, HasSubstr("step, 3 rows"));
  EXPECT_THAT(table.out, HasSubstr("prefill of 9"));
  EXPECT_THAT(table.out, HasSubstr("GB/s"));
  const Outcome json = run({"bench", kTinyModel, "--rows", "2", "--prompt", "9", "--seconds", "0",
                            "--activations", "int8", "--json"});
  EXPECT_EQ(json.code, 0) << json.err;
  EXPECT_THAT(json.out, HasSubstr("\"activations\": \"int8\""));
  EXPECT_THAT(json.out, HasSubstr("\"read_bytes_per_s\": "));
  EXPECT_THAT(json.out, HasSubstr("\"resident_mib\": "));
  const Outcome missing = run({"bench", "no/such/model.gguf"});
  EXPECT_EQ(missing.code, 3);
  EXPECT_THAT(missing.err, HasSubstr("no/such/model.gguf"));
  EXPECT_EQ(run({"bench", kTinyModel, "--rows", "0"}).code, 2);
  const Outcome too_long = run({"bench", kTinyModel, "--prompt", "1000000"});
  EXPECT_EQ(too_long.code, 2);
  EXPECT_THAT(too_long.err, HasSubstr("positions"));
}

TEST_F(ProgramTest, ACpuWithoutVectorInstructionsIsServedWithAWarning) {
  const std::vector<std::string> command = {"bench",    kTinyModel, "--rows",    "1",
                                            "--prompt", "3",        "--seconds", "0"};
  ASSERT_EQ(setenv("ASDBENCH_ISA", "plain", 1), 0);
  const Outcome plain = run(command);
  ASSERT_EQ(setenv("ASDBENCH_ISA", "avx1024", 1), 0);
  const Outcome refused = run(command);
  unsetenv("ASDBENCH_ISA");
  EXPECT_EQ(plain.code, 0) << plain.err;
  EXPECT_THAT(plain.err, HasSubstr("warning: no AVX2"));
  EXPECT_THAT(plain.out, HasSubstr("plain"));
  EXPECT_EQ(refused.code, 2) << refused.err;
  EXPECT_THAT(refused.err, HasSubstr("usable here: plain"));
}

TEST_F(ProgramTest, InspectSaysWhatTheNativeEngineComputesFrom) {
  const Outcome outcome = run({"model", "inspect", kTinyModel});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("computes from every matrix as it is stored"));
}

}  // namespace
}  // namespace asdbench
