// asdbench train: a drafter for a target, from the target's own greedy replies to training prompts.
#include "runners/train/train.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>

#include "eval/cli/commands_internal.h"
#include "eval/config/run_config.h"
#include "eval/core/digest.h"
#include "eval/core/json.h"
#include "eval/core/output_file.h"
#include "eval/core/prompt_identity.h"
#include "runners/models/models.h"
#include "runners/train/corpus.h"
#include "tasks/common/data_catalogue.h"
#include "tasks/common/jsonl.h"

namespace asdbench::cli {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::string config;
  std::string out;
  std::string cache;
  std::int64_t steps = 0;
  std::int64_t limit = 0;
  std::vector<std::string> overrides;
  bool replies_only = false;
};

/// Prompts of one entry of `data`, with what the card says about them.
struct PromptSet {
  std::vector<TrainingPrompt> prompts;
  Json facts;
};

std::vector<std::string> user_messages(const Prompt& prompt) {
  std::vector<std::string> messages;
  for (const Message& message : prompt.messages) {
    if (message.role == Role::kUser) messages.push_back(message.content);
  }
  return messages;
}

TrainingPrompt training_prompt(std::string id, const Prompt& prompt, const Model& model) {
  return {.id = std::move(id),
          .identity = prompt_identity(user_messages(prompt)),
          .ids = model.prompt_ids(prompt, nullptr)};
}

/// Sorts by a keyed hash of the id: a larger limit keeps the prompts of a smaller one.
void order_and_limit(std::vector<TrainingPrompt>& prompts, std::uint64_t seed, std::int64_t limit) {
  std::vector<std::pair<std::string, TrainingPrompt>> keyed;
  for (TrainingPrompt& prompt : prompts) {
    std::string key = sha256_hex(fmt::format("{}\n{}", seed, prompt.id));
    keyed.emplace_back(std::move(key), std::move(prompt));
  }
  std::sort(keyed.begin(), keyed.end(), [](auto& a, auto& b) { return a.first < b.first; });
  if (static_cast<std::int64_t>(keyed.size()) > limit) {
    keyed.resize(static_cast<std::size_t>(limit));
  }
  prompts.clear();
  for (auto& [key, prompt] : keyed) prompts.push_back(std::move(prompt));
}

PromptSet prompts_of_file(const Choice& choice, const Model& model, const Paths& paths) {
  const std::string name = choice.params.text("file", "");
  const fs::path file = name.empty() ? paths.samples / "training_prompts.jsonl" : fs::path(name);
  PromptSet set;
  read_jsonl(file, [&](const JsonlRow& row) {
    const Prompt prompt{{{Role::kUser, row.text("prompt")}}};
    set.prompts.push_back(
        training_prompt(fmt::format("{} {}", kPromptFile, row.index()), prompt, model));
  });
  set.facts = {{"source", name.empty() ? "written for asdbench" : file.filename().string()},
               {"sha256", sha256_file(file)}};
  return set;
}

const TaskFactory& task_factory(const std::string& name) {
  const auto& table = task_factories();
  const auto found =
      std::find_if(table.begin(), table.end(), [&](const auto& f) { return f.name == name; });
  ASDBENCH_CHECK(found != table.end(), name + " is built in");
  return *found;
}

/// Whether the official file of the split may be absent and is.
bool may_skip(const Choice& choice, const std::string& task, const Paths& paths) {
  if (choice.params.choice("when_missing", "fail", {"fail", "skip"}) == "fail") return false;
  for (const OfficialFile& file : official_files()) {
    if (file.task == task && file.name == "train") return !fs::exists(paths.data / file.path);
  }
  return false;
}

/// The task of each entry of `data`, null for files of prompts. ConfigError for a split that is not
/// for training.
std::vector<std::unique_ptr<Task>> make_tasks(const TrainConfig& config) {
  std::vector<std::unique_ptr<Task>> tasks;
  for (const Choice& choice : config.data) {
    tasks.push_back(choice.name == kPromptFile ? nullptr
                                               : task_factory(choice.name).make(choice.params));
    if (tasks.back() == nullptr) continue;
    const std::string split = tasks.back()->info().split;
    if (split == "train") continue;
    choice.params.fail(
        "split",
        fmt::format("split {} of {} is for measuring; a drafter is trained on split train, "
                    "so that an audit can tell its prompts apart",
                    split, choice.name));
  }
  return tasks;
}

PromptSet prompts_of_task(const Choice& choice, const Task& task, const Model& model,
                          const Paths& paths) {
  const TaskInfo info = task.info();
  PromptSet set;
  set.facts = {{"source", fmt::format("{} {}", info.name, info.split)}};
  if (may_skip(choice, info.name, paths)) {
    note(
        fmt::format("warning: {}: {} {} is not there and is skipped, as the configuration "
                    "allows\n  asdbench data fetch {} brings it",
                    choice.params.where().text(), info.name, info.split, info.name));
    set.facts["skipped"] = "the official file was not there";
    return set;
  }
  for (const Sample& sample : task.load({.data = paths.data, .samples = paths.samples})) {
    set.prompts.push_back(training_prompt(fmt::format("{} {}", info.name, sample.id),
                                          task.prompt(sample, {}), model));
  }
  return set;
}

/// All prompts of the configuration, each identity once, and what the card says about them.
PromptSet gather_prompts(const TrainConfig& config, const Model& model, const Paths& paths,
                         std::uint64_t seed, std::int64_t most) {
  const std::vector<std::unique_ptr<Task>> tasks = make_tasks(config);
  PromptSet all;
  std::set<std::string> seen;
  for (std::size_t i = 0; i < config.data.size(); ++i) {
    const Choice& choice = config.data[i];
    constexpr std::int64_t kNoLimit = 1'000'000'000;
    const std::int64_t limit = choice.params.integer("limit", kNoLimit, 1, kNoLimit);
    PromptSet set = choice.name == kPromptFile ? prompts_of_file(choice, model, paths)
                                               : prompts_of_task(choice, *tasks[i], model, paths);
    choice.params.refuse_unread();
    order_and_limit(set.prompts, seed, std::min(limit, most));
    set.facts["prompts"] = set.prompts.size();
    all.facts.push_back(std::move(set.facts));
    for (TrainingPrompt& prompt : set.prompts) {
      if (seen.insert(prompt.identity).second) all.prompts.push_back(std::move(prompt));
    }
  }
  if (all.prompts.size() < 2) {
    throw ConfigError(
        fmt::format("{}: data: {} prompts were found; expected at least 2, one of them to hold out",
                    config.file.string(), all.prompts.size()));
  }
  return all;
}

/// Replies depend on all of this; each combination has a folder of its own.
fs::path reply_folder(const fs::path& cache, const TargetInfo& target, const TapPlan& plan,
                      std::int32_t max_tokens) {
  const Json identity = {{"format", 1},
                         {"target", target.sha256},
                         {"engine", target.engine},
                         {"taps", plan.indices},
                         {"max_tokens", max_tokens}};
  return cache /
         fmt::format("{}-{}", target.name, sha256_hex(canonical_json(identity)).substr(0, 16));
}

ExitCode interrupted_note() {
  note("interrupted; everything finished is kept\n  run the same command again to go on");
  return ExitCode::kInterrupted;
}

/// Opens the replies and holds out the second, so that there is one, and then the share `held_out`,
/// evenly spread. Replies too short to draft in are left out.
void open_replies(const std::vector<TrainingPrompt>& prompts, const CorpusOptions& corpus,
                  double held_out, TrainInput& input) {
  double owed = 0;
  for (const TrainingPrompt& prompt : prompts) {
    Reply reply = Reply::open(reply_file(corpus, prompt), prompt, input.taps);
    if (reply.reply_tokens() < 2) continue;
    owed += held_out;
    const bool due = owed >= 1;
    if (due) owed -= 1;
    const bool hold = due || (input.held_out.empty() && !input.train.empty());
    (hold ? input.held_out : input.train).push_back(std::move(reply));
  }
  if (input.train.empty() || input.held_out.empty()) {
    throw DataError(
        "fewer than two replies are long enough to learn from\n  add prompts, or raise "
        "replies.max_tokens");
  }
}

std::int64_t count_tokens(const std::vector<Reply>& replies) {
  std::int64_t tokens = 0;
  for (const Reply& reply : replies) tokens += reply.reply_tokens();
  return tokens;
}

std::string acceptance_text(const Acceptance& acceptance) {
  std::string text = "held out: accepted";
  for (const double share : acceptance.position) text += fmt::format(" {:.1f} %", 100 * share);
  text += "; committed per pass";
  for (std::size_t k = 0; k < acceptance.committed.size(); ++k) {
    text += fmt::format("{} K={} {:.2f}", k == 0 ? "" : ",", k + 1, acceptance.committed[k]);
  }
  return text;
}

void show(const TrainProgress& at) {
  std::string text =
      fmt::format("step {}/{}  loss {:.4f}  {:.0f} tokens/s  {} left", at.step, at.steps, at.loss,
                  at.tokens_per_second, duration_text(at.seconds_left));
  if (at.held_out) text += "\n  " + acceptance_text(*at.held_out);
  note(text);
}

/// What the drafter was made from and how good it is, for people and for audits: an audit refuses
/// prompts whose identity is listed.
Json card_of(const TrainConfig& config, const TrainOptions& options, const TargetInfo& target,
             const PromptSet& data, const TrainInput& input, const TrainOutcome& outcome) {
  std::vector<std::string> identities;
  for (const TrainingPrompt& prompt : data.prompts) identities.push_back(prompt.identity);
  std::sort(identities.begin(), identities.end());
  Json card = {
      {"name", options.name},
      {"kind", config.drafter.name},
      {"target", {{"name", target.name}, {"sha256", target.sha256}, {"engine", target.engine}}},
      {"data", data.facts},
      {"prompts", identities.size()},
      {"replies",
       {{"trained_on", input.train.size()},
        {"trained_on_tokens", count_tokens(input.train)},
        {"held_out", input.held_out.size()},
        {"held_out_tokens", count_tokens(input.held_out)}}},
      {"steps", options.steps},
      {"seed", options.seed},
      {"asdbench", build_info().version},
      {"config", config.text},
      {"prompt_identities", identities}};
  // More than one entry: the training was resumed with another number of steps.
  for (const PlannedSteps& part : outcome.schedule) {
    card["schedule"].push_back({{"from_step", part.from}, {"of_steps", part.steps}});
  }
  for (const auto& [key, value] : config.train.resolved()) card["train"][key] = value;
  for (const auto& [key, value] : config.drafter.params.resolved()) card["drafter"][key] = value;
  card["held_out"] = {{"what",
                       "strict greedy verification simulated on the target's held-out replies; "
                       "position: share of passes whose drafts 1 to j are all accepted; committed: "
                       "ids a pass commits with K drafts, the target's own included"},
                      {"replies", outcome.held_out.replies},
                      {"position", outcome.held_out.position},
                      {"committed", outcome.held_out.committed}};
  return card;
}

struct ReplyPlan {
  CorpusOptions corpus;
  double held_out = 0;
};

ReplyPlan read_replies(const Params& params) {
  ReplyPlan plan;
  plan.corpus.max_tokens = static_cast<std::int32_t>(params.integer("max_tokens", 256, 2, 65536));
  plan.corpus.batch = static_cast<std::int32_t>(params.integer("batch", 16, 1, 1024));
  plan.held_out = params.number("held_out", 0.05, 0, 0.5);
  params.refuse_unread();
  return plan;
}

void refuse_built_in(const Choice& target) {
  if (target.name != "toy" && target.name != "planted") return;
  throw ConfigError(
      fmt::format("{}: target \"{}\" has no hidden states to learn from; expected a checkpoint",
                  target.params.where().text(), target.name));
}

/// Makes what is missing of the replies; false when interrupted.
bool make_replies(Target& target, TapRecorder& recorder, const PromptSet& data,
                  const CorpusOptions& corpus) {
  ProgressLine line;
  CorpusCallbacks callbacks;
  callbacks.interrupted = interrupted;
  callbacks.progress = [&](const CorpusProgress& at) {
    line.show({.phase = "replies", .what = "prompts", .done = at.done, .total = at.total});
  };
  const bool complete = generate_replies(target, recorder, data.prompts, corpus, callbacks);
  line.clear();
  if (complete) note(fmt::format("{} replies in {}", data.prompts.size(), corpus.folder.string()));
  return complete;
}

ExitCode train(const Options& options) {
  KnownNames known = known_names_of_build();
  known.drafters = trainable_drafters();
  const TrainConfig config =
      read_train_config(options.config, known, parse_overrides(options.overrides));
  const std::optional<std::int64_t> steps =
      options.steps > 0 ? std::optional(options.steps) : std::nullopt;
  const TrainOptions train_options = read_train_options(config.train, steps);
  ReplyPlan replies = read_replies(config.replies);
  refuse_built_in(config.target);
  const Paths paths = default_paths();
  make_tasks(config);  // what they refuse must not wait for a model
  const auto checkpoint = open_checkpoint(find_checkpoint(config.target.name, paths.models));
  check_drafter_options(config.drafter.name, config.drafter.params, checkpoint->config());
  TapRecorder recorder(default_taps(checkpoint->config()));
  Model model = make_model(config.target.name, config.target.params, paths.models, recorder.tap());
  config.target.params.refuse_unread();
  for (const std::string& warning : model.warnings) note("warning: " + warning);
  const TargetInfo target = model.target->info();
  constexpr std::int64_t kNoLimit = 1'000'000'000;
  const PromptSet data = gather_prompts(config, model, paths, train_options.seed,
                                        options.limit > 0 ? options.limit : kNoLimit);

  const fs::path cache = options.cache.empty() ? paths.models / "replies" : fs::path(options.cache);
  replies.corpus.folder = reply_folder(cache, target, recorder.plan(), replies.corpus.max_tokens);
  if (!make_replies(*model.target, recorder, data, replies.corpus)) return interrupted_note();
  if (options.replies_only) return ExitCode::kPass;
  model.target.reset();  // its weights and caches are memory that training can use

  TrainInput input{.target = *checkpoint, .taps = recorder.plan(), .train = {}, .held_out = {}};
  open_replies(data.prompts, replies.corpus, replies.held_out, input);
  const fs::path folder =
      options.out.empty() ? paths.models / train_options.name : fs::path(options.out);
  const TrainOutcome outcome =
      train_drafter(config.drafter.name, config.drafter.params, input, train_options, folder,
                    {.progress = show, .interrupted = interrupted});
  if (outcome.interrupted) return interrupted_note();
  const std::string card =
      card_of(config, train_options, target, data, input, outcome).dump(2) + "\n";
  write_output_file(folder / "card.json", card);
  print(fmt::format("{}: {} steps, loss {:.4f} at first, {:.4f} at last\n{}\n", folder.string(),
                    train_options.steps, outcome.first_loss, outcome.last_loss,
                    acceptance_text(outcome.held_out)));
  return ExitCode::kPass;
}

}  // namespace

void add_train(CLI::App& app, Action& action) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("train", "Make a small drafter for a target from its own greedy replies");
  command->add_option("config", options->config, "Configuration (YAML)")->required();
  command->add_option("--out", options->out, "Folder of the drafter; default: models/NAME");
  command->add_option("--cache", options->cache, "Folder of replies; default: models/replies");
  command->add_option("--steps", options->steps, "Updates, instead of the configuration's")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1'000'000'000}, "1 to 1000000000"));
  command->add_option("--limit", options->limit, "Prompts of each entry of data")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1'000'000'000}, "1 to 1000000000"));
  command
      ->add_option("--set", options->overrides,
                   "Override a value by its path, such as train.seed=2; may be repeated")
      ->take_all();
  command->add_flag("--replies-only", options->replies_only, "Stop when all replies are there");
  command->footer("Example:\n  asdbench train configs/train/eagle3-smollm2.yaml --steps 20");
  command->callback([options, &action] { action = [options] { return train(*options); }; });
}

}  // namespace asdbench::cli
