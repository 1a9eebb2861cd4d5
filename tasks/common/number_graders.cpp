// The rules of specs/scoring.md section 2, as linear scans.
#include "tasks/common/number_graders.h"

#include <algorithm>
#include <array>

#include "eval/core/error.h"
#include "tasks/common/boxes.h"
#include "tasks/common/characters.h"
#include "tasks/common/numbers.h"
#include "tasks/common/reply_text.h"

namespace asdbench {
namespace {

// ---------------------------------------------------------------------------- default

// A text with everything that the rules look up found once, so that a reply full of anchors costs
// no more than one scan: every look-up below is a binary search.
class Scanned {
 public:
  explicit Scanned(std::string_view text) : text_(text), numbers_(find_numbers(text)) {
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '\n') {
        lines_.push_back(i);
        sentences_.push_back(i);
      } else if (text[i] == '=') {
        equals_.push_back(i);
      } else if (text[i] == '.' && ends_sentence(i)) {
        sentences_.push_back(i);
      }
    }
  }

  std::string_view text() const { return text_; }
  std::string text_of(NumberSpan number) const {
    return std::string(text_.substr(number.begin, number.end - number.begin));
  }
  std::size_t line_end(std::size_t from) const { return first_at_or_after(lines_, from); }
  std::size_t sentence_end(std::size_t from) const { return first_at_or_after(sentences_, from); }
  std::optional<std::size_t> last_equals(std::size_t begin, std::size_t end) const {
    const auto at = std::lower_bound(equals_.begin(), equals_.end(), end);
    if (at == equals_.begin() || *(at - 1) < begin) return std::nullopt;
    return *(at - 1);
  }
  std::optional<std::string> first_number(std::size_t begin, std::size_t end) const {
    const auto at =
        std::lower_bound(numbers_.begin(), numbers_.end(), begin,
                         [](const NumberSpan& n, std::size_t from) { return n.begin < from; });
    if (at == numbers_.end() || at->end > end) return std::nullopt;
    return text_of(*at);
  }
  std::optional<std::string> last_number() const {
    if (numbers_.empty()) return std::nullopt;
    return text_of(numbers_.back());
  }

 private:
  bool ends_sentence(std::size_t period) const {
    if (period == 0) return false;
    const char before = text_[period - 1];
    if (!is_lower(before) && !is_digit(before) && before != '$' && before != '%') return false;
    return period + 1 == text_.size() || is_space(text_[period + 1]);
  }
  std::size_t first_at_or_after(const std::vector<std::size_t>& positions, std::size_t from) const {
    const auto at = std::lower_bound(positions.begin(), positions.end(), from);
    return at == positions.end() ? text_.size() : *at;
  }

  std::string_view text_;
  std::vector<NumberSpan> numbers_;
  std::vector<std::size_t> lines_;
  std::vector<std::size_t> sentences_;
  std::vector<std::size_t> equals_;
};

bool starts_with_word(std::string_view text, std::string_view word) {
  if (text.size() < word.size()) return false;
  for (std::size_t i = 0; i < word.size(); ++i) {
    if (to_lower(text[i]) != word[i]) return false;
  }
  return text.size() == word.size() || !is_alphanumeric(text[word.size()]);
}

bool word_starts_at(std::string_view text, std::size_t at) {
  return at == 0 || !is_alphanumeric(text[at - 1]);
}

std::size_t skip_spaces(std::string_view text, std::size_t at) {
  while (at < text.size() && (text[at] == ' ' || text[at] == '\t')) ++at;
  return at;
}

// End of the link word or sign ("is", ":", ...) at `at`; nullopt when there is none.
std::optional<std::size_t> link_end(std::string_view text, std::size_t at) {
  if (at >= text.size()) return std::nullopt;
  if (text[at] == ':' || text[at] == '=') return at + 1;
  if (!word_starts_at(text, at)) return std::nullopt;
  const std::string_view rest = text.substr(at);
  for (const std::string_view word :
       {std::string_view("is"), std::string_view("was"), std::string_view("would be")}) {
    if (starts_with_word(rest, word)) return at + word.size();
  }
  return std::nullopt;
}

constexpr std::string_view kAnswer = "answer";
constexpr std::size_t kMaxBetween = 60;  // characters of "to ..." between "answer" and its link

// Where the statement behind an anchor at `at` starts; nullopt when no anchor stands there.
std::optional<std::size_t> anchor_end(std::string_view text, std::size_t at) {
  if (!word_starts_at(text, at) || !starts_with_word(text.substr(at), kAnswer)) return std::nullopt;
  const std::size_t next = skip_spaces(text, at + kAnswer.size());
  if (const auto end = link_end(text, next)) return end;
  if (next >= text.size() || !starts_with_word(text.substr(next), "to")) return std::nullopt;
  for (std::size_t i = next; i < text.size() && i - next <= kMaxBetween && text[i] != '\n'; ++i) {
    if (const auto end = link_end(text, i)) return end;
  }
  return std::nullopt;
}

std::optional<Answer> from_hash(const Scanned& scanned) {
  const std::size_t hash = scanned.text().rfind("####");
  if (hash == std::string_view::npos) return std::nullopt;
  const auto number = scanned.first_number(hash + 4, scanned.line_end(hash));
  if (!number) return std::nullopt;
  return Answer{*number, "hash"};
}

std::optional<Answer> from_box(std::string_view text) {
  const std::optional<std::string_view> box = last_box(text);
  if (!box) return std::nullopt;
  const std::vector<NumberSpan> numbers = find_numbers(*box);
  if (numbers.empty()) return std::nullopt;
  const bool equation = box->find('=') != std::string_view::npos;
  const NumberSpan number = equation ? numbers.back() : numbers.front();
  return Answer{std::string(box->substr(number.begin, number.end - number.begin)), "box"};
}

std::optional<Answer> from_anchor(const Scanned& scanned) {
  const std::string_view text = scanned.text();
  for (std::size_t at = text.size(); at-- > 0;) {
    if (to_lower(text[at]) != kAnswer[0]) continue;
    const auto link = anchor_end(text, at);
    if (!link) continue;
    // A colon after "is" belongs to the link; the answer may stand on a later line.
    std::size_t begin = *link;
    while (begin < text.size() && (is_space(text[begin]) || text[begin] == ':')) ++begin;
    const std::size_t end = scanned.sentence_end(begin);
    if (const auto equals = scanned.last_equals(begin, end)) begin = *equals + 1;
    if (const auto number = scanned.first_number(begin, end)) return Answer{*number, "anchor"};
  }
  return std::nullopt;
}

std::optional<Answer> stated_answer(const Scanned& scanned) {
  if (auto answer = from_hash(scanned)) return answer;
  if (auto answer = from_box(scanned.text())) return answer;
  return from_anchor(scanned);
}

std::optional<Answer> extract_default(std::string_view reply) {
  const auto answer_part = after_reasoning(before_special_tokens(reply));
  if (!answer_part) return std::nullopt;
  const std::string text = without_emphasis(clean_text(*answer_part));
  if (const auto run_on = run_on_start(text)) {
    if (auto answer = stated_answer(Scanned(std::string_view(text).substr(0, *run_on)))) {
      return answer;
    }
  }
  const Scanned scanned(text);
  if (auto answer = stated_answer(scanned)) return answer;
  if (const auto number = scanned.last_number()) return Answer{*number, "last_number"};
  return std::nullopt;
}

// ---------------------------------------------------------------------------- profiles

Answer pattern_answer(std::string_view text) { return {std::string(text), "pattern"}; }

bool in_run(char c) { return is_digit(c) || c == '.' || c == ','; }

// End of `-?[0-9.,]+` at `at`; `at` itself when it does not match.
std::size_t run_end(std::string_view text, std::size_t at) {
  const std::size_t first = at + (at < text.size() && text[at] == '-' ? 1 : 0);
  std::size_t end = first;
  while (end < text.size() && in_run(text[end])) ++end;
  return end > first ? end : at;
}

// The first "#### " with a run of sign, digits, dots and commas behind it.
std::optional<Answer> extract_first_hash(std::string_view reply) {
  constexpr std::string_view kMark = "#### ";
  for (std::size_t at = reply.find(kMark); at != std::string_view::npos;
       at = reply.find(kMark, at + 1)) {
    const std::size_t begin = at + kMark.size();
    const std::size_t end = run_end(reply, begin);
    if (end > begin) return pattern_answer(reply.substr(begin, end - begin));
  }
  return std::nullopt;
}

std::string without(std::string_view text, std::string_view dropped) {
  std::string kept;
  for (const char c : text) {
    if (dropped.find(c) == std::string_view::npos) kept += c;
  }
  return kept;
}

std::optional<Answer> extract_openai(std::string_view reply) {
  auto answer = extract_first_hash(reply);
  if (answer) answer->text = without(answer->text, ",");
  return answer;
}

// End of `-?[$0-9.,]{2,}` or else `-?[0-9]+` at `at`; `at` itself when neither matches.
std::size_t flexible_end(std::string_view text, std::size_t at) {
  const std::size_t first = at + (text[at] == '-' ? 1 : 0);
  std::size_t end = first;
  while (end < text.size() && (in_run(text[end]) || text[end] == '$')) ++end;
  if (end - first >= 2) return end;
  return end - first == 1 && is_digit(text[first]) ? end : at;
}

std::optional<Answer> extract_flexible(std::string_view reply) {
  std::optional<std::string_view> last;
  for (std::size_t at = 0; at < reply.size();) {
    const std::size_t end = flexible_end(reply, at);
    if (end > at) last = reply.substr(at, end - at);
    at = std::max(end, at + 1);
  }
  if (!last) return std::nullopt;
  return pattern_answer(*last);
}

// The first "The answer is " with a run of sign, digits, dots and commas and one character more,
// which may have to be the run's own last.
std::optional<Answer> extract_cot_strict(std::string_view reply) {
  constexpr std::string_view kMark = "The answer is ";
  for (std::size_t at = reply.find(kMark); at != std::string_view::npos;
       at = reply.find(kMark, at + 1)) {
    const std::size_t begin = at + kMark.size();
    std::size_t end = run_end(reply, begin);
    if (end == begin) continue;
    if (end == reply.size() || reply[end] == '\n') --end;
    if (end > begin && reply.substr(begin, end - begin) != "-") {
      return pattern_answer(reply.substr(begin, end - begin));
    }
  }
  return std::nullopt;
}

// The last "The final answer is " with a number of the flexible pattern behind it.
std::optional<Answer> extract_llama(std::string_view reply) {
  constexpr std::string_view kMark = "The final answer is ";
  for (std::size_t at = reply.rfind(kMark); at != std::string_view::npos;
       at = at == 0 ? std::string_view::npos : reply.rfind(kMark, at - 1)) {
    const std::size_t begin = at + kMark.size();
    if (begin == reply.size()) continue;
    const std::size_t end = flexible_end(reply, begin);
    if (end > begin) return pattern_answer(reply.substr(begin, end - begin));
  }
  return std::nullopt;
}

// Commas, "$", everything up to "#### " and one final period go; case does not count.
std::string lm_eval_form(std::string_view text) {
  std::string form = without(text, ",$");
  const std::size_t mark = form.rfind("#### ");
  if (mark != std::string::npos) form.erase(0, mark + 5);
  if (form.ends_with('.')) form.pop_back();
  std::transform(form.begin(), form.end(), form.begin(), to_lower);
  return form;
}

bool equal_lm_eval(std::string_view answer, std::string_view gold) {
  return lm_eval_form(answer) == lm_eval_form(gold);
}

bool equal_without_commas(std::string_view answer, std::string_view gold) {
  return without(answer, ",") == without(gold, ",");
}

// Runs of digits and the decimal parts behind them, commas dropped first; the last of the text that
// follows the last "Answer".
std::optional<Answer> extract_simple_evals(std::string_view reply) {
  constexpr std::string_view kMark = "Answer";
  const std::size_t mark = reply.rfind(kMark);
  if (mark == std::string_view::npos) return std::nullopt;
  const std::string text = without(reply.substr(mark + kMark.size()), ",");
  std::optional<std::string_view> last;
  for (std::size_t at = 0; at < text.size();) {
    if (!is_digit(text[at])) {
      ++at;
      continue;
    }
    std::size_t end = at;
    while (end < text.size() && is_digit(text[end])) ++end;
    std::size_t next = end;
    if (next < text.size() && text[next] == '.') {
      ++next;
      while (next < text.size() && is_digit(text[next])) ++next;
      if (next > end + 1) end = next;  // a point without decimals is dropped from the answer
    }
    last = std::string_view(text).substr(at, end - at);
    at = next;
  }
  if (!last) return std::nullopt;
  return pattern_answer(*last);
}

bool equal_simple_evals(std::string_view answer, std::string_view gold) {
  if (answer.find('.') != std::string_view::npos) {
    while (answer.ends_with('0')) answer.remove_suffix(1);
    while (answer.ends_with('.')) answer.remove_suffix(1);
  }
  return equal_without_commas(answer, gold);
}

// The last run of digits, commas dropped first, read as a literal of the grader's language: zero
// may be written with several digits, another number must not start with one.
std::optional<std::string> last_digits(std::string_view text) {
  const std::string plain = without(text, ",");
  const auto last = std::find_if(plain.rbegin(), plain.rend(), is_digit);
  if (last == plain.rend()) return std::nullopt;
  const auto first = std::find_if_not(last, plain.rend(), is_digit);
  const std::string digits(first.base(), last.base());
  if (digits.find_first_not_of('0') == std::string::npos) return "0";
  if (digits.front() == '0') return std::nullopt;
  return digits;
}

std::optional<Answer> extract_specforge(std::string_view reply) {
  const auto digits = last_digits(reply);
  if (!digits) return std::nullopt;
  return pattern_answer(*digits);
}

bool equal_specforge(std::string_view answer, std::string_view gold) {
  return last_digits(answer) == last_digits(gold);
}

}  // namespace

const std::vector<NumberGrader>& number_graders() {
  static const std::vector<NumberGrader> kTable = {
      {"default", &extract_default, &same_number},
      {"lm-eval-strict", &extract_first_hash, &equal_lm_eval},
      {"lm-eval-flexible", &extract_flexible, &equal_lm_eval},
      {"lm-eval-cot-strict", &extract_cot_strict, &equal_lm_eval},
      {"lm-eval-llama", &extract_llama, &equal_lm_eval},
      {"openai-gsm8k", &extract_openai, &equal_without_commas},
      {"simple-evals", &extract_simple_evals, &equal_simple_evals},
      {"specforge", &extract_specforge, &equal_specforge},
  };
  return kTable;
}

const NumberGrader& number_grader(std::string_view name) {
  for (const NumberGrader& grader : number_graders()) {
    if (grader.name == name) return grader;
  }
  throw InternalError("unknown number grader \"" + std::string(name) + "\"" + known_names(name, [] {
                        std::vector<std::string> names;
                        for (const NumberGrader& grader : number_graders()) {
                          names.push_back(grader.name);
                        }
                        return names;
                      }()));
}

Score score_number(const NumberGrader& grader, const std::vector<std::string>& targets,
                   const std::optional<Answer>& answer) {
  Score score;
  if (!answer) {
    score.verdict = Verdict::kNoAnswer;
    score.value = 0;
    return score;
  }
  const bool correct = std::any_of(targets.begin(), targets.end(), [&](const std::string& target) {
    return grader.equal(answer->text, target);
  });
  score.verdict = correct ? Verdict::kCorrect : Verdict::kIncorrect;
  score.value = correct ? 1 : 0;
  score.answer = answer->text;
  score.rule = answer->rule;
  return score;
}

}  // namespace asdbench
