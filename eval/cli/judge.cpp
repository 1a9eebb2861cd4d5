// asdbench judge: stored replies of MT-Bench and Alpaca are rated by a server, a target or a file.
#include "eval/run/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <sstream>

#include "eval/cli/commands_internal.h"
#include "eval/core/json.h"
#include "eval/core/output_file.h"
#include "eval/run/local_judge.h"

namespace asdbench::cli {
namespace {

struct Arguments {
  std::string database = "results/asdbench.db";
  std::string endpoint, target, export_file, import_file, annotations;  // what is done
  std::string model, key_env, prompts_file, device = "auto";
  std::vector<std::string> tasks;
  std::string mode = "auto", baseline = "strict", orders = "both";
  std::int64_t seed = 0, max_tokens = 2048;
  std::int32_t concurrency = 4, retries = 4;
  double rate = 0, timeout_s = 120, retry_wait_s = 1;
  std::optional<double> price_in, price_out;  // per million tokens
  bool dry_run = false, json = false;
};

constexpr const char* kDefaultKey = "ASDBENCH_JUDGE_KEY";

/// The key out of the environment; "" when none is needed. Never part of a message.
std::string key_of(const Arguments& arguments) {
  const std::string name = arguments.key_env.empty() ? kDefaultKey : arguments.key_env;
  const char* value = std::getenv(name.c_str());
  if (value == nullptr || *value == '\0') {
    if (arguments.key_env.empty()) return "";
    throw ConfigError(
        fmt::format("--key-env: the environment has no {}; expected the judge's key there", name));
  }
  return value;
}

void check_arguments(const Arguments& arguments) {
  const int ways = static_cast<int>(!arguments.endpoint.empty()) + !arguments.target.empty() +
                   !arguments.export_file.empty() + !arguments.import_file.empty() +
                   !arguments.annotations.empty();
  if (ways != 1) {
    throw ConfigError(
        fmt::format("judge: found {} of --endpoint, --target, --export, --import and "
                    "--annotations; expected exactly one",
                    ways));
  }
  if (arguments.model.empty() && arguments.target.empty() && arguments.annotations.empty()) {
    throw ConfigError(
        "--model: missing; expected the judge's name, which is stored with its words");
  }
}

JudgeOptions options_of(const Arguments& arguments, const JudgePrompts& prompts) {
  JudgeOptions options;
  options.judge = arguments.model.empty() ? arguments.target : arguments.model;
  options.prompts = &prompts;
  options.tasks = arguments.tasks;
  options.mode = arguments.mode == "single" ? JudgeMode::kSingle
                 : arguments.mode == "pair" ? JudgeMode::kPair
                                            : JudgeMode::kByTask;
  options.baseline = arguments.baseline == "reference" ? Baseline::kReference : Baseline::kStrict;
  options.orders = arguments.orders == "seeded" ? Orders::kSeeded : Orders::kBoth;
  options.seed = arguments.seed;
  options.max_tokens = arguments.max_tokens;
  const Paths paths = default_paths();
  options.dir = {.data = paths.data, .samples = paths.samples};
  return options;
}

/// "12345 prompt and 678 reply tokens, cost 0.12": the cost only where prices are given.
std::string cost_text(const TokenCount& count, const Arguments& arguments) {
  std::string text =
      fmt::format("{} prompt and {} reply tokens", count.prompt_tokens, count.reply_tokens);
  if (arguments.price_in && arguments.price_out) {
    constexpr double kMillion = 1e6;
    const double cost = static_cast<double>(count.prompt_tokens) / kMillion * *arguments.price_in +
                        static_cast<double>(count.reply_tokens) / kMillion * *arguments.price_out;
    text += fmt::format(", cost {:.4f}", cost);
  } else {
    text += ", cost unknown (--price-in and --price-out are not given)";
  }
  if (count.untold > 0) text += fmt::format("; {} replies without a count", count.untold);
  return text;
}

std::string before_text(const JudgePlan& plan, const Arguments& arguments) {
  std::string text;
  for (const std::string& reason : plan.notes) text += "note: " + reason + "\n";
  text += fmt::format(
      "{} judgements: {} there already, {} of equal replies, {} by the same prompt, {} to be "
      "asked\n",
      plan.all.size(), plan.done, plan.equal.size(), plan.copies.size(), plan.open.size());
  const TokenCount estimate = estimated_tokens(plan, arguments.max_tokens);
  text += fmt::format("before: about {} (prompts at 4 bytes a token, replies at their limit)\n",
                      cost_text(estimate, arguments));
  return text;
}

ExitCode report(const JudgeResult& result, const JudgePlan& plan, const Arguments& arguments) {
  const std::size_t open = plan.open.size() - result.asked.answered;
  if (arguments.json) {
    const Json out = {{"answered", result.asked.answered},
                      {"failed", result.asked.failed},
                      {"requests", result.asked.requests},
                      {"copied", result.copied},
                      {"equal", result.equal},
                      {"unrated", result.unrated},
                      {"open", open},
                      {"prompt_tokens", result.tokens.prompt_tokens},
                      {"reply_tokens", result.tokens.reply_tokens},
                      {"replies_without_count", result.tokens.untold},
                      {"interrupted", result.asked.interrupted},
                      {"fatal", result.asked.fatal}};
    print(out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
  } else {
    print(fmt::format("judged {} with {} requests, copied {}, equal {}, without a rating {}\n",
                      result.asked.answered, result.asked.requests, result.copied, result.equal,
                      result.unrated));
    print(fmt::format("after: {}\n", cost_text(result.tokens, arguments)));
  }
  if (result.asked.interrupted) {
    note("interrupted; every judgement so far is stored\n  run the same command again to go on");
    return ExitCode::kInterrupted;
  }
  if (!result.asked.fatal.empty()) {
    throw Error(ExitCode::kEnvironment,
                fmt::format("the judge cannot be asked: {}\n  check --endpoint, --model and the "
                            "key, then run the same command again to go on",
                            result.asked.fatal));
  }
  if (open > 0) {
    note(fmt::format("{} judgements failed\n  run the same command again to fill them", open));
    return ExitCode::kFail;
  }
  const std::size_t asked = result.asked.answered;
  if (asked > 0 && result.unrated == asked) {
    note(
        fmt::format("none of the judge's {} replies has a rating; they are stored as they came\n  "
                    "is {} a model that follows the format asked for?",
                    asked, arguments.model));
    return ExitCode::kFail;
  }
  return ExitCode::kPass;
}

std::function<std::unique_ptr<Judge>()> judge_maker(const Arguments& arguments) {
  if (!arguments.target.empty()) {
    return [&arguments]() -> std::unique_ptr<Judge> {
      Params params(arguments.target, {.file = "--target"});
      params.set("device", arguments.device, {.file = "--device"});
      return make_local_judge(arguments.target, params, default_paths(), arguments.max_tokens,
                              interrupted);
    };
  }
  struct Server final : Judge {
    explicit Server(const ChatServer& server) : client(server) {}
    ChatOutcome ask(const std::vector<Message>& messages) override { return client.ask(messages); }
    void stop() override { client.stop(); }
    ChatClient client;
  };
  const ChatServer server{
      .url = arguments.endpoint,
      .model = arguments.model,
      .key = key_of(arguments),
      .max_tokens = arguments.max_tokens,
      .seed = arguments.seed,
      .timeout = std::chrono::milliseconds(static_cast<std::int64_t>(arguments.timeout_s * 1000))};
  ChatClient check(server);  // a wrong address is told before anything is planned
  return [server]() -> std::unique_ptr<Judge> { return std::make_unique<Server>(server); };
}

AskOptions asking_of(const Arguments& arguments) {
  const auto milliseconds = [](double seconds) {
    return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
  };
  AskOptions asking;
  asking.concurrency = arguments.target.empty() ? arguments.concurrency : 1;
  asking.per_minute = arguments.rate;
  asking.attempts = arguments.retries + 1;
  asking.first_wait = milliseconds(arguments.retry_wait_s);
  asking.timeout = milliseconds(arguments.timeout_s);
  // A local target has no time limit of its own.
  if (!arguments.target.empty()) asking.timeout = std::chrono::hours(24);
  return asking;
}

ExitCode ask(const Arguments& arguments, const JudgeOptions& options) {
  const auto make = judge_maker(arguments);
  ResultStore store(arguments.database, OpenMode::kReadWrite);
  const JudgePlan plan = plan_judgements(store, options);
  if (!arguments.json) print(before_text(plan, arguments));
  if (arguments.dry_run) return ExitCode::kPass;
  ProgressLine line;
  const auto progress = [&](std::size_t done, std::size_t total) {
    line.show({.phase = "judge",
               .what = options.judge,
               .done = static_cast<std::int64_t>(done),
               .total = static_cast<std::int64_t>(total)});
  };
  AskOptions asking = asking_of(arguments);
  asking.waiting = [](const std::string& why, std::chrono::seconds wait) {
    note(fmt::format("{}; asking again in {} s", why, wait.count()));
  };
  const JudgeResult result = run_judgements(store, plan, make, asking, progress, interrupted);
  line.clear();
  return report(result, plan, arguments);
}

ExitCode export_to(const Arguments& arguments, const JudgeOptions& options) {
  const ResultStore store(arguments.database, OpenMode::kReadOnly);
  const JudgePlan plan = plan_judgements(store, options);
  std::ostringstream questions;
  const std::size_t count = export_questions(plan, questions);
  write_output_file(arguments.export_file, questions.str());
  print(before_text(plan, arguments));
  print(
      fmt::format("wrote {} questions to {}\n  add the judge's text to each line as "
                  "\"judgment\", then: asdbench judge {} --import FILE --model {}\n",
                  count, arguments.export_file, arguments.database, options.judge));
  return ExitCode::kPass;
}

ExitCode import_from(const Arguments& arguments, const JudgeOptions& options) {
  ResultStore store(arguments.database, OpenMode::kReadWrite);
  const JudgePlan plan = plan_judgements(store, options);
  const ImportResult result = import_judgements(store, plan, arguments.import_file);
  print(
      fmt::format("imported {} judgements, {} of them without a rating; {} lines were replaced by "
                  "later ones; {} questions are open\n",
                  result.imported, result.unrated, result.replaced, result.missing.size()));
  constexpr std::size_t kListed = 20;
  for (std::size_t i = 0; i < std::min(kListed, result.missing.size()); ++i) {
    print("missing: " + result.missing[i] + "\n");
  }
  if (result.missing.size() > kListed) {
    print(fmt::format("... and {} more\n", result.missing.size() - kListed));
  }
  return ExitCode::kPass;
}

ExitCode write_annotations(const Arguments& arguments, const JudgeOptions& options) {
  const ResultStore store(arguments.database, OpenMode::kReadOnly);
  write_output_file(arguments.annotations, alpaca_annotations(store, options.dir));
  return ExitCode::kPass;
}

ExitCode judge(const Arguments& arguments) {
  check_arguments(arguments);
  require_database(arguments.database);
  const JudgePrompts prompts = arguments.prompts_file.empty()
                                   ? own_judge_prompts()
                                   : read_judge_prompts(arguments.prompts_file);
  const JudgeOptions options = options_of(arguments, prompts);
  if (!arguments.annotations.empty()) return write_annotations(arguments, options);
  if (!arguments.export_file.empty()) return export_to(arguments, options);
  if (!arguments.import_file.empty()) return import_from(arguments, options);
  return ask(arguments, options);
}

void add_who(CLI::App& command, Arguments& arguments) {
  command.add_option("db", arguments.database, "Results database")->capture_default_str();
  command.add_option("--endpoint", arguments.endpoint,
                     "Ask this OpenAI-compatible server: https://host/v1");
  command.add_option("--target", arguments.target, "Ask a target of ours: a model's name or path");
  command.add_option("--export", arguments.export_file,
                     "Write the questions, one JSON object a line, for a judge elsewhere");
  command.add_option("--import", arguments.import_file,
                     "Read judgements made elsewhere: lines of the export or of FastChat");
  command.add_option("--annotations", arguments.annotations,
                     "Write stored preferences in AlpacaEval's form, for its own tool");
  command.add_option("--model", arguments.model, "The judge's name");
  command.add_option("--key-env", arguments.key_env,
                     fmt::format("Environment variable with the key (default {}); the key is never "
                                 "stored or printed",
                                 kDefaultKey));
  command.add_option("--device", arguments.device, "cpu, cuda or auto, for --target")
      ->check(CLI::IsMember({"cpu", "cuda", "auto"}))
      ->capture_default_str();
}

void add_what(CLI::App& command, Arguments& arguments) {
  command.add_option("--task", arguments.tasks, "mt_bench or alpaca; both when not given")
      ->check(CLI::IsMember({"mt_bench", "alpaca"}))
      ->take_all();
  command
      .add_option("--mode", arguments.mode,
                  "auto (MT-Bench is rated, Alpaca compared), single or pair")
      ->check(CLI::IsMember({"auto", "single", "pair"}))
      ->capture_default_str();
  command
      .add_option("--baseline", arguments.baseline,
                  "What pairs are against: the same target's strict output, or the reference")
      ->check(CLI::IsMember({"strict", "reference"}))
      ->capture_default_str();
  command
      .add_option("--orders", arguments.orders,
                  "Of pairs: both, or seeded (one a sample, as AlpacaEval asks)")
      ->check(CLI::IsMember({"both", "seeded"}))
      ->capture_default_str();
  command.add_option("--prompts", arguments.prompts_file,
                     "FastChat's judge_prompts.jsonl, or one of its form, in place of ours");
  command.add_option("--seed", arguments.seed, "Sent to the judge and stored")
      ->capture_default_str();
  command.add_option("--max-tokens", arguments.max_tokens, "Limit of the judge's reply")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 20, "1 to 1048576"))
      ->capture_default_str();
}

void add_how(CLI::App& command, Arguments& arguments) {
  command.add_option("--concurrency", arguments.concurrency, "Requests at the same time")
      ->check(CLI::Range(1, 256, "1 to 256"))
      ->capture_default_str();
  command.add_option("--rate", arguments.rate, "Requests a minute; 0 for no limit")
      ->check(CLI::Range(0.0, 1e6, "0 to 1000000"))
      ->capture_default_str();
  command
      .add_option("--retries", arguments.retries, "After time-outs, 429, 5xx and broken replies")
      ->check(CLI::Range(0, 100, "0 to 100"))
      ->capture_default_str();
  command.add_option("--retry-wait", arguments.retry_wait_s, "First wait in seconds; it doubles")
      ->check(CLI::Range(0.0, 3600.0, "0 to 3600"))
      ->capture_default_str();
  command.add_option("--timeout", arguments.timeout_s, "Seconds for one request")
      ->check(CLI::Range(0.1, 86400.0, "0.1 to 86400"))
      ->capture_default_str();
  command.add_option("--price-in", arguments.price_in, "Price of a million prompt tokens")
      ->check(CLI::NonNegativeNumber);
  command.add_option("--price-out", arguments.price_out, "Price of a million reply tokens")
      ->check(CLI::NonNegativeNumber);
  command.add_flag("--dry-run", arguments.dry_run, "Only say what would be asked");
  command.add_flag("--json", arguments.json, "Machine-readable output");
}

}  // namespace

void add_judge(CLI::App& app, Action& action) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand(
      "judge", "Have stored MT-Bench and Alpaca replies rated; again: fill what failed");
  add_who(*command, *arguments);
  add_what(*command, *arguments);
  add_how(*command, *arguments);
  command->footer(
      "Example:\n  asdbench judge results/asdbench.db --target smollm2-135m\n"
      "  ASDBENCH_JUDGE_KEY=... asdbench judge results/asdbench.db "
      "--endpoint https://api.example.com/v1 --model judge-large --price-in 2 --price-out 8\n"
      "  asdbench judge results/asdbench.db --export questions.jsonl --model judge-large");
  command->callback([arguments, &action] { action = [arguments] { return judge(*arguments); }; });
}

}  // namespace asdbench::cli
