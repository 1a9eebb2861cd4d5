// Means over what is there; what is missing is counted, never put as a number.
#include "eval/stats/judged.h"

namespace asdbench {
namespace {

struct Mean {
  double sum = 0;
  std::int64_t count = 0;
  void add(double value) {
    sum += value;
    ++count;
  }
  std::optional<double> value() const {
    if (count == 0) return std::nullopt;
    return sum / static_cast<double>(count);
  }
};

}  // namespace

RatingMeans mean_ratings(std::span<const TurnRating> ratings) {
  RatingMeans result;
  Mean first, second, all;
  for (const TurnRating& rating : ratings) {
    if (!rating.value) {
      ++result.unrated;
      continue;
    }
    ++result.rated;
    all.add(*rating.value);
    (rating.turn == 1 ? first : second).add(*rating.value);
  }
  result.turn1 = first.value();
  result.turn2 = second.value();
  result.average = all.value();
  return result;
}

Winner pair_winner(Winner first_game, Winner second_game) {
  if (first_game == Winner::kError || second_game == Winner::kError) return Winner::kError;
  return first_game == second_game ? first_game : Winner::kTie;
}

WinRate win_rate(std::span<const std::optional<double>> preferences) {
  WinRate result;
  Mean weighted, discrete;
  for (const std::optional<double>& preference : preferences) {
    if (!preference) {
      ++result.failed;
      continue;
    }
    ++result.judged;
    const double value = *preference == 0 ? 1.5 : *preference;
    weighted.add(value - 1);
    discrete.add(value == 1.5 ? 0.5 : value > 1.5 ? 1 : 0);
  }
  if (const auto mean = weighted.value()) result.weighted = 100 * *mean;
  if (const auto mean = discrete.value()) result.discrete = 100 * *mean;
  return result;
}

SubjectMeans subject_means(std::span<const std::pair<std::int64_t, std::int64_t>> subjects) {
  std::int64_t right = 0, items = 0;
  Mean macro;
  for (const auto& [subject_right, subject_items] : subjects) {
    right += subject_right;
    items += subject_items;
    if (subject_items > 0) {
      macro.add(static_cast<double>(subject_right) / static_cast<double>(subject_items));
    }
  }
  SubjectMeans result{.micro = std::nullopt, .macro = macro.value()};
  if (items > 0) result.micro = static_cast<double>(right) / static_cast<double>(items);
  return result;
}

}  // namespace asdbench
