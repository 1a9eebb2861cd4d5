// The commands of a deployment from outside: the whole way to a certificate, exit codes, crashes.
#include <gmock/gmock.h>
#include <signal.h>

#include <chrono>
#include <thread>

#include "eval/cli/tests/program_internal.h"
#include "eval/core/json.h"

namespace asdbench {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing::Outcome;
using testing::ProgramTest;
using testing::read_file;
using testing::write_file;

class DeployTest : public ProgramTest {
 protected:
  /// A deployment over the planted target; `extra` is added to its deploy section.
  fs::path deploy(const std::string& extra = "", const std::string& name = "deploy") {
    const fs::path path = folder_ / (name + ".yaml");
    write_file(path, fmt::format(R"(run: {{name: {}, seed: 7}}
matrix:
  task: [{{gsm8k: {{split: synthetic, from: 0, count: 30, max_tokens: 16}}}}]
  target: [{{planted: {{step_us: 100}}}}]
  drafter: [{{planted: {{K: 4, acceptance: 0.6}}}}]
  verifier: [strict]
speed: {{tokens: 16, prompts: 2, groups: 4, warmup: 1}}
capped: as_scored
deploy:
  audit: [{{gsm8k: {{split: synthetic, from: 100, count: 40, max_tokens: 16}}}}]
  margins: {{gsm8k: 0.2}}
  grid: {{asd: {{B: [0, 1, 8], g: [0.25], M: [1, 2]}}}}
  cap_margin: 0.2
  drift_limit_pct: 1000000
  speed_target_pct: -100
  accuracy_floor: 0
  minimum_seconds: 0
  resamples: 200
  ledger: {}
{})",
                                 name, (folder_ / "splits.jsonl").string(), extra));
    return path;
  }
  Outcome step(const std::string& command, const fs::path& config,
               const std::vector<std::string>& more = {}) {
    std::vector<std::string> arguments = {command, config.string(), "--db", database()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments);
  }
};

TEST_F(DeployTest, FiveCommandsLeadToACertificateThatAnyoneVerifies) {
  const fs::path config = deploy();
  const fs::path report = folder_ / "report.md";
  const Outcome tuned = step("tune", config, {"-o", report.string()});
  ASSERT_EQ(tuned.code, 0) << tuned.err << tuned.out;
  EXPECT_THAT(tuned.out, HasSubstr("selected by largest_lower_speed_bound: asd"));
  EXPECT_THAT(tuned.out, HasSubstr("replay:")) << "B = 0 gains nothing on the same blocks";
  EXPECT_THAT(read_file(report), HasSubstr("# Tuning report: deploy"));
  const Outcome frozen = step("freeze", config);
  ASSERT_EQ(frozen.code, 0) << frozen.err;
  EXPECT_THAT(frozen.out, HasSubstr("untouched"));
  const Outcome audited = step("audit", config);
  ASSERT_EQ(audited.code, 0) << audited.err << audited.out;
  const fs::path certificate = folder_ / "c.json";
  const Outcome certified = step("certify", config, {"-o", certificate.string()});
  ASSERT_EQ(certified.code, 0) << certified.err;
  const Outcome verified = run({"verify", certificate.string(), "--db", database()});
  EXPECT_EQ(verified.code, 0) << verified.err;
  EXPECT_THAT(verified.out, HasSubstr("every row and figure derived again"));
  const std::string decision = database() + ".deploy.decision.json";
  EXPECT_EQ(run({"verify", decision, "--db", database()}).code, 0);
  EXPECT_EQ(run({"verify", certificate.string(), "--db", database(), "--here"}).code, 0);

  // A changed file, a missing database, and a second use of the split.
  std::string text = read_file(certificate);
  text.replace(text.find("\"verdict\": \"pass\""), 17, "\"verdict\": \"fail\"");
  write_file(folder_ / "forged.json", text);
  EXPECT_EQ(run({"verify", (folder_ / "forged.json").string(), "--db", database()}).code, 6);
  EXPECT_EQ(run({"verify", certificate.string(), "--db", database("none.db")}).code, 3);
  EXPECT_EQ(run({"verify", (folder_ / "none.json").string(), "--db", database()}).code, 3);
  // The database cut in half, another file in its place, and an empty one of ours.
  fs::copy_file(database(), database("cut.db"));
  fs::resize_file(database("cut.db"), fs::file_size(database()) / 2);
  const int cut = run({"verify", certificate.string(), "--db", database("cut.db")}).code;
  EXPECT_TRUE(cut == 3 || cut == 6) << cut;
  write_file(folder_ / "text.db", text);
  EXPECT_EQ(run({"verify", certificate.string(), "--db", database("text.db")}).code, 3);
  ASSERT_EQ(run({"run", this->config().string(), "--db", database("other.db")}).code, 0);
  const Outcome absent = run({"verify", certificate.string(), "--db", database("other.db")});
  EXPECT_EQ(absent.code, 6);
  EXPECT_THAT(absent.err, HasSubstr("has no campaign"));
  const fs::path again = deploy("", "again");
  ASSERT_EQ(run({"tune", again.string(), "--db", database("b.db")}).code, 0);
  const Outcome reused = run({"freeze", again.string(), "--db", database("b.db")});
  EXPECT_EQ(reused.code, 6);
  EXPECT_THAT(reused.err, HasSubstr("split_consumed"));
}

TEST_F(DeployTest, StepsOutOfOrderAndBadConfigurationsAreRefused) {
  const fs::path config = deploy();
  for (const char* command : {"freeze", "audit"}) {
    const Outcome early = step(command, config);
    EXPECT_EQ(early.code, 6) << command;
    EXPECT_THAT(early.err, HasSubstr("not_allowed"));
  }
  EXPECT_EQ(step("certify", config, {"-o", "c.json"}).code, 6);
  EXPECT_EQ(step("tune", config, {"--set", "speed.order=bcb"}).code, 2);
  for (const char* bad : {"alpha=0", "alpha=1", "margins.gsm8k=0", "power=1", "size=-1",
                          "select=best", "unknown=1", "sampling=some"}) {
    const Outcome refused = step("tune", config, {"--set", std::string("deploy.") + bad});
    EXPECT_EQ(refused.code, 2) << bad << refused.err;
  }
  const Outcome without = step("tune", config, {"--set", "deploy.margins={}"});
  EXPECT_EQ(without.code, 2);
  EXPECT_THAT(without.err, HasSubstr("there is no default"));
  const Outcome plain = run({"tune", this->config().string(), "--db", database()});
  EXPECT_EQ(plain.code, 2);
  EXPECT_THAT(plain.err, HasSubstr("the key \"deploy\" is missing"));
}

TEST_F(DeployTest, ASettingThatThirtyPromptsCannotClearIsNotSelected) {
  // Without any discordance 30 prompts bound the loss by 8.3 points.
  const Outcome tuned = step("tune", deploy(), {"--set", "deploy.margins.gsm8k=0.05"});
  EXPECT_EQ(tuned.code, 6);
  EXPECT_THAT(tuned.out, HasSubstr("constraint_not_met"));
}

TEST_F(DeployTest, KilledAnywhereAnAuditResumesAndNeverCertifiesHalfOfItself) {
  const fs::path config = deploy();
  ASSERT_EQ(step("tune", config).code, 0);
  ASSERT_EQ(step("freeze", config).code, 0);
  for (const int milliseconds : {30, 60, 100, 150, 220}) {
    const pid_t child = start({"audit", config.string(), "--db", database()});
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    kill(child, SIGKILL);
    wait(child);
    const Outcome early = step("certify", config, {"-o", (folder_ / "c.json").string()});
    // Refused while the audit is open; a fast machine may have closed it.
    EXPECT_TRUE(early.code == 6 || early.code == 0) << early.err;
    if (early.code == 0) break;
  }
  const Outcome audited = step("audit", config);
  if (audited.code != 6) {  // 6: certified by a fast machine above
    EXPECT_EQ(audited.code, 0) << audited.err << audited.out;
  }
  const fs::path certificate = folder_ / "c.json";
  ASSERT_EQ(step("certify", config, {"-o", certificate.string()}).code, 0);
  EXPECT_EQ(run({"verify", certificate.string(), "--db", database()}).code, 0);
}

TEST_F(DeployTest, AnEProcessMayStopEarly) {
  const fs::path config = deploy("  sampling: e_process\n  eta: 0.5\n");
  ASSERT_EQ(step("tune", config).code, 0);
  ASSERT_EQ(step("freeze", config, {"--set", "deploy.margins.gsm8k=0.5"}).code, 0);
  const Outcome audited = step("audit", config, {"--set", "deploy.margins.gsm8k=0.5", "--json"});
  ASSERT_EQ(audited.code, 0) << audited.err << audited.out;
  const Json file = parse_json(audited.out);
  // ln 20 / ln 1.25 is 13.4: 14 equal prompts are enough, and a round has 32.
  EXPECT_TRUE(file.at("early_stop").get<bool>());
  EXPECT_EQ(file.at("figures").at("quality")[0].at("n"), 32);
}

TEST_F(DeployTest, SimulationsPrintPowerAndErrorRates) {
  const Outcome outcome = run({"simulate", "configs/deploy/simulate.yaml", "--set",
                               "simulate.audits=40", "--set", "simulate.prompts=[100]"});
  EXPECT_TRUE(outcome.code == 0 || outcome.code == 1) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("error rates where the truth lies on the edge"));
  EXPECT_EQ(run({"simulate", "configs/deploy/simulate.yaml", "--set", "simulate.loss=[0.5]"}).code,
            2);
  EXPECT_EQ(run({"simulate", "configs/smoke.yaml"}).code, 2);
}

TEST_F(DeployTest, ShippedConfigurationsAreSound) {
  for (const char* name : {"synthetic", "gsm8k"}) {
    const std::string path = fmt::format("configs/deploy/{}.yaml", name);
    // An error of the configuration would be exit code 2; there may be no data or model here.
    const Outcome outcome = run({"freeze", path, "--db", database()});
    EXPECT_EQ(outcome.code, 6) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("not_allowed"));
  }
}

}  // namespace
}  // namespace asdbench
