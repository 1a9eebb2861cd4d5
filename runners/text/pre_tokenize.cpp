// The three scanners: alternatives of the reference's regular expressions, tried in their order.
#include "runners/text/pre_tokenize.h"

#include <cstdint>

#include "eval/core/utf8.h"
#include "runners/text/unicode_table.h"

namespace asdbench {
namespace {

enum class Case : std::uint8_t { kLower, kFold };

constexpr std::uint32_t kLongS = 0x17F;  // folds to s

struct Char {
  std::uint32_t code_point = 0;
  std::uint32_t length = 0;  // bytes; 0 at the end of the text
  CharClass char_class = CharClass::kOther;

  bool at_end() const { return length == 0; }
  bool is(CharClass wanted) const { return length != 0 && char_class == wanted; }
  bool is_newline() const { return length != 0 && (code_point == '\n' || code_point == '\r'); }
};

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text), classes_(char_classes()) {}

  // Llama-3 and Qwen, which differ only in how many digits make a number.
  std::size_t split_form(std::size_t begin, int max_digits) const {
    const Char first = at(begin);
    if (const std::size_t end = contraction(begin, Case::kFold)) return end;
    if (first.is(CharClass::kLetter)) return run(begin, CharClass::kLetter);
    if (first.is(CharClass::kNumber)) return digits(begin, max_digits);
    if (!first.is_newline() && at(begin + first.length).is(CharClass::kLetter)) {
      return run(begin + first.length, CharClass::kLetter);
    }
    const std::size_t body = begin + (first.code_point == ' ' ? 1 : 0);
    if (at(body).is(CharClass::kOther)) {
      std::size_t end = run(body, CharClass::kOther);
      while (at(end).is_newline()) ++end;
      return end;
    }
    return spaces(begin, Newlines::kEndRun);
  }

  // GPT-2's form after every number has been isolated: a number ends the piece before it.
  std::size_t digits_form(std::size_t begin) const {
    const Char first = at(begin);
    if (first.is(CharClass::kNumber)) return begin + first.length;
    if (const std::size_t end = contraction(begin, Case::kLower)) return end;
    const std::size_t body = begin + (first.code_point == ' ' ? 1 : 0);
    for (const CharClass wanted : {CharClass::kLetter, CharClass::kOther}) {
      if (at(body).is(wanted)) return run(body, wanted);
    }
    return spaces(begin, Newlines::kOrdinary);
  }

 private:
  enum class Newlines : std::uint8_t { kOrdinary, kEndRun };

  Char at(std::size_t offset) const {
    if (offset >= text_.size()) return {};
    const auto byte = static_cast<std::uint8_t>(text_[offset]);
    if (byte < 0x80) return {byte, 1, classes_[byte]};
    const Utf8Part part = utf8_part(text_, offset);
    // The replacement character stands for a stray byte: it is kOther, and no rule looks for it.
    if (part.form != Utf8Form::kWellFormed) return {0xFFFD, 1, CharClass::kOther};
    return {part.code_point, part.length, classes_[part.code_point]};
  }

  // End of the run of `wanted` that starts at `offset`.
  std::size_t run(std::size_t offset, CharClass wanted) const {
    for (Char c = at(offset); c.is(wanted); c = at(offset)) offset += c.length;
    return offset;
  }

  std::size_t digits(std::size_t offset, int max_digits) const {
    for (int i = 0; i < max_digits && at(offset).is(CharClass::kNumber); ++i) {
      offset += at(offset).length;
    }
    return offset;
  }

  // End of 's 't 're 've 'm 'll 'd at `begin`, or 0.
  std::size_t contraction(std::size_t begin, Case letters) const {
    if (text_[begin] != '\'') return 0;
    const Char first = at(begin + 1);
    const std::size_t second_at = begin + 1 + first.length;
    const std::uint32_t a = lower(first.code_point, letters);
    const std::uint32_t b = lower(at(second_at).code_point, letters);
    if (a == 's' || a == 't' || a == 'm' || a == 'd') return second_at;
    const bool pair = (a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l');
    return pair ? second_at + 1 : 0;
  }

  static std::uint32_t lower(std::uint32_t code_point, Case letters) {
    if (letters == Case::kLower) return code_point;
    if (code_point == kLongS) return 's';
    return code_point >= 'A' && code_point <= 'Z' ? code_point + ('a' - 'A') : code_point;
  }

  // White space: up to the last newline where newlines end a run; all of it at the end of the
  // piece; else all but the last character, which goes with the word that follows.
  std::size_t spaces(std::size_t begin, Newlines newlines) const {
    std::size_t end = begin;
    std::size_t last = begin;
    std::size_t after_newline = begin;
    Char c = at(end);
    for (; c.is(CharClass::kSpace); c = at(end)) {
      last = end;
      end += c.length;
      if (c.is_newline()) after_newline = end;
    }
    if (newlines == Newlines::kEndRun && after_newline > begin) return after_newline;
    const bool piece_ends =
        c.at_end() || (newlines == Newlines::kOrdinary && c.is(CharClass::kNumber));
    return piece_ends || last == begin ? end : last;
  }

  std::string_view text_;
  const CharClass* classes_;
};

}  // namespace

std::size_t pre_token_end(PreTokenizer kind, std::string_view text, std::size_t begin) {
  const Scanner scanner(text);
  switch (kind) {
    case PreTokenizer::kSmolLm:
      return scanner.digits_form(begin);
    case PreTokenizer::kLlama3:
      return scanner.split_form(begin, 3);
    case PreTokenizer::kQwen2:
      break;
  }
  return scanner.split_form(begin, 1);
}

}  // namespace asdbench
