// What a judge is asked: our own prompts, or published ones from a file, filled with one item.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "eval/core/sample.h"

namespace asdbench {

/// One prompt with {placeholders}: question, answer, ref_answer_1, ref_answer_2, question_1,
/// question_2, answer_1, answer_2, and for pairs answer_a, answer_b, answer_a_1, answer_a_2,
/// answer_b_1, answer_b_2. "{{" and "}}" stand for single braces.
struct JudgePrompt {
  std::string system;  // "" for none
  std::string text;
};

/// A set of prompts by use: "single", "single-reference", "single-turns", "single-turns-reference"
/// and the same four with "pair". Not every set has every use.
struct JudgePrompts {
  std::string name;  // "own-1", or the file's name and digest
  std::map<std::string, JudgePrompt, std::less<>> by_use;
};

/// Ours.
const JudgePrompts& own_judge_prompts();

/// FastChat's judge_prompts.jsonl, or a file of its form (name, type, system_prompt,
/// prompt_template, output_format): the prompts named single-v1, single-math-v1, pair-v2,
/// pair-math-v1, and each of them with "-multi-turn". Others are passed over. DataError for a
/// damaged row, an unknown placeholder, an output format that is neither "[[rating]]" nor "[[A]]",
/// a name that occurs twice, or a file without any of them.
JudgePrompts read_judge_prompts(const std::filesystem::path& file);

/// What fills the placeholders.
using JudgeValues = std::map<std::string, std::string, std::less<>>;

/// The chat for one judgement: an optional system message and one of the user. A value is put in as
/// it stands: braces in it are text. ConfigError when the set lacks the use, or the item a value.
std::vector<Message> fill_judge_prompt(const JudgePrompts& prompts, std::string_view use,
                                       const JudgeValues& values);

}  // namespace asdbench
