// One function a kind, from published field names to ours and back.
#include "eval/stats/published_cases.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include "eval/core/digest.h"
#include "eval/core/error.h"
#include "eval/core/prompt_identity.h"
#include "eval/core/rng.h"
#include "eval/stats/divergence.h"
#include "eval/stats/paired.h"
#include "eval/stats/resampling.h"
#include "eval/stats/speed.h"
#include "eval/stats/stats.h"

namespace asdbench {
namespace {

double number(const Json& input, const char* name) {
  const Json& value = input.at(name);
  if (value == "inf") return std::numeric_limits<double>::infinity();
  return value.get<double>();
}
std::int64_t count(const Json& input, const char* name) {
  return input.at(name).get<std::int64_t>();
}
std::vector<double> numbers(const Json& input, const char* name) {
  return input.at(name).get<std::vector<double>>();
}
// Seeds beyond 2^53 are written as strings.
std::uint64_t word(const Json& value) {
  return value.is_string() ? std::stoull(value.get<std::string>()) : value.get<std::uint64_t>();
}
PairedCounts paired_counts(const Json& input) {
  return {count(input, "n"), count(input, "b"), count(input, "c")};
}

template <class T>
const T& defined(const std::optional<T>& figure) {
  if (!figure) throw DataError("the figure is undefined over this input");
  return *figure;
}

template <class T>
Json or_null(const std::optional<T>& figure) {
  return figure ? Json(*figure) : Json(nullptr);
}

Json speed(const Json& in) {
  const auto found =
      defined(compare_speed({number(in, "tokens_strict"), number(in, "seconds_strict")},
                            {number(in, "tokens_asd"), number(in, "seconds_asd")}));
  return {{"tps_strict", found.strict_tokens_per_second},
          {"tps_asd", found.asd_tokens_per_second},
          {"ratio", found.ratio},
          {"pct", found.pct},
          {"log_ratio", found.log_ratio},
          {"time_pct", found.time_pct},
          {"tokens_pct", found.tokens_pct}};
}

Json bracketed(const Json& in) {
  const auto found = defined(bracketed_gain(number(in, "pre"), number(in, "candidate"),
                                            number(in, "post"), number(in, "drift_limit_pct")));
  return {{"baseline", found.baseline},
          {"delta_pct", found.delta_pct},
          {"drift_pct", found.drift_pct},
          {"eligible", found.eligible}};
}

Json abba(const Json& in) {
  const auto seconds = in.at("seconds").get<std::array<double, 4>>();
  const double found = defined(abba_log_speedup(seconds));
  return {{"log_speedup", found}, {"pct", 100 * std::expm1(found)}};
}

Json log_ratio(const Json& in) {
  const auto found = defined(log_ratio_t(numbers(in, "log_ratios"), number(in, "confidence")));
  Json out = {{"n", found.n},
              {"mean", found.mean},
              {"pct", found.pct},
              {"sd", or_null(found.sd)},
              {"se", or_null(found.se)},
              {"t_two_sided", or_null(found.t_two_sided)},
              {"one_sided_lo_pct", or_null(found.one_sided_lower_pct)},
              {"lo_pct", nullptr},
              {"hi_pct", nullptr}};
  if (found.interval_pct) {
    out["lo_pct"] = found.interval_pct->lo;
    out["hi_pct"] = found.interval_pct->hi;
  }
  return out;
}

Json bootstrap(const Json& in, bool drawn) {
  std::vector<Pair> pairs;
  for (const Json& pair : in.at("pairs")) {
    pairs.push_back({pair.at(0).get<double>(), pair.at(1).get<double>()});
  }
  const std::string name = in.at("statistic").get<std::string>();
  if (name != "mean_diff" && name != "ratio_of_sums") {
    throw DataError(fmt::format("unknown statistic \"{}\"{}", name,
                                known_names(name, {"mean_diff", "ratio_of_sums"})));
  }
  const auto statistic =
      name == "mean_diff" ? PairedStatistic::kMeanDifference : PairedStatistic::kRatioOfSums;
  BootstrapOptions options{.confidence = number(in, "confidence")};
  if (drawn) {
    options.seed = word(in.at("seed"));
    options.resamples = word(in.at("resamples"));
  }
  const auto found = defined(drawn ? drawn_bootstrap(pairs, statistic, options)
                                   : exhaustive_bootstrap(pairs, statistic, options));
  return {{"point", found.point},
          {"lo", found.interval.lo},
          {"hi", found.interval.hi},
          {"resamples", found.resamples}};
}

Json splitmix(const Json& in) {
  const std::uint64_t seed = word(in.at("seed"));
  SplitMix64 words(seed);
  Json u64 = Json::array();
  for (int i = 0; i < 4; ++i) u64.push_back(std::to_string(words.next()));
  SplitMix64 indices(seed);
  Json index = Json::array();
  for (std::int64_t i = 0; i < count(in, "count"); ++i) {
    index.push_back(indices.index(in.at("n").get<std::uint64_t>()));
  }
  return {{"u64", u64}, {"index", index}};
}

Json mcnemar_case(const Json& in) {
  const auto found = defined(mcnemar(count(in, "b"), count(in, "c")));
  return {{"two_sided", found.two_sided},
          {"mid_p", found.mid_p},
          {"harm_one_sided", found.harm_one_sided}};
}

Json tango(const Json& in) {
  const auto found =
      defined(non_inferiority(paired_counts(in), number(in, "margin"), number(in, "alpha")));
  return {{"delta_hat", found.lambda},
          {"z", found.z},
          {"p", found.p},
          {"lower", found.bounds.lo},
          {"upper", found.bounds.hi},
          {"verdict", std::string(name_of(found.verdict))}};
}

Json wald(const Json& in) {
  const auto found =
      defined(paired_wald(paired_counts(in), number(in, "alpha"), in.at("adjusted").get<bool>()));
  return {{"delta", found.lambda},
          {"se", found.standard_error},
          {"lower", found.bounds.lo},
          {"upper", found.bounds.hi}};
}

Json holm_case(const Json& in) {
  const auto found = defined(holm(numbers(in, "p")));
  Json reject = Json::array();
  for (const double p : found) reject.push_back(p <= number(in, "alpha"));
  return {{"adjusted", found}, {"reject", reject}};
}

Json share(const Json& in,
           std::optional<Interval> (*interval)(std::int64_t, std::int64_t, double)) {
  const auto found = defined(interval(count(in, "k"), count(in, "n"), number(in, "confidence")));
  return {{"p", number(in, "k") / number(in, "n")}, {"lo", found.lo}, {"hi", found.hi}};
}

Json sample_size(const Json& in) {
  return {{"n", defined(certifiable_sample_size(number(in, "psi"), number(in, "lambda"),
                                                number(in, "margin"), number(in, "alpha"),
                                                number(in, "power")))}};
}

Json margin(const Json& in) {
  return {{"margin", defined(certifiable_margin(number(in, "psi"), count(in, "n"),
                                                number(in, "alpha"), number(in, "power")))}};
}

Json e_process(const Json& in) {
  EProcess process(number(in, "margin"), number(in, "eta"), number(in, "alpha"));
  for (const Json& run : in.at("runs")) {
    for (std::int64_t i = 0; i < run.at(1).get<std::int64_t>(); ++i) {
      process.observe(run.at(0).get<int>());
    }
  }
  return {{"log_wealth_pass", process.log_wealth_pass()},
          {"log_wealth_fail", process.log_wealth_fail()},
          {"pass_at", or_null(process.pass_at())},
          {"fail_at", or_null(process.fail_at())},
          {"verdict", std::string(name_of(process.verdict()))}};
}

Json divergence(const Json& in) {
  Json rows = Json::array();
  std::int64_t diverged = 0;
  for (const Json& pair : in.at("pairs")) {
    const auto a = pair.at(0).get<std::vector<TokenId>>();
    const auto b = pair.at(1).get<std::vector<TokenId>>();
    const Divergence found = diverge(a, b);
    diverged += found.first ? 1 : 0;
    rows.push_back({{"hash_a", sha256_tokens(a)},
                    {"hash_b", sha256_tokens(b)},
                    {"first", or_null(found.first)},
                    {"edit", found.edit_distance},
                    {"edit_norm", found.edit_share},
                    {"common_prefix", found.common_prefix}});
  }
  Json out = {{"rows", rows}, {"diverged", diverged}, {"rate", nullptr}};
  if (!rows.empty()) out["rate"] = static_cast<double>(diverged) / static_cast<double>(rows.size());
  return out;
}

Json ledger_summary(const Json& in) {
  std::vector<LedgerRequest> requests;
  for (const Json& request : in.at("requests")) {
    requests.push_back({count(request, "tokens"), count(request, "passes"),
                        numbers(request, "exceptions"), count(request, "reused"),
                        request.at("budget_blocked").get<bool>()});
  }
  const LedgerSummary found = summarise_ledger(requests, number(in, "B"));
  return {{"requests", found.requests},
          {"exceptions", found.exceptions},
          {"exceptions_per_request", or_null(found.exceptions_per_request)},
          {"exceptions_per_100_tokens", or_null(found.exceptions_per_100_tokens)},
          {"regret_total", found.regret_total},
          {"regret_per_exception", or_null(found.regret_per_exception)},
          {"budget_used_mean", or_null(found.budget_used_mean)},
          {"budget_used_max", or_null(found.budget_used_max)},
          {"requests_with_exception", or_null(found.requests_with_exception)},
          {"reused_per_exception", or_null(found.reused_per_exception)},
          {"tokens_per_pass", or_null(found.tokens_per_pass)},
          {"blocked_by_budget_share", or_null(found.blocked_by_budget_share)}};
}

Json quantile(const Json& in) {
  return {{"value", defined(quantile_linear(numbers(in, "values"), number(in, "q")))}};
}

Json saving(const Json& in) {
  const auto found = defined(
      passes_saved(number(in, "tokens_per_pass_strict"), number(in, "tokens_per_pass_asd")));
  return {{"passes_saved", found.passes_saved}, {"speed_bound_pct", found.speed_bound_pct}};
}

Json answer_time(const Json& in) {
  const auto found =
      defined(time_to_answer(number(in, "tps_gain_pct"), number(in, "length_change_pct")));
  return {{"time_change_pct", found.time_change_pct},
          {"requests_per_second_gain_pct", found.requests_per_second_gain_pct}};
}

Json identity(const Json& in) {
  const auto text = in.at("text").get<std::string>();
  return {{"normalised", normalise_prompt(text)}, {"sha256", prompt_hash(text)}};
}

Json canonical(const Json& in) {
  const std::string text = canonical_json(in.at("value"));
  return {{"text", text}, {"sha256", sha256_hex(text)}};
}

// Two numbers of which at least one is real.
bool close(const Json& expected, const Json& found, double tolerance) {
  const double a = expected.get<double>();
  const double b = found.get<double>();
  return std::abs(a - b) <= tolerance * std::max(1.0, std::abs(a));
}

// Pairs of values still to compare, with where they stand: an own stack, since input is not
// recursed into.
struct Open {
  std::string path;
  const Json* expected;
  const Json* found;
};

}  // namespace

const std::map<std::string, CaseFunction, std::less<>>& case_functions() {
  static const std::map<std::string, CaseFunction, std::less<>> kTable = {
      {"speed", speed},
      {"bcb", bracketed},
      {"abba", abba},
      {"log_ratio_t", log_ratio},
      {"bootstrap_exhaustive", [](const Json& in) { return bootstrap(in, false); }},
      {"bootstrap_splitmix", [](const Json& in) { return bootstrap(in, true); }},
      {"splitmix64", splitmix},
      {"mcnemar", mcnemar_case},
      {"tango", tango},
      {"paired_wald", wald},
      {"holm", holm_case},
      {"wilson", [](const Json& in) { return share(in, &wilson); }},
      {"clopper_pearson", [](const Json& in) { return share(in, &clopper_pearson); }},
      {"sample_size_ni", sample_size},
      {"margin_ni", margin},
      {"e_process", e_process},
      {"divergence", divergence},
      {"ledger_summary", ledger_summary},
      {"quantile_linear", quantile},
      {"passes_saved", saving},
      {"time_to_answer", answer_time},
      {"prompt_hash", identity},
      {"canonical_json", canonical},
  };
  return kTable;
}

std::vector<std::string> case_differences(const Json& expected, const Json& found,
                                          double tolerance) {
  std::vector<std::string> differences;
  std::vector<Open> open = {{"", &expected, &found}};
  const auto differ = [&](const Open& at, const std::string& got) {
    differences.push_back(fmt::format("{}: expected {}, got {}", at.path.empty() ? "." : at.path,
                                      at.expected->dump(), got));
  };
  while (!open.empty()) {
    const Open at = open.back();
    open.pop_back();
    if (at.expected->is_object() && at.found->is_object()) {
      for (const auto& [key, value] : at.expected->items()) {
        const std::string path = at.path.empty() ? key : at.path + "." + key;
        const auto field = at.found->find(key);
        if (field == at.found->end()) {
          differ({path, &value, nullptr}, "nothing: the field is not known");
        } else {
          open.push_back({path, &value, &*field});
        }
      }
    } else if (at.expected->is_array() && at.found->is_array() &&
               at.expected->size() == at.found->size()) {
      for (std::size_t i = 0; i < at.expected->size(); ++i) {
        open.push_back({fmt::format("{}[{}]", at.path, i), &(*at.expected)[i], &(*at.found)[i]});
      }
    } else if (at.expected->is_number() && at.found->is_number()) {
      if (*at.expected != *at.found && !close(*at.expected, *at.found, tolerance)) {
        differ(at, at.found->dump());
      }
    } else if (*at.expected != *at.found) {
      differ(at, at.found->dump());
    }
  }
  return differences;
}

}  // namespace asdbench
