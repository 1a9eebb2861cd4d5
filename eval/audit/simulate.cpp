// Draws of outcomes, lengths and times, judged by the gates that judge real audits.
#include "eval/audit/simulate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "eval/core/rng.h"
#include "eval/report/table.h"

namespace asdbench {
namespace {

double normal_draw(SplitMix64& random) {
  const double radius = std::sqrt(-2 * std::log(1 - random.uniform()));
  return radius * std::cos(2 * 3.141592653589793 * random.uniform());
}

double eta_of(const SimulatedTruth& truth, const SimulationOptions& options) {
  if (options.eta > 0) return options.eta;
  return truth.discordance > 0 ? std::min(0.5, options.margin / truth.discordance) : 0.5;
}

/// One audit: evidence as a real one has it, and the e-process over the same outcomes.
struct Drawn {
  AuditEvidence evidence;
  GateVerdict sequential = GateVerdict::kInconclusive;
  std::int64_t sequential_prompts = 0;
};

Drawn draw_audit(const SimulatedTruth& truth, const SimulationOptions& options,
                 SplitMix64& random) {
  Drawn drawn;
  AuditEvidence& evidence = drawn.evidence;
  evidence.alpha = options.alpha;
  evidence.speed_target_pct = options.speed_target_pct;
  const double better = (truth.discordance - truth.loss) / 2;
  const double worse = (truth.discordance + truth.loss) / 2;
  QualityEvidence quality{.task = "simulated",
                          .counts = {.n = truth.prompts, .b = 0, .c = 0},
                          .margin = options.margin,
                          .strict_accuracy = options.accuracy,
                          .graded = std::nullopt,
                          .sequential = std::nullopt};
  CapEvidence caps{.task = "simulated",
                   .counts = {.n = truth.prompts, .b = 0, .c = 0},
                   .margin = options.cap_margin};
  EProcess process(options.margin, eta_of(truth, options), options.alpha);
  std::vector<Pair> lengths;
  drawn.sequential_prompts = truth.prompts;
  for (std::int64_t i = 0; i < truth.prompts; ++i) {
    const double u = random.uniform();
    const int outcome = u < better ? 1 : u < better + worse ? -1 : 0;
    quality.counts.b += outcome > 0 ? 1 : 0;
    quality.counts.c += outcome < 0 ? 1 : 0;
    const bool open = process.verdict() == GateVerdict::kInconclusive;
    if (open) process.observe(outcome);
    if (open && process.verdict() != GateVerdict::kInconclusive) drawn.sequential_prompts = i + 1;
    const double capped = random.uniform();
    caps.counts.b += capped < options.cap_rate ? 1 : 0;
    caps.counts.c += capped >= options.cap_rate && capped < 2 * options.cap_rate ? 1 : 0;
    const double strict = std::exp(4.5 + 0.4 * normal_draw(random));
    // Half of the variance goes off, so that the mean ratio is the planted one.
    const double ratio =
        (1 + options.length_change_pct / 100) * std::exp(options.length_sd * normal_draw(random) -
                                                         options.length_sd * options.length_sd / 2);
    lengths.push_back({.first = strict * ratio, .second = strict});
  }
  drawn.sequential = process.verdict();
  std::vector<double> logs;
  for (std::int64_t g = 0; g < options.groups; ++g) {
    logs.push_back(std::log1p(truth.gain_pct / 100) + options.group_sd * normal_draw(random));
    evidence.drift_pct.push_back(0);
  }
  if (const auto speed = log_ratio_t(logs)) evidence.speed_pct = speed->interval_pct;
  const auto length = paired_bootstrap(lengths, PairedStatistic::kRatioOfSums,
                                       {.seed = random.next(), .resamples = options.resamples});
  LengthEvidence change{.task = "simulated", .change_pct = std::nullopt};
  if (length) {
    change.change_pct = Interval{100 * (length->interval.lo - 1), 100 * (length->interval.hi - 1)};
  }
  evidence.quality = {quality};
  evidence.length = {change};
  evidence.caps = {caps};
  return drawn;
}

SimulationOptions read_options(const Params& params) {
  constexpr double kLeast = 1e-9, kMost = 1 - 1e-9, kAny = std::numeric_limits<double>::max();
  SimulationOptions o;
  o.seed = static_cast<std::uint64_t>(
      params.integer("seed", 7, 0, std::numeric_limits<std::int64_t>::max()));
  o.audits = params.integer("audits", o.audits, 1, 1'000'000);
  o.margin = params.number("margin", o.margin, kLeast, kMost);
  o.alpha = params.number("alpha", o.alpha, kLeast, 0.5);
  o.eta = params.number("eta", 0, 0, 0.5);
  o.accuracy = params.number("accuracy", o.accuracy, 0, 1);
  o.groups = params.integer("groups", o.groups, 2, 1000);
  o.group_sd = params.number("group_sd", o.group_sd, 0, 10);
  o.speed_target_pct = params.number("speed_target_pct", 0, -99, kAny);
  o.length_sd = params.number("length_sd", o.length_sd, 0, 10);
  o.length_change_pct = params.number("length_change_pct", 0, -99, 1000);
  o.cap_rate = params.number("cap_rate", o.cap_rate, 0, 0.5);
  o.cap_margin = params.number("cap_margin", o.cap_margin, kLeast, kMost);
  o.resamples = static_cast<std::uint64_t>(params.integer("resamples", 200, 20, 100'000));
  params.refuse_unread();
  return o;
}

std::vector<SimulatedTruth> read_truths(const SimulateConfig& config) {
  const std::vector<std::string> known = {"prompts", "discordance", "loss", "gain_pct"};
  for (const auto& [name, values] : config.lists) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      throw ConfigError(fmt::format("{}: simulate: unknown list {}{}", config.file.string(),
                                    shown(name), known_names(name, known)));
    }
  }
  const auto list = [&](const char* name, double fallback) {
    const auto found = config.lists.find(name);
    return found == config.lists.end() ? std::vector<double>{fallback} : found->second;
  };
  const SimulatedTruth usual;
  std::vector<SimulatedTruth> truths;
  for (const double prompts : list("prompts", static_cast<double>(usual.prompts))) {
    for (const double discordance : list("discordance", usual.discordance)) {
      for (const double loss : list("loss", usual.loss)) {
        for (const double gain : list("gain_pct", usual.gain_pct)) {
          const bool possible = prompts >= 1 && prompts <= 1e7 && discordance >= 0 &&
                                discordance <= 1 && std::abs(loss) <= discordance && gain > -100;
          if (!possible) {
            throw ConfigError(fmt::format(
                "{}: simulate: {} prompts, discordance {}, loss {}, gain {} % cannot be; expected "
                "|loss| <= discordance <= 1, 1 to 10000000 prompts and a gain above -100",
                config.file.string(), prompts, discordance, loss, gain));
          }
          truths.push_back({.prompts = static_cast<std::int64_t>(prompts),
                            .discordance = discordance,
                            .loss = loss,
                            .gain_pct = gain});
        }
      }
    }
  }
  return truths;
}

/// An error rate at a point where the truth lies on the edge of the hypothesis.
struct ErrorRate {
  std::string what;
  double rate = 0, level = 0, allowed = 0;
};

std::vector<ErrorRate> error_rates(const SimulatedPoint& point, const SimulationOptions& options) {
  constexpr double kStandardErrors = 3;
  const auto allowed = [&](double level) {
    return level +
           kStandardErrors * std::sqrt(level * (1 - level) / static_cast<double>(options.audits));
  };
  constexpr double kSame = 1e-12;
  std::vector<ErrorRate> rates;
  const auto add = [&](const std::string& what, const Words& words, double level) {
    rates.push_back({what, words.share(GateVerdict::kPass), level, allowed(level)});
  };
  const SimulatedTruth& truth = point.truth;
  const std::string where = fmt::format("n = {}, discordance {}", truth.prompts, truth.discordance);
  if (std::abs(truth.loss - options.margin) < kSame) {
    add("quality passes a loss of the margin, " + where, point.quality, options.alpha);
    add("e-process passes a loss of the margin, " + where, point.sequential, options.alpha);
  }
  if (std::abs(truth.gain_pct - options.speed_target_pct) < kSame) {
    add("speed passes a gain of the target, " + where, point.speed, 0.025);
  }
  return rates;
}

}  // namespace

void Words::add(GateVerdict word) {
  ++(word == GateVerdict::kPass ? pass : word == GateVerdict::kFail ? fail : inconclusive);
}

double Words::share(GateVerdict word) const {
  const std::int64_t all = pass + fail + inconclusive;
  const std::int64_t count = word == GateVerdict::kPass   ? pass
                             : word == GateVerdict::kFail ? fail
                                                          : inconclusive;
  return static_cast<double>(count) / static_cast<double>(all);
}

SimulatedPoint simulate_point(const SimulatedTruth& truth, const SimulationOptions& options) {
  ASDBENCH_CHECK(std::abs(truth.loss) <= truth.discordance, "a loss is made of discordant prompts");
  SimulatedPoint point{.truth = truth};
  SplitMix64 random(options.seed);
  for (std::int64_t i = 0; i < options.audits; ++i) {
    const Drawn drawn = draw_audit(truth, options, random);
    const AuditVerdict verdict = judge(drawn.evidence);
    point.verdict.add(verdict.verdict);
    for (const GateResult& gate : verdict.gates) {
      if (gate.name == "speed") point.speed.add(gate.verdict);
      if (gate.name == "quality:simulated") point.quality.add(gate.verdict);
    }
    point.sequential.add(drawn.sequential);
    point.sequential_prompts +=
        static_cast<double>(drawn.sequential_prompts) / static_cast<double>(options.audits);
  }
  return point;
}

StepResult simulate(const SimulateConfig& config) {
  const SimulationOptions options = read_options(config.options);
  Table curves{
      .title = fmt::format("{} audits a line: margin {:.2f} %, alpha {}, {} groups of sd {}",
                           options.audits, 100 * options.margin, options.alpha, options.groups,
                           options.group_sd),
      .columns = {{"prompts", Align::kRight},
                  {"discordance", Align::kRight},
                  {"loss", Align::kRight},
                  {"gain", Align::kRight},
                  {"pass", Align::kRight},
                  {"fail", Align::kRight},
                  {"inconclusive", Align::kRight},
                  {"quality pass, fail"},
                  {"speed pass, fail"},
                  {"e-process pass, fail"},
                  {"after", Align::kRight}},
      .rows = {}};
  Table errors{.title = "error rates where the truth lies on the edge",
               .columns = {{"error"},
                           {"rate", Align::kRight},
                           {"level", Align::kRight},
                           {"level + 3 se", Align::kRight},
                           {""}},
               .rows = {}};
  Json points = Json::array();
  bool sound = true;
  const auto both = [](const Words& words) {
    return percent(words.share(GateVerdict::kPass)) + ", " +
           percent(words.share(GateVerdict::kFail));
  };
  for (const SimulatedTruth& truth : read_truths(config)) {
    const SimulatedPoint point = simulate_point(truth, options);
    curves.rows.push_back(
        {std::to_string(truth.prompts), decimal(truth.discordance, 3), percent(truth.loss, 2),
         decimal(truth.gain_pct, 2) + " %", percent(point.verdict.share(GateVerdict::kPass)),
         percent(point.verdict.share(GateVerdict::kFail)),
         percent(point.verdict.share(GateVerdict::kInconclusive)), both(point.quality),
         both(point.speed), both(point.sequential), decimal(point.sequential_prompts, 0)});
    points.push_back({{"prompts", truth.prompts},
                      {"discordance", truth.discordance},
                      {"loss", truth.loss},
                      {"gain_pct", truth.gain_pct},
                      {"pass", point.verdict.share(GateVerdict::kPass)},
                      {"fail", point.verdict.share(GateVerdict::kFail)},
                      {"inconclusive", point.verdict.share(GateVerdict::kInconclusive)},
                      {"quality_pass", point.quality.share(GateVerdict::kPass)},
                      {"speed_pass", point.speed.share(GateVerdict::kPass)},
                      {"e_process_pass", point.sequential.share(GateVerdict::kPass)}});
    for (const ErrorRate& error : error_rates(point, options)) {
      const bool within = error.rate <= error.allowed;
      sound = sound && within;
      std::vector<std::string> row = {error.what, percent(error.rate, 2), percent(error.level, 2),
                                      percent(error.allowed, 2), within ? "within" : "ABOVE"};
      // Quality is drawn alike whatever the speed, and speed whatever the quality.
      if (std::find(errors.rows.begin(), errors.rows.end(), row) == errors.rows.end()) {
        errors.rows.push_back(std::move(row));
      }
    }
  }
  std::string text = to_terminal(curves);
  if (!errors.rows.empty()) text += "\n" + to_terminal(errors);
  return {.code = sound ? ExitCode::kPass : ExitCode::kFail,
          .text = text,
          .json = {{"points", points}, {"error_rates_within", sound}}};
}

}  // namespace asdbench
