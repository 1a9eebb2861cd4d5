// The rules of specs/scoring.md section 4 that our default follows, as linear scans.
#include "tasks/common/letter_graders.h"

#include <algorithm>
#include <array>

#include "eval/core/error.h"
#include "eval/core/utf8.h"
#include "tasks/common/boxes.h"
#include "tasks/common/characters.h"
#include "tasks/common/letter_profiles.h"
#include "tasks/common/reply_text.h"

namespace asdbench {
namespace {

bool is_choice(char c) { return c >= 'A' && c <= 'D'; }
char to_upper(char c) { return is_lower(c) ? static_cast<char>(c - 'a' + 'A') : c; }
bool is_blank(char c) { return c == ' ' || c == '\t'; }

/// Whether `text` starts with `word` in any case and the word ends there.
bool starts_with_word(std::string_view text, std::string_view word) {
  if (text.size() < word.size()) return false;
  for (std::size_t i = 0; i < word.size(); ++i) {
    if (to_lower(text[i]) != word[i]) return false;
  }
  return text.size() == word.size() || !is_alphanumeric(text[word.size()]);
}

/// Whether what follows a letter makes it part of a word: a letter, a digit or an apostrophe.
bool continues_word(std::string_view rest) {
  if (rest.empty()) return false;
  if (is_alphanumeric(rest[0]) || rest[0] == '\'' || rest[0] == '_') return true;
  if (static_cast<unsigned char>(rest[0]) < 0x80) return false;
  const std::uint32_t code_point = utf8_part(rest, 0).code_point;
  return (code_point >= 0xC0 && code_point <= 0x24F) || code_point == 0x2019;
}

/// Whether the letter before `rest` is the article: "a good way".
bool is_article(char letter, std::string_view rest) {
  return to_upper(letter) == 'A' && rest.size() > 1 && is_blank(rest[0]) && is_lower(rest[1]);
}

enum class Case { kCapital, kAny };

/// The choice letter that stands alone at `at`.
std::optional<char> letter_at(std::string_view text, std::size_t at, Case letters) {
  if (at >= text.size()) return std::nullopt;
  const char letter = letters == Case::kAny ? to_upper(text[at]) : text[at];
  const std::string_view rest = text.substr(at + 1);
  if (!is_choice(letter) || continues_word(rest) || is_article(text[at], rest)) return std::nullopt;
  return letter;
}

/// Length of the decoration at the start of `text`: a mark or a word that may stand between an
/// anchor and its letter; 0 when there is none.
std::size_t decoration(std::string_view text) {
  static constexpr std::array<std::string_view, 20> kWords = {
      "option", "choice",   "letter", "the",   "definitely", "certainly", "clearly",
      "surely", "probably", "likely", "most",  "obviously",  "indeed",    "actually",
      "simply", "really",   "thus",   "hence", "therefore",  "correct"};
  static constexpr std::array<std::string_view, 14> kMarks = {
      "\\boxed", "\\fbox", "\\text", "\\textbf", "\\mathrm", "\\mathbf", "\\(",
      "\\[",     "\u201c", "\u201d", "\u2018",   "\uff1a",   "\uff08",   "\u3010"};
  for (const std::string_view mark : kMarks) {
    if (text.starts_with(mark)) return mark.size();
  }
  if (std::string_view("*_`\"'([{$:=-> \t\n").find(text[0]) != std::string_view::npos) return 1;
  for (const std::string_view word : kWords) {
    if (starts_with_word(text, word)) return word.size();
  }
  return 0;
}

// Longer runs than any reply of ours holds; keeps a text of anchors and decoration linear.
constexpr std::size_t kMostDecoration = 200;

std::size_t skip_decoration(std::string_view text, std::size_t at) {
  const std::size_t end = std::min(text.size(), at + kMostDecoration);
  while (at < end) {
    // A letter before decoration: "the", but also "D" of "definitely" that is no word of ours.
    const std::size_t length = decoration(text.substr(at));
    if (length == 0) break;
    at += length;
  }
  return at;
}

/// Length of "answer", "choice", "option" or their Chinese form at `at`; 0 when there is none.
std::size_t anchor_word(std::string_view text, std::size_t at) {
  constexpr std::string_view kChinese = "\u7b54\u6848";
  const std::string_view rest = text.substr(at);
  if (rest.starts_with(kChinese)) return kChinese.size();
  if (at > 0 && is_alphanumeric(text[at - 1])) return 0;
  for (const std::string_view word : {"answer", "choice", "option"}) {
    if (starts_with_word(rest, word)) return word.size();
  }
  return 0;
}

/// Length of what links an anchor to its letter, spaces before it included; 0 when there is none.
std::size_t link(std::string_view text) {
  static constexpr std::array<std::string_view, 4> kWords = {"is", "should be", "must be",
                                                             "seems to be"};
  static constexpr std::array<std::string_view, 4> kMarks = {":", "=", "\uff1a", "\u662f"};
  std::size_t at = 0;
  while (at < text.size() && (is_blank(text[at]) || text[at] == '*' || text[at] == '_')) ++at;
  for (const std::string_view mark : kMarks) {
    if (text.substr(at).starts_with(mark)) return at + mark.size();
  }
  if (at == 0) return 0;
  for (const std::string_view word : kWords) {
    if (starts_with_word(text.substr(at), word)) return at + word.size();
  }
  return 0;
}

Answer found(char letter, const char* rule) { return {std::string(1, letter), rule}; }

/// Rule 1. A reply with many boxes that hold no letter is looked through from its end, some of it.
std::optional<Answer> from_box(std::string_view text) {
  constexpr int kMostBoxes = 8;
  for (int i = 0; i < kMostBoxes; ++i) {
    const std::optional<std::string_view> box = last_box(text);
    if (!box) return std::nullopt;
    const std::size_t at = skip_decoration(*box, 0);
    if (const auto letter = letter_at(*box, at, Case::kCapital)) return found(*letter, "box");
    const auto content = static_cast<std::size_t>(box->data() - text.data());
    text = text.substr(0, text.rfind('\\', content));
  }
  return std::nullopt;
}

/// Rule 2: the last anchor that yields a letter.
std::optional<Answer> from_anchor(std::string_view text) {
  for (std::size_t at = text.size(); at-- > 0;) {
    if (std::string_view("aAcCoO\xe7").find(text[at]) == std::string_view::npos) continue;
    const std::size_t word = anchor_word(text, at);
    if (word == 0) continue;
    const std::size_t linked = link(text.substr(at + word));
    if (linked == 0) continue;
    const std::size_t start = skip_decoration(text, at + word + linked);
    if (const auto letter = letter_at(text, start, Case::kAny)) return found(*letter, "anchor");
  }
  return std::nullopt;
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

/// The letter of "(B)" or "[B]" at the start of `text`.
std::optional<char> bracketed(std::string_view text) {
  if (text.size() < 3 || !is_choice(text[1])) return std::nullopt;
  const bool round = text[0] == '(' && text[2] == ')';
  const bool square = text[0] == '[' && text[2] == ']';
  return round || square ? std::optional(text[1]) : std::nullopt;
}

/// The letter that is all of `line` but for decoration and a final period.
std::optional<char> alone(std::string_view line) {
  const std::size_t at = skip_decoration(line, 0);
  if (at >= line.size() || !is_choice(line[at])) return std::nullopt;
  const std::string_view rest = line.substr(at + 1);
  const bool only_marks = rest.find_first_not_of("*_`\"')]}$. \t") == std::string_view::npos;
  return only_marks ? std::optional(line[at]) : std::nullopt;
}

/// Rules 3 and 4: what a line that is, or starts with, a letter says; `marks` may follow the
/// letter.
std::optional<char> from_line(std::string_view line, std::string_view marks) {
  line = trim(line);
  if (const auto letter = bracketed(line)) return letter;
  if (const auto letter = alone(line)) return letter;
  const bool marked =
      line.size() > 1 && is_choice(line[0]) && marks.find(line[1]) != std::string_view::npos;
  return marked ? std::optional(line[0]) : std::nullopt;
}

/// Rule 6: all of the reply is one choice, and only one.
std::optional<Answer> from_choice_text(std::string_view text,
                                       const LetterGrader::Choices& choices) {
  const auto form = [](std::string_view words) {
    words = trim(words);
    if (words.ends_with('.')) words.remove_suffix(1);
    std::string plain;
    for (const char c : words) {
      if (!is_space(c)) plain += to_lower(c);
    }
    return plain;
  };
  const std::string reply = form(text);
  std::optional<Answer> answer;
  for (std::size_t i = 0; i < choices.size() && i < 4; ++i) {
    if (reply.empty() || form(choices[i]) != reply) continue;
    if (answer) return std::nullopt;
    answer = found(static_cast<char>('A' + i), "choice_text");
  }
  return answer;
}

/// Rules 1 to 4.
std::optional<Answer> stated_answer(std::string_view text) {
  if (auto answer = from_box(text)) return answer;
  if (auto answer = from_anchor(text)) return answer;
  const std::string_view body = trim(text);
  const std::string_view first = body.substr(0, body.find('\n'));
  if (const auto letter = from_line(first, ".):")) return found(*letter, "first_line");
  const std::string_view last = body.substr(body.rfind('\n') + 1);
  if (const auto letter = from_line(last, ".)")) return found(*letter, "last_line");
  return std::nullopt;
}

/// Rule 5, the last resort.
std::optional<Answer> from_brackets(std::string_view text) {
  for (std::size_t at = text.rfind('('); at != std::string_view::npos;
       at = at == 0 ? std::string_view::npos : text.rfind('(', at - 1)) {
    if (const auto letter = bracketed(text.substr(at))) return found(*letter, "bracketed");
  }
  return std::nullopt;
}

std::optional<Answer> extract_default(std::string_view reply,
                                      const LetterGrader::Choices& choices) {
  const auto answer_part = after_reasoning(before_special_tokens(reply));
  if (!answer_part) return std::nullopt;
  const std::string text = without_emphasis(clean_text(*answer_part));
  if (const auto run_on = run_on_start(text)) {
    const std::string_view before = std::string_view(text).substr(0, *run_on);
    if (auto answer = stated_answer(before)) return answer;
    if (auto answer = from_choice_text(before, choices)) return answer;
  }
  if (auto answer = stated_answer(text)) return answer;
  if (auto answer = from_brackets(text)) return answer;
  return from_choice_text(text, choices);
}

bool equal_exactly(std::string_view answer, std::string_view gold) { return answer == gold; }

}  // namespace

const std::vector<LetterGrader>& letter_graders() {
  static const std::vector<LetterGrader> kTable = [] {
    std::vector<LetterGrader> table = {{"default", &extract_default, &equal_exactly}};
    const std::vector<LetterGrader>& profiles = letter_profiles();
    table.insert(table.end(), profiles.begin(), profiles.end());
    return table;
  }();
  return kTable;
}

const LetterGrader& letter_grader(std::string_view name) {
  for (const LetterGrader& grader : letter_graders()) {
    if (grader.name == name) return grader;
  }
  throw InternalError("unknown letter grader \"" + std::string(name) + "\"");
}

}  // namespace asdbench
