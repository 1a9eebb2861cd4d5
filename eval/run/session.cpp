// The loop over targets, cells and samples.
#include "eval/run/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <numeric>
#include <optional>

#include "eval/core/digest.h"
#include "eval/core/error.h"
#include "eval/core/json.h"
#include "eval/core/prompt_identity.h"
#include "eval/run/grade.h"
#include "eval/run/speed_intervals.h"
#include "runners/decoder.h"
#include "runners/log_probs.h"
#include "runners/throughput/fixed_work.h"
#include "runners/throughput/replay.h"

namespace asdbench {

struct Session::LoadedCell {
  CellIndex index;
  std::string label;
  std::unique_ptr<Drafter> drafter;
  std::int32_t drafts = 0;  // K
  std::int64_t id = 0;      // row of the cell table
  std::string key;
};

/// One turn of one sample, waiting to be decoded or in flight.
struct Session::Item {
  const Sample* sample;
  std::int32_t turn;
  std::string rendered;
  std::vector<TokenId> prompt;
};

namespace {

/// The part of a target's options that can change its output; where a file lies and what it runs on
/// are other columns.
Json target_identity(const Choice& choice, const TargetInfo& info) {
  Json identity = {{"name", info.name},
                   {"sha256", info.sha256},
                   {"engine", info.engine},
                   {"device", info.device},
                   {"weights", info.weight_dtype},
                   {"compute", info.compute_dtype},
                   {"logits", info.logit_dtype},
                   {"activations", info.activations}};
  for (const auto& [key, value] : choice.params.resolved()) {
    if (key == "path" || key == "device" || key == "engine" || key == "strict_template") continue;
    identity["options"][key] = value;
  }
  return identity;
}

std::string options_text(const Choice& choice) {
  std::string text;
  for (const auto& [key, value] : choice.params.resolved()) {
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", key, value);
  }
  return text;
}

/// A prompt and what is chosen from, as ids. The texts are tokenised together with the prompt, and
/// what all of them start with is the prompt: a token may not reach across the border.
struct Choosing {
  std::string rendered;
  std::vector<std::string> texts;
  std::vector<TokenId> prompt;
  std::vector<std::vector<TokenId>> continuations;
};

Choosing choosing_of(const Task& task, const Sample& sample, const Model& model) {
  Choosing item;
  const Prompt prompt = task.prompt(sample, {});
  ASDBENCH_CHECK(prompt.messages.empty(), "a choice continues a plain text");
  item.texts = task.continuations(sample);
  item.prompt = model.prompt_ids(prompt, &item.rendered);
  std::size_t shared = item.prompt.size();
  for (const std::string& text : item.texts) {
    item.continuations.push_back(
        model.prompt_ids({.messages = {}, .text = prompt.text + text}, nullptr));
    const auto& whole = item.continuations.back();
    const auto ends =
        std::mismatch(item.prompt.begin(), item.prompt.end(), whole.begin(), whole.end());
    shared = std::min(shared, static_cast<std::size_t>(ends.first - item.prompt.begin()));
  }
  for (auto& whole : item.continuations) {
    whole.erase(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(shared));
  }
  item.prompt.resize(shared);
  return item;
}

/// " A -0.25,  B -3.5": what the choice was made by.
std::string listed(const std::vector<std::string>& texts, const std::vector<double>& log_probs) {
  std::string text;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    text += fmt::format("{}ln p({}) = {:.4f}", i == 0 ? "" : ", ", shown(texts[i]), log_probs[i]);
  }
  return text;
}

/// What was measured in a slot; where it belongs is for the caller to add.
SpeedSlotRow speed_row(const SlotResult& slot) {
  SpeedSlotRow row{.slot = slot.slot,
                   .prompts = slot.prompts,
                   .tokens = slot.tokens,
                   .passes = slot.passes,
                   .drafted = slot.drafted,
                   .accepted = slot.accepted,
                   .post_end_tokens = slot.post_end_tokens,
                   // Replies that all end with their first token leave nothing to decode.
                   .decode_ns = std::max<std::int64_t>(slot.decode_ns, 1),
                   .prefill_ns = slot.prefill_ns,
                   .draft_ns = slot.times.draft_ns,
                   .verify_ns = slot.times.verify_ns,
                   .rule_ns = slot.times.rule_ns,
                   .cache_ns = slot.times.cache_ns,
                   .tokens_sha256 = slot.tokens_sha256,
                   .environment = {},
                   .each = {},
                   .tail_tokens = slot.tail_tokens,
                   .tail_ns = slot.tail_ns};
  for (const EnvironmentFigure& figure : slot.environment) {
    row.environment.push_back({.name = figure.name,
                               .samples = figure.samples,
                               .mean = figure.mean,
                               .least = figure.least,
                               .most = figure.most});
  }
  return row;
}

}  // namespace

Session::Session(Experiment& experiment, const ExperimentOptions& options, ResultStore& store,
                 SessionCallbacks callbacks)
    : experiment_(experiment), options_(options), store_(store), callbacks_(std::move(callbacks)) {}

SessionResult Session::run(const RunRow& run,
                           const std::map<std::string, std::string>& environment) {
  result_ = {};
  run_id_ = store_.begin_run(run);
  store_.save_environment(run_id_, environment);
  // Times of different machines, or of another instruction set of one, never share a set of groups.
  machine_ = run.host;
  for (const char* fact : {"cpu", "cores", "instruction_set"}) {
    const auto found = environment.find(fact);
    if (found != environment.end()) machine_ += " · " + found->second;
  }
  std::string status = "failed";
  try {
    for (std::size_t target = 0; target < experiment_.config.targets.size(); ++target) {
      if (!halted()) run_target(target);
    }
    status = result_.interrupted ? "interrupted" : result_.too_many_failed ? "failed" : "done";
  } catch (...) {
    store_.end_run(run_id_, status);
    throw;
  }
  store_.end_run(run_id_, status);
  return result_;
}

void Session::run_target(std::size_t target) {
  std::vector<CellIndex> indices;
  for (const CellIndex& index : experiment_.cells) {
    if (index.target == target) indices.push_back(index);
  }
  if (indices.empty()) return;
  const Choice& choice = experiment_.config.targets[target];
  callbacks_.progress({.phase = "load", .what = choice.name});
  Model model = make_model(choice.name, choice.params, options_.paths.models);
  choice.params.refuse_unread();
  for (const std::string& warning : model.warnings) callbacks_.warning(warning);

  std::vector<std::unique_ptr<LoadedCell>> cells;
  for (const CellIndex& index : indices) {
    cells.push_back(std::make_unique<LoadedCell>(load_cell(index, model)));
  }
  refuse_same_cells(cells);
  for (const auto& cell : cells) result_.cells.push_back(cell->key);
  if (experiment_.config.quality) quality_rounds(cells, model);
  if (experiment_.config.replay && !halted()) replay(cells, model);
  if (!experiment_.config.speed || halted()) return;
  // Arms that are compared stand in one group: all cells of one task and decoding.
  std::vector<std::vector<LoadedCell*>> sets;
  for (const auto& cell : cells) {
    if (experiment_.tasks[cell->index.task].info.by_log_probs) continue;  // nothing is decoded
    auto same = std::find_if(sets.begin(), sets.end(), [&](const auto& set) {
      return set.front()->index.task == cell->index.task &&
             set.front()->index.decoding == cell->index.decoding;
    });
    if (same == sets.end()) {
      sets.push_back({cell.get()});
    } else {
      same->push_back(cell.get());
    }
  }
  for (const auto& set : sets) {
    for (const SpeedWork kind : experiment_.config.speed_config.work) {
      if (!halted()) speed(set, kind, model);
    }
  }
}

void Session::refuse_same_cells(const std::vector<std::unique_ptr<LoadedCell>>& cells) const {
  const RunConfig& config = experiment_.config;
  std::map<std::string, CellIndex> seen;
  for (const auto& cell : cells) {
    const auto [found, fresh] = seen.emplace(cell->key, cell->index);
    if (fresh) continue;
    const CellIndex &first = found->second, &second = cell->index;
    if (first.task != second.task) {
      refuse_same(config.tasks[first.task], config.tasks[second.task]);
    } else if (first.drafter != second.drafter) {
      refuse_same(config.drafters[first.drafter], config.drafters[second.drafter]);
    } else {
      refuse_same(config.decodings[first.decoding], config.decodings[second.decoding]);
    }
  }
}

Session::LoadedCell Session::load_cell(const CellIndex& index, Model& model) {
  const RunConfig& config = experiment_.config;
  const TaskSet& task = experiment_.tasks[index.task];
  const RuleSet& rule = experiment_.rules[index.verifier];
  const DrafterSet& drafter_set = experiment_.drafters[index.drafter];
  const TargetInfo target = model.target->info();
  const std::int32_t batch = experiment_.decodings[index.decoding].batch;

  LoadedCell cell{.index = index, .label = experiment_.cell_label(index)};
  cell.drafter =
      make_drafter(drafter_set, {*model.target, options_.paths.drafters, callbacks_.warning});
  const DrafterInfo drafter = cell.drafter->info();
  cell.drafts = drafter.drafts;
  if (cell.drafts + 2 > target.positions) {
    drafter_set.choice->params.fail(
        "K", fmt::format("K = {} drafts do not fit the context of {} positions of {}", cell.drafts,
                         target.positions, target.name));
  }
  if (rule.info.needs_draft_logits && !drafter.has_law) {
    throw ConfigError(fmt::format(
        "{}: the rule \"{}\" reads the drafter's logits, and \"{}\" has none",
        config.verifiers[index.verifier].params.where().text(), rule.info.name, drafter.name));
  }

  Json identity = {{"task", task.info.name},
                   {"task_version", task.info.version},
                   {"split", task.info.split},
                   {"data", task.data_sha256},
                   {"target", target_identity(config.targets[index.target], target)},
                   {"drafter", {{"name", drafter.name}, {"sha256", drafter.sha256}}},
                   {"verifier", parse_json(rule.identity)},
                   {"drafts", cell.drafts},
                   {"max_tokens", task.max_tokens},
                   {"batch", batch},
                   {"seed", config.seed}};
  for (const auto& [key, value] : drafter_set.choice->params.resolved()) {
    if (key != "path") identity["drafter"]["options"][key] = value;
  }
  for (const auto& [key, value] : task.identity) identity["task_options"][key] = value;
  CellRow row;
  row.identity = canonical_json(identity);
  row.key = sha256_hex(row.identity);
  row.task = task.info.name;
  row.split = task.info.split;
  row.grader = task.grader;
  row.task_version = task.info.version;
  row.task_options = task.options;
  row.data_sha256 = task.data_sha256;
  row.target = target.name;
  row.target_sha256 = target.sha256;
  row.target_options = options_text(config.targets[index.target]);
  row.drafter = drafter.name;
  row.drafter_options = drafter_set.choice->params.given();
  row.verifier = rule.info.name;
  row.verifier_options = rule.options;
  row.verifier_keeps = name_of(rule.info.keeps);
  row.regret_budget = rule.info.regret_budget;
  row.gate = rule.info.gate;
  row.max_exceptions = rule.info.max_exceptions;
  row.drafts = cell.drafts;
  row.max_tokens = task.max_tokens;
  row.batch = batch;
  row.weight_dtype = target.weight_dtype;
  row.compute_dtype = target.compute_dtype;
  row.logit_dtype = target.logit_dtype;
  row.device = target.device;
  row.engine = target.engine;
  row.activations = target.activations;
  row.baseline = rule.info.name == config.baseline_verifier && drafter.name != "none";
  cell.key = row.key;
  cell.id = store_.cell(row);
  return cell;
}

OutputRow Session::row_of(const LoadedCell& cell, const Sample& sample,
                          const std::string& rendered) const {
  OutputRow row;
  row.cell_id = cell.id;
  row.run_id = run_id_;
  row.sample_id = sample.id;
  row.prompt_sha256 = sha256_hex(rendered);
  row.identity_sha256 = prompt_identity(experiment_.tasks[cell.index.task].task->questions(sample));
  row.cluster = sample.cluster;
  row.category = sample.category;
  return row;
}

ScoreRow Session::grade(const TaskSet& task, const Sample& sample, const std::string& text) const {
  return {.scorer = task.grader,
          .scorer_version = task.info.version,
          .score = task.task->score(sample, task.task->extract(sample, text))};
}

OutputRow Session::finished_row(const LoadedCell& cell, const Model& model, const Item& item,
                                const Request& request) const {
  OutputRow row = row_of(cell, *item.sample, item.rendered);
  row.turn = item.turn;
  row.completion = request.completion();
  if (!row.completion.error.empty()) return row;
  row.completion.text = model.text(row.completion.tokens);
  const TaskSet& task = experiment_.tasks[cell.index.task];
  // Programs run when the decoder rests, so that their time limits do not depend on it.
  if (!task.info.code_limits.empty()) return row;
  row.scores.push_back(grade(task, *item.sample, row.completion.text));
  return row;
}

void Session::rescore(const LoadedCell& cell) {
  const TaskSet& task = experiment_.tasks[cell.index.task];
  std::map<std::string, const Sample*> samples;
  for (const Sample& sample : task.samples) samples.emplace(sample.id, &sample);
  const auto sample_of = [&](const std::string& id) -> const Sample* {
    const auto sample = samples.find(id);
    return sample == samples.end() ? nullptr : sample->second;  // none beyond the limit of this run
  };
  const auto progress = [&](std::int64_t done, std::int64_t total) {
    callbacks_.progress({.phase = "grade", .what = cell.label, .done = done, .total = total});
  };
  const GradeResult graded = grade_stored(
      store_, cell.id, {.task = *task.task, .name = task.grader, .version = task.info.version},
      sample_of, {.progress = progress, .interrupted = callbacks_.interrupted});
  if (graded.interrupted) result_.interrupted = true;
}

void Session::quality_rounds(const std::vector<std::unique_ptr<LoadedCell>>& cells, Model& model) {
  for (std::size_t task = 0; task < experiment_.tasks.size(); ++task) {
    const std::span<const Sample> samples = experiment_.tasks[task].samples;
    const std::size_t round = experiment_.config.round_samples > 0
                                  ? static_cast<std::size_t>(experiment_.config.round_samples)
                                  : samples.size();
    for (std::size_t begin = 0; begin < samples.size(); begin += round) {
      for (const auto& cell : cells) {
        if (cell->index.task != task) continue;
        quality(*cell, model, samples.subspan(begin, std::min(round, samples.size() - begin)));
        if (halted()) return;
      }
      const RoundAnswer answer = callbacks_.round(task, result_);
      result_.stopped = answer == RoundAnswer::kStop;
      if (result_.stopped) return;
      if (answer == RoundAnswer::kEnough) break;
    }
  }
}

void Session::quality(LoadedCell& cell, Model& model, std::span<const Sample> samples) {
  decode(cell, model, samples);
  if (!result_.interrupted) rescore(cell);
}

void Session::decode(LoadedCell& cell, Model& model, std::span<const Sample> samples) {
  const TaskSet& task = experiment_.tasks[cell.index.task];
  if (task.info.by_log_probs) return choose(cell, model, samples);
  const std::int32_t turns = task.task->turns();
  for (std::int32_t turn = 1; turn <= turns; ++turn) {
    if (!halted()) decode_turn(cell, model, turn, samples);
  }
}

void Session::choose(const LoadedCell& cell, Model& model, std::span<const Sample> samples) {
  const TaskSet& task = experiment_.tasks[cell.index.task];
  const auto done = store_.done(cell.id);
  std::vector<std::pair<const Sample*, Choosing>> waiting;
  std::size_t longest = 0, most_tokens = 1;
  for (const Sample& sample : samples) {
    if (done.contains({sample.id, 0})) {
      ++result_.reused;
      continue;
    }
    Choosing item = choosing_of(*task.task, sample, model);
    longest = std::max(longest, item.prompt.size());
    for (const auto& ids : item.continuations) most_tokens = std::max(most_tokens, ids.size());
    waiting.emplace_back(&sample, std::move(item));
  }
  if (waiting.empty()) return;
  LogProbs log_probs(*model.target, static_cast<std::int32_t>(most_tokens),
                     static_cast<std::int64_t>(longest + most_tokens) + 1);
  const auto total = static_cast<std::int64_t>(waiting.size());
  std::int64_t finished = 0;
  for (const auto& [sample, item] : waiting) {
    if (callbacks_.interrupted()) {
      result_.interrupted = true;
      return;
    }
    OutputRow row = row_of(cell, *sample, item.rendered);
    row.completion.prompt_tokens = static_cast<std::int32_t>(item.prompt.size());
    try {
      const std::vector<double> sums = log_probs.of(item.prompt, item.continuations);
      const auto best = std::max_element(sums.begin(), sums.end()) - sums.begin();
      row.completion.text = item.texts[static_cast<std::size_t>(best)];
      row.completion.finish = FinishReason::kEos;  // nothing was cut: the choice is whole
      row.scores.push_back(grade(task, *sample, row.completion.text));
      row.scores.back().score.detail = listed(item.texts, sums);
    } catch (const BlockError& error) {  // these two fail this sample only
      row.completion.error = error.what();
    } catch (const DataError& error) {
      row.completion.error = error.what();
    }
    if (!row.completion.error.empty()) {
      ++result_.failed;
      callbacks_.warning(
          fmt::format("{}: sample {} failed: {}", cell.label, sample->id, row.completion.error));
    }
    store_.save(row);
    ++result_.decoded;
    callbacks_.progress(
        {.phase = "quality", .what = cell.label, .done = ++finished, .total = total});
    if (result_.failed > experiment_.config.max_failed_samples) {
      result_.too_many_failed = true;
      return;
    }
  }
}

void Session::decode_turn(LoadedCell& cell, Model& model, std::int32_t turn,
                          std::span<const Sample> samples) {
  const TaskSet& task = experiment_.tasks[cell.index.task];
  const RuleSet& rule = experiment_.rules[cell.index.verifier];
  const std::int32_t batch = experiment_.decodings[cell.index.decoding].batch;
  const std::int32_t drafts = cell.drafts;
  const TargetInfo target = model.target->info();
  const auto done = store_.done(cell.id, turn);
  std::vector<std::map<std::pair<std::string, std::int64_t>, std::string>> earlier;
  for (std::int32_t before = 1; before < turn; ++before) {
    earlier.push_back(store_.replies(cell.id, before));
  }

  std::deque<Item> waiting;
  std::int64_t longest = 0;
  for (const Sample& sample : samples) {
    const std::pair<std::string, std::int64_t> key = {sample.id, 0};
    if (done.contains(key)) {
      ++result_.reused;
      continue;
    }
    std::vector<std::string> replies;
    for (const auto& texts : earlier) {
      if (const auto text = texts.find(key); text != texts.end()) replies.push_back(text->second);
    }
    if (replies.size() < earlier.size()) continue;  // an earlier turn failed and was counted there
    Item item{.sample = &sample, .turn = turn, .rendered = "", .prompt = {}};
    item.prompt = model.prompt_ids(task.task->prompt(sample, replies), &item.rendered);
    longest = std::max(longest, static_cast<std::int64_t>(item.prompt.size()));
    waiting.push_back(std::move(item));
  }
  if (waiting.empty()) return;

  const std::int64_t total = static_cast<std::int64_t>(waiting.size());
  std::int64_t finished = 0;
  Decoder decoder(
      *model.target, *cell.drafter, *rule.verifier,
      {.drafts = drafts,
       .requests = batch,
       .positions = std::min(target.positions, longest + task.max_tokens + drafts + 1)});
  struct Slot {
    std::unique_ptr<Request> request;
    Item item;
  };
  std::vector<Slot> slots(static_cast<std::size_t>(batch));
  std::vector<Request*> live;
  const auto store = [&](Slot& slot) {
    decoder.finish(*slot.request);
    store_.save(finished_row(cell, model, slot.item, *slot.request));
    ++result_.decoded;
    if (!slot.request->error().empty()) {
      ++result_.failed;
      callbacks_.warning(fmt::format("{}: sample {} failed: {}", cell.label, slot.item.sample->id,
                                     slot.request->error()));
    }
    slot.request.reset();
    callbacks_.progress(
        {.phase = "quality", .what = cell.label, .done = ++finished, .total = total});
  };
  callbacks_.progress({.phase = "quality", .what = cell.label, .done = 0, .total = total});
  while (!waiting.empty() || !live.empty()) {
    if (callbacks_.interrupted()) {
      // What is in flight is dropped: it was never recorded, so the next run decodes it again.
      result_.interrupted = true;
      for (Request* request : live) decoder.finish(*request);
      return;
    }
    for (std::size_t i = 0; i < slots.size() && !waiting.empty(); ++i) {
      Slot& slot = slots[i];
      if (slot.request) continue;
      slot.item = std::move(waiting.front());
      waiting.pop_front();
      slot.request = std::make_unique<Request>(
          slot.item.sample->id, slot.item.prompt, RequestLimits{.max_tokens = task.max_tokens},
          target.end_ids, Rng(experiment_.config.seed, slot.item.sample->id, "decode"));
      slot.request->slot = static_cast<std::int32_t>(i);
      decoder.start(*slot.request);
      if (slot.request->finished()) {
        store(slot);
      } else {
        live.push_back(slot.request.get());
      }
    }
    if (!live.empty()) decoder.pass(live);
    std::erase_if(live, [](const Request* request) { return request->finished(); });
    for (Slot& slot : slots) {
      if (slot.request && slot.request->finished()) store(slot);
    }
    if (result_.failed > experiment_.config.max_failed_samples) {
      result_.too_many_failed = true;
      for (Request* request : live) decoder.finish(*request);
      return;
    }
  }
}

void Session::record_warm_up(const std::vector<LoadedCell*>& cells, SpeedWork kind,
                             const std::vector<WarmUp>& warm_ups) {
  std::map<std::string, std::string> facts;
  for (std::size_t i = 0; i < warm_ups.size(); ++i) {
    const std::string work =
        kind == SpeedWork::kConstant ? "" : fmt::format(", {} work", name_of(kind));
    facts[fmt::format("warm-up of cell {}{}", cells[i]->id, work)] = fmt::format(
        "{} requests, {}", warm_ups[i].requests,
        warm_ups[i].stable ? "stable" : "unstable: the last three differ by 2 % or more");
  }
  store_.save_environment(run_id_, facts);
}

std::vector<WorkItem> Session::timed_work(const std::vector<LoadedCell*>& cells, SpeedWork kind,
                                          const Model& model) const {
  const SpeedConfig& config = experiment_.config.speed_config;
  const TaskSet& task = experiment_.tasks[cells.front()->index.task];
  std::map<std::string, std::int64_t> lengths;  // of strict replies
  for (const LoadedCell* cell : cells) {
    const bool strict = experiment_.rules[cell->index.verifier].info.name == "strict";
    if (kind == SpeedWork::kReference && strict) lengths.merge(store_.output_lengths(cell->id));
  }
  std::vector<WorkItem> work;
  for (const Sample& sample : task.samples) {
    if (static_cast<std::int32_t>(work.size()) == config.prompts) break;
    std::int64_t tokens = kind == SpeedWork::kNatural ? task.max_tokens - 1 : config.tokens;
    if (kind == SpeedWork::kReference) {
      const auto length = lengths.find(sample.id);
      if (length == lengths.end() || length->second < 2) continue;
      tokens = length->second - 1;
    }
    std::string rendered;
    work.push_back({.sample_id = sample.id,
                    .prompt = model.prompt_ids(task.task->prompt(sample, {}), &rendered),
                    .tokens = static_cast<std::int32_t>(tokens),
                    .natural_end = kind == SpeedWork::kNatural});
  }
  if (work.empty()) {
    throw ConfigError(fmt::format(
        "{}: speed.work: reference takes the lengths of strict replies, and the database has none "
        "of task {}\n  set run.phases to [quality, speed], with strict among the verifiers",
        experiment_.config.file.string(), task.info.name));
  }
  return work;
}

std::vector<WorkItem> Session::warm_up_work(const TaskSet& task, const Model& model) const {
  std::vector<WorkItem> work;
  for (const Sample& sample : task.warm_up) {
    std::string rendered;
    work.push_back({.sample_id = sample.id,
                    .prompt = model.prompt_ids(task.task->prompt(sample, {}), &rendered),
                    .tokens = experiment_.config.speed_config.tokens});
  }
  return work;
}

std::vector<std::vector<std::size_t>> Session::slot_orders(
    const std::vector<LoadedCell*>& cells) const {
  const SpeedConfig& config = experiment_.config.speed_config;
  std::vector<std::vector<std::size_t>> orders;
  if (config.order == SpeedOrder::kAbba) {
    for (std::int64_t group = 0; group < config.groups; ++group) {
      orders.push_back(slot_order(cells.size(), group));
    }
    return orders;
  }
  const auto is_plain = [&](const LoadedCell* cell) {
    return experiment_.config.drafters[cell->index.drafter].name == "none";
  };
  const auto is_strict = [&](const LoadedCell* cell) {
    return experiment_.rules[cell->index.verifier].info.name == "strict";
  };
  std::vector<std::vector<std::size_t>> triples;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    // A lossy cell stands between strict slots of the same drafter, a strict one between plain.
    for (std::size_t base = 0; base < cells.size() && !is_plain(cells[i]); ++base) {
      const bool fits =
          is_strict(cells[i])
              ? is_plain(cells[base])
              : is_strict(cells[base]) && cells[base]->index.drafter == cells[i]->index.drafter;
      if (fits) triples.push_back({base, i, base});
    }
  }
  if (triples.empty()) {
    throw ConfigError(
        fmt::format("{}: speed.order: bcb puts each cell between two runs of its baseline, and no "
                    "cell has one\n  add strict to matrix.verifier, or set order: abba",
                    experiment_.config.file.string()));
  }
  for (std::int32_t group = 0; group < config.groups; ++group) {
    orders.insert(orders.end(), triples.begin(), triples.end());
  }
  return orders;
}

void Session::speed(const std::vector<LoadedCell*>& cells, SpeedWork kind, Model& model) {
  const SpeedConfig& config = experiment_.config.speed_config;
  const TaskSet& task = experiment_.tasks[cells.front()->index.task];
  const std::vector<WorkItem> work = timed_work(cells, kind, model);
  const std::vector<std::vector<std::size_t>> orders = slot_orders(cells);
  std::vector<Arm> arms;
  Json set = {{"warmup", {config.warmup, config.warmup_most}}, {"machine", machine_}};
  for (const LoadedCell* cell : cells) {
    arms.push_back({.name = cell->label,
                    .drafter = cell->drafter.get(),
                    .verifier = experiment_.rules[cell->index.verifier].verifier.get(),
                    .drafts = cell->drafts,
                    .batch = experiment_.decodings[cell->index.decoding].batch});
    set["cells"].push_back(cell->key);
  }
  for (const WorkItem& item : work) set["prompts"].push_back(sha256_tokens(item.prompt));
  if (kind == SpeedWork::kConstant) set["tokens"] = config.tokens;
  if (kind == SpeedWork::kReference) {
    for (const WorkItem& item : work) set["lengths"].push_back(item.tokens);
  }
  if (kind == SpeedWork::kNatural) set["at_most"] = task.max_tokens;
  if (config.order == SpeedOrder::kBcb) set["order"] = "bcb";
  // Groups belong to a set: the same arms over the same work. Another set never mixes with it.
  const std::string set_key = sha256_hex(canonical_json(set));
  result_.speed_sets.push_back(set_key);
  const std::set<std::int64_t> done = store_.groups_done(set_key);
  const std::string what = fmt::format("{}, {} work", task.info.name, name_of(kind));
  const auto groups = std::ssize(orders);
  std::map<std::size_t, SlotResult> timed;  // the last slot of each arm
  for (std::int64_t group = 0; group < groups; ++group) {
    if (done.contains(group)) continue;
    if (timed.empty()) {
      store_.save_speed_set({.set_key = set_key,
                             .work = name_of(kind),
                             .design = config.order == SpeedOrder::kAbba ? "abba" : "bcb"});
      callbacks_.progress({.phase = "warm-up", .what = what, .done = 0, .total = 1});
      const std::vector<WorkItem> warm = warm_up_work(task, model);
      const std::vector<WarmUp> warm_ups =
          warm_up(*model.target, arms, warm.empty() ? work : warm,
                  {.least = config.warmup, .most = config.warmup_most}, callbacks_.interrupted);
      record_warm_up(cells, kind, warm_ups);
      const bool steady = std::all_of(warm_ups.begin(), warm_ups.end(),
                                      [](const WarmUp& warm_up) { return warm_up.stable; });
      if (!steady) result_.unstable.push_back(set_key);
    }
    callbacks_.progress({.phase = "speed", .what = what, .done = group, .total = groups});
    const std::vector<SlotResult> slots = run_slots(
        *model.target, arms, work, orders[static_cast<std::size_t>(group)], callbacks_.interrupted);
    if (slots.empty()) {
      result_.interrupted = true;
      return;
    }
    std::vector<SpeedSlotRow> rows;
    std::vector<std::size_t> order;
    std::vector<std::vector<EnvironmentFigure>> figures;
    for (const SlotResult& slot : slots) {
      rows.push_back(speed_row(slot));
      rows.back().cell_id = cells[slot.arm]->id;
      rows.back().run_id = run_id_;
      rows.back().set_key = set_key;
      rows.back().group = group;
      for (std::size_t i = 0; i < work.size(); ++i) {
        rows.back().each.push_back({.sample_id = work[i].sample_id,
                                    .tokens = slot.each[i].tokens,
                                    .decode_ns = slot.each[i].decode_ns,
                                    .prefill_ns = slot.each[i].prefill_ns,
                                    .tokens_sha256 = slot.each[i].tokens_sha256});
      }
      order.push_back(slot.arm);
      figures.push_back(slot.environment);
      timed[slot.arm] = slot;
    }
    const std::string reason = void_reason(order, figures);
    if (!reason.empty()) {
      callbacks_.warning(fmt::format("speed group {} is void: {}", group, reason));
    }
    store_.save_group(rows, reason);
    ++result_.groups;
    callbacks_.progress({.phase = "speed", .what = what, .done = group + 1, .total = groups});
  }
  if (timed.empty()) return;
  std::map<std::string, std::string> clusters;
  for (const Sample& sample : task.samples) clusters.emplace(sample.id, sample.cluster);
  store_.save_speed_intervals(
      set_key, speed_intervals(store_, set_key, kind, clusters, experiment_.config.seed));
  spot_check(set_key, cells, arms, work, timed, model);
}

void Session::spot_check(const std::string& set_key, const std::vector<LoadedCell*>& cells,
                         const std::vector<Arm>& arms, const std::vector<WorkItem>& work,
                         const std::map<std::size_t, SlotResult>& timed, Model& model) {
  const auto count =
      std::min(work.size(), static_cast<std::size_t>(experiment_.config.speed_config.spot_checks));
  // A sample without replacement, in the order of the work.
  std::vector<std::size_t> places(work.size());
  std::iota(places.begin(), places.end(), 0);
  SplitMix64 random(experiment_.config.seed);
  for (std::size_t i = 0; i < count; ++i) {
    std::swap(places[i], places[i + random.index(places.size() - i)]);
  }
  places.resize(count);
  std::sort(places.begin(), places.end());
  std::vector<WorkItem> again;
  for (const std::size_t place : places) again.push_back(work[place]);
  if (again.empty()) return;
  std::vector<SpotCheckRow> rows;
  for (const auto& [arm, slot] : timed) {
    const std::optional<SlotResult> result =
        decode_once(*model.target, arms[arm], again, callbacks_.interrupted);
    if (!result) {
      result_.interrupted = true;
      return;
    }
    for (std::size_t i = 0; i < places.size(); ++i) {
      rows.push_back({.set_key = set_key,
                      .cell_id = cells[arm]->id,
                      .sample_id = again[i].sample_id,
                      .timed_sha256 = slot.each[places[i]].tokens_sha256,
                      .again_sha256 = result->each[i].tokens_sha256});
    }
  }
  store_.save_spot_checks(rows);
}

void Session::replay(const std::vector<std::unique_ptr<LoadedCell>>& cells, Model& model) {
  for (const auto& strict : cells) {
    const CellIndex& index = strict->index;
    if (experiment_.rules[index.verifier].info.name != "strict" ||
        experiment_.config.drafters[index.drafter].name == "none" ||
        experiment_.tasks[index.task].info.by_log_probs) {
      continue;
    }
    std::vector<LoadedCell*> others;
    for (const auto& cell : cells) {
      if (cell != strict && cell->index.task == index.task &&
          cell->index.drafter == index.drafter && cell->index.decoding == index.decoding) {
        others.push_back(cell.get());
      }
    }
    if (!others.empty() && !result_.interrupted) replay_beside(*strict, others, model);
  }
}

void Session::replay_beside(LoadedCell& strict, const std::vector<LoadedCell*>& others,
                            Model& model) {
  const TaskSet& task = experiment_.tasks[strict.index.task];
  std::vector<const Verifier*> rules;
  std::vector<std::set<std::string>> done;
  for (const LoadedCell* cell : others) {
    rules.push_back(experiment_.rules[cell->index.verifier].verifier.get());
    done.push_back(store_.replayed(cell->id));
  }
  std::vector<const Sample*> waiting;
  for (const Sample& sample : task.samples) {
    const bool known = std::all_of(done.begin(), done.end(),
                                   [&](const auto& ids) { return ids.contains(sample.id); });
    if (!known) waiting.push_back(&sample);
  }
  // Stored chunk by chunk, so that an interrupted replay goes on where it was.
  constexpr std::size_t kChunk = 16;
  const Arm base{.name = strict.label,
                 .drafter = strict.drafter.get(),
                 .verifier = nullptr,
                 .drafts = strict.drafts,
                 .batch = experiment_.decodings[strict.index.decoding].batch};
  const std::size_t chunk = std::max(kChunk, static_cast<std::size_t>(base.batch));
  for (std::size_t begin = 0; begin < waiting.size(); begin += chunk) {
    const std::size_t end = std::min(waiting.size(), begin + chunk);
    callbacks_.progress({.phase = "replay",
                         .what = strict.label,
                         .done = static_cast<std::int64_t>(begin),
                         .total = std::ssize(waiting)});
    std::vector<WorkItem> work;
    for (std::size_t i = begin; i < end; ++i) {
      std::string rendered;
      work.push_back({.sample_id = waiting[i]->id,
                      .prompt = model.prompt_ids(task.task->prompt(*waiting[i], {}), &rendered),
                      .tokens = task.max_tokens - 1,
                      .natural_end = true});
    }
    const ReplayVerifier replaying(*experiment_.rules[strict.index.verifier].verifier, rules);
    Arm arm = base;
    arm.verifier = &replaying;
    if (!decode_once(*model.target, arm, work, callbacks_.interrupted)) {
      result_.interrupted = true;
      return;
    }
    std::vector<ReplayRow> rows;
    for (std::size_t i = 0; i < work.size(); ++i) {
      for (std::size_t rule = 0; rule < others.size(); ++rule) {
        const ReplayTally& tally = replaying.requests()[i][rule];
        rows.push_back({.cell_id = others[rule]->id,
                        .run_id = run_id_,
                        .sample_id = work[i].sample_id,
                        .passes = tally.passes,
                        .drafted = tally.drafted,
                        .strict_committed = tally.strict_committed,
                        .committed = tally.committed,
                        .exceptions = tally.exceptions,
                        .regret = tally.regret});
      }
    }
    store_.save_replay(rows);
    result_.replayed += std::ssize(work);
  }
}

}  // namespace asdbench
