// Which judgements stored replies need, who gives them, and how they come into the database.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <iosfwd>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "eval/run/ask_queue.h"
#include "eval/run/stored_task.h"
#include "results/store.h"
#include "tasks/common/judge_prompts.h"

namespace asdbench {

enum class JudgeMode : std::uint8_t { kByTask, kSingle, kPair };
enum class Baseline : std::uint8_t { kStrict, kReference };
enum class Orders : std::uint8_t { kBoth, kSeeded };

struct JudgeOptions {
  std::string judge;                      // the model's name, stored with every judgement
  const JudgePrompts* prompts = nullptr;  // required
  std::vector<std::string> tasks;         // empty: every task that judges rate
  JudgeMode mode = JudgeMode::kByTask;    // MT-Bench is rated, Alpaca compared
  Baseline baseline =
      Baseline::kStrict;          // of pairs: the same target's strict output, or the reference
  Orders orders = Orders::kBoth;  // of pairs; kSeeded: one order a sample, drawn by `seed`
  std::int64_t seed = 0;
  std::int64_t max_tokens = 2048;  // of the judge's reply
  DataDir dir;                     // for questions and references
};

/// One judgement that is wanted.
struct JudgeQuestion {
  JudgementRow row;  // what is known before it is asked; ratings and reply are empty
  std::string task, sample_id, model;  // model: the cell's label, unique in the database
  std::int64_t turn = 1;
  std::vector<Message> messages;
  std::string answers;  // all that the judge is shown and did not write, for marks in it
};

struct JudgePlan {
  std::vector<JudgeQuestion> all;
  std::vector<std::size_t> open;    // not judged yet, or failed: indices into `all`
  std::vector<std::size_t> copies;  // open ones whose prompt another one of `all` shares or shared
  std::vector<std::size_t> equal;   // open ones whose two replies are one text
  std::size_t done = 0;
  std::vector<std::string> notes;  // cells that are left out, and why
};

/// Everything that replies in the database and the options ask for. ConfigError, DataError.
JudgePlan plan_judgements(const ResultStore& store, const JudgeOptions& options);

/// Estimates, and what was counted.
struct TokenCount {
  std::int64_t prompt_tokens = 0, reply_tokens = 0;
  std::int64_t untold = 0;  // replies without a count
};
/// Of the questions that will be asked: prompts at four bytes a token, replies at their limit.
TokenCount estimated_tokens(const JudgePlan& plan, std::int64_t max_tokens);

struct JudgeResult {
  AskSummary asked;
  TokenCount tokens;
  std::size_t copied = 0, equal = 0;
  std::size_t unrated = 0;  // replies that hold no rating
};

/// Asks what is open, stores every judgement as it comes, and copies what shares a prompt.
/// `progress` gets (done, total).
JudgeResult run_judgements(ResultStore& store, const JudgePlan& plan,
                           const std::function<std::unique_ptr<Judge>()>& make,
                           const AskOptions& asking,
                           const std::function<void(std::size_t, std::size_t)>& progress,
                           const std::function<bool()>& interrupted);

/// Writes the open questions for a judge elsewhere, one JSON object a line: id, task, question_id,
/// model, turn, kind, place, messages. Returns how many.
std::size_t export_questions(const JudgePlan& plan, std::ostream& out);

struct ImportResult {
  std::size_t imported = 0, replaced = 0;  // replaced: earlier lines of the same question
  std::size_t unrated = 0;
  std::vector<std::string> missing;  // questions of the plan that are still open
};
/// Reads judgements made elsewhere: lines with an `id` of the export, or FastChat's question_id,
/// model and turn; `judgment` is the judge's text and `score` its rating (-1: none; extracted from
/// the text when absent). Of several lines for one question the last counts. DataError, with the
/// line, for a question that is not known.
ImportResult import_judgements(ResultStore& store, const JudgePlan& plan,
                               const std::filesystem::path& file);

/// Stored preferences in AlpacaEval's form: instruction, output_1 (baseline), output_2,
/// generator_1, generator_2, annotator, preference (null: none), as one JSON array.
std::string alpaca_annotations(const ResultStore& store, const DataDir& dir);

}  // namespace asdbench
