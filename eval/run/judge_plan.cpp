// From stored replies to the questions that a judge has to answer.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>
#include <tuple>

#include "eval/core/digest.h"
#include "eval/core/error.h"
#include "eval/run/judge.h"
#include "tasks/common/judge_text.h"

namespace asdbench {
namespace {

/// A finished reply, and the earlier ones of its conversation.
struct Reply {
  std::int64_t output_id = 0;
  std::string sample_id;
  std::int64_t repeat = 0, turn = 1;
  std::string text;
};
using ReplyKey = std::tuple<std::string, std::int64_t, std::int64_t>;  // sample, repeat, turn
using Replies = std::map<ReplyKey, Reply>;

Replies replies_of(const ResultStore& store, std::int64_t cell) {
  Replies replies;
  store.query(fmt::format("SELECT id, sample_id, repeat, turn, completion FROM output "
                          "WHERE cell_id = {} AND status = 'done'",
                          cell),
              [&](const auto&, const auto& row) {
                Reply reply{.output_id = std::stoll(*row[0]),
                            .sample_id = *row[1],
                            .repeat = std::stoll(*row[2]),
                            .turn = std::stoll(*row[3]),
                            .text = row[4].value_or("")};
                const ReplyKey key = {reply.sample_id, reply.repeat, reply.turn};
                replies.emplace(key, std::move(reply));
              });
  return replies;
}

/// The strict cell that differs from `cell` in drafter and rule only, plain decoding before others.
std::optional<std::int64_t> strict_cell(const ResultStore& store, std::int64_t cell) {
  std::optional<std::int64_t> found;
  const char* same = "json_remove({}.identity, '$.verifier', '$.drafter', '$.drafts')";
  store.query(fmt::format("SELECT base.id FROM cell JOIN cell AS base ON {} = {} "
                          "WHERE cell.id = {} AND base.verifier = 'strict' AND base.id <> cell.id "
                          "ORDER BY base.drafter <> 'none', base.id LIMIT 1",
                          fmt::format(fmt::runtime(same), "base"),
                          fmt::format(fmt::runtime(same), "cell"), cell),
              [&](const auto&, const auto& row) { found = std::stoll(*row[0]); });
  return found;
}

class Planner {
 public:
  Planner(const ResultStore& store, const JudgeOptions& options)
      : store_(store), options_(options) {}

  JudgePlan plan() {
    const std::vector<StoredCell> cells = stored_cells(store_);
    for (const StoredCell& cell : cells) {
      const bool wanted = options_.tasks.empty() ||
                          std::find(options_.tasks.begin(), options_.tasks.end(), cell.task) !=
                              options_.tasks.end();
      if (!wanted || (cell.task != "mt_bench" && cell.task != "alpaca")) continue;
      const auto alike = std::count_if(cells.begin(), cells.end(), [&](const StoredCell& other) {
        return other.task == cell.task && other.label() == cell.label();
      });
      model_ = alike > 1 ? fmt::format("{} | cell {}", cell.label(), cell.id) : cell.label();
      add_cell(cell);
    }
    sort_out();
    return std::move(plan_);
  }

 private:
  struct LoadedTask {
    StoredTask stored;
    std::map<std::string, std::vector<std::string>> references;
  };

  const LoadedTask& task_of(const StoredCell& cell, bool references) {
    auto& loaded = tasks_[{cell.task, cell.split, cell.task_options, cell.data_sha256}];
    if (loaded == nullptr) {
      loaded = std::make_unique<LoadedTask>();
      loaded->stored = stored_task(cell, "", options_.dir);
      if (references) loaded->references = loaded->stored.task->references(options_.dir);
    }
    return *loaded;
  }

  void add_cell(const StoredCell& cell) {
    const bool rated = cell.task == "mt_bench";
    const bool pair =
        options_.mode == JudgeMode::kByTask ? !rated : options_.mode == JudgeMode::kPair;
    const bool reference = pair && options_.baseline == Baseline::kReference;
    if (reference && rated) {
      throw ConfigError(
          "--baseline reference: MT-Bench has references for some questions only, "
          "which judges see beside the answers; expected strict");
    }
    const LoadedTask& task = task_of(cell, rated || reference);
    const Replies replies = replies_of(store_, cell.id);
    if (!pair) {
      for (const auto& [key, reply] : replies) add_single(task, replies, reply, cell);
      return;
    }
    Replies baseline;
    if (reference) {
      baseline = references_as_replies(task, replies);
    } else if (cell.verifier == "strict") {
      return;  // it is what the others are compared with
    } else if (const auto strict = strict_cell(store_, cell.id)) {
      baseline = replies_of(store_, *strict);
    } else {
      plan_.notes.push_back(
          fmt::format("{}: left out, since the database has no strict output of "
                      "the same target to compare with",
                      model_));
      return;
    }
    for (const auto& [key, reply] : replies) {
      add_pair(task, replies, baseline, reply, cell, reference ? "reference" : "strict");
    }
  }

  static Replies references_as_replies(const LoadedTask& task, const Replies& replies) {
    Replies texts;
    for (const auto& [key, reply] : replies) {
      const auto found = task.references.find(reply.sample_id);
      const auto turn = static_cast<std::size_t>(reply.turn);
      if (found == task.references.end() || found->second.size() < turn) continue;
      texts[key] = {.output_id = 0,
                    .sample_id = reply.sample_id,
                    .repeat = reply.repeat,
                    .turn = reply.turn,
                    .text = found->second[turn - 1]};
    }
    return texts;
  }

  /// Replies to the turns up to this one; empty when one is missing.
  static std::vector<std::string> conversation(const Replies& replies, const Reply& reply) {
    std::vector<std::string> texts;
    for (std::int64_t turn = 1; turn <= reply.turn; ++turn) {
      const auto found = replies.find({reply.sample_id, reply.repeat, turn});
      if (found == replies.end()) return {};
      texts.push_back(found->second.text);
    }
    return texts;
  }

  /// Questions and, for rated tasks, references of this turn, by placeholder; returns the end of
  /// the name of the prompt's use.
  static std::string common_values(const LoadedTask& task, const Reply& reply, bool references,
                                   JudgeValues& values) {
    const auto sample = task.stored.samples.find(reply.sample_id);
    if (sample == task.stored.samples.end()) {
      throw StoreError(fmt::format("output {}: the data have no sample {}; the file was edited",
                                   reply.output_id, shown(reply.sample_id)));
    }
    const std::vector<std::string> questions = task.stored.task->questions(sample->second);
    const bool turns = reply.turn > 1;
    if (!turns) values["question"] = questions.at(0);
    for (std::size_t i = 0; turns && i < questions.size(); ++i) {
      values[fmt::format("question_{}", i + 1)] = questions[i];
    }
    const auto known = task.references.find(reply.sample_id);
    const bool refer = references && known != task.references.end();
    for (std::size_t i = 0; refer && i < known->second.size(); ++i) {
      values[fmt::format("ref_answer_{}", i + 1)] = known->second[i];
    }
    return std::string(turns ? "-turns" : "") + (refer ? "-reference" : "");
  }

  /// The replies of one side as the judge sees them: "answer", or "answer_1" and "answer_2".
  static void add_answers(const std::string& name, const std::vector<std::string>& texts,
                          JudgeValues& values, std::string& raw) {
    for (std::size_t i = 0; i < texts.size(); ++i) {
      values[texts.size() == 1 ? name : fmt::format("{}_{}", name, i + 1)] =
          without_marks(texts[i]);
      raw += texts[i] + "\n";
    }
  }

  JudgeQuestion question_of(const Reply& reply, const StoredCell& cell, const char* kind) const {
    JudgeQuestion question;
    question.row.output_id = reply.output_id;
    question.row.kind = kind;
    question.row.judge = options_.judge;
    question.row.prompts = options_.prompts->name;
    question.row.seed = options_.seed;
    question.task = cell.task;
    question.sample_id = reply.sample_id;
    question.model = model_;
    question.turn = reply.turn;
    return question;
  }

  void finish(JudgeQuestion question, const std::string& use, const JudgeValues& values) {
    question.messages = fill_judge_prompt(*options_.prompts, use, values);
    Sha256 digest;
    digest.update(fmt::format("{}\n{}\n{}\n", options_.judge, options_.seed, options_.max_tokens));
    for (const Message& message : question.messages) {
      digest.update(fmt::format("{} {}\n", name_of(message.role), message.content.size()));
      digest.update(message.content);
    }
    question.row.prompt_sha256 = digest.finish_hex();
    plan_.all.push_back(std::move(question));
  }

  void add_single(const LoadedTask& task, const Replies& replies, const Reply& reply,
                  const StoredCell& cell) {
    const std::vector<std::string> texts = conversation(replies, reply);
    if (texts.empty()) return;
    JudgeQuestion question = question_of(reply, cell, "single");
    JudgeValues values;
    const std::string end = common_values(task, reply, true, values);
    add_answers("answer", texts, values, question.answers);
    finish(std::move(question), "single" + end, values);
  }

  void add_pair(const LoadedTask& task, const Replies& replies, const Replies& baseline,
                const Reply& reply, const StoredCell& cell, const char* baseline_name) {
    const auto other = baseline.find({reply.sample_id, reply.repeat, reply.turn});
    const std::vector<std::string> texts = conversation(replies, reply);
    if (other == baseline.end() || texts.empty()) return;
    const std::vector<std::string> base = conversation(baseline, other->second);
    if (base.size() != texts.size()) return;
    // AlpacaEval asks once, in an order drawn from the instruction.
    const std::string drawn = sha256_hex(fmt::format("{}\n{}", options_.seed, reply.sample_id));
    const int only = drawn.back() % 2 == 0 ? 1 : 2;
    for (const int place : {1, 2}) {
      if (options_.orders == Orders::kSeeded && place != only) continue;
      JudgeQuestion question = question_of(reply, cell, "pair");
      question.row.baseline = baseline_name;
      question.row.place = place;
      if (other->second.output_id != 0) question.row.baseline_output_id = other->second.output_id;
      JudgeValues values;
      const std::string end = common_values(task, reply, cell.task == "mt_bench", values);
      add_answers(place == 1 ? "answer_a" : "answer_b", texts, values, question.answers);
      add_answers(place == 1 ? "answer_b" : "answer_a", base, values, question.answers);
      if (texts == base) question.row.status = "equal";
      finish(std::move(question), "pair" + end, values);
    }
  }

  /// What is judged already, what another question answers as well, and what is open.
  void sort_out() {
    using Key = std::tuple<std::int64_t, std::string, std::string, std::int64_t>;
    std::map<Key, std::string> judged;  // -> prompt
    std::set<std::string> known;        // prompts that have a reply
    store_.query(
        "SELECT output_id, kind, baseline, place, prompt_sha256, status, judge, prompts, seed "
        "FROM judgement WHERE status <> 'failed'",
        [&](const auto&, const auto& row) {
          if (row[5] == "done") known.insert(*row[4]);
          if (row[6] != options_.judge || row[7] != options_.prompts->name ||
              row[8] != std::to_string(options_.seed)) {
            return;
          }
          judged[{std::stoll(*row[0]), *row[1], *row[2], std::stoll(*row[3])}] = *row[4];
        });
    for (std::size_t i = 0; i < plan_.all.size(); ++i) {
      const JudgementRow& row = plan_.all[i].row;
      const auto found = judged.find({row.output_id, row.kind, row.baseline, row.place});
      if (found != judged.end() && found->second == row.prompt_sha256) {
        ++plan_.done;
      } else if (row.status == "equal") {
        plan_.equal.push_back(i);
      } else if (known.insert(row.prompt_sha256).second) {
        plan_.open.push_back(i);
      } else {
        plan_.copies.push_back(i);
      }
    }
  }

  const ResultStore& store_;
  const JudgeOptions& options_;
  JudgePlan plan_;
  std::string model_;
  std::map<std::tuple<std::string, std::string, std::string, std::string>,
           std::unique_ptr<LoadedTask>>
      tasks_;
};

}  // namespace

JudgePlan plan_judgements(const ResultStore& store, const JudgeOptions& options) {
  return Planner(store, options).plan();
}

TokenCount estimated_tokens(const JudgePlan& plan, std::int64_t max_tokens) {
  constexpr std::int64_t kBytesPerToken = 4;  // of English text, roughly
  TokenCount count;
  for (const std::size_t i : plan.open) {
    std::int64_t bytes = 0;
    for (const Message& message : plan.all[i].messages) {
      bytes += static_cast<std::int64_t>(message.content.size());
    }
    count.prompt_tokens += (bytes + kBytesPerToken - 1) / kBytesPerToken;
    count.reply_tokens += max_tokens;
  }
  return count;
}

}  // namespace asdbench
