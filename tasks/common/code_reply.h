// What a reply holds that may be a program: fenced blocks, the text outside them, a function's
// body. Each step is linear in the text and throws for no input. Source: specs/scoring.md,
// section 5.2.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace asdbench {

/// A fenced block of Python, or of no language named.
struct CodeBlock {
  std::string text;
  bool named = false;   // its fence names the language
  bool closed = false;  // false: it runs to the end of the reply
};

struct FencedText {
  std::vector<CodeBlock> blocks;  // blocks of other languages are left out
  std::string
      outside;  // what stands in no fence; each block, of any language, is one line "```" of it
  std::string before;  // what stands before the first fence; all of the text when there is none
};

/// Splits at fences: lines of three or more backticks or tildes. A fence glued to the end of a line
/// of the block closes it too. A block whose every line carries the fence's indentation loses it.
/// `text` has "\n" line ends.
FencedText split_fences(std::string_view text);

/// Whether a line at the left margin binds `name` by `def name(` or `name =`.
bool defines(std::string_view text, std::string_view name);

/// `text` before the first line that ends a function's body in a completion: one that starts with
/// class, def, #, @, print, if or assert, or a special token.
std::string_view body_part(std::string_view text);

/// What a prompt holds before the `def` of `name`: imports and helpers; "" when it does not define
/// it.
std::string_view preamble_of(std::string_view prompt, std::string_view name);

/// Where the program of a reply may be, in the order in which it is looked for. Which of them
/// compiles, only Python can tell: the sandbox's driver chooses.
struct CodeCandidates {
  std::vector<std::string> blocks;  // that define the entry point
  std::string outside;              // text outside fences, if it defines the entry point; else ""
  std::vector<std::string> bodies;  // of the function that a prompt began; empty when it began none

  bool empty() const { return blocks.empty() && outside.empty() && bodies.empty(); }
};

enum class Bodies { kNone, kAllowed };

/// The candidates of a reply after its reasoning, special tokens and "[BEGIN]" ... "[DONE]" are
/// dealt with.
CodeCandidates code_candidates(std::string_view reply, std::string_view entry_point, Bodies bodies);

}  // namespace asdbench
