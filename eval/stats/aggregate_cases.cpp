// One function a kind.
#include "eval/stats/aggregate_cases.h"

#include <map>
#include <vector>

#include "eval/stats/fidelity.h"
#include "eval/stats/judged.h"

namespace asdbench {
namespace {

using Tokens = std::vector<TokenId>;

Json number(std::optional<double> value) { return value ? Json(*value) : Json(nullptr); }

Json words(const Json& input) {
  return rouge_l(input.at("prediction").get<std::string>(),
                 input.at("reference").get<std::string>());
}

Json tokens(const Json& input) {
  const TokenFidelity value =
      token_fidelity(input.at("prediction").get<Tokens>(), input.at("reference").get<Tokens>());
  const Json first = value.first_divergence ? Json(*value.first_divergence) : Json(nullptr);
  return {{"identical", value.identical},
          {"first_divergence", first},
          {"prefix_match", value.prefix_match},
          {"position_agreement", value.position_agreement}};
}

Json ratings(const Json& input) {
  std::vector<TurnRating> values;
  for (const Json& rating : input.at("ratings")) {
    const double score = rating.at("score");
    const bool none = score == -1;  // the exchange form of "no rating"
    values.push_back({rating.at("turn"), none ? std::nullopt : std::optional(score)});
  }
  const RatingMeans means = mean_ratings(values);
  return {{"turn1", number(means.turn1)},
          {"turn2", number(means.turn2)},
          {"average", number(means.average)}};
}

Json pair(const Json& input) {
  const auto winner = [&](const char* game) {
    const std::string name = input.at(game);
    return name == "model_1"   ? Winner::kFirst
           : name == "model_2" ? Winner::kSecond
           : name == "tie"     ? Winner::kTie
                               : Winner::kError;
  };
  switch (pair_winner(winner("g1_winner"), winner("g2_winner"))) {
    case Winner::kFirst:
      return "model_1";
    case Winner::kSecond:
      return "model_2";
    case Winner::kTie:
      return "tie";
    case Winner::kError:
      break;
  }
  return "dropped";
}

Json preferences(const Json& input) {
  std::vector<std::optional<double>> values;
  for (const Json& value : input.at("preferences")) {
    values.push_back(value.is_null() ? std::nullopt : std::optional(value.get<double>()));
  }
  const WinRate rate = win_rate(values);
  return {{"win_rate", number(rate.weighted)}, {"discrete_win_rate", number(rate.discrete)}};
}

Json subjects(const Json& input) {
  std::vector<std::pair<std::int64_t, std::int64_t>> counts;
  for (const auto& [name, count] : input.at("subjects").items()) {
    counts.emplace_back(count.at(0), count.at(1));
  }
  const SubjectMeans means = subject_means(counts);
  return {{"micro", number(means.micro)}, {"macro", number(means.macro)}};
}

}  // namespace

std::optional<Json> aggregate_value(const std::string& kind, const Json& input) {
  static const std::map<std::string, Json (*)(const Json&)> kKinds = {
      {"fidelity_rougeL", &words}, {"fidelity_tokens", &tokens},     {"mtbench_mean", &ratings},
      {"mtbench_pair", &pair},     {"alpaca_winrate", &preferences}, {"mmlu_accuracy", &subjects}};
  const auto found = kKinds.find(kind);
  if (found == kKinds.end()) return std::nullopt;
  return found->second(input);
}

}  // namespace asdbench
