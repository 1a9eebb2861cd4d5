// Boxes, then phrases, then the last formula, then the last number.
#include "tasks/common/math/extraction.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "tasks/common/boxes.h"
#include "tasks/common/characters.h"
#include "tasks/common/numbers.h"
#include "tasks/common/reply_text.h"

namespace asdbench::math {
namespace {

constexpr std::size_t kJoinTight = 10;    // bytes between boxes of one answer
constexpr std::size_t kJoinListed = 70;   // the same with "," ";" "and" "or" among them
constexpr std::size_t kMathsWithin = 50;  // bytes between a phrase and its formula
constexpr std::size_t kSentence = 400;    // how far a statement is followed

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

bool word_at(std::string_view text, std::size_t at, std::string_view word) {
  if (text.size() - at < word.size()) return false;
  for (std::size_t i = 0; i < word.size(); ++i) {
    if (to_lower(text[at + i]) != word[i]) return false;
  }
  const std::size_t end = at + word.size();
  return (at == 0 || !is_alphanumeric(text[at - 1])) &&
         (end == text.size() || !is_alphanumeric(text[end]));
}

bool has_list_mark(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ',' || text[i] == ';' || word_at(text, i, "and") || word_at(text, i, "or")) {
      return true;
    }
  }
  return false;
}

// ---------------------------------------------------------------------------- boxes

std::optional<Answer> from_boxes(std::string_view text) {
  const Boxes boxes = find_boxes(text);
  if (boxes.braced.empty()) {
    if (!boxes.braceless) return std::nullopt;
    return Answer{std::string(*boxes.braceless), "box"};
  }
  std::vector<std::string_view> contents = {trimmed(boxes.braced.back().content)};
  std::size_t next = boxes.braced.back().begin;
  for (std::size_t i = boxes.braced.size() - 1; i-- > 0;) {
    const Box& box = boxes.braced[i];
    if (box.end > next) continue;  // around the next one
    const std::string_view between = text.substr(box.end, next - box.end);
    if (between.size() >= kJoinTight &&
        (between.size() >= kJoinListed || !has_list_mark(between))) {
      break;
    }
    next = box.begin;
    if (trimmed(box.content) != contents.back()) contents.push_back(trimmed(box.content));
  }
  std::string joined;
  for (auto content = contents.rbegin(); content != contents.rend(); ++content) {
    if (!joined.empty()) joined += ", ";
    joined += *content;
  }
  return Answer{joined, "box"};
}

// ---------------------------------------------------------------------------- formulas

struct Formula {
  std::size_t begin, end;  // with delimiters
  std::string_view content;
};

// Whether what stands between two dollar signs is prose between two prices.
bool is_prose(std::string_view content) {
  std::size_t words = 0;
  for (std::size_t i = 0; i < content.size();) {
    if (content[i] == '\\') {
      ++i;
      const std::size_t begin = i;
      while (i < content.size() && is_letter(content[i])) ++i;
      const std::string_view name = content.substr(begin, i - begin);
      const bool words_follow = name.starts_with("text") || name == "mbox" || name == "begin" ||
                                name == "end" || name.starts_with("math") || name == "operatorname";
      if (words_follow && i < content.size() && content[i] == '{') {
        i = std::min(content.find('}', i), content.size());
      }
      continue;
    }
    std::size_t end = i;
    while (end < content.size() && is_letter(content[end])) ++end;
    if (end - i >= 3) ++words;
    i = std::max(end, i + 1);
  }
  return words >= 3 || (words >= 1 && is_digit(content[0]));
}

class FormulaFinder {
 public:
  explicit FormulaFinder(std::string_view text) : text_(text) {}

  std::vector<Formula> run() {
    for (std::size_t at = 0; at < text_.size();) {
      const std::string_view rest = text_.substr(at);
      if (rest.starts_with("\\(") || rest.starts_with("\\[")) {
        at = bracketed(at, rest[1] == '(' ? "\\)" : "\\]");
      } else if (rest[0] == '\\') {
        at += 2;
      } else if (rest[0] == '$') {
        at = dollars(at);
      } else {
        ++at;
      }
    }
    return std::move(found_);
  }

 private:
  std::size_t add(std::size_t begin, std::size_t open, std::size_t close, std::size_t mark) {
    const std::string_view content = trimmed(text_.substr(begin + open, close - begin - open));
    if (!content.empty()) found_.push_back({begin, close + mark, content});
    return close + mark;
  }

  std::size_t bracketed(std::size_t at, std::string_view close) {
    bool& none = close == "\\)" ? no_round_ : no_square_;
    const std::size_t end = none ? std::string_view::npos : text_.find(close, at + 2);
    none = none || end == std::string_view::npos;
    return end == std::string_view::npos ? at + 2 : add(at, 2, end, 2);
  }

  // The next dollar sign that is not escaped.
  std::size_t next_dollar(std::size_t at) const {
    for (; at < text_.size(); ++at) {
      if (text_[at] == '\\') {
        ++at;
      } else if (text_[at] == '$') {
        return at;
      }
    }
    return std::string_view::npos;
  }

  std::size_t dollars(std::size_t at) {
    const bool display = text_.substr(at).starts_with("$$");
    const std::size_t mark = display ? 2 : 1;
    const std::size_t end = next_dollar(at + mark);
    if (end == std::string_view::npos) return text_.size();
    if (display) return add(at, 2, end, text_.substr(end).starts_with("$$") ? 2 : 1);
    const std::string_view content = text_.substr(at + 1, end - at - 1);
    if (content.empty()) return end + 1;
    if (content.find("\n\n") != std::string_view::npos || is_prose(content)) return end;
    return add(at, 1, end, 1);
  }

  std::string_view text_;
  std::vector<Formula> found_;
  bool no_round_ = false;   // no "\)" follows
  bool no_square_ = false;  // no "\]" follows
};

// Whether nothing but a separator stands between two formulas of one list.
bool only_separator(std::string_view between) {
  bool any = false;
  for (std::size_t i = 0; i < between.size();) {
    if (word_at(between, i, "and")) {
      i += 3;
      any = true;
    } else if (word_at(between, i, "or")) {
      i += 2;
      any = true;
    } else if (between[i] == ',' || between[i] == ';') {
      ++i;
      any = true;
    } else if (is_space(between[i])) {
      ++i;
    } else {
      return false;
    }
  }
  return any;
}

class Text {
 public:
  explicit Text(std::string_view text) : text_(text), formulas_(FormulaFinder(text).run()) {}

  std::optional<Answer> stated() const {
    if (auto answer = from_boxes(text_)) return answer;
    if (auto answer = from_phrase(/*final_only=*/true)) return answer;
    return from_phrase(/*final_only=*/false);
  }

  std::optional<Answer> last_resort() const {
    if (!formulas_.empty()) {
      std::size_t first = formulas_.size() - 1;
      while (first > 0 && separated(first - 1)) --first;
      return Answer{joined(first, formulas_.size()), "mathematics"};
    }
    const std::vector<NumberSpan> numbers = find_numbers(text_);
    if (numbers.empty()) return std::nullopt;
    const NumberSpan& last = numbers.back();
    return Answer{std::string(text_.substr(last.begin, last.end - last.begin)), "last_number"};
  }

 private:
  bool separated(std::size_t left) const {
    const std::size_t begin = formulas_[left].end;
    const std::size_t end = formulas_[left + 1].begin;
    return end - begin < kJoinTight && only_separator(text_.substr(begin, end - begin));
  }
  std::string joined(std::size_t first, std::size_t end) const {
    std::string all;
    for (std::size_t i = first; i < end; ++i) {
      if (!all.empty()) all += ", ";
      all += formulas_[i].content;
    }
    return all;
  }
  // Index of the first formula that begins at or after `at`.
  std::size_t formula_from(std::size_t at) const {
    return static_cast<std::size_t>(
        std::lower_bound(formulas_.begin(), formulas_.end(), at,
                         [](const Formula& f, std::size_t from) { return f.begin < from; }) -
        formulas_.begin());
  }

  bool is_mark(std::size_t at) const {
    return at < text_.size() && (text_[at] == '*' || text_[at] == '_' || text_[at] == '`');
  }
  std::size_t skip(std::size_t at, std::string_view also) const {
    while (at < text_.size() &&
           (is_space(text_[at]) || is_mark(at) || also.find(text_[at]) != std::string_view::npos)) {
      ++at;
    }
    return at;
  }

  // Where the statement behind "answer is", "answers are" or "answer:" at `at` starts.
  std::optional<std::size_t> link_end(std::size_t at) const {
    if (!word_at(text_, at, "answer") && !word_at(text_, at, "answers")) return std::nullopt;
    std::size_t next = at + 6;
    if (next < text_.size() && to_lower(text_[next]) == 's') ++next;
    while (next < text_.size() && (text_[next] == ' ' || is_mark(next))) ++next;
    if (next < text_.size() && text_[next] == ':') return skip(next, ":");
    if (word_at(text_, next, "is")) return skip(next + 2, ":");
    if (word_at(text_, next, "are")) return skip(next + 3, ":");
    return std::nullopt;
  }
  bool is_final(std::size_t at, std::size_t content) const {
    std::size_t end = at;
    while (end > 0 && (text_[end - 1] == ' ' || is_mark(end - 1))) --end;
    if (end < 5 || !word_at(text_, end - 5, "final")) return false;
    // "Final Answer:" alone is the heading of a statement, not the statement.
    const std::string_view link = text_.substr(at, content - at);
    for (std::size_t i = 6; i < link.size(); ++i) {
      if (word_at(link, i, "is")) return true;
    }
    return false;
  }

  std::optional<Answer> from_phrase(bool final_only) const {
    for (std::size_t at = text_.size(); at-- > 0;) {
      if (to_lower(text_[at]) != 'a') continue;
      const auto begin = link_end(at);
      if (!begin || *begin >= text_.size()) continue;
      if (final_only && !is_final(at, *begin)) continue;
      if (auto content = statement(*begin)) return Answer{*content, "phrase"};
    }
    return std::nullopt;
  }

  // End of the sentence that starts at `begin`; formulas are stepped over.
  std::size_t sentence_end(std::size_t begin) const {
    std::size_t formula = formula_from(begin);
    const std::size_t limit = std::min(text_.size(), begin + kSentence);
    for (std::size_t at = begin; at < limit; ++at) {
      while (formula < formulas_.size() && formulas_[formula].begin < at) ++formula;
      if (formula < formulas_.size() && formulas_[formula].begin == at) {
        at = formulas_[formula].end - 1;
        continue;
      }
      if (text_[at] == '\n') return at;
      const bool stop = text_[at] == '.' || text_[at] == '!' || text_[at] == '?';
      if (stop && (at + 1 == text_.size() || is_space(text_[at + 1]) || is_mark(at + 1))) return at;
    }
    return std::max(limit, begin);
  }

  // Behind the last "is", "are" or "equals" of a sentence that starts with a word.
  std::size_t behind_verb(std::size_t begin, std::size_t end) const {
    if (!is_letter(text_[begin]) || begin + 1 >= end || !is_letter(text_[begin + 1])) return begin;
    std::size_t formula = formula_from(begin);
    std::size_t found = begin;
    for (std::size_t at = begin; at < end; ++at) {
      if (formula < formulas_.size() && formulas_[formula].begin == at) {
        at = formulas_[formula++].end - 1;
        continue;
      }
      for (const std::string_view verb : {"is", "are", "equals"}) {
        if (word_at(text_, at, verb)) found = skip(at + verb.size(), ":");
      }
    }
    return found < end ? found : begin;
  }

  std::optional<std::string> statement(std::size_t begin) const {
    const std::size_t end = sentence_end(begin);
    begin = behind_verb(begin, end);
    const std::size_t first = formula_from(begin);
    const bool near = first < formulas_.size() && formulas_[first].begin < end &&
                      formulas_[first].begin - begin <= kMathsWithin;
    const bool number_first = is_digit(text_[begin]) || (text_[begin] == '-' && begin + 1 < end &&
                                                         is_digit(text_[begin + 1]));
    const std::string_view sentence = text_.substr(begin, end - begin);
    if (near && !number_first) {
      std::size_t last = first;
      while (last + 1 < formulas_.size() && separated(last)) ++last;
      return joined(first, last + 1);
    }
    if (auto bold = bold_run(begin, end)) return bold;
    return plain(sentence);
  }

  // "**73**" where the statement starts: its opening marks were skipped.
  std::optional<std::string> bold_run(std::size_t begin, std::size_t end) const {
    if (begin < 2 || text_[begin - 1] != '*' || text_[begin - 2] != '*') return std::nullopt;
    const std::size_t close = text_.substr(0, end).find("**", begin);
    if (close == std::string_view::npos) return std::nullopt;
    std::string_view content = trimmed(text_.substr(begin, close - begin));
    while (content.ends_with('.') || content.ends_with(':')) content.remove_suffix(1);
    if (content.empty()) return std::nullopt;
    return std::string(content);
  }

  static bool mathematical(std::string_view word) {
    if (word.size() == 1 && is_letter(word[0])) return word != "a" && word != "A" && word != "I";
    for (const char c : word) {
      if (is_digit(c) || std::string_view("+-*/^=<>()[]{}\\|").find(c) != std::string_view::npos) {
        return true;
      }
    }
    return false;
  }

  // A plain expression at the start, else the first number, else a few words.
  static std::optional<std::string> plain(std::string_view sentence) {
    sentence = trimmed(sentence);
    std::size_t end = 0;
    std::size_t words = 0;
    bool prefix = true;
    for (std::size_t at = 0; at < sentence.size();) {
      std::size_t stop = at;
      while (stop < sentence.size() && !is_space(sentence[stop])) ++stop;
      std::string_view word = sentence.substr(at, stop - at);
      while (!word.empty() && (word.back() == ',' || word.back() == '*' || word.back() == '.')) {
        word.remove_suffix(1);
      }
      ++words;
      const bool joins = end > 0 && (word == "and" || word == "or");
      if (prefix && mathematical(word)) {
        end = at + word.size();
      } else if (!joins) {
        prefix = false;
      }
      at = stop;
      while (at < sentence.size() && is_space(sentence[at])) ++at;
    }
    if (end > 0) return std::string(sentence.substr(0, end));
    const std::vector<NumberSpan> numbers = find_numbers(sentence);
    if (!numbers.empty()) {
      const NumberSpan& first = numbers.front();
      return std::string(sentence.substr(first.begin, first.end - first.begin));
    }
    while (!sentence.empty() && (sentence.back() == '*' || sentence.back() == '.')) {
      sentence.remove_suffix(1);
    }
    constexpr std::size_t kFewWords = 4;
    if (words == 0 || words > kFewWords || sentence.empty()) return std::nullopt;
    return std::string(sentence);
  }

  std::string_view text_;
  std::vector<Formula> formulas_;
};

}  // namespace

std::optional<Answer> extract_stated(std::string_view text) {
  const Text whole(text);
  if (auto answer = whole.stated()) return answer;
  return whole.last_resort();
}

std::optional<Answer> extract_answer(std::string_view reply) {
  const auto answer_part = after_reasoning(before_special_tokens(reply));
  if (!answer_part) return std::nullopt;
  const std::string text = clean_text(*answer_part);
  if (const auto run_on = run_on_start(text)) {
    if (auto answer = Text(std::string_view(text).substr(0, *run_on)).stated()) return answer;
  }
  return extract_stated(text);
}

}  // namespace asdbench::math
