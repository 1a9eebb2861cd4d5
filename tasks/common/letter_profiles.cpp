// Linear scans in place of the patterns that the field's graders search with.
#include "tasks/common/letter_profiles.h"

#include <algorithm>
#include <array>

#include "eval/core/utf8.h"
#include "tasks/common/characters.h"

namespace asdbench {
namespace {

using Choices = LetterGrader::Choices;

bool is_choice(char c) { return c >= 'A' && c <= 'D'; }
char to_upper(char c) { return is_lower(c) ? static_cast<char>(c - 'a' + 'A') : c; }

bool starts_with_any_case(std::string_view text, std::string_view lower) {
  if (text.size() < lower.size()) return false;
  return std::equal(lower.begin(), lower.end(), text.begin(),
                    [](char want, char have) { return want == to_lower(have); });
}

/// Bytes of white space at the start of `text`.
std::size_t spaces(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size() && is_space(text[at])) ++at;
  return at;
}

Answer pattern_answer(std::string_view text) { return {std::string(text), "pattern"}; }

bool equal_exactly(std::string_view answer, std::string_view gold) { return answer == gold; }

// ---------------------------------------------------------------------------- simple-evals

// Markdown and LaTeX wrappers go first, each wherever it stands.
std::string without_wrappers(std::string_view reply) {
  static constexpr std::array<std::string_view, 12> kWrappers = {
      "**",        "$\\boxed{", "}$",     "\\$", "$\\text{",  "$",
      "\\mathrm{", "\\{",       "\\text", "\\(", "\\mathbf{", "{"};
  std::string text(reply);
  for (const std::string_view wrapper : kWrappers) {
    std::string next;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t found = std::min(text.find(wrapper, at), text.size());
      next.append(text, at, found - at);
      at = found == text.size() ? found : found + wrapper.size();
    }
    text = std::move(next);
  }
  return text;
}

/// The word for "answer", in any case for ASCII letters, then spaces, then a colon of either width.
/// Returns the end of the first place where a letter follows on the same line.
std::optional<char> letter_after(std::string_view text, std::string_view word) {
  const char first = word[0];
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (to_lower(text[at]) != first || !starts_with_any_case(text.substr(at), word)) continue;
    std::size_t next = at + word.size();
    next += spaces(text.substr(next));
    if (text.substr(next).starts_with(':')) {
      ++next;
    } else if (text.substr(next).starts_with("\uff1a")) {
      next += 3;
    } else {
      continue;
    }
    while (next < text.size() && (text[next] == ' ' || text[next] == '\t')) ++next;
    if (next < text.size() && is_choice(to_upper(text[next]))) return text[next];
  }
  return std::nullopt;
}

std::optional<Answer> extract_simple_evals(std::string_view reply, const Choices&) {
  static constexpr std::array<std::string_view, 20> kWords = {
      "answer",
      "antwort",
      "\u7b54\u6848",
      "\u7b54",
      "\u56de\u7b54",
      "\u89e3\u7b54",
      "\u7b54\u5e94",
      "\uc815\ub2f5",
      "\ub2f5\ubcc0",
      "\ub2f5",
      "r\u00e9ponse",
      "resposta",
      "respuesta",
      "risposta",
      "jawaban",
      "jibu",
      "idahun",
      "\u0909\u0924\u094d\u0924\u0930",
      "\u0989\u09a4\u09cd\u09a4\u09b0",
      "\u0627\u0644\u0625\u062c\u0627\u0628\u0629"};
  const std::string text = without_wrappers(reply);
  for (const std::string_view word : kWords) {
    if (const auto letter = letter_after(text, word)) {
      return pattern_answer(std::string_view(&*letter, 1));
    }
  }
  return std::nullopt;
}

// ---------------------------------------------------------------------------- lm-eval

bool is_punctuation(char c) {
  return std::string_view("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~").find(c) != std::string_view::npos;
}

std::string_view trim(std::string_view text) {
  text.remove_prefix(spaces(text));
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

std::optional<Answer> extract_first_line(std::string_view reply, const Choices&) {
  const std::string_view body = trim(reply);
  return pattern_answer(trim(body.substr(0, body.find('\n'))));
}

bool equal_without_case_and_marks(std::string_view answer, std::string_view gold) {
  std::string plain;
  for (const char c : answer) {
    if (!is_punctuation(c)) plain += to_lower(c);
  }
  return plain.size() == gold.size() && starts_with_any_case(gold, plain);
}

/// Lower case, and without the marks that Unicode calls punctuation (of ASCII).
std::string choice_form(std::string_view text) {
  std::string form;
  for (const char c : text) {
    if (!is_punctuation(c) || std::string_view("$+<=>^`|~").find(c) != std::string_view::npos) {
      form += to_lower(c);
    }
  }
  return form;
}

std::string in_brackets(std::size_t choice) {
  return std::string("(") + static_cast<char>('A' + choice) + ")";
}

/// The last choice text in the reply, read from the left without overlaps, the first choice that
/// fits at a place.
std::optional<std::size_t> last_choice_text(std::string_view reply, const Choices& choices) {
  const std::string text = choice_form(reply);
  std::vector<std::string> forms;
  std::vector<std::size_t> next;  // where each choice occurs next
  for (const std::string& choice : choices) {
    forms.push_back(choice_form(trim(choice)));
    next.push_back(forms.back().empty() ? std::string::npos : text.find(forms.back()));
  }
  std::optional<std::size_t> last;
  while (true) {
    const auto nearest = std::min_element(next.begin(), next.end());
    if (nearest == next.end() || *nearest == std::string::npos) return last;
    last = static_cast<std::size_t>(nearest - next.begin());
    const std::size_t end = *nearest + forms[*last].size();
    for (std::size_t i = 0; i < next.size(); ++i) {
      if (next[i] < end) next[i] = text.find(forms[i], end);
    }
  }
}

std::optional<Answer> extract_flan_flexible(std::string_view reply, const Choices& choices) {
  for (std::size_t at = reply.size(); at-- > 0;) {
    if (reply[at] == '(' && at + 2 < reply.size() && reply[at + 1] >= 'A' && reply[at + 1] <= 'Z' &&
        reply[at + 2] == ')') {
      return pattern_answer(reply.substr(at, 3));
    }
  }
  if (const auto choice = last_choice_text(reply, choices)) {
    return pattern_answer(in_brackets(*choice));
  }
  std::optional<Answer> last;
  for (std::size_t at = reply.find(':'); at != std::string_view::npos;
       at = reply.find(':', at + 1)) {
    const std::size_t letter = at + 1 + spaces(reply.substr(at + 1));
    if (letter < reply.size() && is_choice(reply[letter])) {
      last = pattern_answer(in_brackets(static_cast<std::size_t>(reply[letter] - 'A')));
    }
  }
  return last;
}

bool equal_in_brackets(std::string_view answer, std::string_view gold) {
  return answer.size() == 3 && answer.substr(1, 1) == gold;
}

std::optional<Answer> extract_llama_cot(std::string_view reply, const Choices&) {
  constexpr std::string_view kMark = "best answer is ";
  for (std::size_t at = reply.rfind(kMark); at != std::string_view::npos;
       at = at == 0 ? std::string_view::npos : reply.rfind(kMark, at - 1)) {
    const std::size_t letter = at + kMark.size();
    if (letter < reply.size() && reply[letter] >= 'A' && reply[letter] <= 'Z') {
      return pattern_answer(reply.substr(letter, 1));
    }
  }
  return std::nullopt;
}

// ---------------------------------------------------------------------------- lighteval

/// A match of one of lighteval's patterns: the letter, and where the match ends.
struct Match {
  char letter;
  std::size_t end;
};

std::size_t bold(std::string_view text) { return text.starts_with("**") ? 2 : 0; }

/// "A", "(A)" with the end of the letter part; nullopt when neither stands at `at`.
std::optional<Match> index_at(std::string_view text, std::size_t at) {
  const bool open = at < text.size() && text[at] == '(';
  const std::size_t letter = at + (open ? 1 : 0);
  if (letter >= text.size() || !is_choice(text[letter])) return std::nullopt;
  if (!open) return Match{text[letter], letter + 1};
  if (letter + 1 >= text.size() || text[letter + 1] != ')') return std::nullopt;
  return Match{text[letter], letter + 2};
}

/// A letter with bold marks around it and an end of its word behind, at `at`.
std::optional<Match> marked_index_at(std::string_view text, std::size_t at) {
  const auto index = index_at(text, at + bold(text.substr(std::min(at, text.size()))));
  if (!index) return std::nullopt;
  std::size_t end = index->end;
  // Greedy bold marks, given back when nothing that may follow stands behind them.
  for (const std::size_t marks : {bold(text.substr(end)), std::size_t{0}}) {
    const std::size_t next = end + marks;
    if (next == text.size()) return Match{index->letter, next};
    if (std::string_view(".,: ").find(text[next]) != std::string_view::npos) {
      return Match{index->letter, next + 1};
    }
  }
  return std::nullopt;
}

/// The first marked letter after a space (or at the start of the text) within 50 characters of
/// `from` on the same line.
std::optional<Match> marked_index_near(std::string_view text, std::size_t from) {
  constexpr std::size_t kReach = 50;
  for (std::size_t at = from; at <= from + kReach && at < text.size(); ++at) {
    if (text[at] == ' ') {
      if (const auto match = marked_index_at(text, at + 1)) return match;
    }
    if (text[at] == '\n') break;
  }
  return std::nullopt;
}

/// The match that ends last of those that start at "answer" (with a colon right behind it when
/// `colon`), found from the left without overlaps.
std::optional<Match> near_answer_word(std::string_view text, bool colon) {
  constexpr std::string_view kWord = "answer";
  std::optional<Match> last;
  for (std::size_t at = 0; at < text.size();) {
    if (to_lower(text[at]) != 'a' || !starts_with_any_case(text.substr(at), kWord)) {
      ++at;
      continue;
    }
    const std::size_t next = at + kWord.size();
    const bool has_colon = next < text.size() && text[next] == ':';
    const auto match =
        !colon || has_colon ? marked_index_near(text, next + (colon ? 1 : 0)) : std::nullopt;
    if (match) last = match;
    at = match ? match->end : next;
  }
  return last;
}

/// "final answer is A", with up to 100 characters before the last "is".
std::optional<Match> final_answer(std::string_view text) {
  constexpr std::string_view kWords = "final answer";
  constexpr std::size_t kReach = 100;
  std::optional<Match> last;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (to_lower(text[at]) != 'f' || !starts_with_any_case(text.substr(at), kWords)) continue;
    const std::size_t from = at + kWords.size();
    for (std::size_t is = from; is <= from + kReach && is + 3 < text.size(); ++is) {
      if (!is_space(text[is])) continue;
      if (!text.substr(is + 1).starts_with("is")) {
        if (text[is] == '\n') break;
        continue;
      }
      std::size_t next = is + 3;
      if (next < text.size() && text[next] == ':') ++next;
      next += spaces(text.substr(std::min(next, text.size())));
      const auto match = index_at(text, next);
      if (match && (!last || match->end >= last->end)) last = match;
    }
  }
  return last;
}

std::optional<Match> last_line_start(std::string_view text) {
  for (std::size_t at = text.rfind('\n'); at != std::string_view::npos;
       at = at == 0 ? std::string_view::npos : text.rfind('\n', at - 1)) {
    if (const auto match = marked_index_at(text, at + 1)) return match;
  }
  return std::nullopt;
}

std::optional<Match> last_marked(std::string_view text) {
  for (std::size_t at = text.size(); at-- > 0;) {
    if (at > 0 && text[at - 1] != ' ') continue;
    if (const auto match = marked_index_at(text, at)) return match;
  }
  return std::nullopt;
}

std::optional<Answer> extract_lighteval(std::string_view reply, const Choices&) {
  std::optional<Match> match = final_answer(reply);
  if (!match) match = near_answer_word(reply, true);
  if (!match) match = near_answer_word(reply, false);
  if (!match) match = marked_index_at(reply, 0);
  if (!match) match = last_line_start(reply);
  if (!match) match = last_marked(reply);
  if (match) return pattern_answer(std::string_view(&match->letter, 1));
  const auto any = std::find_if(reply.rbegin(), reply.rend(), is_choice);
  if (any == reply.rend()) return std::nullopt;
  return pattern_answer(std::string_view(&*any, 1));
}

// ---------------------------------------------------------------------------- qwen

/// Whether the character that starts at `at` belongs to a word, as Unicode's letters and digits do.
bool in_word(std::string_view text, std::size_t at) {
  if (at >= text.size()) return false;
  if (static_cast<unsigned char>(text[at]) < 0x80) {
    return is_alphanumeric(text[at]) || text[at] == '_';
  }
  const std::uint32_t c = utf8_part(text, at).code_point;
  const bool mark = (c >= 0x80 && c <= 0xBF && c != 0xAA && c != 0xB5 && c != 0xBA) || c == 0xD7 ||
                    c == 0xF7 || (c >= 0x2000 && c <= 0x206F) || (c >= 0x3000 && c <= 0x303F) ||
                    (c >= 0xFF00 && c <= 0xFF0F) || (c >= 0xFF1A && c <= 0xFF20) ||
                    (c >= 0xFF3B && c <= 0xFF40) || (c >= 0xFF5B && c <= 0xFF65);
  return c != 0 && !mark;
}

/// The start of the character that ends before `at` > 0.
std::size_t character_before(std::string_view text, std::size_t at) {
  std::size_t start = at - 1;
  while (start > 0 && at - start < 4 && (static_cast<unsigned char>(text[start]) & 0xC0) == 0x80) {
    --start;
  }
  return start;
}

bool stands_alone(std::string_view text, std::size_t at) {
  return (at == 0 || !in_word(text, character_before(text, at))) && !in_word(text, at + 1);
}

std::optional<Answer> extract_qwen(std::string_view reply, const Choices&) {
  std::string text(reply);
  std::transform(text.begin(), text.end(), text.begin(), to_upper);
  const auto is_letter_of_choice = [](char c) { return c >= 'A' && c <= 'E'; };
  std::size_t mark = std::string::npos;
  for (const std::string_view words : {"ANSWER IS", "CHOICE IS"}) {
    const std::size_t at = text.rfind(words);
    if (at != std::string::npos && (mark == std::string::npos || at > mark)) mark = at;
  }
  if (mark != std::string::npos) {
    for (std::size_t at = mark + std::string_view("ANSWER IS").size(); at < text.size(); ++at) {
      if (is_letter_of_choice(text[at]) && stands_alone(text, at)) {
        return pattern_answer(std::string_view(text).substr(at, 1));
      }
    }
  }
  for (std::size_t at = text.size(); at-- > 0;) {
    if (is_letter_of_choice(text[at]) && stands_alone(text, at)) {
      return pattern_answer(std::string_view(text).substr(at, 1));
    }
  }
  return std::nullopt;
}

}  // namespace

const std::vector<LetterGrader>& letter_profiles() {
  static const std::vector<LetterGrader> kTable = {
      {"simple-evals", &extract_simple_evals, &equal_exactly},
      {"lm-eval-generative", &extract_first_line, &equal_without_case_and_marks},
      {"lm-eval-flan-flexible", &extract_flan_flexible, &equal_in_brackets},
      {"lm-eval-llama-cot", &extract_llama_cot, &equal_exactly},
      {"lighteval", &extract_lighteval, &equal_exactly},
      {"qwen", &extract_qwen, &equal_exactly},
  };
  return kTable;
}

}  // namespace asdbench
