// What a judge's reply says: ratings, winners and preferences in the field's forms. No function
// throws for any text. Source: specs/scoring.md, sections 6.3 and 7.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace asdbench {

/// Values outside 1 to 10: none for kDefault, kept by kFastchat.
enum class RatingRule : std::uint8_t { kDefault, kFastchat };

/// The rating of a reply: the first "[[7]]" or "[[7.5]]", else the first "[7]" of the same form;
/// nullopt (the exchange form is -1) when there is none.
std::optional<double> judge_rating(std::string_view text, RatingRule rule = RatingRule::kDefault);

/// The same where `shown`, the answers that the judge was shown, may hold marks of that form
/// themselves. Then a mark of the judge that also stands in an answer may be a quotation: what is
/// left has to be one single value, or there is no rating. Without marks in `shown` this is
/// judge_rating.
std::optional<double> judge_rating_beside(std::string_view text, std::string_view shown,
                                          RatingRule rule = RatingRule::kDefault);

/// 'A' or 'B' for a winner, 'C' for a tie, searched for in that order as "[[A]]"; nullopt for none.
std::optional<char> judge_winner(std::string_view text);
/// The same beside answers that hold such marks themselves: one single mark that is in no answer.
std::optional<char> judge_winner_beside(std::string_view text, std::string_view shown);

/// "[[8,7]]", else "[8, 7]": 'A' or 'B', the higher; 'C' within 0.1; nullopt for none.
std::optional<char> judge_two_scores(std::string_view text);

/// A ranked list such as [{'model': 'model_1', 'rank': 1}, {'model': 'model_2', 'rank': 2}]: the
/// rank of the first model is the preference, 1 or 2; nullopt when the list is absent or
/// incomplete.
std::optional<double> judge_ranking(std::string_view text);

/// Two numbers on the first line with one space or one comma between: 1 when the first is higher, 2
/// when the second is, 0 when they are equal; nullopt for anything else.
std::optional<double> judge_score_pair(std::string_view text);

/// 2 - p(m) / (p(m) + p(M)) from ln p of the tokens "m" (the first answer shown) and "M"; a missing
/// one has probability 0, both missing is nullopt.
std::optional<double> judge_log_prob(const std::map<std::string, double>& log_probs);

/// An answer with its rating and winner marks in round brackets: "[[10]]" becomes "((10))". A judge
/// who quotes what it was shown then writes no mark.
std::string without_marks(std::string_view answer);

}  // namespace asdbench
