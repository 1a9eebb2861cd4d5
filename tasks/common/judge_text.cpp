// Scans for marks in brackets.
#include "tasks/common/judge_text.h"

#include <charconv>
#include <cmath>
#include <set>
#include <vector>

#include "tasks/common/characters.h"

namespace asdbench {
namespace {

/// End of digits with an optional point and further digits at `at`; `at` when there are none.
std::size_t number_end(std::string_view text, std::size_t at) {
  std::size_t end = at;
  while (end < text.size() && is_digit(text[end])) ++end;
  if (end == at) return at;
  if (end < text.size() && text[end] == '.') ++end;
  while (end < text.size() && is_digit(text[end])) ++end;
  return end;
}

/// The value of such a number; absent when it is beyond a double.
std::optional<double> value_of(std::string_view digits) {
  double value = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), value,
                                      std::chars_format::fixed);
  if (parsed.ec != std::errc() || !std::isfinite(value)) return std::nullopt;
  return value;
}

/// A mark in brackets: the text between them, one number or two.
struct Mark {
  std::string_view text;  // "7.5" or "8,7"
  std::size_t end;        // behind the closing brackets
};

enum class Numbers { kOne, kTwo };

/// The first mark at or after `from` whose content stands between `depth` brackets on either side.
std::optional<Mark> next_mark(std::string_view text, std::size_t from, std::size_t depth,
                              Numbers numbers) {
  const std::string_view open = depth == 2 ? "[[" : "[", close = depth == 2 ? "]]" : "]";
  for (std::size_t at = text.find(open, from); at != std::string_view::npos;
       at = text.find(open, at + 1)) {
    const std::size_t begin = at + depth;
    std::size_t end = number_end(text, begin);
    if (end == begin) continue;
    if (numbers == Numbers::kTwo) {
      if (end >= text.size() || text[end] != ',') continue;
      std::size_t second = end + 1;
      if (second < text.size() && is_space(text[second])) ++second;
      end = number_end(text, second);
      if (end == second) continue;
    }
    if (text.substr(end).starts_with(close))
      return Mark{text.substr(begin, end - begin), end + depth};
  }
  return std::nullopt;
}

std::vector<Mark> all_marks(std::string_view text, std::size_t depth) {
  std::vector<Mark> marks;
  for (auto mark = next_mark(text, 0, depth, Numbers::kOne); mark;
       mark = next_mark(text, mark->end, depth, Numbers::kOne)) {
    marks.push_back(*mark);
  }
  return marks;
}

std::optional<double> checked(std::optional<double> value, RatingRule rule) {
  if (!value) return std::nullopt;
  if (rule == RatingRule::kDefault && (*value < 1 || *value > 10)) return std::nullopt;
  return value;
}

bool is_winner_mark(std::string_view text) {
  return text.size() >= 5 && text.starts_with("[[") && text[2] >= 'A' && text[2] <= 'C' &&
         text.substr(3, 2) == "]]";
}

std::set<char> winner_marks(std::string_view text) {
  std::set<char> marks;
  for (std::size_t at = text.find("[["); at != std::string_view::npos;
       at = text.find("[[", at + 1)) {
    if (is_winner_mark(text.substr(at))) marks.insert(text[at + 2]);
  }
  return marks;
}

/// Reads `literal` after spaces at `at` and moves behind it.
bool take(std::string_view text, std::size_t& at, std::string_view literal) {
  while (at < text.size() && is_space(text[at])) ++at;
  if (!text.substr(at).starts_with(literal)) return false;
  at += literal.size();
  return true;
}

/// A quoted word in either kind of quotes.
std::optional<std::string_view> take_word(std::string_view text, std::size_t& at) {
  for (const std::string_view quote : {"'", "\""}) {
    if (!take(text, at, quote)) continue;
    const std::size_t end = text.find(quote, at);
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view word = text.substr(at, end - at);
    at = end + 1;
    return word;
  }
  return std::nullopt;
}

/// {'model': 'model_1', 'rank': 1} in either order of keys.
bool take_ranked(std::string_view text, std::size_t& at, std::map<std::string, int>& ranks) {
  if (!take(text, at, "{")) return false;
  std::string model;
  int rank = 0;
  for (int i = 0; i < 2; ++i) {
    if (i > 0 && !take(text, at, ",")) return false;
    const auto key = take_word(text, at);
    if (!key || !take(text, at, ":")) return false;
    if (*key == "model") {
      const auto name = take_word(text, at);
      if (!name) return false;
      model = *name;
    } else if (*key == "rank") {
      if (take(text, at, "1"))
        rank = 1;
      else if (take(text, at, "2"))
        rank = 2;
    }
  }
  if (!take(text, at, "}") || model.empty() || rank == 0) return false;
  return ranks.emplace(model, rank).second;
}

std::optional<double> ranking_at(std::string_view text, std::size_t at) {
  std::map<std::string, int> ranks;
  ++at;  // the bracket
  if (!take_ranked(text, at, ranks) || !take(text, at, ",") || !take_ranked(text, at, ranks)) {
    return std::nullopt;
  }
  take(text, at, ",");
  const auto first = ranks.find("model_1"), second = ranks.find("model_2");
  if (!take(text, at, "]") || first == ranks.end() || second == ranks.end()) return std::nullopt;
  if (first->second == second->second) return std::nullopt;
  return first->second;
}

/// A whole field as a number, with a sign and without spaces.
std::optional<double> number_of(std::string_view field) {
  double value = 0;
  const auto parsed = std::from_chars(field.data(), field.data() + field.size(), value);
  if (parsed.ec != std::errc() || parsed.ptr != field.data() + field.size()) return std::nullopt;
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

}  // namespace

std::optional<double> judge_rating(std::string_view text, RatingRule rule) {
  for (const std::size_t depth : {std::size_t{2}, std::size_t{1}}) {
    if (const auto mark = next_mark(text, 0, depth, Numbers::kOne)) {
      return checked(value_of(mark->text), rule);
    }
  }
  return std::nullopt;
}

std::optional<double> judge_rating_beside(std::string_view text, std::string_view shown,
                                          RatingRule rule) {
  for (const std::size_t depth : {std::size_t{2}, std::size_t{1}}) {
    const std::vector<Mark> marks = all_marks(text, depth);
    if (marks.empty()) continue;
    std::set<std::optional<double>> quoted, own;
    for (const Mark& mark : all_marks(shown, depth)) quoted.insert(value_of(mark.text));
    if (quoted.empty()) return judge_rating(text, rule);
    for (const Mark& mark : marks) own.insert(value_of(mark.text));
    // A mark in single brackets is read for want of a better one: never from a quotation.
    if (own.size() > 1 || depth == 1) {
      std::erase_if(own, [&](const auto& value) { return quoted.contains(value); });
    }
    if (own.size() != 1) return std::nullopt;
    return checked(*own.begin(), rule);
  }
  return std::nullopt;
}

std::optional<char> judge_winner(std::string_view text) {
  const std::set<char> marks = winner_marks(text);
  if (marks.empty()) return std::nullopt;
  return *marks.begin();
}

std::optional<char> judge_winner_beside(std::string_view text, std::string_view shown) {
  const std::set<char> quoted = winner_marks(shown);
  if (quoted.empty()) return judge_winner(text);
  std::set<char> own = winner_marks(text);
  if (own.size() > 1) std::erase_if(own, [&](char mark) { return quoted.contains(mark); });
  if (own.size() != 1) return std::nullopt;
  return *own.begin();
}

std::optional<char> judge_two_scores(std::string_view text) {
  constexpr double kTie = 0.1;
  for (const std::size_t depth : {std::size_t{2}, std::size_t{1}}) {
    const auto mark = next_mark(text, 0, depth, Numbers::kTwo);
    if (!mark) continue;
    const std::size_t comma = mark->text.find(',');
    std::string_view second = mark->text.substr(comma + 1);
    if (is_space(second.front())) second.remove_prefix(1);
    const auto a = value_of(mark->text.substr(0, comma)), b = value_of(second);
    if (!a || !b) return std::nullopt;
    if (std::fabs(*a - *b) <= kTie) return 'C';
    return *a > *b ? 'A' : 'B';
  }
  return std::nullopt;
}

std::optional<double> judge_ranking(std::string_view text) {
  for (std::size_t at = text.find('['); at != std::string_view::npos; at = text.find('[', at + 1)) {
    if (const auto preference = ranking_at(text, at)) return preference;
  }
  return std::nullopt;
}

std::optional<double> judge_score_pair(std::string_view text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  const std::size_t border = line.find_first_of(" ,");
  if (border == std::string_view::npos) return std::nullopt;
  const auto first = number_of(line.substr(0, border)), second = number_of(line.substr(border + 1));
  if (!first || !second) return std::nullopt;
  return *first == *second ? 0 : *first > *second ? 1 : 2;
}

std::optional<double> judge_log_prob(const std::map<std::string, double>& log_probs) {
  const auto prob = [&](const char* token) {
    const auto found = log_probs.find(token);
    return found == log_probs.end() ? 0 : std::exp(found->second);
  };
  const double first = prob("m"), second = prob("M");
  if (!(first + second > 0) || !std::isfinite(first + second)) return std::nullopt;
  return 2 - first / (first + second);
}

std::string without_marks(std::string_view answer) {
  std::string plain;
  for (std::size_t at = 0; at < answer.size();) {
    const std::string_view rest = answer.substr(at);
    std::size_t end = 0;  // behind the content of a mark that starts here
    if (rest.starts_with("[[")) {
      end = is_winner_mark(rest) ? 3 : number_end(rest, 2);
      if (end == 2 || !rest.substr(end).starts_with("]]")) end = 0;
    }
    if (end == 0) {
      plain += answer[at++];
      continue;
    }
    plain += "((";
    plain += rest.substr(2, end - 2);
    plain += "))";
    at += end + 2;
  }
  return plain;
}

}  // namespace asdbench
