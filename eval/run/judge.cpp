// Judgements come in, from a judge or from a file, and are stored with what was read from them.
#include "eval/run/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "eval/core/error.h"
#include "eval/core/json.h"
#include "tasks/common/jsonl.h"
#include "tasks/common/judge_text.h"
#include "tasks/common/reply_text.h"

namespace asdbench {
namespace {

using Rating = std::pair<std::string, std::optional<double>>;

/// Preference for the reply under judgement, 1 (baseline) to 2, from the winner by place.
std::optional<double> preference_of(std::optional<char> winner, std::int64_t place) {
  if (!winner) return std::nullopt;
  if (*winner == 'C') return 1.5;
  return (*winner == 'A') == (place == 1) ? 2 : 1;
}

/// What each grader reads from the judge's own words; reasoning is none of them.
std::vector<Rating> ratings_of(const JudgeQuestion& question, const std::string& reply) {
  const auto words = after_reasoning(reply);
  if (question.row.kind == "pair") {
    const auto winner = words ? judge_winner_beside(*words, question.answers) : std::nullopt;
    return {{"default", preference_of(winner, question.row.place)}};
  }
  if (!words) return {{"default", std::nullopt}, {"fastchat", std::nullopt}};
  return {{"default", judge_rating_beside(*words, question.answers)},
          {"fastchat", judge_rating(*words, RatingRule::kFastchat)}};
}

bool is_unrated(const JudgementRow& row) {
  return std::any_of(row.ratings.begin(), row.ratings.end(), [](const Rating& rating) {
    return rating.first == "default" && !rating.second;
  });
}

JudgementRow judged_row(const JudgeQuestion& question, const ChatOutcome& outcome) {
  JudgementRow row = question.row;
  row.version = outcome.reply.version;
  if (outcome.fault != ChatFault::kNone) {
    row.status = "failed";
    row.error = outcome.error;
    row.ratings = ratings_of(question, "");
    return row;
  }
  row.status = "done";
  row.reply = outcome.reply.text;
  row.finish = outcome.reply.finish;
  row.prompt_tokens = outcome.reply.prompt_tokens;
  row.reply_tokens = outcome.reply.reply_tokens;
  row.ratings = ratings_of(question, row.reply);
  return row;
}

void count_tokens(const ChatReply& reply, TokenCount& count) {
  count.prompt_tokens += reply.prompt_tokens.value_or(0);
  count.reply_tokens += reply.reply_tokens.value_or(0);
  if (!reply.prompt_tokens || !reply.reply_tokens) ++count.untold;
}

/// A reply that the database has for this prompt.
std::optional<ChatReply> stored_reply(const ResultStore& store, const std::string& prompt_sha256) {
  std::optional<ChatReply> reply;
  store.query(fmt::format("SELECT reply, version, finish FROM judgement WHERE status = 'done' AND "
                          "prompt_sha256 = '{}' ORDER BY id LIMIT 1",
                          prompt_sha256),
              [&](const auto&, const auto& row) {
                reply = ChatReply{.text = row[0].value_or(""),
                                  .version = row[1].value_or(""),
                                  .finish = row[2].value_or(""),
                                  .prompt_tokens = std::nullopt,
                                  .reply_tokens = std::nullopt};
              });
  return reply;
}

void save_copies(ResultStore& store, const JudgePlan& plan, JudgeResult& result) {
  for (const std::size_t i : plan.copies) {
    const JudgeQuestion& question = plan.all[i];
    const auto reply = stored_reply(store, question.row.prompt_sha256);
    if (!reply) continue;  // its only question failed
    const JudgementRow row = judged_row(question, {.reply = *reply});
    store.save_judgement(row);
    ++result.copied;
    result.unrated += is_unrated(row) ? 1 : 0;
  }
}

/// A text that a judge in any order finds as good as itself: half a win in each.
void save_equal(ResultStore& store, const JudgePlan& plan, JudgeResult& result) {
  for (const std::size_t i : plan.equal) {
    JudgementRow row = plan.all[i].row;
    row.ratings = {{"default", 1.5}};
    store.save_judgement(row);
    ++result.equal;
  }
}

/// "81" of "test/81".
std::string question_id(const std::string& sample_id) {
  return sample_id.substr(sample_id.rfind('/') + 1);
}

}  // namespace

JudgeResult run_judgements(ResultStore& store, const JudgePlan& plan,
                           const std::function<std::unique_ptr<Judge>()>& make,
                           const AskOptions& asking,
                           const std::function<void(std::size_t, std::size_t)>& progress,
                           const std::function<bool()>& interrupted) {
  JudgeResult result;
  save_equal(store, plan, result);
  std::vector<const std::vector<Message>*> prompts;
  for (const std::size_t i : plan.open) prompts.push_back(&plan.all[i].messages);
  std::size_t finished = 0;
  progress(0, prompts.size());
  const auto answered = [&](std::size_t question, const ChatOutcome& outcome) {
    const JudgementRow row = judged_row(plan.all[plan.open[question]], outcome);
    store.save_judgement(row);
    if (outcome.fault == ChatFault::kNone) count_tokens(outcome.reply, result.tokens);
    result.unrated += is_unrated(row) ? 1 : 0;
    progress(++finished, prompts.size());
  };
  if (!prompts.empty()) result.asked = ask_all(prompts, make, asking, answered, interrupted);
  save_copies(store, plan, result);
  return result;
}

std::size_t export_questions(const JudgePlan& plan, std::ostream& out) {
  for (const std::size_t i : plan.open) {
    const JudgeQuestion& question = plan.all[i];
    Json line = {{"id", question.row.prompt_sha256},
                 {"task", question.task},
                 {"question_id", question_id(question.sample_id)},
                 {"model", question.model},
                 {"turn", question.turn},
                 {"kind", question.row.kind},
                 {"place", question.row.place},
                 {"messages", Json::array()}};
    if (const auto number = parse_integer(question_id(question.sample_id))) {
      line["question_id"] = *number;
    }
    for (const Message& message : question.messages) {
      line["messages"].push_back({{"role", name_of(message.role)}, {"content", message.content}});
    }
    out << line.dump(-1, ' ', false, Json::error_handler_t::replace) << '\n';
  }
  if (!out) throw StoreError("the export cannot be written; is the disk full?");
  return plan.open.size();
}

namespace {

/// Finds the questions that a line of an import speaks about.
class ImportIndex {
 public:
  explicit ImportIndex(const JudgePlan& plan) : plan_(plan) {
    for (std::size_t i = 0; i < plan.all.size(); ++i) {
      const JudgeQuestion& question = plan.all[i];
      if (question.row.status == "equal") continue;
      by_prompt_[question.row.prompt_sha256].push_back(i);
      if (question.row.kind == "single") {
        by_turn_[{question_id(question.sample_id), question.model, question.turn}].push_back(i);
      }
    }
  }

  const std::vector<std::size_t>& find(const JsonlRow& row) const {
    const Json& object = row.object();
    if (object.contains("id")) {
      const auto found = by_prompt_.find(row.text("id"));
      if (found == by_prompt_.end()) {
        row.fail(fmt::format("no question of this database has the id {}", shown(row.text("id"))));
      }
      return found->second;
    }
    const auto turn = object.find("turn"), id = object.find("question_id");
    if (turn == object.end() || !turn->is_number_integer() || id == object.end()) {
      row.fail("expected an id, or question_id, model and turn");
    }
    const std::string name = id->is_string() ? id->get<std::string>() : id->dump();
    const auto found = by_turn_.find({name, row.text("model"), turn->get<std::int64_t>()});
    if (found == by_turn_.end()) {
      std::string models;
      for (const JudgeQuestion& question : plan_.all) {
        if (models.find(question.model) == std::string::npos) models += "\n    " + question.model;
      }
      row.fail(fmt::format("no reply to question {} turn {} of model {}\n  models here:{}",
                           shown(name), turn->dump(), shown(row.text("model")), models));
    }
    return found->second;
  }

 private:
  const JudgePlan& plan_;
  std::map<std::string, std::vector<std::size_t>> by_prompt_;
  std::map<std::tuple<std::string, std::string, std::int64_t>, std::vector<std::size_t>> by_turn_;
};

JudgementRow imported_row(const JsonlRow& line, const JudgeQuestion& question) {
  const Json& object = line.object();
  const bool scored = object.contains("score") && object.at("score").is_number();
  if (!scored && !object.contains("judgment")) {
    line.fail("neither \"judgment\" (the judge's text) nor \"score\"");
  }
  if (scored && question.row.kind == "pair") {
    line.fail("a score on a comparison; expected the judge's text as \"judgment\"");
  }
  JudgementRow row = question.row;
  row.status = "done";
  row.version = "imported";
  if (object.contains("judgment")) row.reply = line.text("judgment");
  row.ratings = ratings_of(question, row.reply);
  if (scored) {
    const double score = object.at("score").get<double>();
    const bool on_scale = score >= 1 && score <= 10;
    row.ratings = {{"default", on_scale ? std::optional(score) : std::nullopt},
                   {"fastchat", score == -1 ? std::nullopt : std::optional(score)}};
  }
  return row;
}

}  // namespace

ImportResult import_judgements(ResultStore& store, const JudgePlan& plan,
                               const std::filesystem::path& file) {
  const ImportIndex index(plan);
  std::map<std::size_t, JudgementRow> rows;
  ImportResult result;
  read_jsonl(file, [&](const JsonlRow& line) {
    for (const std::size_t i : index.find(line)) {
      const auto [at, fresh] = rows.insert_or_assign(i, imported_row(line, plan.all[i]));
      result.replaced += fresh ? 0 : 1;
    }
  });
  for (const auto& [i, row] : rows) {
    store.save_judgement(row);
    ++result.imported;
    result.unrated += is_unrated(row) ? 1 : 0;
  }
  JudgeResult equal;
  save_equal(store, plan, equal);
  for (const auto* list : {&plan.open, &plan.copies}) {
    for (const std::size_t i : *list) {
      const JudgeQuestion& question = plan.all[i];
      if (rows.contains(i)) continue;
      result.missing.push_back(
          fmt::format("{} turn {} of {}", question.sample_id, question.turn, question.model));
    }
  }
  return result;
}

std::string alpaca_annotations(const ResultStore& store, const DataDir& dir) {
  struct Source {
    StoredCell cell;
    StoredTask task;
    std::map<std::string, std::vector<std::string>> references;
  };
  std::map<std::int64_t, Source> sources;
  for (const StoredCell& cell : stored_cells(store)) {
    if (cell.task != "alpaca") continue;
    Source source{.cell = cell, .task = stored_task(cell, "", dir), .references = {}};
    source.references = source.task.task->references(dir);
    sources.emplace(cell.id, std::move(source));
  }
  Json out = Json::array();
  store.query(
      "SELECT output.cell_id, output.sample_id, output.completion, base.completion, "
      "judgement.judge, avg(rating.value), count(rating.value) = count(*), judgement.baseline "
      "FROM judgement JOIN output ON output.id = judgement.output_id "
      "JOIN rating ON rating.judgement_id = judgement.id AND rating.grader = 'default' "
      "LEFT JOIN output AS base ON base.id = judgement.baseline_output_id "
      "WHERE judgement.kind = 'pair' AND judgement.status <> 'failed' "
      "GROUP BY judgement.output_id, judgement.baseline, judgement.judge, judgement.prompts, "
      "judgement.seed ORDER BY judgement.output_id",
      [&](const auto&, const auto& row) {
        const auto found = sources.find(std::stoll(*row[0]));
        if (found == sources.end()) return;
        const Source& source = found->second;
        const Sample& sample = source.task.samples.at(*row[1]);
        std::string baseline = row[3].value_or("");
        if (row[7] == "reference") baseline = source.references.at(*row[1]).at(0);
        out.push_back({{"instruction", source.task.task->questions(sample).at(0)},
                       {"output_1", baseline},
                       {"output_2", row[2].value_or("")},
                       {"generator_1", row[7].value_or("")},
                       {"generator_2", source.cell.label()},
                       {"annotator", row[4].value_or("")},
                       {"preference", row[6] == "1" ? Json(std::stod(*row[5])) : Json(nullptr)}});
      });
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace asdbench
