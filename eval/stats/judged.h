// Aggregates of a judge's ratings and preferences, and of scores by subject. Sources:
// specs/scoring.md, sections 6.2, 6.3, 7 and 9.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>

namespace asdbench {

/// One rating of one turn; `value` is absent when the judge gave none.
struct TurnRating {
  std::int32_t turn = 1;
  std::optional<double> value;
};

struct RatingMeans {
  std::optional<double> turn1, turn2;  // over the ratings of each turn
  std::optional<double> average;       // over all ratings; not the mean of the two
  std::int64_t rated = 0, unrated = 0;
};
RatingMeans mean_ratings(std::span<const TurnRating> ratings);

/// Which of two answers a judgement prefers; kError when it says nothing.
enum class Winner : std::uint8_t { kFirst, kSecond, kTie, kError };
/// A win needs both orders; one win and a tie, or one win each, is a tie. `first_game` and
/// `second_game` name the winner by answer, not by place. kError (dropped) when either is.
Winner pair_winner(Winner first_game, Winner second_game);

struct WinRate {
  std::optional<double> weighted;  // percent: 100 times the mean of preference - 1
  std::optional<double> discrete;  // preferences rounded first
  std::int64_t judged = 0, failed = 0;
};
/// Preferences from 1 (baseline) to 2 (model); 0 and 1.5 are draws, absent ones are dropped.
WinRate win_rate(std::span<const std::optional<double>> preferences);

struct SubjectMeans {
  std::optional<double> micro;  // over all items
  std::optional<double> macro;  // mean over the subjects that have items
};
/// (right, items) of each subject.
SubjectMeans subject_means(std::span<const std::pair<std::int64_t, std::int64_t>> subjects);

}  // namespace asdbench
