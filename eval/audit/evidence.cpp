// Sections 2 to 6 of specs/measurement.md over the rows of one audit.
#include "eval/audit/evidence.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "eval/core/error.h"
#include "eval/core/params.h"
#include "eval/stats/divergence.h"
#include "eval/stats/speed.h"

namespace asdbench {
namespace {

constexpr double kConfidence = 0.95;

std::optional<double> mean_of(const std::vector<double>& values) { return mean(values); }

/// Seconds of one arm in one group.
double arm_seconds(const TimedSet& set, std::int64_t group, std::int64_t cell) {
  double ns = 0;
  for (const SlotFacts& slot : set.slots) {
    if (slot.group == group && slot.cell_id == cell) ns += static_cast<double>(slot.decode_ns);
  }
  return ns / 1e9;
}

std::vector<std::int64_t> groups_of(const TimedSet& set) {
  std::vector<std::int64_t> groups;
  for (const SlotFacts& slot : set.slots) {
    if (groups.empty() || groups.back() != slot.group) groups.push_back(slot.group);
  }
  return groups;
}

/// Over the two outer slots, which run the same arm: throughput of the last over the first.
std::vector<double> drifts_of(const TimedSet& set) {
  std::vector<double> drifts;
  for (const std::int64_t group : groups_of(set)) {
    const SlotFacts *first = nullptr, *last = nullptr;
    for (const SlotFacts& slot : set.slots) {
      if (slot.group != group) continue;
      if (first == nullptr) first = &slot;
      last = &slot;
    }
    drifts.push_back(
        100 * (static_cast<double>(first->decode_ns) / static_cast<double>(last->decode_ns) - 1));
  }
  return drifts;
}

/// Whether all slots of every group counted the same tokens, prompt by prompt.
bool tokens_equal(const TimedSet& set) {
  std::map<std::int64_t, const SlotFacts*> first;
  for (const SlotFacts& slot : set.slots) {
    const SlotFacts* other = first.emplace(slot.group, &slot).first->second;
    if (other->tokens != slot.tokens || other->prompts.size() != slot.prompts.size()) return false;
    for (std::size_t i = 0; i < slot.prompts.size(); ++i) {
      if (other->prompts[i].tokens != slot.prompts[i].tokens) return false;
    }
  }
  return true;
}

double tokens_per_pass(const TimedSet& set, std::int64_t cell) {
  double tokens = 0, passes = 0;
  for (const SlotFacts& slot : set.slots) {
    if (slot.cell_id != cell) continue;
    tokens += static_cast<double>(slot.tokens);
    passes += static_cast<double>(slot.passes);
  }
  return tokens / passes;
}

/// Outputs of an arm that differ between its slots: then what was timed is not what was audited.
bool repeats_itself(const TimedSet& set) {
  std::map<std::int64_t, std::string> outputs;
  return std::all_of(set.slots.begin(), set.slots.end(), [&](const SlotFacts& slot) {
    return outputs.emplace(slot.cell_id, slot.tokens_sha256).first->second == slot.tokens_sha256;
  });
}

/// Over prompts; those that stand side by side in a batch share their time and are drawn together.
std::optional<BootstrapEstimate> prompt_bootstrap(const TimedSet& set, std::size_t batch,
                                                  std::uint64_t seed, std::uint64_t resamples) {
  std::map<std::string, std::size_t> places;  // of a prompt in the work
  std::vector<Pair> pairs;                    // strict and ASD seconds of each prompt
  std::vector<std::uint64_t> together;
  for (const SlotFacts& slot : set.slots) {
    for (std::size_t i = 0; i < slot.prompts.size(); ++i) {
      const auto [place, fresh] = places.emplace(slot.prompts[i].sample_id, pairs.size());
      if (fresh) {
        pairs.push_back({});
        together.push_back(i / batch);
      }
      Pair& pair = pairs[place->second];
      (slot.cell_id == set.strict_cell ? pair.first : pair.second) +=
          static_cast<double>(slot.prompts[i].decode_ns) / 1e9;
    }
  }
  if (batch == 1) together.clear();
  return paired_bootstrap(
      pairs, PairedStatistic::kRatioOfSums,
      {.confidence = kConfidence, .seed = seed, .resamples = resamples, .clusters = together});
}

/// What is wrong with the timing of one set, "" when nothing is.
std::string timing_fault(const TimedSet& set, const Json& manifest,
                         const std::optional<Interval>& gain_pct) {
  const Json& speed = manifest.at("speed");
  const auto groups = groups_of(set);
  if (std::ssize(groups) != speed.at("groups").get<std::int64_t>()) {
    return fmt::format("{} groups of {} timed", groups.size(), speed.at("groups").dump());
  }
  const double least = real_of(speed.at("minimum_seconds"));
  for (const std::int64_t group : groups) {
    for (const std::int64_t cell : {set.strict_cell, set.asd_cell}) {
      const double seconds = arm_seconds(set, group, cell);
      if (seconds < least) {
        return fmt::format("group {}: an arm was timed for {:.3f} s, expected {:.3f} s", group,
                           seconds, least);
      }
    }
  }
  if (!set.reference_lengths && post_end_fraction(set) > kMostPostEnd) {
    return "more than 0.20 of the counted tokens came after the natural end, and no work of "
           "reference lengths was timed";
  }
  if (!repeats_itself(set)) return "outputs of an arm differ between its slots";
  const auto saved =
      passes_saved(tokens_per_pass(set, set.strict_cell), tokens_per_pass(set, set.asd_cell));
  // Work of milliseconds, which only tests allow, is all noise.
  if (least > 0 && saved && gain_pct && gain_pct->lo > std::max(saved->speed_bound_pct, 0.0)) {
    return fmt::format("the gain is above {:.2f} %, which the passes saved allow",
                       saved->speed_bound_pct);
  }
  return "";
}

/// What the machine did while the arms of one set were timed: [mean, least, most] of each quantity.
Json environment_figures(const TimedSet& set) {
  struct Reading {
    double sum = 0, least = HUGE_VAL, most = -HUGE_VAL;
    std::int64_t samples = 0;
  };
  std::map<std::string, Reading> readings;
  for (const SlotFacts& slot : set.slots) {
    const char* arm = slot.cell_id == set.strict_cell ? "strict" : "asd";
    for (const SlotEnvironmentRow& item : slot.environment) {
      Reading& reading = readings[fmt::format("{}_{}", item.name, arm)];
      reading.sum += item.mean * static_cast<double>(item.samples);
      reading.samples += item.samples;
      reading.least = std::min(reading.least, item.least);
      reading.most = std::max(reading.most, item.most);
    }
  }
  Json figures = {{"task", set.task}};
  for (const auto& [name, reading] : readings) {
    figures[name] = {figure(reading.sum / static_cast<double>(reading.samples)),
                     figure(reading.least), figure(reading.most)};
  }
  return figures;
}

Interval log_interval(const Interval& pct) {
  return {std::log1p(pct.lo / 100), std::log1p(pct.hi / 100)};
}

/// Speed of each task, and the unweighted mean of their log gains; the wider of the intervals of
/// groups and of prompts gates.
void add_speed(const AuditedRows& rows, const Json& manifest, Derived& derived) {
  AuditEvidence& evidence = derived.evidence;
  const Json& statistics = manifest.at("statistics");
  const auto seed = statistics.at("bootstrap_seed").get<std::uint64_t>();
  const auto resamples = statistics.at("resamples").get<std::uint64_t>();
  const auto batch = manifest.at("decoding").at("batch").get<std::size_t>();
  Interval sum;  // of log gains
  std::size_t timed = 0;
  Json figures = Json::array(), machine = Json::array();
  for (const AuditedTask& task : rows.tasks) {
    const TimedSet* set = primary_set(rows.sets, task.name);
    if (set == nullptr) {
      evidence.speed_fault = "task " + task.name + " was not timed";
      continue;
    }
    const auto by_group = log_ratio_t(group_log_speedups(*set), kConfidence);
    const auto by_prompt = prompt_bootstrap(*set, batch, seed, resamples);
    std::optional<Interval> gain, prompts;
    if (by_group) gain = by_group->interval_pct;
    if (by_prompt) {
      prompts = Interval{100 * (by_prompt->interval.lo - 1), 100 * (by_prompt->interval.hi - 1)};
    }
    const std::optional<Interval> groups = gain;
    if (gain && prompts && prompts->hi - prompts->lo > gain->hi - gain->lo) gain = prompts;
    if (!prompts) gain = std::nullopt;
    for (const double drift : drifts_of(*set)) evidence.drift_pct.push_back(drift);
    evidence.tokens_equal = evidence.tokens_equal && tokens_equal(*set);
    if (std::string fault = timing_fault(*set, manifest, gain); !fault.empty()) {
      evidence.speed_fault = task.name + ": " + fault;
    }
    if (gain) {
      const Interval logs = log_interval(*gain);
      sum = {sum.lo + logs.lo, sum.hi + logs.hi};
      ++timed;
    }
    const double strict_pace = tokens_per_pass(*set, set->strict_cell);
    const double asd_pace = tokens_per_pass(*set, set->asd_cell);
    const auto saved = passes_saved(strict_pace, asd_pace);
    std::vector<double> seconds;
    for (const std::int64_t group : groups_of(*set)) {
      seconds.push_back(arm_seconds(*set, group, set->strict_cell));
      seconds.push_back(arm_seconds(*set, group, set->asd_cell));
    }
    const auto least = std::min_element(seconds.begin(), seconds.end());
    Json drift = Json::array();
    for (const double value : drifts_of(*set)) drift.push_back(figure(value));
    figures.push_back({{"task", task.name},
                       {"design", set->reference_lengths ? "reference lengths (F2), ABBA"
                                                         : "fixed work (F1), ABBA"},
                       {"groups", by_group ? by_group->n : 0},
                       {"gain_pct", by_group ? figure(by_group->pct) : Json(nullptr)},
                       {"interval_groups_pct", figure(groups)},
                       {"interval_prompts_pct", figure(prompts)},
                       {"drift_pct", drift},
                       {"post_end_fraction", figure(post_end_fraction(*set))},
                       {"tokens_per_pass_strict", figure(strict_pace)},
                       {"tokens_per_pass_asd", figure(asd_pace)},
                       {"passes_saved", saved ? figure(saved->passes_saved) : Json(nullptr)},
                       {"bound_pct", saved ? figure(saved->speed_bound_pct) : Json(nullptr)},
                       {"least_seconds", seconds.empty() ? Json(nullptr) : figure(*least)},
                       {"warm_up", set->unstable ? "unstable" : "steady"}});
    machine.push_back(environment_figures(*set));
  }
  if (timed == rows.tasks.size() && timed > 0) {
    const double count = static_cast<double>(timed);
    evidence.speed_pct =
        Interval{100 * std::expm1(sum.lo / count), 100 * std::expm1(sum.hi / count)};
  }
  derived.figures["speed"] = {{"tasks", figures},
                              {"gate_interval_pct", figure(evidence.speed_pct)}};
  derived.figures["environment"] = machine;
}

/// Clusters as numbers; none when no sample carries one.
std::vector<std::uint64_t> clusters_of(const std::vector<AuditedPair>& pairs) {
  std::map<std::string, std::uint64_t> numbers;
  std::vector<std::uint64_t> clusters;
  bool any = false;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const std::string& name = pairs[i].strict.cluster;
    any = any || !name.empty();
    // A sample without a cluster is one of its own.
    const std::string key = name.empty() ? fmt::format("\n{}", i) : name;
    clusters.push_back(numbers.emplace(key, numbers.size()).first->second);
  }
  if (!any) clusters.clear();
  return clusters;
}

GateVerdict sequential_verdict(const AuditedTask& task, double alpha, bool capped_wrong) {
  EProcess process(real_of(task.entry.at("margin")), real_of(task.entry.at("eta")), alpha);
  for (const AuditedPair& pair : task.pairs) {
    const int asd = counts_as_correct(pair.asd, capped_wrong) ? 1 : 0;
    const int strict = counts_as_correct(pair.strict, capped_wrong) ? 1 : 0;
    process.observe(asd - strict);
  }
  return process.verdict();
}

std::optional<BootstrapEstimate> graded_difference(const AuditedTask& task, double alpha,
                                                   std::uint64_t seed, std::uint64_t resamples) {
  std::vector<Pair> pairs;
  for (const AuditedPair& pair : task.pairs) {
    if (!pair.strict.value || !pair.asd.value) return std::nullopt;
    pairs.push_back({.first = *pair.strict.value, .second = *pair.asd.value});
  }
  const std::vector<std::uint64_t> clusters = clusters_of(task.pairs);
  return paired_bootstrap(
      pairs, PairedStatistic::kMeanDifference,
      {.confidence = 1 - 2 * alpha, .seed = seed, .resamples = resamples, .clusters = clusters});
}

double correct_share(const std::vector<AuditedPair>& pairs, bool capped_wrong,
                     OutputFacts AuditedPair::*arm) {
  const auto correct = std::count_if(pairs.begin(), pairs.end(), [&](const AuditedPair& pair) {
    return counts_as_correct(pair.*arm, capped_wrong);
  });
  return static_cast<double>(correct) / static_cast<double>(pairs.size());
}

Json quality_figures(const AuditedTask& task, const QualityEvidence& quality, const Json& manifest,
                     bool capped_wrong) {
  const Json& statistics = manifest.at("statistics");
  const double alpha = real_of(statistics.at("alpha"));
  const PairedCounts& counts = quality.counts;
  const auto found = non_inferiority(counts, std::min(quality.margin, 1.0), alpha);
  const auto test = mcnemar(counts.b, counts.c);
  const double psi = static_cast<double>(counts.b + counts.c) /
                     static_cast<double>(std::max<std::int64_t>(counts.n, 1));
  Json out = {{"task", task.name},
              {"n", counts.n},
              {"b", counts.b},
              {"c", counts.c},
              {"lambda", found ? figure(found->lambda) : Json(nullptr)},
              {"bounds", found ? figure(std::optional(found->bounds)) : Json(nullptr)},
              {"margin", figure(quality.margin)},
              {"certifiable_margin",
               figure(certifiable_margin(psi, counts.n, alpha, real_of(statistics.at("power"))))},
              {"mcnemar_two_sided", test ? figure(test->two_sided) : Json(nullptr)},
              {"harm_one_sided", test ? figure(test->harm_one_sided) : Json(nullptr)}};
  for (const bool wrong : {true, false}) {
    out[wrong ? "capped_wrong" : "as_scored"] = {
        {"strict", figure(correct_share(task.pairs, wrong, &AuditedPair::strict))},
        {"asd", figure(correct_share(task.pairs, wrong, &AuditedPair::asd))}};
  }
  out["policy"] = capped_wrong ? "wrong" : "as_scored";
  if (quality.graded) {
    out["mean_difference"] = figure(quality.graded->point);
    out["mean_difference_bounds"] = figure(std::optional(quality.graded->interval));
  }
  return out;
}

/// First divergence, edit share, and quality among the prompts whose outputs differ.
Json divergence_figures(const AuditedTask& task, bool capped_wrong) {
  std::vector<double> first, share;
  std::vector<AuditedPair> diverged;
  for (const AuditedPair& pair : task.pairs) {
    const Divergence found = diverge(pair.strict.tokens, pair.asd.tokens);
    share.push_back(found.edit_share);
    if (!found.first) continue;
    first.push_back(static_cast<double>(*found.first));
    diverged.push_back(pair);
  }
  const auto k = static_cast<std::int64_t>(diverged.size());
  const auto n = static_cast<std::int64_t>(task.pairs.size());
  const PairedCounts counts = correct_counts(diverged, capped_wrong);
  Json quartiles = Json::array();
  for (const double q : {0.25, 0.5, 0.75}) quartiles.push_back(figure(quantile_linear(first, q)));
  return {{"task", task.name},
          {"diverged", k},
          {"n", n},
          {"wilson", figure(wilson(k, n, kConfidence))},
          {"clopper_pearson", figure(clopper_pearson(k, n, kConfidence))},
          {"first_position_quartiles", quartiles},
          {"edit_share_mean", figure(mean_of(share))},
          {"among_diverged", {{"n", counts.n}, {"b", counts.b}, {"c", counts.c}}}};
}

Json regret_figures(const AuditedTask& task, double budget) {
  std::vector<LedgerRequest> requests;
  double free = 0, exceptions = 0;
  for (const AuditedPair& pair : task.pairs) {
    const OutputFacts& asd = pair.asd;
    requests.push_back({.tokens = std::max<std::int64_t>(std::ssize(asd.tokens) - 1, 0),
                        .passes = asd.passes,
                        .exceptions = asd.regrets,
                        .reused = asd.reused,
                        .budget_blocked = asd.blocked_by_budget});
    exceptions += static_cast<double>(asd.regrets.size());
    free += static_cast<double>(std::count(asd.regrets.begin(), asd.regrets.end(), 0.0));
  }
  const LedgerSummary found = summarise_ledger(requests, budget);
  return {{"task", task.name},
          {"exceptions", found.exceptions},
          {"exceptions_per_request", figure(found.exceptions_per_request)},
          {"exceptions_per_100_tokens", figure(found.exceptions_per_100_tokens)},
          {"requests_with_exception", figure(found.requests_with_exception)},
          {"regret_total", figure(found.regret_total)},
          {"regret_per_exception", figure(found.regret_per_exception)},
          {"free_exceptions", exceptions > 0 ? figure(free / exceptions) : Json(nullptr)},
          {"budget_used_mean", figure(found.budget_used_mean)},
          {"budget_used_max", figure(found.budget_used_max)},
          {"exhausted_requests", figure(found.blocked_by_budget_share)},
          {"reused_per_exception", figure(found.reused_per_exception)},
          {"tokens_per_pass", figure(found.tokens_per_pass)}};
}

void add_task(const AuditedTask& task, const Json& manifest, Derived& derived) {
  AuditEvidence& evidence = derived.evidence;
  const Json& statistics = manifest.at("statistics");
  const bool capped_wrong = statistics.at("capped") == "wrong";
  const auto seed = statistics.at("bootstrap_seed").get<std::uint64_t>();
  const auto resamples = statistics.at("resamples").get<std::uint64_t>();
  QualityEvidence quality{.task = task.name,
                          .counts = correct_counts(task.pairs, capped_wrong),
                          .margin = real_of(task.entry.at("margin")),
                          .strict_accuracy = std::nullopt,
                          .graded = std::nullopt,
                          .sequential = std::nullopt};
  if (!is_judged(task.entry.at("metric").get<std::string>())) {
    if (!task.pairs.empty()) {
      quality.strict_accuracy = correct_share(task.pairs, capped_wrong, &AuditedPair::strict);
    }
    if (statistics.at("sampling") == "e_process") {
      quality.sequential = sequential_verdict(task, evidence.alpha, capped_wrong);
    }
  } else {
    quality.graded = graded_difference(task, evidence.alpha, seed, resamples);
    // Without a score for every reply there is nothing to compare.
    if (!quality.graded) quality.counts = {};
  }
  const auto ratio = length_ratio(task.pairs, seed, resamples);
  LengthEvidence length{.task = task.name, .change_pct = std::nullopt};
  if (ratio) {
    length.change_pct = Interval{100 * (ratio->interval.lo - 1), 100 * (ratio->interval.hi - 1)};
  }
  CapEvidence caps{.task = task.name,
                   .counts = {.n = static_cast<std::int64_t>(task.pairs.size()), .b = 0, .c = 0},
                   .margin = real_of(statistics.at("cap_margin"))};
  std::int64_t capped_strict = 0, capped_asd = 0;
  for (const AuditedPair& pair : task.pairs) {
    const bool strict = is_capped(pair.strict), asd = is_capped(pair.asd);
    caps.counts.b += strict && !asd ? 1 : 0;
    caps.counts.c += asd && !strict ? 1 : 0;
    capped_strict += strict ? 1 : 0;
    capped_asd += asd ? 1 : 0;
    evidence.max_spent = std::max({evidence.max_spent, pair.strict.regret, pair.asd.regret});
    evidence.state_leaks += pair.asd.ledger_ok ? 0 : 1;
    evidence.state_leaks += pair.strict.ledger_ok && pair.strict.regret == 0 ? 0 : 1;
  }
  evidence.b0_mismatches += task.b0_mismatches;
  derived.figures["quality"].push_back(quality_figures(task, quality, manifest, capped_wrong));
  derived.figures["length"].push_back({{"task", task.name},
                                       {"ratio", ratio ? figure(ratio->point) : Json(nullptr)},
                                       {"change_pct", figure(length.change_pct)}});
  derived.figures["cap_hits"].push_back({{"task", task.name},
                                         {"n", caps.counts.n},
                                         {"only_strict", caps.counts.b},
                                         {"only_asd", caps.counts.c},
                                         {"strict", capped_strict},
                                         {"asd", capped_asd}});
  derived.figures["divergence"].push_back(divergence_figures(task, capped_wrong));
  derived.figures["regret"].push_back(regret_figures(task, evidence.regret_budget));
  evidence.quality.push_back(std::move(quality));
  evidence.length.push_back(std::move(length));
  evidence.caps.push_back(std::move(caps));
}

}  // namespace

Derived derive_evidence(const AuditedRows& rows, const Json& manifest) {
  Derived derived{.evidence = {}, .figures = Json::object()};
  const Json& statistics = manifest.at("statistics");
  AuditEvidence& evidence = derived.evidence;
  evidence.integrity_faults = rows.faults;
  evidence.regret_budget = control_of(manifest, "B");
  evidence.alpha = real_of(statistics.at("alpha"));
  evidence.drift_limit_pct = real_of(statistics.at("drift_limit_pct"));
  evidence.speed_target_pct = real_of(statistics.at("speed_target_pct"));
  evidence.length_limit_pct = real_of(statistics.at("length_limit_pct"));
  evidence.accuracy_floor = real_of(statistics.at("accuracy_floor"));
  for (const AuditedTask& task : rows.tasks) add_task(task, manifest, derived);
  add_speed(rows, manifest, derived);
  return derived;
}

bool is_judged(std::string_view metric) { return metric == "rating" || metric == "win_rate"; }

bool is_capped(const OutputFacts& facts) {
  return facts.finish_reason == "length" || facts.finish_reason == "context_limit";
}

bool counts_as_correct(const OutputFacts& facts, bool capped_wrong) {
  return facts.verdict == Verdict::kCorrect && !(capped_wrong && is_capped(facts));
}

PairedCounts correct_counts(const std::vector<AuditedPair>& pairs, bool capped_wrong) {
  PairedCounts counts{.n = static_cast<std::int64_t>(pairs.size()), .b = 0, .c = 0};
  for (const AuditedPair& pair : pairs) {
    const bool strict = counts_as_correct(pair.strict, capped_wrong);
    const bool asd = counts_as_correct(pair.asd, capped_wrong);
    counts.b += asd && !strict ? 1 : 0;
    counts.c += strict && !asd ? 1 : 0;
  }
  return counts;
}

std::optional<BootstrapEstimate> length_ratio(const std::vector<AuditedPair>& pairs,
                                              std::uint64_t seed, std::uint64_t resamples) {
  std::vector<Pair> lengths;
  for (const AuditedPair& pair : pairs) {
    lengths.push_back({.first = static_cast<double>(pair.asd.tokens.size()),
                       .second = static_cast<double>(pair.strict.tokens.size())});
  }
  const std::vector<std::uint64_t> clusters = clusters_of(pairs);
  return paired_bootstrap(
      lengths, PairedStatistic::kRatioOfSums,
      {.confidence = kConfidence, .seed = seed, .resamples = resamples, .clusters = clusters});
}

std::vector<double> group_log_speedups(const TimedSet& set) {
  std::vector<double> logs;
  for (const std::int64_t group : groups_of(set)) {
    double difference = 0;
    int strict = 0, asd = 0;
    for (const SlotFacts& slot : set.slots) {
      if (slot.group != group || slot.decode_ns <= 0) continue;
      const double log_time = std::log(static_cast<double>(slot.decode_ns));
      if (slot.cell_id == set.strict_cell) difference += log_time / 2, ++strict;
      if (slot.cell_id == set.asd_cell) difference -= log_time / 2, ++asd;
    }
    if (strict == 2 && asd == 2) logs.push_back(difference);
  }
  return logs;
}

double post_end_fraction(const TimedSet& set) {
  double most = 0;
  for (const std::int64_t cell : {set.strict_cell, set.asd_cell}) {
    double tokens = 0, after = 0;
    for (const SlotFacts& slot : set.slots) {
      if (slot.cell_id != cell) continue;
      tokens += static_cast<double>(slot.tokens);
      after += static_cast<double>(slot.post_end_tokens);
    }
    if (tokens > 0) most = std::max(most, after / tokens);
  }
  return most;
}

const TimedSet* primary_set(const std::vector<TimedSet>& sets, const std::string& task) {
  const TimedSet* fixed = nullptr;
  const TimedSet* reference = nullptr;
  for (const TimedSet& set : sets) {
    if (set.task == task) (set.reference_lengths ? reference : fixed) = &set;
  }
  if (fixed != nullptr && reference != nullptr && post_end_fraction(*fixed) > kMostPostEnd) {
    return reference;
  }
  return fixed;
}

Json figure(double value) {
  if (std::isnan(value)) return nullptr;
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  // Minus zero is zero to a reader.
  return fmt::format("{:.9g}", value == 0 ? 0.0 : value);
}

Json figure(const std::optional<double>& value) { return value ? figure(*value) : Json(nullptr); }

Json figure(const std::optional<Interval>& value) {
  if (!value) return nullptr;
  return {figure(value->lo), figure(value->hi)};
}

double real_of(const Json& text) {
  const auto value = text.is_string() ? parse_number(text.get<std::string>()) : std::nullopt;
  if (!value) throw DataError(fmt::format("{} is no real number written as text", text.dump()));
  return *value;
}

}  // namespace asdbench
